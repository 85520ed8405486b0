package pve

import "errors"

// HostFault says of the error of a clone, whether in the answer or of its task, that its host or a storage there is the
// likely cause, so that it may go well on another host.
func HostFault(err error) bool {
	text := ""
	if answer := (*Error)(nil); errors.As(err, &answer) {
		if class := answer.Class(); class == Ambiguous || class == Unreachable {
			return false
		}
		text = answer.allText()
	}
	if task := (*TaskError)(nil); errors.As(err, &task) {
		text = task.ExitStatus
	}
	for _, pattern := range hostFaultTexts() {
		if (textRule{pattern: pattern}).matches(text) {
			return true
		}
	}
	return false
}

// hostFaultTexts come from PVE::Storage and its plugins, PVE::QemuServer, and the tools that these run. A full storage shows
// mostly as a copy that failed: qemu-img's own words are in the task's log alone.
func hostFaultTexts() []string {
	return []string{
		"No space left on device",
		"out of space",
		"no space",
		"not enough free space",
		"insufficient free space",
		"insufficient space",
		"quota exceeded",
		"Input/output error",
		"Read-only file system",
		"copy failed: command",
		"storage '*' is not available on node",
		"storage '*' is not online",
		"storage '*' is disabled",
		"unable to activate storage",
		"can't activate",
		"no such volume group",
		"no such logical volume",
		"lvcreate '*' error",
		"zfs error",
		"rbd error",
		"unable to create image",
		"bridge '*' does not exist",
		"Cannot allocate memory",
	}
}
