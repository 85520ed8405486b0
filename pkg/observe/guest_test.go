package observe

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// asked lets time pass and says when, after the start, a guest was asked that answers so.
func asked(isTold bool, span time.Duration, answer func(after time.Duration) guestTalk) []time.Duration {
	start := time.Unix(1e9, 0)
	clock := clocktesting.NewFakePassiveClock(start)
	memory := NewMemory(clock)
	var times []time.Duration
	for after := time.Duration(0); after <= span; after += time.Second {
		clock.SetTime(start.Add(after))
		if _, isTime := memory.talkTo("a", isTold); isTime {
			times = append(times, after)
			memory.talked("a", answer(after))
		}
	}
	return times
}

func TestASilentGuestIsAskedLessAndLessOften(t *testing.T) {
	got := asked(false, 20*time.Minute, func(time.Duration) guestTalk { return guestTalk{lacking: "silent"} })
	want := []time.Duration{
		15 * time.Second, 30 * time.Second, 60 * time.Second, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 13 * time.Minute, 18 * time.Minute,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked after (-want +got):\n%s", diff)
	}
}

func TestAGuestThatToldIsAskedSeldom(t *testing.T) {
	told := guestTalk{reported: []network.Address{{Prefix: netip.MustParsePrefix("10.0.0.9/24")}}}
	got := asked(false, 30*time.Minute, func(after time.Duration) guestTalk {
		if after < time.Minute {
			return guestTalk{lacking: "silent"}
		}
		return told
	})
	want := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 11 * time.Minute, 21 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked after (-want +got):\n%s", diff)
	}
}

func TestGuestsThatToldAnEarlierProcessAreNotAskedAllAtOnce(t *testing.T) {
	memory := NewMemory(clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)))
	times := map[time.Time]bool{}
	for i := range 100 {
		talk, _ := memory.talkTo(proxmox.SMBIOSUUID(time.Duration(i).String()), true)
		times[talk.nextAt] = true
		if wait := talk.nextAt.Sub(time.Unix(1e9, 0)); wait < firstAsk || wait > firstAsk+askAgain {
			t.Errorf("asked after %s", wait)
		}
	}
	if len(times) < 90 {
		t.Errorf("asked at %d times", len(times))
	}
}

func TestWhatAGuestSaidStandsWhileItIsSilent(t *testing.T) {
	memory := NewMemory(clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)))
	told := guestTalk{reported: []network.Address{{Prefix: netip.MustParsePrefix("10.0.0.9/24")}}}
	memory.talked("a", told)
	if got := memory.talked("a", guestTalk{lacking: "silent"}); len(got.reported) != 1 || got.lacking != "" {
		t.Errorf("remembers %+v", got)
	}
}
