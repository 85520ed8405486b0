package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// begun counts the requests for a machine until it is Ready.
type begun struct {
	calls tally
	// troubles is how many there had been when the machine was made.
	troubles int
}

// undisturbed are the machines that nothing happened to until they were Ready, and what they cost Proxmox VE.
type undisturbed struct {
	machines, most int
	calls          tally
}

// trouble notes that something went wrong, so that machines that are being made are not counted.
func (s *simulation) trouble() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles++
}

// begin counts the requests for a machine from now on.
func (s *simulation) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unmended == 0 {
		s.begun[name] = &begun{calls: tally{}, troubles: s.troubles}
	}
}

// count takes note of a request.
func (s *simulation) count(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.calls[c.endpoint()]++
	if b := s.begun[c.who]; b != nil {
		b.calls[c.endpoint()]++
	}
}

// ready adds up what a machine cost that has just become Ready.
func (s *simulation) ready(object *v1beta1.ProxmoxMachine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.begun[object.Name]
	condition := conditions.Get(object, clusterv1.ReadyCondition)
	if b == nil || condition == nil || condition.Status != metav1.ConditionTrue {
		return
	}
	delete(s.begun, object.Name)
	if b.troubles != s.troubles {
		return
	}
	s.figures.undisturbed.merge(undisturbed{machines: 1, most: b.calls.total(), calls: b.calls})
}

// merge adds the figures of another.
func (u *undisturbed) merge(other undisturbed) {
	u.machines, u.most = u.machines+other.machines, max(u.most, other.most)
	u.calls.merge(other.calls)
}

// String is what is printed at the end.
func (u *undisturbed) String() string {
	if u.machines == 0 {
		return "no machine was left undisturbed until it was Ready\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "requests for each of %d machines from Machine to Ready with nothing in the way: %.2f, at most %d, beside the shared polls\n",
		u.machines, float64(u.calls.total())/float64(u.machines), u.most)
	for _, endpoint := range slices.Sorted(maps.Keys(u.calls)) {
		fmt.Fprintf(&out, "  %8.2f  %s\n", float64(u.calls[endpoint])/float64(u.machines), endpoint)
	}
	return out.String()
}
