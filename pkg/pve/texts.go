package pve

import "strings"

// textRule gives the class of texts that match a pattern: its pieces between the stars, in order.
type textRule struct {
	pattern string
	class   Class
}

func (r textRule) matches(text string) bool {
	for piece := range strings.SplitSeq(r.pattern, "*") {
		_, after, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// classOfText finds the first rule that matches what PVE said, in an answer or as a task's exit status.
func classOfText(text string) Class {
	for _, rules := range [][]textRule{privilegeTexts(), clusterTexts(), lockTexts(), guestTexts(), thingTexts(), absentTexts(), requestTexts()} {
		for _, rule := range rules {
			if rule.matches(text) {
				return rule.class
			}
		}
	}
	return Other
}

// privilegeTexts come from PVE::RPCEnvironment and check_vm_modify_config_perm in PVE::API2::Qemu.
func privilegeTexts() []textRule {
	return []textRule{
		{"Permission check failed (pool '*' does not exist)", Missing},
		{"Only root may use this option", RootOnly},
		{"only root can set", RootOnly},
		{"Only root can pass arbitrary filesystem paths", RootOnly},
		{"Permission check failed", Forbidden},
	}
}

// clusterTexts come from pmxcfs and PVE::Cluster.
func clusterTexts() []textRule {
	return []textRule{
		{"no quorum", NoQuorum},
		{"unable to open file '/etc/pve/*Permission denied", NoQuorum},
		{"hostname lookup '*' failed", Missing},
		{"no such cluster node", Missing},
		{"detected modified configuration", Conflict},
		{"checksum mismatch (file change by other user?)", Conflict},
		{"/etc/pve/nodes/*File exists", AlreadyExists},
	}
}

// lockTexts come from PVE::AbstractConfig::check_lock, PVE::Tools::lock_file and cfs_lock.
func lockTexts() []textRule {
	return []textRule{
		{"VM is locked (", Locked},
		{"CT is locked (", Locked},
		{"can't lock file", Locked},
		{"got lock request timeout", Locked},
		{"could not acquire lock", Locked},
		{"protection mode enabled", Protected},
		{"unexpected status", Interrupted},
		{"received interrupt", Interrupted},
		{"interrupted by signal", Interrupted},
		{"got signal", Interrupted},
		{"migration aborted", Interrupted},
	}
}

// guestTexts come from PVE::QemuServer and PVE::API2::Qemu.
func guestTexts() []textRule {
	return []textRule{
		{"Configuration file 'nodes/*' does not exist", NotFound},
		{"unable to find configuration file for", NotFound},
		{"unable to create VM *config file already exists", AlreadyExists},
		{"unable to create VM *already exists", AlreadyExists},
		{"VM * already exists", AlreadyExists},
		{"used in HA resources", Busy},
		{"is still in use by linked clone", Busy},
		{"is running - destroy failed", WrongState},
		{"already running", WrongState},
		{"VM * not running", WrongState},
		{"VM is paused", WrongState},
		{"if VM is running", WrongState},
		{"running VM without --online", WrongState},
		{"you can't start a vm if it's a template", WrongState},
		{"guest agent is not running", Unresponsive},
		{"VM quit/powerdown failed", Unresponsive},
		{"qmp command *got timeout", Unresponsive},
		{"hotplug problem", Unresponsive},
		{"No QEMU guest agent configured", Invalid},
		{"Agent error", Invalid},
	}
}

// thingTexts are about storages, volumes, hardware and memory.
func thingTexts() []textRule {
	return []textRule{
		{"No space left on device", Capacity},
		{"out of space", Capacity},
		{"not enough free space", Capacity},
		{"insufficient free space", Capacity},
		{"insufficient space", Capacity},
		{"quota exceeded", Capacity},
		{"Cannot allocate memory", Capacity},
		{"cannot set up guest memory", Capacity},
		{"MAX * vcpus allowed per VM on this node", Unfit},
		{"host NUMA node* doesn't exist", Unfit},
		{"bridge '*' does not exist", Unfit},
		{"storage '*' is not available on node", Unfit},
		{"storage '*' is disabled", Unfit},
		{"is too old to run machine type", Unfit},
		{"PCI device mapping invalid", Unfit},
		{"unable to get any free VMID", Capacity},
		{"upid: no such task", NotFound},
		{"already exists", AlreadyExists},
		{"already defined", AlreadyExists},
		{"already a pool member", AlreadyExists},
		{"is not empty", Busy},
		{"is used by", Busy},
	}
}

// absentTexts name what does not exist, by its kind: the same words about anything else, of a tool or a plugin, say nothing
// that a person could make or name otherwise.
func absentTexts() []textRule {
	kinds := []string{
		"node", "volume group", "logical volume", "security group", "IPSet", "ipset", "alias", "IP/Network",
		"resource", "ha rule", "ha group", "token", "user", "group", "role",
	}
	rules := make([]textRule, 0, len(kinds))
	for _, kind := range kinds {
		rules = append(rules, textRule{"no such " + kind, Missing})
	}
	return rules
}

// requestTexts are 500s that say the request itself is wrong, and those that name what does not exist.
func requestTexts() []textRule {
	return []textRule{
		{"no such option", Invalid},
		{"No such storage", Missing},
		{"does not exist", Missing},
		{"doesn't exist", Missing},
		{"failed to stat", Missing},
		{"not found", Missing},
		{"not a pool member", Missing},
		{"no rule at position", Missing},
		{"not HA managed", Missing},
		{"unmanaged resource", Missing},
		{"non-existent node", Missing},
		{"Parameter verification failed", Invalid},
		{"VM uses local storage", Invalid},
		{"can't clone to non-shared storage", Invalid},
		{"not allowed for linked clones", Invalid},
		{"Linked clone feature is not supported", Invalid},
		{"shrinking disks is not supported", Invalid},
		{"you can't resize a cdrom", Invalid},
		{"checksum mismatch: got", Invalid},
		{"total memory for NUMA nodes", Invalid},
		{"is not configured for content-type", Invalid},
		{"does not support '", Invalid},
		{"have been migrated to rules", Invalid},
		{"is already attached at", Invalid},
		{"balloon value too large", Invalid},
		{"missing value for required option", Invalid},
		{"unable to parse", Invalid},
		{"validation error", Invalid},
		{"only backups ", Invalid},
		{"must be set", Invalid},
		{" specified", Invalid},
		{"no format", Invalid},
		{"wrong field name", Invalid},
		{"Rule '*' is invalid", Invalid},
		{"is too short", Invalid},
	}
}
