package observe

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func failure(task proxmox.UPID, text string) CloneFailure {
	return CloneFailure{PVE: "pve", Node: "pve1", Task: task, Err: &pve.TaskError{UPID: "UPID:1", ExitStatus: text}}
}

func TestAHostIsLeftForAFaultOfItsOwnAtOnce(t *testing.T) {
	memory, clock := newTestMemory()
	memory.Reserved(someVM)
	memory.CloneFailed(someVM, failure("UPID:1", "clone failed: no space left"))
	const text = `task "UPID:1": clone failed: no space left`
	if got := memory.cloneTrouble(someVM); got != (plan.CloneTrouble{Leave: text}) {
		t.Errorf("trouble: %+v", got)
	}
	at := hostPlace{"pve", "pve1"}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{47 * time.Second, "a VM could not be made here 40 s ago: " + text}, {2 * time.Minute, "a VM could not be made here 2 min ago: " + text}, {hostTroubleTTL, ""},
	} {
		clock.Step(step.after)
		if got := memory.hostTrouble(at); got != step.want {
			t.Errorf("after %s: %q, want %q", step.after, got, step.want)
		}
	}
	memory.Reserved(someVM) // elsewhere
	if got := memory.cloneTrouble(someVM); got != (plan.CloneTrouble{}) {
		t.Errorf("trouble: %+v", got)
	}
}

func TestALongFailureIsCutBetweenCharacters(t *testing.T) {
	for length := range 4 {
		text := failure("UPID:1", strings.Repeat("x", length)+strings.Repeat("ü", 200)).text()
		if !utf8.ValidString(text) || !strings.HasSuffix(text, "ü…") || len(text) > 170 {
			t.Errorf("%q", text)
		}
	}
}

func TestAHostIsLeftForAnyCauseAfterThreeFailures(t *testing.T) {
	memory, _ := newTestMemory()
	memory.Reserved(someVM)
	for _, task := range []proxmox.UPID{"UPID:1", "UPID:1", "UPID:2", "UPID:2"} {
		memory.CloneFailed(someVM, failure(task, "something"))
	}
	memory.CloneFailed(someVM, failure("", "a request that was refused for no reason of the host's"))
	memory.CloneFailed(someVM, failure("UPID:3", "unable to create VM 100: config file already exists"))
	if got := memory.cloneTrouble(someVM).Leave; got != "" {
		t.Errorf("left because %q", got)
	}
	memory.CloneFailed(someVM, failure("UPID:4", "something"))
	if got := memory.cloneTrouble(someVM).Leave; got == "" {
		t.Error("not left")
	}
}

func TestAfterARestartACloneMayStillComeForAWhile(t *testing.T) {
	memory, clock := newTestMemory()
	if !memory.cloneTrouble(someVM).MayComeLate {
		t.Error("what an earlier process sent is not known")
	}
	clock.Step(lateAfter)
	if memory.cloneTrouble(someVM).MayComeLate {
		t.Error("it would have come by now")
	}
	memory.Reserved(someVM)
	memory.Cloned(someVM, errLost)
	if !memory.cloneTrouble(someVM).MayComeLate {
		t.Error("an answer was lost just now")
	}
}
