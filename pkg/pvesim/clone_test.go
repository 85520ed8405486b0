package pvesim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// slowCopy makes the clone of a template take 40 s.
const slowCopy = "50000"

// begun waits until the worker of a clone has made the config.
func (a *api) begun(id proxmox.VMID) {
	a.t.Helper()
	eventually(a.t, "the worker begins", func() bool { _, there := a.server.World.VM(id); return there })
}

// TestCloneHoldsTheVMIDUnderALock looks into a clone while it runs.
func TestCloneHoldsTheVMIDUnderALock(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		upid := a.must("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200", "name", "c", "full", "1", "pool", "capi", "bwlimit", slowCopy)
		a.begun(200)
		config := a.object("/nodes/pve1/qemu/200/config")
		delete(config, "digest")
		if diff := cmp.Diff(map[string]any{"lock": "clone", "description": " qmclone temporary file"}, config); diff != "" {
			t.Errorf("config during the clone:\n%s", diff)
		}
		if got := a.object("/nodes/pve1/qemu/200/status/current"); got["lock"] != "clone" || got["name"] != "VM 200" {
			t.Errorf("status during the clone is %v", got)
		}
		if members := a.object("/pools/capi")["members"].([]any); len(members) != 0 {
			t.Errorf("pool has %v before the clone ends", members)
		}
		if r := a.do("GET", "/cluster/nextid", "vmid", "200"); r.errors["vmid"] != "VM 200 already exists" {
			t.Errorf("nextid of a VMID being cloned: %v", r)
		}
		if exit := a.wait(upid); exit != "OK" {
			t.Fatal(exit)
		}
		if v, _ := a.server.World.VM(200); v.Pool != "capi" || v.Lock != "" || v.Config["name"] != "c" {
			t.Errorf("VM after the clone is %+v", v)
		}
	})
}

// TestConfigOfACloneUnderWay shows how the releases differ: 8.4 waits for the lock file, 9.2 refuses at once and holds the
// source instead.
func TestConfigOfACloneUnderWay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		version                pvesim.Version
		targetWants, sourceHas string
	}{
		{pvesim.V84, "can't lock file '/var/lock/qemu-server/lock-200.conf' - got timeout", "OK"},
		{pvesim.V92, "VM is locked (clone)", "can't lock file '/var/lock/qemu-server/lock-300.conf' - got timeout"},
	}
	for _, tt := range tests {
		t.Run(string(tt.version), func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, a *api) {
				if err := a.server.World.AddVM(pvesim.VMSpec{VMID: 300, Node: "pve1", Config: map[string]string{"name": "src", "scsi0": "shared:300/vm-300-disk-0.qcow2,size=10G"}}); err != nil {
					t.Fatal(err)
				}
				// 2 GiB at this speed are 400 s, longer than the 10 s that a lock file is waited for.
				upid := a.must("POST", "/nodes/pve1/qemu/300/clone", "newid", "200", "full", "1", "bwlimit", "5000")
				a.begun(200)
				if r := a.do("PUT", "/nodes/pve1/qemu/200/config", "cores", "2"); r.reason != tt.targetWants {
					t.Errorf("PUT on the target: %d %s", r.status, r.reason)
				}
				if r := a.do("PUT", "/nodes/pve1/qemu/300/config", "description", "x"); r.reason != tt.sourceHas {
					t.Errorf("PUT on the source: %d %s", r.status, r.reason)
				}
				if exit := a.exit("DELETE", "/nodes/pve1/qemu/200"); exit != "can't lock file '/var/lock/qemu-server/lock-200.conf' - got timeout" {
					t.Errorf("destroy of the target: %s", exit)
				}
				if exit := a.wait(upid); exit != "OK" {
					t.Error(exit)
				}
			}, pvesim.WithVersion(tt.version))
		})
	}
}

func TestStoppedCloneCleansUp(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		upid := fmt.Sprint(a.must("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200", "full", "1"))
		a.begun(200)
		a.must("DELETE", "/nodes/pve1/tasks/"+upid)
		if exit := a.wait(upid); !strings.HasSuffix(exit, "interrupted by signal") {
			t.Errorf("exit status %q", exit)
		}
		if _, there := a.server.World.VM(200); there {
			t.Error("the clone is left")
		}
		if broken := a.server.World.Check(); len(broken) > 0 {
			t.Error(broken)
		}
	})
}

// TestHostLostDuringAClone leaves what a killed worker leaves: a locked config that no token can remove.
func TestHostLostDuringAClone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		a.client.Transport = signed{a.server.World.Transport("pve2"), a.server.Token}
		upid := a.must("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200", "full", "1", "bwlimit", slowCopy)
		a.begun(200)
		a.server.World.StopNode("pve1")
		if r := a.do("GET", "/nodes/pve1/qemu/200/config"); r.status != 595 || r.reason != "No route to host" || r.body != "" {
			t.Errorf("request for a lost host: %+v", r)
		}
		a.server.World.StartNode("pve1")
		if exit := a.wait(upid); exit != "unexpected status" {
			t.Errorf("exit status %q", exit)
		}
		if exit := a.exit("DELETE", "/nodes/pve1/qemu/200", "purge", "1"); exit != "VM is locked (clone)" {
			t.Errorf("destroy of the left-over: %q", exit)
		}
		if r := a.do("DELETE", "/nodes/pve1/qemu/200", "skiplock", "1"); r.errors["skiplock"] != "Only root may use this option." {
			t.Errorf("skiplock by token: %+v", r)
		}
		if broken := a.server.World.Check(); len(broken) == 0 {
			t.Error("a locked VM without a task is no broken invariant")
		}
	})
}

func TestClonePlacement(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		if _, err := a.server.World.AddTemplate(pvesim.TemplateSpec{Name: "everywhere", Storage: "shared", FirstVMID: 9100}); err != nil {
			t.Fatal(err)
		}
		refusals := []struct {
			reason string
			params []string
		}{
			{"can't clone VM to node 'pve3' (VM uses local storage)", []string{"newid", "200", "target", "pve3"}},
			{"can't clone to non-shared storage 'local-lvm'", []string{"newid", "200", "target", "pve3", "full", "1", "storage", "local-lvm"}},
			{"no such cluster node 'pve9'", []string{"newid", "200", "target", "pve9"}},
			{"parameter 'storage' not allowed for linked clones", []string{"newid", "200", "storage", "shared"}},
			{"storage 'nope' does not exist", []string{"newid", "200", "full", "1", "storage", "nope"}},
			{"unable to create VM 9001: config file already exists", []string{"newid", "9001"}},
		}
		for _, r := range refusals {
			if got := a.do("POST", "/nodes/pve1/qemu/9001/clone", r.params...); got.status != 500 || got.reason != r.reason {
				t.Errorf("clone %v: %d %s, want %s", r.params, got.status, got.reason, r.reason)
			}
		}
		a.ok("POST", "/nodes/pve1/qemu/9100/clone", "newid", "201", "target", "pve3")
		if v, _ := a.server.World.VM(201); v.Node != "pve3" || v.Config["scsi0"] != "shared:9100/base-9100-disk-0.qcow2/201/vm-201-disk-0.qcow2,size=10G" {
			t.Errorf("linked clone is %+v", v)
		}
		if exit := a.exit("DELETE", "/nodes/pve1/qemu/9100"); exit != "base volume 'shared:9100/base-9100-disk-0.qcow2' is still in use by linked cloned" {
			t.Errorf("destroy of a base: %s", exit)
		}
		if exit := a.exit("POST", "/nodes/pve1/qemu/9001/clone", "newid", "201"); !strings.HasSuffix(exit, "File exists") {
			t.Errorf("clone to a VMID of another node: %s", exit)
		}
		one, two := a.must("POST", "/nodes/pve1/qemu/9001/clone", "newid", "202"), a.do("POST", "/nodes/pve1/qemu/9001/clone", "newid", "202")
		const taken = "unable to create VM 202: config file already exists"
		if exit := a.wait(one); exit != "OK" {
			t.Error(exit)
		}
		// The second request may come before the worker of the first has made the config: then its own worker is refused.
		if two.reason != taken && (two.status != http.StatusOK || a.wait(two.data) == "OK") {
			t.Errorf("second clone to one VMID: %+v", two)
		}
	})
}
