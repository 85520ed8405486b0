package pvesim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// phases are what one sees of a VM that looks every few milliseconds: its lock, name, drives, node and pool, without repetitions.
func (b *bubble) phases(id proxmox.VMID, until func() bool) []string {
	var out []string
	for !until() {
		b.pass(5 * time.Millisecond)
		seen := "absent"
		if v, there := b.world.VM(id); there {
			drives := slices.DeleteFunc([]string{"ide2", "scsi0"}, func(name string) bool { return v.Config[name] == "" })
			seen = fmt.Sprintf("lock=%s name=%s drives=%s node=%s pool=%s", v.Lock, v.Config["name"], strings.Join(drives, ","), v.Node, v.Pool)
		}
		if len(out) == 0 || out[len(out)-1] != seen {
			out = append(out, seen)
		}
	}
	return out
}

func (b *bubble) idle() bool { return b.world.RunningTasks() == 0 }

// withTemplates is a world with the template 9100 on shared storage and 9001 to 9003 on that of the nodes.
func withTemplates(version pvesim.Version) []pvesim.Option {
	return []pvesim.Option{pvesim.WithVersion(version), pvesim.WithTemplates(
		pvesim.TemplateSpec{Name: "local"}, pvesim.TemplateSpec{Name: "shared", Storage: "shared", FirstVMID: 9100},
	)}
}

// TestPhasesOfAClone shows the order of a clone: a config that only holds the VMID, one drive after the other, the lock gone, the
// target node, the pool.
func TestPhasesOfAClone(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		inBubble(t, func(b *bubble) {
			b.ask("pve1", "POST", "/nodes/pve1/qemu/9100/clone", "newid", "400", "name", "c", "full", "1", "target", "pve2", "pool", "capi")
			want := []string{
				"absent",
				"lock=clone name= drives= node=pve1 pool=",
				"lock=clone name=c drives=ide2 node=pve1 pool=",
				"lock= name=c drives=ide2,scsi0 node=pve1 pool=",
				"lock= name=c drives=ide2,scsi0 node=pve2 pool=",
				"lock= name=c drives=ide2,scsi0 node=pve2 pool=capi",
			}
			if diff := cmp.Diff(want, b.phases(400, b.idle)); diff != "" {
				t.Errorf("%s: phases (-want +got):\n%s", version, diff)
			}
		}, withTemplates(version)...)
	}
}

// TestClonesTakeTheirTime compares kinds of clones, and copies with a limit.
func TestClonesTakeTheirTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		params          []string
		at, least, most time.Duration
	}{
		{params: []string{"full", "0"}, least: 400 * time.Millisecond, most: 2 * time.Second},
		{params: []string{"full", "1"}, least: 4 * time.Second, most: 10 * time.Second},
		// 2 GiB of data
		{params: []string{"full", "1", "bwlimit", "20480"}, least: 102 * time.Second, most: 104 * time.Second},
	} {
		inBubble(t, func(b *bubble) {
			took := after(func() {
				b.exit("pve1", "POST", "/nodes/pve1/qemu/9001/clone", append([]string{"newid", "400"}, tt.params...)...)
			})
			if took < tt.least || took > tt.most+time.Second {
				t.Errorf("a clone with %v took %v", tt.params, took)
			}
		}, withTemplates(pvesim.V92)...)
	}
}

// TestProgressOfACopyIsLogged reads the log while a copy runs.
func TestProgressOfACopyIsLogged(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		_, upid := b.send("pve1", "POST", "/nodes/pve1/qemu/9100/clone", "newid", "400", "full", "1", "bwlimit", "20480")
		if lines := b.log(upid); !slices.Equal(lines, []string{"no content"}) {
			t.Errorf("at once the log says %q", lines)
		}
		b.pass(time.Minute)
		want := []string{
			"creating a clone of VM 9100 with ID 400",
			"create full clone of drive ide2 (shared:9100/vm-9100-cloudinit.qcow2)",
			"Formatting '/mnt/pve/shared/images/400/vm-400-cloudinit.qcow2', fmt=qcow2 cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib size=4194304 lazy_refcounts=off refcount_bits=16",
			"allocated target volume 'shared:400/vm-400-cloudinit.qcow2'",
			"create full clone of drive scsi0 (shared:9100/base-9100-disk-0.qcow2)",
			"Formatting '/mnt/pve/shared/images/400/vm-400-disk-0.qcow2', fmt=qcow2 cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib size=10737418240 lazy_refcounts=off refcount_bits=16",
			"allocated target volume 'shared:400/vm-400-disk-0.qcow2'",
			"transferred 0.0 B of 10.0 GiB (0.00%)",
			"transferred 512.0 MiB of 10.0 GiB (5.00%)",
		}
		lines := b.log(upid)
		if diff := cmp.Diff(want, lines[:min(len(lines), len(want))]); diff != "" || len(lines) > 20 {
			t.Errorf("%d lines after a minute (-want +got):\n%s", len(lines), diff)
		}
		b.pass(time.Minute)
		lines = b.log(upid)
		if end := lines[len(lines)-3:]; !slices.Equal(end, []string{"transferred 10.0 GiB of 10.0 GiB (100.00%)", "transferred 10.0 GiB of 10.0 GiB (100.00%)", "TASK OK"}) {
			t.Errorf("the log ends with %q", end)
		}
	}, withTemplates(pvesim.V92)...)
}

// log is the log of a task of pve1.
func (b *bubble) log(upid any) []string {
	b.t.Helper()
	var out []string
	list, _ := b.data("pve1", fmt.Sprintf("/nodes/pve1/tasks/%v/log", upid), "limit", "0").([]any)
	for _, x := range list {
		line, _ := x.(map[string]any)
		out = append(out, fmt.Sprint(line["t"]))
	}
	return out
}

// TestAStoppedCloneFreesItsVMIDLast stops a clone while it copies: the second that the worker sleeps before it cleans up, the
// VMID is still taken.
func TestAStoppedCloneFreesItsVMIDLast(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		_, upid := b.send("pve1", "POST", "/nodes/pve1/qemu/9100/clone", "newid", "400", "full", "1", "bwlimit", "20480", "storage", "shared", "format", "raw")
		b.pass(10 * time.Second)
		path := fmt.Sprintf("/nodes/pve1/tasks/%v", upid)
		b.expect([]probe{{"pve1", "DELETE", path, "200 OK"}, {"pve1", "DELETE", path, "200 OK"}})
		if v, there := b.world.VM(400); !there || v.Lock != "clone" || b.idle() {
			t.Errorf("while the worker cleans up: %+v", v)
		}
		b.pass(1100 * time.Millisecond)
		const want = "TASK ERROR: clone failed: copy failed: command '/usr/bin/qemu-img convert -p -n -r 20480K -f qcow2 -O raw " +
			"/mnt/pve/shared/images/9100/base-9100-disk-0.qcow2 zeroinit:/mnt/pve/shared/images/400/vm-400-disk-0.raw' failed: interrupted by signal"
		if lines := b.log(upid); lines[len(lines)-1] != want {
			t.Errorf("the log ends with %q", lines[len(lines)-1])
		}
		if _, there := b.world.VM(400); there || len(b.world.Check()) > 0 {
			t.Errorf("left behind: %v", b.world.Check())
		}
		b.expect([]probe{{"pve1", "DELETE", path, "200 OK"}})
	}, withTemplates(pvesim.V84)...)
}

// TestFailedCopies shows clones that cannot be: no room, no file, another VM with the VMID, a source that is held.
func TestFailedCopies(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		w := b.world
		must(t, w.AddStorage(pvesim.StorageSpec{ID: "tiny", Type: "dir", Path: "/mnt/tiny", Content: []string{"images"}, Total: 1 << 30}))
		must(t, w.AddVM(pvesim.VMSpec{VMID: 500, Node: "pve1", Config: map[string]string{"scsi0": "shared:500/vm-500-disk-0.qcow2,size=1G"}}))
		w.RemoveFile("pve1", "shared:500/vm-500-disk-0.qcow2")
		before := w.Check()
		release := w.HoldLock(200)
		defer release()
		for _, tt := range []struct{ path, newID, storage, want string }{
			{"/nodes/pve1/qemu/9001/clone", "400", "tiny", "clone failed: copy failed: command '/usr/bin/qemu-img convert -p -n -f raw -O raw /dev/pve/base-9001-disk-0 zeroinit:/mnt/tiny/images/400/vm-400-disk-0.raw' failed: exit code 1"},
			{"/nodes/pve1/qemu/500/clone", "400", "shared", "clone failed: volume 'shared:500/vm-500-disk-0.qcow2' does not exist"},
			{"/nodes/pve1/qemu/9001/clone", "300", "shared", "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/300.conf' failed: File exists"},
			{"/nodes/pve2/qemu/200/clone", "400", "shared", "can't lock file '/var/lock/qemu-server/lock-200.conf' - got timeout"},
			// Every node has its own lock files.
			{"/nodes/pve1/qemu/9001/clone", "200", "shared", "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/200.conf' failed: File exists"},
		} {
			if exit := b.exit("pve1", "POST", tt.path, "newid", tt.newID, "full", "1", "storage", tt.storage); exit != tt.want {
				t.Errorf("%s: %s, want %s", tt.path, exit, tt.want)
			}
		}
		if diff := cmp.Diff(before, w.Check()); diff != "" {
			t.Errorf("left behind:\n%s", diff)
		}
	}, withTemplates(pvesim.V92)...)
}

// TestTwoClonesForOneVMID sends two requests at the same moment: both get a task, and the second finds the config of the first.
func TestTwoClonesForOneVMID(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		_, first := b.send("pve1", "POST", "/nodes/pve1/qemu/9100/clone", "newid", "400", "full", "0")
		_, second := b.send("pve1", "POST", "/nodes/pve1/qemu/100/clone", "newid", "400")
		for !b.idle() {
			b.pass(time.Second)
		}
		if lines := b.log(first); lines[len(lines)-1] != "TASK OK" {
			t.Errorf("log of the first: %q", lines)
		}
		if diff := cmp.Diff([]string{"trying to acquire lock...", " OK", "TASK ERROR: unable to create VM 400: config file already exists"}, b.log(second)); diff != "" {
			t.Errorf("log of the second:\n%s", diff)
		}
	}, withTemplates(pvesim.V84)...)
}

// TestCloneOfARunningVM is a matter of the host's QEMU.
func TestCloneOfARunningVM(t *testing.T) {
	t.Parallel()
	for stock, want := range map[bool]string{
		false: "OK",
		true:  "clone failed: mirroring error: VM 301 qmp command 'drive-mirror' failed - Unknown protocol 'zeroinit' ",
	} {
		inBubble(t, func(b *bubble) {
			s := b.world.State()
			for i := range s.Nodes {
				s.Nodes[i].StockQEMU = stock
			}
			w, err := pvesim.NewWorld(pvesim.FromState(s))
			must(t, err)
			defer w.Close()
			again := &bubble{t: t, world: w, token: w.AddToken(pvesim.TokenSpec{User: "root@pam", Name: "t2", Unseparated: true})}
			if exit := again.exit("pve3", "POST", "/nodes/pve3/qemu/301/clone", "newid", "400"); exit != want {
				t.Errorf("QEMU of Debian is %t: %s", stock, exit)
			}
		})
	}
}
