package vmconfig

import (
	"fmt"
	"regexp"
	"strings"
)

// placeholder is a name in double braces.
var placeholder = regexp.MustCompile(`\{\{\s*(\S*?)\s*\}\}`) //nolint:gochecknoglobals // compiled once

// dnsName is what Proxmox VE takes for a VM's name (PVE::JSONSchema, dns-name).
var dnsName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`) //nolint:gochecknoglobals // compiled once

// Name returns the VM's name: spec.vmName with its placeholders replaced, or the machine's name.
func (d Desired) Name() (string, error) {
	const longest = 253
	if d.Spec.VMName == "" {
		if !dnsName.MatchString(d.Machine) {
			return "", fmt.Errorf("the machine's name, %q, is no DNS name with at most 63 characters between dots, as Proxmox VE wants for a VM: set vmName, or make a machine with another name", d.Machine)
		}
		return d.Machine, nil
	}
	values := map[string]string{".Machine": d.Machine, ".Cluster": d.Cluster, ".Namespace": d.Namespace}
	var unknown []string
	name := placeholder.ReplaceAllStringFunc(d.Spec.VMName, func(text string) string {
		value, known := values[placeholder.FindStringSubmatch(text)[1]]
		if !known {
			unknown = append(unknown, text)
		}
		return value
	})
	switch {
	case len(unknown) > 0:
		return "", fmt.Errorf("vmName %q has %s: use {{ .Machine }}, {{ .Cluster }} and {{ .Namespace }}", d.Spec.VMName, strings.Join(unknown, ", "))
	case len(name) > longest || !dnsName.MatchString(name):
		return "", fmt.Errorf("vmName %q makes %q, which is no DNS name: it may have letters, digits, - and ., with 63 characters between dots and %d in all, and - neither first nor last: correct it",
			d.Spec.VMName, name, longest)
	}
	return name, nil
}
