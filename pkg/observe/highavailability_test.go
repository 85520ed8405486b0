package observe

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// TestAnErrorOfTheHAManagerIsToldAndKeepsNothingUp: a VM would not be started, nor its seed removed.
func TestAnErrorOfTheHAManagerIsToldAndKeepsNothingUp(t *testing.T) {
	region, asked := sight(t, hosts(), nil) // which has neither the resource nor an answer about its release
	memory, clock := newTestMemory()
	region.Observer = &Observer{Memory: memory, Clock: clock}
	machine := &v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{
		ProviderID: "proxmox://x", HighAvailability: v1beta1.HighAvailability{Enabled: ptr.To(true), Rules: []v1beta1.HighAvailabilityRule{{Name: "apart"}}},
		Reservation: v1beta1.Reservation{UUID: string(someVM), VMID: 101, Node: "pve1", Region: "home"},
	}}
	look := func() plan.Machine {
		observed := plan.Machine{Spec: machine.Spec, VM: plan.VM{Presence: plan.PresenceOurs, Power: plan.PowerRunning, Node: "pve1", Config: vmconfig.Config{}}}
		if err := region.addHighAvailability(t.Context(), region.pve, MachineSubject{ProxmoxMachine: machine}, &observed); err != nil {
			t.Fatal(err)
		}
		return observed
	}
	for _, when := range []string{"at first", "a moment later"} {
		if seen := look(); seen.HighAvailability.Trouble.Code == "" || seen.HighAvailability.Present != nil || asked.Load() != 2 {
			t.Errorf("%s: %+v after %d requests", when, seen.HighAvailability, asked.Load())
		}
	}
	clock.Step(haFresh + time.Second)
	if look(); asked.Load() != 4 {
		t.Errorf("%d requests after a while", asked.Load())
	}
}

// TestAVMThatTheHAManagerGaveUpOnIsLookedAtWhenItIsDeleted: nothing else of a machine that is deleted is asked of it.
func TestAVMThatTheHAManagerGaveUpOnIsLookedAtWhenItIsDeleted(t *testing.T) {
	region, asked := sight(t, hosts(), answers{"/cluster/ha/resources/vm:101": map[string]any{"sid": "vm:101", "state": "started", "digest": "d"}})
	for state, requests := range map[string]int32{"error": 1, "started": 0} {
		asked.Store(0)
		observed := plan.Machine{
			Deleting: true, Spec: v1beta1.ProxmoxMachineSpec{Reservation: v1beta1.Reservation{UUID: string(someVM), VMID: 101, Node: "pve1"}},
			VM: plan.VM{Presence: plan.PresenceOurs, Node: "pve1", HAState: state}, HighAvailability: plan.HighAvailability{Record: &ha.Record{Rules: []string{"apart"}}},
		}
		err := region.addHighAvailability(t.Context(), region.pve, region.subject, &observed)
		isSeen := observed.HighAvailability.Present != nil && observed.HighAvailability.Present.Resource != nil
		if err != nil || asked.Load() != requests || isSeen != (requests > 0) {
			t.Errorf("state %s: %+v after %d requests, error %v", state, observed.HighAvailability, asked.Load(), err)
		}
	}
}

// TestTheGroupsAreAskedForOnce: for whoever looks for a host for a VM, and for whoever tells the HA manager of one.
func TestTheGroupsAreAskedForOnce(t *testing.T) {
	region, asked := sight(t, hosts(), answers{"/version": map[string]any{"release": "8.4"}, "/cluster/ha/groups": []map[string]any{{"group": "gpu"}}})
	has := placement.Equipment{}
	needs := placement.Needs{HAGroup: "gpu"}
	if err := region.equipmentSight(region.pve, needs).complete(t.Context(), "pve1", &has); err != nil || needs.Lacking("pve1", has) != "" {
		t.Errorf("error %v, lacking: %s", err, needs.Lacking("pve1", has))
	}
	facts, err := region.haSight(region.pve, region.subject, &plan.Machine{}).facts(t.Context())
	if err != nil || !slices.Equal(facts.Groups, []string{"gpu"}) || asked.Load() != 2 {
		t.Errorf("%+v after %d requests, error %v", facts, asked.Load(), err)
	}
}

func TestWhichErrorsOfTheHAManagerStayErrors(t *testing.T) {
	unavailable := &UnavailableError{Reason: plan.Reason{Code: v1beta1.UnreachableReason}}
	for name, c := range map[string]struct {
		err   error
		stays bool
	}{
		"none":             {nil, false},
		"refused":          {&pve.Error{Method: "GET", Status: 403}, false},
		"a plugin's":       {&pve.Error{Method: "GET", Status: 500, Reason: "can't parse rules.cfg"}, false},
		"the region's":     {unavailable, true},
		"of the login":     {&pve.Error{Method: "GET", Status: 401}, true},
		"of a broken pass": {context.Canceled, true},
		"of Kubernetes":    {errors.New("no leader"), true},
	} {
		memory, clock := newTestMemory()
		subject := MachineSubject{ProxmoxMachine: &v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{Reservation: v1beta1.Reservation{UUID: string(someVM)}}}}
		sight := (&Observer{Memory: memory, Clock: clock}).haSight(nil, subject, &plan.Machine{})
		stays := sight.report(c.err) != nil
		if isTold := sight.machine.HighAvailability.Trouble.Code != ""; stays != c.stays || isTold != (c.err != nil && !c.stays) {
			t.Errorf("%s: it stays an error: %t, it is told: %t", name, stays, isTold)
		}
	}
}
