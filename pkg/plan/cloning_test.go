package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// leaving is a machine whose clone failed on pve1, which is passed over for now, with hosts of which one fits.
func leaving(m *plan.Machine) {
	reserved(m)
	failed("qmclone", "no space left", 0)(m)
	m.CloneTrouble.Leave = "no space left"
	bad, other := host("pve1"), host("pve2")
	bad.CloneFailure = "a VM could not be made here 40 s ago: no space left"
	m.Candidates.Hosts, m.Candidates.FreeVMIDs = []placement.Host{bad, other}, map[proxmox.RegionName]proxmox.VMID{"home": 102}
}

func noneFree(m *plan.Machine) { m.Candidates.FreeVMIDs = nil }

func TestACloneWaitsForASlot(t *testing.T) {
	full := func(m *plan.Machine) { m.CloneSlot.Full = "2 VMs are being made on pve3 already: a, b" }
	runSteps(t, []step{
		{
			"while all are taken", machine(reserved, task("imgcopy", plan.TaskSucceeded), full),
			"wait 1m0s | WaitingForCloneSlot: 2 VMs are being made on pve3 already: a, b",
		},
		{"with its seed uploaded before", machine(reserved, full), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
		{"but not once it is made", machine(cloned, full), "do Configure | Configuring: configuring VM 101"},
	})
}

func TestAMachineWhoseClonesFailGoesToAnotherHost(t *testing.T) {
	leave := "do WithdrawSeed | Relocating: leaving pve1, where VM 101 could not be cloned (no space left): deleting the seed ISO from local there"
	anew := "do Reserve | Placed: placed on pve2 of region home as VM 102; not on pve1: a VM could not be made here 40 s ago: no space left"
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
		{"or when clones failed there, too", machine(leaving, func(m *plan.Machine) { m.Candidates.Hosts[1].CloneFailure = "a VM could not be made here" }), stay},
		{"and when the host may do again", machine(leaving, func(m *plan.Machine) { m.Candidates.Hosts[0].CloneFailure = "" }), stay},
	})
}

// stranded is a machine whose VM is not made yet, and whose host went down, with another host that fits.
func stranded(m *plan.Machine) {
	reserved(m)
	m.CloneTrouble = plan.CloneTrouble{Leave: "pve1 is offline", Unfit: true}
	down := host("pve1")
	down.Online = false
	m.Candidates.Hosts, m.Candidates.FreeVMIDs = []placement.Host{down, host("pve2")}, map[proxmox.RegionName]proxmox.VMID{"home": 102}
	m.SeedNode, m.SeedHost = "pve1", plan.HostOffline
}

func onLostHost(m *plan.Machine) {
	m.VM = plan.VM{Presence: plan.PresenceUnknown, Why: whyUnknown, Node: "pve1", Host: plan.HostOffline}
}

func TestAMachineThatLostItsHostBeforeItsVMWasMadeGoesToAnother(t *testing.T) {
	noSeed, gone := seedVolumeSeen(plan.SeedAbsent), declaredGone("pve1")
	full := func(m *plan.Machine) { m.Candidates.Hosts[1].CPUs = 1 }
	annotate := "bring it back or, once it is gone for good, run `kubectl annotate proxmoxmachine worker-1 infrastructure.cluster.x-k8s.io/host-gone=pve1`"
	seed := "wait 15s | HostOffline: VM 101, which is not made yet, goes to another host (pve1 is offline) once the seed ISO " + string(seedVolume) + ", which may be on pve1, is deleted: " + annotate
	made := "wait 15s | HostOffline: VM 101 is on pve1, which is offline: " + annotate
	anew := "do Reserve | Placed: placed on pve2 of region home as VM 102"
	ignored := "; the annotation infrastructure.cluster.x-k8s.io/host-gone=pve3 changes nothing: it counts only while the node that is waited for, pve1, is the one it names and is seen to be down"
	shared := func(m *plan.Machine) { m.SeedNode, m.SeedHost = "pve2", plan.HostUp }
	runSteps(t, []step{
		{"at once when nothing of it is there", machine(stranded, noSeed), anew},
		{"with its own VMID when there is no other", machine(stranded, noSeed, noneFree), strings.Replace(anew, "102", "101", 1)},
		{"but not while a lost clone may come", machine(stranded, noSeed, func(m *plan.Machine) { m.CloneTrouble.MayComeLate = true }), "wait 15s | Relocating: VM 101 goes to another host than pve1 (pve1 is offline) once it is certain that no clone whose answer was lost makes it there: for two minutes Proxmox VE may"},
		{"nor while its seed may be there", machine(stranded), seed},
		{"or another host is declared gone", machine(stranded, declaredGone("pve3")), seed + ignored},
		{"until the host is declared gone", machine(stranded, gone), anew},
		{"a seed on shared storage is deleted", machine(stranded, shared), "do WithdrawSeed | Relocating: leaving pve1, where VM 101 could not be cloned (pve1 is offline): deleting the seed ISO from local there"},
		{"it waits when no other host fits", machine(stranded, noSeed, full), "wait 15s | WaitingForCapacity: VM 101 cannot be cloned on pve1 (pve1 is offline), and no other host fits: 2 hosts refused: pve1: offline; pve2: has 1 CPUs, the VM asks for 2"},
		{"it goes also where a clone failed", machine(stranded, noSeed, func(m *plan.Machine) { m.Candidates.Hosts[1].CloneFailure = "a VM could not be made here" }), anew},
		{"it waits for a VM that was being made", machine(stranded, onLostHost), made},
		{"until the host is declared gone, under another VMID", machine(stranded, onLostHost, gone), anew},
		{"or waits for one", machine(stranded, onLostHost, gone, noneFree), "wait 15s | VMIDRangeExhausted: region home: no VMID from 0 to 0 is known to be free: "},
		{"a VM that ran is waited for, whatever was declared", machine(recorded, onLostHost, gone), "wait 15s | Unobserved: region home does not answer"},
	})
}

func TestAMachineWhoseTemplateIsGoneTakesAnotherOne(t *testing.T) {
	anew := func(m *plan.Machine) {
		stranded(m)
		m.SeedHost, m.CloneTrouble.Leave = plan.HostUp, "template 9000 is not on pve3 any more"
		only := host("pve1")
		only.Template.ID = 9001
		m.Candidates.Hosts = []placement.Host{only}
	}
	none := func(m *plan.Machine) {
		anew(m)
		m.Candidates.Hosts[0].Template, m.Candidates.Hosts[0].SourceRefusal = placement.Template{}, "no template"
	}
	runSteps(t, []step{
		{"on the same host, with a new seed", machine(anew), "do WithdrawSeed | Relocating: leaving pve1, where VM 101 could not be cloned (template 9000 is not on pve3 any more): deleting the seed ISO from local there"},
		{"which is written then", machine(anew, task("imgdel", plan.TaskSucceeded)), "do Reserve | Placed: placed on pve1 of region home as VM 102"},
		{"or waits until there is one", machine(none), "wait 15s | WaitingForCapacity: VM 101 cannot be cloned on pve1 (template 9000 is not on pve3 any more), and no other host fits: 1 host refused: pve1: no template"},
		{"and does not clone where it cannot", machine(stranded, seedVolumeSeen(plan.SeedAbsent), func(m *plan.Machine) { m.Candidates.Hosts[0].Online, m.Candidates.Hosts[1].Online = true, false }), "wait 15s | WaitingForCapacity: VM 101 cannot be cloned on pve1 (pve1 is offline), and no other host fits: 1 host refused: pve2: offline"},
	})
}

func TestWhatIsLeftOnALostHostIsTold(t *testing.T) {
	do, _ := plan.MachineStep(machine(stranded, onLostHost, declaredGone("pve1"))).(plan.Do)
	reserve, _ := do.Action.(plan.Reserve)
	want := "the machine goes to another host without what is on pve1 of region home, which was declared gone: should that node come back, remove VM 101 (" +
		string(uuid) + ") with its disks and the seed ISO " + string(seedVolume) + " there before anything else"
	if diff := cmp.Diff(want, reserve.Abandoned); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestTheNewPlaceHasTheOldIdentity(t *testing.T) {
	do, _ := plan.MachineStep(machine(leaving, seedVolumeSeen(plan.SeedAbsent))).(plan.Do)
	want := plan.Reserve{Applied: vmconfig.WriteApplied(spec()), LedgerVersion: 7, Reservation: v1beta1.Reservation{
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
