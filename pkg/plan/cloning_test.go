package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// leaving is a machine whose clone failed on pve1, which is passed over for now, with hosts of which one fits.
func leaving(m *plan.Machine) {
	reserved(m)
	failed("qmclone", "no space left", 0)(m)
	m.CloneTrouble.Leave = "no space left"
	bad, other := host("pve1"), host("pve2")
	bad.CloneFailure = "a clone failed here 40 s ago: no space left"
	m.Candidates.Hosts, m.Candidates.FreeVMIDs = []placement.Host{bad, other}, map[proxmox.RegionName]proxmox.VMID{"home": 102}
}

func noneFree(m *plan.Machine) { m.Candidates.FreeVMIDs = nil }

func TestACloneWaitsForASlot(t *testing.T) {
	full := func(m *plan.Machine) { m.CloneSlot.Full = "2 clones run on pve3 already: a, b" }
	runSteps(t, []step{
		{
			"while all are taken", machine(reserved, task("imgcopy", plan.TaskSucceeded), full),
			"wait 1m0s | WaitingForCloneSlot: 2 clones run on pve3 already: a, b",
		},
		{"with its seed uploaded before", machine(reserved, full), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
		{"but not once it is made", machine(cloned, full), "do Configure | Configuring: configuring VM 101"},
	})
}

func TestAMachineWhoseClonesFailGoesToAnotherHost(t *testing.T) {
	leave := "do WithdrawSeed | Relocating: leaving pve1, where VM 101 could not be cloned (no space left): deleting the seed ISO from local there"
	anew := "do Reserve | Placed: placed on pve2 as VM 102; not on pve1: a clone failed here 40 s ago: no space left"
	stay := "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"
	runSteps(t, []step{
		{"after a pause", machine(leaving, failed("qmclone", "no space left", time.Second)), "wait 1s | TaskFailed: cloning the template failed: no space left; it is tried again"},
		{"its seed is taken away first", machine(leaving), leave},
		{"which is waited for", machine(leaving, task("imgdel", plan.TaskRunning)), "wait | RemovingSeed: deleting the seed ISO"},
		{"and tried again", machine(leaving, failed("imgdel", "busy", 0)), leave},
		{"then it is placed anew", machine(leaving, task("imgdel", plan.TaskSucceeded)), anew},
		{"or when there was none", machine(leaving, seedVolumeSeen(plan.SeedAbsent)), anew},
		{"with its own VMID when there is no other", machine(leaving, seedVolumeSeen(plan.SeedAbsent), noneFree), strings.Replace(anew, "102", "101", 1)},
		{
			"but not while a lost clone may come", machine(leaving, func(m *plan.Machine) { m.CloneTrouble.MayComeLate = true }),
			"wait 15s | Relocating: VM 101 goes to another host than pve1 (no space left) once it is certain that no clone whose answer was lost makes it there: for two minutes Proxmox VE may",
		},
		{"nor while it is not certain that it has no VM", machine(leaving, unbound), "wait 15s | Unobserved: region home does not answer"},
		{"it stays when no other fits", machine(leaving, func(m *plan.Machine) { m.Spec.Placement.AllowedNodes = []string{"pve1"} }), stay},
		{"or when clones failed there, too", machine(leaving, func(m *plan.Machine) { m.Candidates.Hosts[1].CloneFailure = "a clone failed here" }), stay},
		{"and when the host may do again", machine(leaving, func(m *plan.Machine) { m.Candidates.Hosts[0].CloneFailure = "" }), stay},
	})
}

func TestTheNewPlaceHasTheOldIdentity(t *testing.T) {
	do, _ := plan.MachineStep(machine(leaving, seedVolumeSeen(plan.SeedAbsent))).(plan.Do)
	want := plan.Reserve{LedgerVersion: 7, Reservation: v1beta1.Reservation{
		UUID: string(uuid), Region: "home", Node: "pve2", VMID: 102, SourceNode: "pve3", SourceVMID: 9000, SeedStorage: "local",
	}}
	if diff := cmp.Diff(plan.Action(want), do.Action); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
}

func TestTheMostSpecificRangeOfVMIDsCounts(t *testing.T) {
	ranged := func(start int32) v1beta1.VMIDRange { return v1beta1.VMIDRange{Start: start, End: start + 99} }
	const machines, region, cluster = "widen spec.template.spec.vmIDRange of the ProxmoxMachineTemplate and roll the machines",
		"widen spec.regions[].vmIDRange of the ProxmoxCluster", "widen spec.vmIDRange of the ProxmoxCluster"
	for _, c := range []struct {
		machine, region, cluster v1beta1.VMIDRange
		want                     plan.VMIDs
	}{
		{ranged(300), ranged(200), ranged(100), plan.VMIDs{First: 300, Last: 399, Widen: machines}},
		{v1beta1.VMIDRange{}, ranged(200), ranged(100), plan.VMIDs{First: 200, Last: 299, Widen: region}},
		{v1beta1.VMIDRange{}, v1beta1.VMIDRange{}, ranged(100), plan.VMIDs{First: 100, Last: 199, Widen: cluster}},
		{want: plan.VMIDs{First: 100, Last: 999999999, Widen: "Proxmox VE has no more: remove guests"}},
	} {
		got := plan.VMIDsFor(v1beta1.ProxmoxMachineSpec{VMIDRange: c.machine}, v1beta1.ProxmoxClusterSpec{VMIDRange: c.cluster}, v1beta1.Region{VMIDRange: c.region})
		if got != c.want {
			t.Errorf("VMIDs %+v, want %+v", got, c.want)
		}
	}
}
