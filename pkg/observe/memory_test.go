package observe

import (
	"maps"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

const someVM = proxmox.SMBIOSUUID("11111111-2222-3333-4444-555555555555")

func newTestMemory() (*Memory, *testingclock.FakeClock) {
	clock := testingclock.NewFakeClock(time.Now())
	return NewMemory(clock), clock
}

func TestMemoryOfAVMThatIsGoneStaysEmpty(t *testing.T) {
	memory, _ := newTestMemory()
	memory.Reserved(someVM)
	memory.Forget(someVM)
	memory.Went(someVM)
	if len(memory.vms) != 0 {
		t.Errorf("%d VMs are remembered", len(memory.vms))
	}
}

var (
	errTaken   = &pve.Error{Method: "POST", Status: 500, Reason: "unable to create VM 100: config file already exists"}
	errLost    = &pve.Error{Method: "POST", Status: 596, Reason: "Connection timed out"}
	errUnheard = &pve.Error{Method: "POST", Status: 500, Reason: "got timeout"}
	errDenied  = &pve.Error{Method: "POST", Status: 403, Reason: "Permission check failed (/pool/capi, VM.Allocate)"}
)

func TestAVMIDThatIsRefusedAsTakenIsAnothers(t *testing.T) {
	cases := []struct {
		name string
		ends []error
		want bool
	}{
		{"at the first clone", []error{errTaken}, true},
		{"after a clone that was refused", []error{errDenied, errTaken}, true},
		{"but not after one whose answer was lost", []error{errLost, errTaken}, false},
		{"nor after one that ended with an error that nobody knows", []error{errUnheard, errTaken}, false},
		{"nor after one that was begun", []error{nil, errTaken}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			memory, _ := newTestMemory()
			memory.Reserved(someVM)
			for _, err := range c.ends {
				memory.Cloned(someVM, err)
			}
			if got := memory.isAnothers(someVM); got != c.want {
				t.Errorf("another's: %t, want %t", got, c.want)
			}
		})
	}
}

func TestAfterARestartNoVMIDIsAnothers(t *testing.T) {
	memory, _ := newTestMemory()
	memory.Cloned(someVM, errTaken)
	if memory.isAnothers(someVM) {
		t.Error("what an earlier process sent is not known")
	}
}

func TestAVMIDThatTheTaskOfACloneFoundTakenIsAnothers(t *testing.T) {
	taken := failure("UPID:1", errTaken.Reason)
	memory, _ := newTestMemory()
	memory.Reserved(someVM)
	memory.Cloned(someVM, nil)
	memory.CloneFailed(someVM, taken)
	memory.CloneFailed(someVM, taken) // seen again
	if !memory.isAnothers(someVM) {
		t.Error("it is taken, and not by us")
	}
}

func TestThePauseAfterAFailedTaskBeginsAnewOnceOneSucceeded(t *testing.T) {
	memory, _ := newTestMemory()
	for _, step := range []struct {
		failed proxmox.UPID
		want   time.Duration
	}{
		{"UPID:1", 2 * time.Second},
		{"UPID:1", 2 * time.Second},
		{"UPID:2", 4 * time.Second},
		{"UPID:3", 8 * time.Second},
	} {
		if got := memory.retryAfter(someVM, step.failed); got != step.want {
			t.Errorf("%s: a pause of %s, want %s", step.failed, got, step.want)
		}
	}
	memory.taskEnded(someVM, "UPID:4")
	if got := memory.retryAfter(someVM, "UPID:5"); got != firstRetry {
		t.Errorf("after a success: a pause of %s, want %s", got, firstRetry)
	}
}

func TestACloneWhoseAnswerWasLostMayComeLate(t *testing.T) {
	memory, clock := newTestMemory()
	memory.Reserved(someVM)
	if memory.mayComeLate(someVM) {
		t.Error("nothing was sent")
	}
	memory.Cloned(someVM, errLost)
	if !memory.mayComeLate(someVM) {
		t.Error("it was sent just now")
	}
	clock.Step(lateAfter)
	if memory.mayComeLate(someVM) {
		t.Error("it was sent long ago")
	}
	memory.Reserved(someVM)
	memory.Cloned(someVM, errLost)
	memory.keepConfig(someVM, nil, "")
	if memory.mayComeLate(someVM) {
		t.Error("it has come")
	}
	memory.Cloned(someVM, errLost)
	memory.keepConfig(someVM, nil, "")
	if !memory.mayComeLate(someVM) {
		t.Error("of two one has come")
	}
}

func TestAVMIDStaysUntouchedWhileEveryCloneIsRefused(t *testing.T) {
	memory, _ := newTestMemory()
	memory.Reserved(someVM)
	for _, step := range []struct {
		err  error
		want bool
	}{{errDenied, true}, {errLost, false}, {errDenied, false}} {
		memory.Touched(someVM)
		memory.Cloned(someVM, step.err)
		if got := memory.isUntouched(someVM); got != step.want {
			t.Errorf("after %v untouched: %t, want %t", step.err, got, step.want)
		}
	}
}

func TestDisksOfAVMThatIsMadeAnewAreNotGrownYet(t *testing.T) {
	memory, _ := newTestMemory()
	memory.Reserved(someVM)
	memory.Grows(someVM, "UPID:1", "scsi0", 20)
	memory.taskEnded(someVM, "UPID:1")
	memory.Cloned(someVM, nil) // somebody destroyed it before it ran
	if got := memory.grown(someVM); len(got) > 0 {
		t.Errorf("of a VM that is made anew: %v", got)
	}
	memory.taskEnded(someVM, "UPID:1")
	if got := memory.grown(someVM); len(got) > 0 {
		t.Errorf("by the task of the VM before: %v", got)
	}
}

func TestDisksThatWereSeenToBeGrownAreRemembered(t *testing.T) {
	memory, _ := newTestMemory()
	memory.Grows(someVM, "UPID:1", "scsi0", 20)
	if got := memory.grown(someVM); len(got) > 0 {
		t.Errorf("grown before the task ended: %v", got)
	}
	memory.taskEnded(someVM, "UPID:1")
	memory.Grows(someVM, "UPID:2", "scsi1", 5)
	memory.taskEnded(someVM, "UPID:another")
	if got, want := memory.grown(someVM), (map[string]proxmox.Bytes{"scsi0": 20}); !maps.Equal(got, want) {
		t.Errorf("grown: %v, want %v", got, want)
	}
	memory.taskEnded(someVM, "UPID:2")
	if got, want := memory.grown(someVM), (map[string]proxmox.Bytes{"scsi0": 20, "scsi1": 5}); !maps.Equal(got, want) {
		t.Errorf("grown: %v, want %v", got, want)
	}
	memory.Reserved(someVM)
	if got := memory.grown(someVM); len(got) > 0 {
		t.Errorf("of a VM that is made anew: %v", got)
	}
}
