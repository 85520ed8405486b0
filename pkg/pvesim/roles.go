package pvesim

import "strings"

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

// specialRoles are the roles that Proxmox VE brings and that cannot be changed.
func specialRoles(v Version) map[string][]string {
	return map[string][]string{"Administrator": administrator(v), "NoAccess": {}}
}
