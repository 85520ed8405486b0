package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
)

var switchOn = firewall.SetOptions{Set: map[string]string{"enable": "1"}, Digest: "d"}

// remembering has a firewall without options in memory.
func remembering(memory *Memory) {
	memory.withFirewall(someVM, func(r *knownFirewall) { r.state = &firewall.State{OptionsDigest: "d"} })
}

func TestAnEditThatWasMadeIsRemembered(t *testing.T) {
	memory, _ := newTestMemory()
	remembering(memory)
	memory.FirewallEdited(someVM, switchOn, nil)
	known := memory.firewall(someVM)
	if known.state == nil || known.state.Options["enable"] != "1" || known.state.OptionsDigest != "" || !known.edited {
		t.Errorf("after an edit: %+v", known)
	}
	memory.Changed(someVM)
	if known = memory.firewall(someVM); known.edited || known.state == nil {
		t.Errorf("after a change of the config: %+v", known)
	}
	memory.FirewallEdited(someVM, switchOn, errDenied)
	if known = memory.firewall(someVM); known.state != nil || memory.firewallMayComeLate(someVM) {
		t.Errorf("after a refused edit: %+v", known)
	}
}

func TestAnEditWhoseAnswerWasLostMayComeLate(t *testing.T) {
	memory, clock := newTestMemory()
	memory.late = 2 * lateAfter // as it may be configured
	remembering(memory)
	memory.FirewallEdited(someVM, switchOn, errLost)
	if known := memory.firewall(someVM); known.state != nil || !memory.firewallMayComeLate(someVM) {
		t.Errorf("at once: %+v", known)
	}
	memory.FirewallEdited(someVM, switchOn, errDenied)
	if !memory.firewallMayComeLate(someVM) {
		t.Error("it was forgotten when another was refused")
	}
	clock.Step(lateAfter)
	if !memory.firewallMayComeLate(someVM) {
		t.Error("it may not come as late as is configured")
	}
	clock.Step(lateAfter)
	if memory.firewallMayComeLate(someVM) {
		t.Error("it may come late for ever")
	}
}

func TestALostEditThatIsSeenToBeMadeIsWaitedForNoLonger(t *testing.T) {
	other := firewall.DeleteSet{Name: "a"}
	for name, c := range map[string]struct {
		next []firewall.Edit
		late bool
	}{
		"nothing more is due": {[]firewall.Edit{nil}, false}, "another one is due": {[]firewall.Edit{other}, false},
		"it is due again": {[]firewall.Edit{switchOn}, true}, "it was made the second time": {[]firewall.Edit{switchOn, other, nil}, true},
	} {
		memory, _ := newTestMemory()
		memory.FirewallEdited(someVM, switchOn, errLost)
		for _, next := range c.next {
			memory.settleLost(someVM, next)
		}
		if got := memory.firewallMayComeLate(someVM); got != c.late {
			t.Errorf("%s: may come late: %t, want %t", name, got, c.late)
		}
	}
}

func TestWhatFirewallOptionsWereBefore(t *testing.T) {
	for text, want := range map[string]firewall.Before{
		`{"enable":"","policy_in":"DROP"}`: {"enable": "", "policy_in": "DROP"}, `{}`: {}, `null`: {}, `what?`: {}, ``: {},
	} {
		machine := &v1beta1.ProxmoxMachine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.FirewallAnnotation: text}}}
		if diff := cmp.Diff(want, firewallBefore(machine)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if before := firewallBefore(&v1beta1.ProxmoxMachine{}); before != nil {
		t.Errorf("without the annotation: %v", before)
	}
}
