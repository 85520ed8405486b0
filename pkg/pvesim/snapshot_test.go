package pvesim_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// snapshots are names and parents of a VM's snapshots as the API lists them.
func (a *api) snapshots(path string) []string {
	a.t.Helper()
	var out []string
	for _, s := range a.list(path) {
		out = append(out, fmt.Sprintf("%v<%v ram=%v", s["name"], s["parent"], s["vmstate"]))
	}
	return out
}

func TestSnapshotsOfAVM(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	w := a.server.World
	must(t, w.AddVM(pvesim.VMSpec{VMID: 300, Node: "pve1", Config: map[string]string{"name": "one", "cores": "1", "description": "stays", "scsi0": "shared:300/vm-300-disk-0.qcow2,size=1G"}}))
	const path = "/nodes/pve1/qemu/300"
	a.ok("POST", path+"/snapshot", "snapname", "s1", "description", "first\n")
	a.must("PUT", path+"/config", "cores", "2", "name", "two")
	a.ok("POST", path+"/snapshot", "snapname", "s2", "vmstate", "1")
	a.must("PUT", path+"/snapshot/s2/config", "description", "second")
	a.must("PUT", path+"/config", "cores", "3")
	if diff := cmp.Diff([]string{"s1<<nil> ram=0", "s2<s1 ram=0", "current<s2 ram=<nil>"}, a.snapshots(path+"/snapshot")); diff != "" {
		t.Errorf("list:\n%s", diff)
	}
	config := a.object(path+"/config", "snapshot", "s1")
	if config["cores"] != 1.0 || config["name"] != "one" || config["description"] != "first" || config["parent"] != nil || config["digest"] != a.object(path + "/config")["digest"] {
		t.Errorf("config at s1: %v", config)
	}
	if config := a.object(path + "/snapshot/s2/config"); config["cores"] != 2.0 || config["parent"] != "s1" || config["description"] != "second" || config["digest"] != nil {
		t.Errorf("section of s2: %v", config)
	}
	if index := a.list(path + "/snapshot/s2"); len(index) != 2 {
		t.Errorf("index: %v", index)
	}
	a.ok("POST", path+"/clone", "newid", "301", "snapname", "s1")
	if v, _ := w.VM(301); v.Config["description"] != "first" || v.Config["cores"] != "1" || v.Config["parent"] != "" {
		t.Errorf("clone of s1: %v", v.Config)
	}
	a.ok("DELETE", "/nodes/pve1/qemu/301")
	a.ok("POST", path+"/config", "scsi1", "shared:1")
	a.ok("POST", path+"/snapshot/s1/rollback")
	if v, _ := w.VM(300); v.Config["cores"] != "1" || v.Config["scsi1"] != "" || v.Config["unused0"] != "shared:300/vm-300-disk-1.raw" || v.Config["name"] != "one" || v.Config["parent"] != "s1" || v.Config["description"] != "stays" || v.Lock != "" {
		t.Errorf("after the rollback: %v", v.Config)
	}
	a.ok("DELETE", path+"/snapshot/s1")
	if diff := cmp.Diff([]string{"s2<<nil> ram=0", "current<<nil> ram=<nil>"}, a.snapshots(path+"/snapshot")); diff != "" {
		t.Errorf("list after the delete:\n%s", diff)
	}
	if broken := w.Check(); len(broken) > 0 {
		t.Error(broken)
	}
	a.ok("DELETE", path)
}

// TestSnapshotWithMemory takes one of a running VM, goes back to it, which starts the VM, and destroys it.
func TestSnapshotWithMemory(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		const path = "/nodes/pve1/qemu/400"
		must(t, b.world.AddVM(pvesim.VMSpec{VMID: 400, Node: "pve1", State: "running", Config: map[string]string{"memory": "4096", "scsi0": "shared:400/vm-400-disk-0.qcow2,size=1G"}}))
		took := after(func() { b.exit("pve1", "POST", path+"/snapshot", "snapname", "s1", "vmstate", "1") })
		if took < 8*time.Second {
			t.Errorf("4 GiB of memory were saved in %v", took)
		}
		b.exit("pve1", "POST", path+"/status/stop")
		if exit := b.exit("pve1", "POST", path+"/snapshot/s1/rollback"); exit != "OK" {
			t.Errorf("rollback: %s", exit)
		}
		if v, _ := b.world.VM(400); v.Status != "running" || len(b.world.Check()) > 0 {
			t.Errorf("after the rollback: %+v %v", v, b.world.Check())
		}
		volumes := len(b.world.Volumes())
		rebuilt := newWorld(t, pvesim.FromState(b.world.State()))
		if diff := cmp.Diff(b.world.State().VMs, rebuilt.State().VMs); diff != "" || len(rebuilt.Volumes()) != volumes {
			t.Errorf("the world differs (-first +rebuilt):\n%s", diff)
		}
		b.exit("pve1", "POST", path+"/status/stop")
		b.exit("pve1", "DELETE", path)
		if got := len(b.world.Volumes()); got != volumes-2 {
			t.Errorf("%d of %d volumes are left", got, volumes)
		}
		rebuilt.Close()
	})
}

// byTicket sends requests as root@pam after a login.
type byTicket struct {
	next         http.RoundTripper
	ticket, csrf string
}

func (x byTicket) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.AddCookie(&http.Cookie{Name: "PVEAuthCookie", Value: url.PathEscape(x.ticket)})
	r.Header.Set("CSRFPreventionToken", x.csrf)
	return x.next.RoundTrip(r)
}

// TestAVMDestroyedUnderASnapshot is what root can do with skiplock while the VM's memory is saved.
func TestAVMDestroyedUnderASnapshot(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		const path = "/nodes/pve1/qemu/400"
		must(t, b.world.AddVM(pvesim.VMSpec{VMID: 400, Node: "pve1", State: "running", Config: map[string]string{"memory": "8192", "scsi0": "shared:400/vm-400-disk-0.qcow2,size=1G"}}))
		_, login := b.send("pve1", "POST", "/access/ticket", "username", "root@pam", "password", "pvesim")
		answer, _ := login.(map[string]any)
		transport := byTicket{b.world.Transport("pve1"), fmt.Sprint(answer["ticket"]), fmt.Sprint(answer["CSRFPreventionToken"])}
		root := &api{t: t, server: &pvesim.Server{URL: "https://pve"}, client: &http.Client{Transport: transport}}
		_, upid := b.send("pve1", "POST", path+"/snapshot", "snapname", "s1", "vmstate", "1")
		if v, _ := b.world.VM(400); v.Lock != "snapshot" {
			t.Errorf("during the snapshot: %+v", v)
		}
		root.must("POST", path+"/status/stop", "skiplock", "1")
		b.pass(2 * time.Second)
		root.must("DELETE", path, "skiplock", "1")
		b.pass(30 * time.Second)
		if lines := b.log(upid); lines[len(lines)-1] != "TASK ERROR: Configuration file 'nodes/pve1/qemu-server/400.conf' does not exist" {
			t.Errorf("log: %q", lines)
		}
		if _, there := b.world.VM(400); there || len(b.world.Check()) > 0 {
			t.Errorf("left behind: %v", b.world.Check())
		}
	})
}

func TestRefusedSnapshots(t *testing.T) {
	t.Parallel()
	a := everyStorage(t)
	w := a.server.World
	must(t, w.AddVM(pvesim.VMSpec{VMID: 300, Node: "pve1", Config: map[string]string{"scsi0": "dir:300/vm-300-disk-0.raw,size=1G"}}))
	must(t, w.AddVM(pvesim.VMSpec{VMID: 301, Node: "pve1", Config: map[string]string{"lock": "backup"}}))
	must(t, w.AddVM(pvesim.VMSpec{VMID: 302, Node: "pve1", Config: map[string]string{"template": "1"}, Snapshots: []pvesim.SnapshotSpec{{Name: "s1"}}}))
	a.ok("POST", "/nodes/pve1/qemu/103/snapshot", "snapname", "s1")
	a.ok("POST", "/nodes/pve1/qemu/103/snapshot", "snapname", "s2")
	for _, tt := range []struct{ method, path, name, want string }{
		{"POST", "300/snapshot", "s1", "snapshot feature is not available"},
		{"POST", "301/snapshot", "s1", "VM is locked (backup)"},
		{"POST", "302/snapshot", "s2", "you can't take a snapshot if it's a template"},
		{"POST", "999/snapshot", "s1", "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist"},
		{"POST", "103/snapshot", "s1", "snapshot name 's1' already used"},
		{"POST", "103/snapshot/s1/rollback", "", "can't rollback, 's1' is not most recent snapshot on 'zfspool:vm-103-disk-0'"},
		{"POST", "103/snapshot/s9/rollback", "", "snapshot 's9' does not exist"},
		{"POST", "302/snapshot/s1/rollback", "", "you can't rollback if vm is a template"},
		{"DELETE", "302/snapshot/s1", "", "you can't delete a snapshot if vm is a template"},
		{"DELETE", "103/snapshot/s9", "", "snapshot 's9' does not exist"},
	} {
		params := []string{}
		if tt.name != "" {
			params = append(params, "snapname", tt.name)
		}
		if exit := a.exit(tt.method, "/nodes/pve1/qemu/"+tt.path, params...); exit != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.method, tt.path, exit, tt.want)
		}
	}
	for path, want := range map[string]string{
		"GET /nodes/pve1/qemu/103/snapshot/s9/config": "snapshot 's9' does not exist",
		"PUT /nodes/pve1/qemu/301/snapshot/s1/config": "snapshot 's1' does not exist",
		"GET /nodes/pve1/qemu/999/snapshot":           "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
		"POST /nodes/pve1/qemu/103/snapshot current":  "unable to use snapshot name 'current' (reserved name)",
		"POST /nodes/pve1/qemu/103/template":          "unable to create template, because VM contains snapshots",
	} {
		var method, address, name string
		_, _ = fmt.Sscan(path, &method, &address, &name)
		params := []string{}
		if name != "" {
			params = append(params, "snapname", name)
		}
		if r := a.do(method, address, params...); r.reason != want {
			t.Errorf("%s: %d %s, want %s", path, r.status, r.reason, want)
		}
	}
}

// TestFeaturesOfAVM asks what can be done with VMs on several storages.
func TestFeaturesOfAVM(t *testing.T) {
	t.Parallel()
	a := everyStorage(t)
	for _, id := range []int{100, 101, 102, 103, 104} {
		a.must("PUT", fmt.Sprintf("/nodes/pve1/qemu/%d/config", id), "delete", "scsi1")
	}
	a.ok("POST", "/nodes/pve1/qemu/104/template")
	nodes := func(names ...any) []any { return names }
	for _, tt := range []struct {
		path, feature string
		has           float64
		nodes         []any
	}{
		{"100", "snapshot", 1, nodes("pve1")},
		{"101", "copy", 1, nodes("pve1", "pve2")},
		{"102", "clone", 0, []any{}},
		{"104", "clone", 1, nodes("pve1", "pve2")},
		{"104", "snapshot", 0, []any{}},
	} {
		got := a.object("/nodes/pve1/qemu/"+tt.path+"/feature", "feature", tt.feature)
		if diff := cmp.Diff(map[string]any{"hasFeature": tt.has, "nodes": tt.nodes}, got); diff != "" {
			t.Errorf("%s of %s:\n%s", tt.feature, tt.path, diff)
		}
	}
}

// TestTemplateOfOneDisk makes base volumes one at a time, also after the VM is a template.
func TestTemplateOfOneDisk(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	w := a.server.World
	must(t, w.AddVM(pvesim.VMSpec{VMID: 300, Node: "pve1", Config: map[string]string{"scsi0": "shared:300/vm-300-disk-0.qcow2,size=1G", "scsi1": "local-lvm:vm-300-disk-0,size=1G"}}))
	must(t, w.AddVM(pvesim.VMSpec{VMID: 301, Node: "pve1", State: "running"}))
	disks := func() [2]string {
		v, _ := w.VM(300)
		return [2]string{v.Config["scsi0"], v.Config["scsi1"]}
	}
	a.ok("POST", "/nodes/pve1/qemu/300/template", "disk", "scsi1")
	if got := disks(); got != [2]string{"shared:300/vm-300-disk-0.qcow2,size=1G", "local-lvm:base-300-disk-0,size=1G"} {
		t.Errorf("disks after the first: %v", got)
	}
	if r := a.do("POST", "/nodes/pve1/qemu/300/template"); r.reason != "you can't convert a template to a template" {
		t.Errorf("again: %s", r.reason)
	}
	a.ok("POST", "/nodes/pve1/qemu/300/template", "disk", "scsi0")
	if got := disks(); got != [2]string{"shared:300/base-300-disk-0.qcow2,size=1G", "local-lvm:base-300-disk-0,size=1G"} {
		t.Errorf("disks after the second: %v", got)
	}
	if r := a.do("POST", "/nodes/pve1/qemu/301/template"); r.reason != "you can't convert a VM to template if VM is running" {
		t.Errorf("running VM: %s", r.reason)
	}
	if broken := w.Check(); len(broken) > 0 {
		t.Error(broken)
	}
}
