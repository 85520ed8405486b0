package pvesim

import (
	"slices"
	"strings"
)

// administrator lists all privileges of a release.
func administrator(v Version) []string {
	list := strings.Fields(`Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit Group.Allocate
		Mapping.Audit Mapping.Modify Mapping.Use Permissions.Modify Pool.Allocate Pool.Audit Realm.Allocate Realm.AllocateUser
		SDN.Allocate SDN.Audit SDN.Use Sys.AccessNetwork Sys.Audit Sys.Console Sys.Incoming Sys.Modify Sys.PowerMgmt Sys.Syslog
		User.Modify VM.Allocate VM.Audit VM.Backup VM.Clone VM.Config.CDROM VM.Config.CPU VM.Config.Cloudinit VM.Config.Disk
		VM.Config.HWType VM.Config.Memory VM.Config.Network VM.Config.Options VM.Console VM.Migrate VM.PowerMgmt VM.Snapshot
		VM.Snapshot.Rollback`)
	if v == V84 {
		return append(list, "VM.Monitor")
	}
	return append(list, "VM.GuestAgent.Audit", "VM.GuestAgent.FileRead", "VM.GuestAgent.FileSystemMgmt", "VM.GuestAgent.FileWrite",
		"VM.GuestAgent.Unrestricted", "VM.Replicate")
}

// noAccess is the role that takes all others away on its path.
const noAccess = "NoAccess"

// specialRoles are the roles that Proxmox VE brings and that cannot be changed.
func specialRoles(v Version) map[string][]string {
	all := administrator(v)
	begins := func(prefix string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return !strings.HasPrefix(p, prefix) })
	}
	out := map[string][]string{
		"Administrator": all, noAccess: {}, "PVEAdmin": pveAdmin(all), "PVEAuditor": strings.Fields("Datastore.Audit Mapping.Audit Pool.Audit SDN.Audit Sys.Audit VM.Audit"),
		"PVEDatastoreAdmin": begins("Datastore."), "PVEDatastoreUser": {"Datastore.AllocateSpace", "Datastore.Audit"},
		"PVEMappingAdmin": begins("Mapping."), "PVEMappingUser": {"Mapping.Audit", "Mapping.Use"},
		"PVEPoolAdmin": begins("Pool."), "PVEPoolUser": {"Pool.Audit"}, "PVESDNAdmin": begins("SDN."), "PVESDNUser": {"SDN.Audit", "SDN.Use"},
		"PVESysAdmin": {"Sys.Audit", "Sys.Console", "Sys.Syslog"}, "PVETemplateUser": {"VM.Audit", "VM.Clone"},
		"PVEUserAdmin": {"Group.Allocate", "Realm.AllocateUser", "User.Modify"}, "PVEVMAdmin": begins("VM."),
		"PVEVMUser": strings.Fields("VM.Audit VM.Backup VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.PowerMgmt"),
	}
	if v == V92 {
		out["PVEAuditor"] = append(out["PVEAuditor"], "VM.GuestAgent.Audit")
		out["PVEVMUser"] = append(out["PVEVMUser"], "VM.GuestAgent.Audit", "VM.GuestAgent.FileRead", "VM.GuestAgent.FileSystemMgmt", "VM.GuestAgent.FileWrite")
	}
	return out
}

// pveAdmin is all but what is root's own.
func pveAdmin(all []string) []string {
	roots := strings.Fields("Mapping.Modify Permissions.Modify Realm.Allocate Sys.AccessNetwork Sys.Incoming Sys.Modify Sys.PowerMgmt")
	return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return slices.Contains(roots, p) })
}
