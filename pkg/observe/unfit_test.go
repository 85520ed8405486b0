package observe

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func TestAPlaceThatIsOfNoUseAnyMoreIsToldBeforeACloneFailsThere(t *testing.T) {
	snapshot := twoHosts(t)
	stale := snapshot
	stale.Err = pve.ErrNoSnapshot
	fine := v1beta1.Reservation{Region: "home", Node: "pve2", SourceNode: "pve2", SourceVMID: 9000, SeedStorage: "nfs"}
	with := func(change func(*v1beta1.Reservation)) v1beta1.Reservation {
		changed := fine
		change(&changed)
		return changed
	}
	down := with(func(r *v1beta1.Reservation) { r.Node = "pve1" })
	const noTemplate = " is not on pve2 any more, or its token may not see it"
	cases := []struct {
		name        string
		snapshot    pve.Snapshot
		reservation v1beta1.Reservation
		disks       string
		want        string
	}{
		{"all is there", snapshot, fine, "", ""},
		{"the host is down", snapshot, down, "", "pve1 is offline"},
		{"nothing is known now", stale, down, "", ""},
		{"nothing was ever known", pve.Snapshot{}, down, "", ""},
		{"the host was removed", snapshot, with(func(r *v1beta1.Reservation) { r.Node = "pve3" }), "", "pve3 is no longer a node of region home"},
		{"the template's host is down", snapshot, with(func(r *v1beta1.Reservation) { r.SourceNode = "pve1" }), "", "pve1 is offline"},
		{"the template is gone", snapshot, with(func(r *v1beta1.Reservation) { r.SourceVMID = 9001 }), "", "template 9001" + noTemplate},
		{"it is on another host", snapshot, with(func(r *v1beta1.Reservation) { r.SourceVMID = 9002 }), "", "template 9002" + noTemplate},
		{"it is none any more", snapshot, with(func(r *v1beta1.Reservation) { r.SourceVMID = 9003 }), "", "template 9003" + noTemplate},
		{"its host has not told of it yet", snapshot, with(func(r *v1beta1.Reservation) { r.SourceVMID = 9004 }), "", ""},
		{"the seed's storage is gone", snapshot, with(func(r *v1beta1.Reservation) { r.SeedStorage = "usb" }), "", "storage usb of pve2 is not available, or takes no content \"iso\" any more"},
		{"the disks' storage is there", snapshot, fine, "lvm", ""},
		{"the disks' storage takes no disks", snapshot, fine, "nfs", "storage nfs of pve2 is not available, or takes no content \"images\" any more"},
	}
	for _, c := range cases {
		machine := &plan.Machine{}
		machine.Spec.Reservation, machine.Spec.Source.Template.Storage = c.reservation, c.disks
		if got := unfit(c.snapshot, machine); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	made := &plan.Machine{}
	made.Spec.Reservation = v1beta1.Reservation{Region: "home", Node: "pve2", SeedStorage: "nfs"}
	made.Spec.Source.Image.Volume, made.Spec.Disks.Boot.Storage = "nfs:import/a.qcow2", "lvm"
	if got := unfit(snapshot, made); got != "" {
		t.Errorf("a VM without a template: %q", got)
	}
	made.Spec.Disks.Boot.Storage = "usb"
	if got := unfit(snapshot, made); got != "storage usb of pve2 is not available, or takes no content \"images\" any more" {
		t.Errorf("a VM without a template whose storage is gone: %q", got)
	}
	fromSnapshot := &plan.Machine{}
	fromSnapshot.Spec.Reservation, fromSnapshot.Spec.Source.Template.Snapshot = with(func(r *v1beta1.Reservation) { r.SourceVMID = 9003 }), "v1"
	if got := unfit(snapshot, fromSnapshot); got != "" {
		t.Errorf("a snapshot of a VM: %q", got)
	}
	fromSnapshot.Spec.Reservation.SourceVMID = 9000
	if got := unfit(snapshot, fromSnapshot); got != "VM 9000, whose snapshot v1 is cloned, is not on pve2 any more, or its token may not see it" {
		t.Errorf("a snapshot of what is a template now: %q", got)
	}
	onLostHost := &plan.Machine{VM: plan.VM{Node: "pve1", Host: plan.HostOffline}}
	onLostHost.Spec.Reservation = fine
	if got := unfit(snapshot, onLostHost); got != "pve1 is offline" {
		t.Errorf("a VM on a lost host: %q", got)
	}
}
