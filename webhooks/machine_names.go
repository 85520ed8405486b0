package webhooks

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// checkNames refuses a vmName, or without one a machine's name, that makes no DNS name. Names that are not known yet are taken to be as short as can be: the rest
// shows before the VM is made.
func checkNames(s machineSubject) field.ErrorList {
	const shortest = "x"
	desired := vmconfig.Desired{
		Machine: cmp.Or(s.machine, shortest), Cluster: cmp.Or(s.cluster, shortest), Namespace: cmp.Or(s.namespace, shortest), Spec: s.spec,
	}
	_, err := desired.Name()
	switch {
	case err == nil:
		return nil
	case s.spec.VMName == "":
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), s.machine, err.Error())}
	}
	return field.ErrorList{field.Invalid(s.path.Child("vmName"), s.spec.VMName, err.Error())}
}

// rawKey is how the keys of a VM's config look.
var rawKey = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`) //nolint:gochecknoglobals // compiled once

// checkRawConfig refuses keys that are not rawConfig's to set, and values that are none. It does not repeat values: somebody may
// have put a password there.
func checkRawConfig(s machineSubject) field.ErrorList {
	const longest = 4096
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(s.spec.RawConfig)) {
		path, value := s.path.Child("rawConfig").Key(key), s.spec.RawConfig[key]
		switch of, refused := vmconfig.RefusedKey(key); {
		case of != "":
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("rawConfig has the key %s, which the field %s is for: set it there, and leave it out here", key, of)))
		case refused:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("rawConfig has the key %s, which is the provider's, or Proxmox VE's own: leave it out", key)))
		case !rawKey.MatchString(key):
			errs = append(errs, field.Invalid(path, key, "a key of a VM's config is of lower-case letters, digits, - and _: correct it"))
		case value == "":
			errs = append(errs, field.Required(path, "give the key a value, or leave it out"))
		case len(value) > longest:
			errs = append(errs, field.TooLong(path, nil, longest))
		case strings.ContainsFunc(value, unicode.IsControl):
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "the value has a line break or another control character: a value is one line"))
		}
	}
	return errs
}
