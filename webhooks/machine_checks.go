package webhooks

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// machineSubject is a machine's spec to check, and what is known of whose it is.
type machineSubject struct {
	path *field.Path
	spec v1beta1.ProxmoxMachineSpec
	// machine, cluster and namespace are the names that vmName may have; empty where they are not known yet.
	machine, cluster, namespace string
}

// checkMachine says what is wrong with a machine's spec that the rules of the CRD do not say: what is wrong with one entry of a
// list, or with a number, which CEL cannot name for what it would cost; and what only shows when names are put together.
func checkMachine(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	for _, check := range []func(machineSubject) field.ErrorList{
		checkCPU, checkMemory, checkDisks, checkDiskBuses, checkSeedDrive, checkHardware,
		checkCards, checkRoutes, checkVRFs, checkDefaultRoutes, checkSecurityGroups, checkAffinity, checkNames, checkRawConfig,
	} {
		errs = append(errs, check(s)...)
	}
	return append(errs, checkRange(s.path.Child("vmIDRange"), s.spec.VMIDRange)...)
}

// news are the errors that an object did not have before: what is wrong already must not keep other changes, the provider's own
// among them, from being made.
func news(before, now field.ErrorList) field.ErrorList {
	had := map[string]bool{}
	for _, err := range before {
		had[err.Error()] = true
	}
	var errs field.ErrorList
	for _, err := range now {
		if !had[err.Error()] {
			errs = append(errs, err)
		}
	}
	return errs
}

func checkRange(path *field.Path, vmIDs v1beta1.VMIDRange) field.ErrorList {
	if vmIDs.Start <= vmIDs.End {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("start"), vmIDs.Start, "start must not be above end: exchange them")}
}

func isTrue(value *bool) bool { return value != nil && *value }

func isFalse(value *bool) bool { return value != nil && !*value }
