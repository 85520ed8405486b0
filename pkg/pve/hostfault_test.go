package pve_test

import (
	"errors"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func TestWhichFailuresOfAClonesAreItsHosts(t *testing.T) {
	for text, want := range map[string]bool{
		"clone failed: copy failed: command '/usr/bin/qemu-img convert -p' failed: exit code 1":           true,
		"clone failed: unable to create image: lvcreate 'pve/vm-1-disk-0' error: insufficient free space": true,
		"storage 'nfs' is not online": true,
		"can't activate LV '/dev/pve/vm-1-disk-0':   Failed to find logical volume": true,
		"storage 'fast' is not available on node 'pve2'":                            true,
		"bridge 'vmbr7' does not exist":                                             true,
		"can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout":      false,
		"VM is locked (clone)":                                                      false,
		"unable to create VM 101: config file already exists":                       false,
		"Permission check failed (/storage/local-lvm, Datastore.AllocateSpace)":     false,
	} {
		for _, err := range []error{&pve.TaskError{ExitStatus: text}, &pve.Error{Method: "POST", Status: 500, Reason: text}} {
			if got := pve.HostFault(err); got != want {
				t.Errorf("%v: the host's fault: %t, want %t", err, got, want)
			}
		}
	}
	if pve.HostFault(errors.New("out of space")) || pve.HostFault(nil) || pve.HostFault(&pve.Error{Method: "POST", Status: 596, Reason: "out of space"}) {
		t.Error("only what Proxmox VE said counts")
	}
}
