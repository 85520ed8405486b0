package observe

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

func TestAnUploadMayLandLate(t *testing.T) {
	memory, clock := newTestMemory()
	expect := func(when string, want plan.Uploads) {
		t.Helper()
		if got := memory.uploadsOf(someVM); got != want {
			t.Errorf("%s: %d, want %d", when, got, want)
		}
	}
	expect("a new process knows nothing of a VM that it finds", plan.UploadsUnknown)
	memory.uploadLanded(someVM)
	expect("nor how many were sent, when it sees the seed", plan.UploadsUnknown)
	memory.isOld(someVM)
	expect("until the VM has run for long", plan.UploadsKnown)
	memory.Drawn(someVM)
	memory.Reserved(someVM)
	memory.Uploaded(someVM, errDenied)
	if !memory.hasNoUpload(someVM) {
		t.Error("an upload that was refused stored nothing")
	}
	memory.Uploaded(someVM, errUnheard)
	if memory.hasNoUpload(someVM) {
		t.Error("an error that nobody knows may have come after the seed was stored")
	}
	expect("so that one may be on its way", plan.UploadsUnknown)
	clock.Step(lateAfter)
	memory.Uploaded(someVM, nil)
	expect("with an answer", plan.UploadsKnown)
	memory.Uploaded(someVM, errLost)
	memory.Reserved(someVM)
	expect("without an answer, also for another VMID", plan.UploadLost)
	memory.uploadLanded(someVM)
	expect("once it is seen", plan.UploadsKnown)
	memory.Uploaded(someVM, errLost)
	clock.Step(lateAfter)
	expect("long after", plan.UploadsKnown)
}

func TestToSeeTheSeedTellsNothingOfSeveralUploads(t *testing.T) {
	memory, clock := newTestMemory()
	memory.Uploaded(someVM, nil) // what an earlier process sent may still come
	memory.uploadLanded(someVM)
	if got := memory.uploadsOf(someVM); got != plan.UploadsUnknown || memory.isUploadOpen(someVM) {
		t.Errorf("uploads %d, worth a look: %t", got, memory.isUploadOpen(someVM))
	}
	clock.Step(lateAfter)
	if got := memory.uploadsOf(someVM); got != plan.UploadsKnown {
		t.Errorf("uploads %d long after", got)
	}
}

func TestATaskFromBeforeALostUploadTellsNothing(t *testing.T) {
	memory, _ := newTestMemory()
	memory.Started(someVM, "UPID:imgdel")
	memory.Uploaded(someVM, errLost)
	if !memory.isUploadLostSince(someVM) {
		t.Error("the seed may be there again")
	}
	memory.Started(someVM, "UPID:imgdel2")
	if memory.isUploadLostSince(someVM) {
		t.Error("it was deleted after that")
	}
}
