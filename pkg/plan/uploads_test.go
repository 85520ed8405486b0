package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// lateUploads are those whose answer was lost: they land in their own time, whatever was asked for since.
type lateUploads struct {
	// refused says that the last action went wrong, so that the task before it tells nothing.
	refused bool
	// uploaded says that the seed was ever uploaded.
	uploaded bool
	// landing says in how many rounds one lands, by host.
	landing map[proxmox.NodeName]int
	// doubt counts the rounds until it is certain that none can land any more that nobody knows the end of.
	doubt int
	// unsure says that this is for what an earlier process may have sent, several that another was sent meanwhile.
	unsure, several bool
}

// lateRounds is how long an upload may take to land whose answer was lost.
const lateRounds = 6

// upload notes that an upload was sent. It reports whether its answer was lost, so that nobody follows it.
func (w *world) upload(action plan.UploadSeed, lost bool) bool {
	if w.doubt > 0 && !w.unsure {
		w.t.Fatal("another upload while the last one may still land")
	}
	w.several = w.doubt > 0
	if w.uploaded = true; !lost {
		return false
	}
	w.landing[action.VM.Node] = rapid.IntRange(0, lateRounds-1).Draw(w.t, "rounds until the upload lands")
	if w.doubt, w.unsure = lateRounds, false; w.task.RemovesSeed() {
		w.task = plan.Task{}
	}
	return true
}

// landUploads lets a round go by for uploads whose answer was lost.
func (w *world) landUploads() {
	if !slices.ContainsFunc(w.jobs, func(job *job) bool { return job.kind == "imgcopy" }) {
		w.doubt = max(w.doubt-1, 0)
	}
	for node, rounds := range w.landing {
		if w.landing[node]--; rounds == 0 {
			w.seeds[w.storedOn(node)] = true
			delete(w.landing, node)
		}
	}
}

// lookForSeed looks where the seed should be when the last task does not tell, or when an upload may still land.
func (w *world) lookForSeed(m *plan.Machine) {
	tells := m.Task.State == plan.TaskRunning || !w.refused && m.Task.State == plan.TaskSucceeded && (m.Task.PutsSeed() || m.Task.RemovesSeed())
	isSeen := (m.VM.Presence == plan.PresenceAbsent || m.VM.Presence == plan.PresenceOurs) && m.SeedHost == plan.HostUp
	if isSeen && w.uploaded && (!tells || w.doubt > 0) {
		m.SeedVolume = plan.SeedAbsent
		if w.hasSeed() {
			m.SeedVolume = plan.SeedStored
		}
	}
	if !w.uploaded {
		m.SeedVolume = plan.SeedAbsent
	}
	if !w.several && (m.SeedVolume == plan.SeedStored || m.Spec.ProviderID != "" || vmconfig.HasSeed(m.VM.Config)) {
		w.doubt = 0
	}
	switch {
	case w.doubt > 0 && w.unsure:
		m.Uploads = plan.UploadsUnknown
	case w.doubt > 0:
		m.Uploads = plan.UploadLost
	}
}

func uploads(state plan.Uploads) change { return func(m *plan.Machine) { m.Uploads = state } }

func TestAnUploadWhoseAnswerWasLostIsReckonedWith(t *testing.T) {
	lost, unsure, unseen := uploads(plan.UploadLost), uploads(plan.UploadsUnknown), seedVolumeSeen(plan.SeedAbsent)
	late := "wait 15s | RemovingSeed: the seed ISO is deleted from local of pve1 once no upload whose answer was lost can put it back: for two minutes Proxmox VE may"
	release := "do ReleaseAddresses | ReleasingAddresses: releasing the addresses"
	runSteps(t, []step{
		{
			"it is looked for instead of being sent again", machine(reserved, lost, unseen),
			"wait 5s | UploadingSeed: the answer to the upload of the seed ISO to local of pve1 was lost: it is looked for there, and uploaded again after two minutes",
		},
		{"what an earlier process may have sent keeps nothing up", machine(reserved, unsure, unseen), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
		{"once it is seen the life goes on", machine(reserved, seedVolumeSeen(plan.SeedStored)), "do Clone | Cloning: cloning template 9000 of pve3 to VM 101 on pve1"},
		{"a deletion waits although the seed is not there", machine(reserved, lost, unseen, deleting), late},
		{"or was deleted", machine(recorded, absent, task("imgdel", plan.TaskSucceeded), lost, deleting), late},
		{"also for what an earlier process may have sent", machine(reserved, unsure, unseen, deleting), late},
		{"but not once the seed is known to be gone", machine(recorded, absent, unsure, deleting, func(m *plan.Machine) { m.SeedRemoved = true }), release},
		{"the VM is destroyed all the same", machine(resized, lost, deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
		{"a machine with its Node keeps its seed until then", machine(ejected, lost), late},
		{"and the host that it leaves", machine(leaving, lost), late},
		{"which it does when that is over", machine(leaving, unseen), "do Reserve | Placed: placed on pve2 of region home as VM 102; not on pve1: a VM could not be made here 40 s ago: no space left"},
		{"an ISO that somebody deleted is uploaded again", machine(resized, unseen), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
	})
}

func TestASeedFollowsAVMThatWasMovedBeforeItRan(t *testing.T) {
	moved := func(m *plan.Machine) { m.SeedStranded, m.VM.Node = true, "pve2" }
	withdraw := "do WithdrawSeed | Relocating: leaving pve1, as VM 101 was moved to pve2 before it ran: deleting the seed ISO from local there"
	leave := "do Follow | Relocating: leaving pve1, as VM 101 was moved to pve2 before it ran"
	offline := func(m *plan.Machine) { m.SeedNode, m.SeedHost = "pve1", plan.HostOffline }
	runSteps(t, []step{
		{"it is taken away from its old host", machine(cloned, moved), withdraw},
		{"also when the HA manager moved what was configured", machine(resized, moved), withdraw},
		{"which is waited for", machine(cloned, moved, task("imgdel", plan.TaskRunning)), "wait | RemovingSeed: deleting the seed ISO"},
		{"then the reservation moves", machine(cloned, moved, task("imgdel", plan.TaskSucceeded)), leave},
		{"whatever the drive names", machine(resized, moved, seedVolumeSeen(plan.SeedAbsent)), leave},
		{"but not while an upload may land there", machine(cloned, moved, seedVolumeSeen(plan.SeedAbsent), uploads(plan.UploadsUnknown)), "wait 15s | RemovingSeed: the seed ISO is deleted from local of pve1 once no upload whose answer was lost can put it back: for two minutes Proxmox VE may"},
		{"nor while it cannot be taken away", machine(cloned, moved, offline), "wait 15s | HostOffline: VM 101, which was moved to pve2 before it ran, gets its seed there once the seed ISO " + string(seedVolume) +
			", which may be on pve1, is deleted: bring it back or, once it is gone for good, run `kubectl annotate proxmoxmachine worker-1 infrastructure.cluster.x-k8s.io/host-gone=pve1`"},
		{"unless that is declared gone", machine(cloned, moved, offline, declaredGone("pve1")), leave},
		{"a VM that somebody started there is stopped first", machine(cloned, moved, power(plan.PowerRunning)), "do Stop | Stopping: stopping VM 101 on pve2, which was started before it was configured"},
		{"one that ran keeps its reservation", machine(recorded, moved), "done | Running: VM 101 runs on pve2"},
		{"and one whose seed is within reach", machine(cloned, node("pve2")), "do Configure | Configuring: configuring VM 101"},
	})
}
