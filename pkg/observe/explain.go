package observe

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// Unavailable tells, of an error, whether it says that a region cannot be used now, and why.
func Unavailable(err error) (plan.Reason, bool) {
	var unavailable *UnavailableError
	if errors.As(err, &unavailable) {
		return unavailable.Reason, true
	}
	if reason, found := reasonOf(err); found {
		return reason, true
	}
	return plan.Reason{}, false
}

// Explain gives the reason of a pass that an error ended, with a remedy where there is one.
func Explain(err error) plan.Reason {
	if reason, unavailable := Unavailable(err); unavailable {
		return reason
	}
	switch pve.ClassOf(err) { //nolint:exhaustive // the others explain themselves, or pass
	case pve.Forbidden:
		return plan.Reason{Code: "Forbidden", Message: err.Error() + ": grant this privilege to the token, and to its user, of the region's credentials"}
	case pve.Missing:
		return plan.Reason{Code: "Missing", Message: err.Error() + ": create it in Proxmox VE, or name another one in the ProxmoxMachineTemplate"}
	case pve.RootOnly:
		return plan.Reason{Code: "RootOnly", Message: err.Error() + rootOnlyRemedy(err)}
	case pve.Invalid:
		return plan.Reason{Code: "Error", Message: err.Error() + invalidRemedy(err)}
	}
	return plan.Reason{Code: "Error", Message: err.Error()}
}

// rootOnlyRemedy says what to do about a key that no token may set.
func rootOnlyRemedy(err error) string {
	const remedy = ": no API token may do this, root's neither: put root@pam and its password into the region's credentials"
	_, quoted, found := strings.Cut(err.Error(), "only root can set '")
	if key, _, closed := strings.Cut(quoted, "'"); found && closed {
		return remedy + ", or leave " + vmconfig.FieldOf(key) + " out of the ProxmoxMachineTemplate"
	}
	return remedy
}

// invalidRemedy names the fields of a ProxmoxMachine that the refused keys of a config stand for.
func invalidRemedy(err error) string {
	var answer *pve.Error
	if !errors.As(err, &answer) || !strings.HasSuffix(answer.Path, "/config") || len(answer.Params) == 0 {
		return ""
	}
	var fields []string
	for _, key := range slices.Sorted(maps.Keys(answer.Params)) {
		fields = append(fields, vmconfig.FieldOf(key))
	}
	return ": correct " + strings.Join(slices.Compact(fields), ", ") + " in the ProxmoxMachineTemplate"
}

// IsOfProxmox reports whether an error came from Proxmox VE or on the way there, not from Kubernetes.
func IsOfProxmox(err error) bool {
	var answer *pve.Error
	var task *pve.TaskError
	_, unavailable := Unavailable(err)
	return unavailable || errors.As(err, &answer) || errors.As(err, &task)
}
