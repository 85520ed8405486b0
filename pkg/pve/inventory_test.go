package pve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

var errAway = &Error{Method: "GET", Path: "/cluster/resources", Status: 595, Reason: "Connection refused"}

// fakeLister answers with what it is told, after a delay.
type fakeLister struct {
	mu        sync.Mutex
	resources []Resource
	err       error
	delay     time.Duration
	asked     []time.Time
}

func (f *fakeLister) Resources(ctx context.Context) ([]Resource, error) {
	f.mu.Lock()
	f.asked = append(f.asked, time.Now())
	resources, err, delay := f.resources, f.err, f.delay
	f.mu.Unlock()
	select {
	case <-time.After(delay):
		return resources, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fakeLister) set(err error, resources ...Resource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources, f.err = resources, err
}

func (f *fakeLister) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

func guest(id proxmox.VMID, node proxmox.NodeName, status string) Resource {
	return Resource{Type: VMResource, VMID: id, Node: node, Status: status, Name: fmt.Sprintf("vm%d", id)}
}

// startInventory runs an inventory until the test's context ends; within a synctest bubble that proves that no goroutine is
// left.
func startInventory(t *testing.T, source resourceLister, listeners ...func([]VMChange)) *Inventory {
	t.Helper()
	inventory := newInventory(source, "test", Options{}.withDefaults(), nil)
	for _, listener := range listeners {
		inventory.OnChange(listener)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go inventory.run(ctx)
	go inventory.changes.run(ctx)
	return inventory
}

// advance lets time pass in a synctest bubble, and what is due then happen.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestInventoryPollsAtItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{resources: []Resource{guest(101, "pve1", "running")}}
		inventory := startInventory(t, source)
		advance(10*time.Minute - time.Second)
		if source.count() != 120 {
			t.Errorf("asked %d times in 10 minutes", source.count())
		}
		if vm, ok := inventory.Snapshot().VM(101); !ok || vm.Node != "pve1" {
			t.Errorf("got %v, %v", vm, ok)
		}
	})
}

func TestSnapshotBeforeTheFirstPoll(t *testing.T) {
	snapshot := newInventory(&fakeLister{}, "test", Options{}.withDefaults(), nil).Snapshot()
	if !errors.Is(snapshot.Err, ErrNoSnapshot) || !snapshot.At.IsZero() {
		t.Errorf("got %v at %v", snapshot.Err, snapshot.At)
	}
	checkEmpty(t, snapshot)
	checkEmpty(t, Snapshot{})
}

func checkEmpty(t *testing.T, s Snapshot) {
	t.Helper()
	_, vm := s.VM(101)
	_, node := s.Node("pve1")
	_, storage := s.Storage("pve1", "local")
	guests := len(slices.Collect(s.VMs())) + len(slices.Collect(s.Templates()))
	if vm || node || storage || guests+len(s.Nodes())+len(s.Storages("pve1")) > 0 {
		t.Error("an empty snapshot has something in it")
	}
}

func TestInventoryKeepsItsSnapshotOverErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{resources: []Resource{guest(101, "pve1", "running")}}
		inventory := startInventory(t, source)
		synctest.Wait()
		at := inventory.Snapshot().At
		source.set(errAway)
		advance(time.Hour)
		failed := inventory.Snapshot()
		if _, ok := failed.VM(101); !ok || ClassOf(failed.Err) != Unreachable || !failed.At.Equal(at) {
			t.Errorf("after errors: %v at %v, has 101: %v", failed.Err, failed.At, ok)
		}
		if n := source.count(); n < 200 || n > 500 {
			t.Errorf("asked %d times in an hour without an answer", n)
		}
		source.set(nil, guest(102, "pve1", "running"))
		advance(2 * maxBackoff)
		if healed := inventory.Snapshot(); healed.Err != nil || time.Since(healed.At) > DefaultPollInterval {
			t.Errorf("after it healed: %v, age %v", healed.Err, time.Since(healed.At))
		}
		if _, ok := failed.VM(102); ok {
			t.Error("an old snapshot has changed")
		}
	})
}

func TestSnapshotTellsWhenItWasRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{delay: 3 * time.Second}
		inventory := newInventory(source, "test", Options{}.withDefaults(), nil)
		sent := time.Now()
		if err := inventory.Refresh(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		if got := inventory.Snapshot().At; !got.Equal(sent) {
			t.Errorf("snapshot is of %v, requested at %v", got, sent)
		}
	})
}

// TestRefreshIsShared: any number of callers cost two requests at most, the one under way when they came and one after it.
func TestRefreshIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{delay: time.Second}
		inventory := newInventory(source, "test", Options{}.withDefaults(), nil)
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				<-time.After(time.Duration(i) * 9 * time.Millisecond)
				after := time.Now()
				if err := inventory.Refresh(t.Context(), after); err != nil {
					t.Error(err)
				}
				if inventory.Snapshot().At.Before(after) {
					t.Error("refreshed with an old snapshot")
				}
			})
		}
		group.Wait()
		if source.count() != 2 {
			t.Errorf("100 callers cost %d requests", source.count())
		}
		if err := inventory.Refresh(t.Context(), time.Now().Add(-2*time.Second)); err != nil || source.count() != 2 {
			t.Errorf("a snapshot that is young enough was requested again: %v", err)
		}
	})
}

func TestRefreshFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{err: errAway, delay: time.Second}
		inventory := newInventory(source, "test", Options{}.withDefaults(), nil)
		if err := inventory.Refresh(t.Context(), time.Now()); ClassOf(err) != Unreachable {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := inventory.Refresh(ctx, time.Now()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		advance(2 * time.Second)
	})
}

// TestRefreshOutlivesItsFirstCaller: the one who started the request may go; the others get the answer.
func TestRefreshOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{delay: time.Second}
		inventory := newInventory(source, "test", Options{}.withDefaults(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		after := time.Now()
		go func() { _ = inventory.Refresh(ctx, after) }()
		synctest.Wait()
		cancel()
		if err := inventory.Refresh(t.Context(), after); err != nil || source.count() != 1 {
			t.Errorf("got %v after %d requests", err, source.count())
		}
	})
}

func TestInventoryTellsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{resources: []Resource{guest(101, "pve1", "running"), guest(102, "pve1", "running")}}
		var told [][]VMChange
		startInventory(t, source, func(changes []VMChange) { told = append(told, changes) })
		advance(time.Minute)
		source.set(nil, guest(101, "pve2", "running"), guest(103, "pve1", "unknown"))
		advance(time.Minute)
		if len(told) != 2 || len(told[0]) != 2 || len(told[1]) != 3 {
			t.Fatalf("told %v", told)
		}
		moved, fresh, gone := told[1][0], told[1][1], told[1][2]
		if moved.ID != 101 || moved.Before.Node != "pve1" || moved.After.Node != "pve2" {
			t.Errorf("moved: %+v", moved)
		}
		if fresh.ID != 103 || fresh.Before != nil || fresh.After.Status != "unknown" {
			t.Errorf("fresh: %+v", fresh)
		}
		if gone.ID != 102 || gone.After != nil || gone.Before == nil {
			t.Errorf("gone: %+v", gone)
		}
	})
}

// TestListenerThatHangs must not stop the poller, and learns everything in the end.
func TestListenerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeLister{resources: []Resource{guest(101, "pve1", "stopped")}}
		release := make(chan struct{})
		var told []VMChange
		startInventory(t, source, func(changes []VMChange) {
			<-release
			told = append(told, changes...)
		})
		advance(time.Minute)
		for _, status := range []string{"running", "stopped", "paused"} {
			source.set(nil, guest(101, "pve1", status))
			advance(time.Minute)
		}
		if source.count() < 40 {
			t.Errorf("asked %d times only", source.count())
		}
		close(release)
		synctest.Wait()
		if len(told) != 2 || told[1].Before.Status != "stopped" || told[1].After.Status != "paused" {
			t.Errorf("told %+v", told)
		}
	})
}

func TestUsageIsNoChange(t *testing.T) {
	before := guest(101, "pve1", "running")
	after := before
	after.CPU, after.Memory, after.Uptime, after.Disk = 0.5, 1<<30, time.Hour, 7
	if changes := snapshotOf(before).diff(snapshotOf(after)); len(changes) > 0 {
		t.Errorf("got %+v", changes)
	}
}

func snapshotOf(resources ...Resource) Snapshot { return Snapshot{index: newIndex(resources)} }

// TestChangesLaw: what is told of two steps, merged, leads from the first snapshot to the last, and tells nothing twice.
func TestChangesLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		states := [3]Snapshot{drawSnapshot(t), drawSnapshot(t), drawSnapshot(t)}
		box := newMailbox[proxmox.VMID](mergeChanges)
		for i := range 2 {
			for _, change := range states[i].diff(states[i+1]) {
				box.put(change.ID, change)
			}
		}
		news, _ := box.take()
		got := map[proxmox.VMID]VM{}
		for vm := range states[0].VMs() {
			got[vm.ID] = vm
		}
		for _, change := range news {
			apply(t, got, change)
		}
		want := map[proxmox.VMID]VM{}
		for vm := range states[2].VMs() {
			want[vm.ID] = vm
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("changes do not lead to the last snapshot (-want +got):\n%s", diff)
		}
	})
}

func apply(t *rapid.T, vms map[proxmox.VMID]VM, change VMChange) {
	before, known := vms[change.ID]
	if known != (change.Before != nil) || known && !before.sameAs(*change.Before) {
		t.Errorf("change %+v does not fit %+v", change, before)
	}
	if delete(vms, change.ID); change.After != nil {
		vms[change.ID] = *change.After
	}
}

func drawSnapshot(t *rapid.T) Snapshot {
	ids := rapid.SliceOfDistinct(rapid.Int32Range(100, 106), rapid.ID[int32]).Draw(t, "ids")
	var resources []Resource
	for _, id := range ids {
		resources = append(resources, Resource{
			Type: VMResource, VMID: proxmox.VMID(id),
			Node:   rapid.SampledFrom([]proxmox.NodeName{"pve1", "pve2"}).Draw(t, "node"),
			Status: rapid.SampledFrom([]string{"running", "stopped"}).Draw(t, "status"),
			Tags:   rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}}).Draw(t, "tags"),
		})
	}
	return snapshotOf(resources...)
}

func TestSnapshotIndex(t *testing.T) {
	template := guest(9001, "pve2", "stopped")
	template.Template, template.Tags = true, []string{"ubuntu"}
	container := Resource{Type: ContainerResource, VMID: 200, Node: "pve1", Template: true}
	s := snapshotOf(
		template, guest(101, "pve1", "running"), container,
		Resource{Type: NodeResource, Node: "pve2", Status: "offline"}, Resource{Type: NodeResource, Node: "pve1", Status: "online", MaxCPU: 32},
		Resource{Type: StorageResource, Node: "pve1", Storage: "local", Status: "available", Content: []string{"iso"}, MaxDisk: 10, Disk: 4},
		Resource{Type: StorageResource, Node: "pve2", Storage: "local"}, Resource{Type: StorageResource, Node: "pve1", Storage: "ceph", Shared: true},
		Resource{Type: VMResource, Node: "pve1"}, Resource{Type: VMResource, VMID: 300}, Resource{Type: "pool", ID: "/pool/capi"},
		Resource{Type: StorageResource, Node: "pve1"},
	)
	if nodes := s.Nodes(); len(nodes) != 2 || nodes[0].Name != "pve1" || !nodes[0].Online || nodes[1].Online {
		t.Errorf("nodes %+v", nodes)
	}
	s.Nodes()[0].Name = "mine"
	if _, ok := s.Node("pve1"); !ok || s.Nodes()[0].Name != "pve1" {
		t.Error("a caller has changed the snapshot")
	}
	var ids []proxmox.VMID
	for vm := range s.VMs() {
		ids = append(ids, vm.ID)
	}
	if diff := cmp.Diff([]proxmox.VMID{101, 200, 9001}, ids); diff != "" {
		t.Errorf("guests (-want +got):\n%s", diff)
	}
	templates := slices.Collect(s.Templates())
	if len(templates) != 1 || templates[0].Ref() != (VMRef{Node: "pve2", ID: 9001}) || !templates[0].HasTag("ubuntu") || templates[0].HasTag("u") {
		t.Errorf("templates %+v", templates)
	}
	if local, ok := s.Storage("pve1", "local"); !ok || !local.Available || !local.Holds("iso") || local.Holds("images") || local.Size != 10 || local.Used != 4 {
		t.Errorf("storage %+v", local)
	}
	if storages := s.Storages("pve1"); len(storages) != 2 || storages[0].ID != "ceph" || !storages[0].Shared {
		t.Errorf("storages %+v", storages)
	}
	for range s.Templates() {
		break
	}
}

func TestPace(t *testing.T) {
	p := newPace(5*time.Second, time.Minute, Options{}.jitter)
	var last time.Duration
	for i := range 200 {
		last = p.next(errAway)
		if last < time.Second || last > time.Minute {
			t.Fatalf("delay %d is %v", i, last)
		}
	}
	if last < 20*time.Second {
		t.Errorf("after 200 failures the delay is %v", last)
	}
	if got := p.next(nil); got != 5*time.Second {
		t.Errorf("after a success the delay is %v", got)
	}
}
