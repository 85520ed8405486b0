package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// watched asks for high availability.
func watched(edit ...func(*v1beta1.HighAvailability)) func(*v1beta1.ProxmoxMachine) {
	return func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Pool, m.Spec.HighAvailability = "capi", v1beta1.HighAvailability{Enabled: ptr.To(true), MaxRestart: ptr.To[int32](3)}
		for _, edit := range edit {
			edit(&m.Spec.HighAvailability)
		}
	}
}

func apart(ha *v1beta1.HighAvailability) {
	ha.Rules = []v1beta1.HighAvailabilityRule{{Name: "apart", ResourceAffinity: "negative"}}
}

// sidOf is how the VM of a machine is called as an HA resource.
func sidOf(machine *v1beta1.ProxmoxMachine) string {
	return ha.SID(proxmox.VMID(machine.Spec.Reservation.VMID))
}

// toldHA waits until the HA resource of a machine's VM has the options; none for no resource.
func (b *bench) toldHA(machine *v1beta1.ProxmoxMachine, options map[string]string) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		g.Expect(b.pve.World.State().HA.Resources[sidOf(machine)]).To(Equal(options))
	}, patience, poll).Should(Succeed())
}

// ruled waits until the rule is for the VMs of these machines.
func (b *bench) ruled(rule string, machines ...*v1beta1.ProxmoxMachine) {
	b.t.Helper()
	var want []any
	for _, machine := range machines {
		want = append(want, sidOf(machine))
	}
	b.Eventually(func() []string {
		return strings.FieldsFunc(b.pve.World.State().HA.Rules[rule]["resources"], func(r rune) bool { return r == ',' })
	}, patience, poll).Should(ConsistOf(want...))
}

// unrecorded waits until nothing of ours is written down any more.
func (b *bench) unrecorded(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Annotations).NotTo(HaveKey(v1beta1.HighAvailabilityAnnotation))
		g.Expect(condition(machine, v1beta1.HighAvailabilityUpToDateCondition)).To(BeEmpty())
	}, patience, poll).Should(Succeed())
}

func made(machine *v1beta1.ProxmoxMachine, options ...string) map[string]string {
	result := map[string]string{"state": "started", "comment": fmt.Sprintf("Cluster API machine %s, managed by CAPVE", machine.Name)}
	for i := 0; i < len(options); i += 2 {
		result[options[i]] = options[i+1]
	}
	return result
}

// TestHighAvailabilityBudget counts what it costs to be an HA resource, and takes it through changes, on both releases.
func TestHighAvailabilityBudget(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version))
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1", watched())
			b.running(machine)
			b.says(machine, v1beta1.HighAvailabilityUpToDateCondition, metav1.ConditionTrue, "UpToDate")
			b.toldHA(machine, made(machine, "max_restart", "3"))
			var about []string
			for _, request := range own(b.requests()) {
				if strings.Contains(request, "/ha/") {
					about = append(about, request)
				}
			}
			b.Expect(about).To(Equal([]string{"GET /cluster/ha/resources/" + sidOf(machine), "POST /cluster/ha/resources"}))
			b.settled(machine)
			b.restsWithoutRequests(machine)

			b.change(machine, func() {
				machine.Spec.HighAvailability.MaxRestart, machine.Spec.HighAvailability.MaxRelocate = nil, ptr.To[int32](0)
			})
			b.toldHA(machine, made(machine, "max_relocate", "0"))
			b.change(machine, func() { machine.Spec.PowerState = v1beta1.PowerStateStopped })
			b.Eventually(func() string { return b.vmOf(machine).Status }, patience, poll).Should(Equal("stopped"))
			b.change(machine, func() { machine.Spec.PowerState = v1beta1.PowerStateRunning })
			b.running(machine)
			b.toldHA(machine, made(machine, "max_relocate", "0"))

			b.change(machine, func() { machine.Spec.HighAvailability = v1beta1.HighAvailability{} })
			b.toldHA(machine, nil)
			b.unrecorded(machine)
			b.Expect(b.vmOf(machine).Status).To(Equal("running"))
			b.change(machine, func() { watched()(machine) })
			b.toldHA(machine, made(machine, "max_restart", "3"))
			b.delete(machine)
			b.leavesNothing()
			b.Expect(b.pve.World.State().HA.Resources).To(BeEmpty())
		})
	}
}

// TestHARulesKeepMachinesApart has machines come and go that are in a rule, which the first of them makes.
func TestHARulesKeepMachinesApart(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithVersion(pvesim.V92))
	b.provisioned(b.cluster("c1"))
	near := func(ha *v1beta1.HighAvailability) {
		nodes := []v1beta1.AffinityNode{{Name: "pve1"}, {Name: "pve2"}, {Name: "pve3"}}
		ha.Rules = append(ha.Rules, v1beta1.HighAvailabilityRule{Name: "near", NodeAffinity: v1beta1.NodeAffinity{Nodes: nodes, Strict: ptr.To(true)}})
		ha.Failback = ptr.To(false)
	}
	first := b.machine("c1", "m1", watched(apart, near))
	b.running(first)
	b.ruled("apart", first)
	b.ruled("near", first)
	b.Expect(b.pve.World.State().HA.Rules["apart"]).To(HaveKeyWithValue("disable", "1"), "Proxmox VE takes none for one alone")
	second, third := b.machine("c1", "m2", watched(apart, near)), b.machine("c1", "m3", watched(apart, near))
	b.running(second)
	b.running(third)
	b.ruled("apart", first, second, third)
	b.ruled("near", first, second, third)
	b.Expect(b.pve.World.State().HA.Rules["apart"]).NotTo(HaveKey("disable"))
	b.Expect(b.pve.World.State().HA.Rules["near"]).To(HaveKeyWithValue("nodes", "pve1,pve2,pve3"))
	b.toldHA(third, made(third, "max_restart", "3", "failback", "0"))

	b.change(second, func() { second.Spec.HighAvailability.Rules = second.Spec.HighAvailability.Rules[:1] })
	b.ruled("near", first, third)
	b.change(third, func() { third.Spec.HighAvailability = v1beta1.HighAvailability{} })
	b.ruled("apart", first, second)
	b.delete(second)
	b.ruled("apart", first)
	b.delete(first)
	b.delete(third)
	b.leavesNothing()
	b.Expect(b.pve.World.State().HA.Rules).To(BeEmpty())
}

// TestAnHARuleThatSomebodyMadeTheirsIsNotDeleted is left by the last VM in it.
func TestAnHARuleThatSomebodyMadeTheirsIsNotDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithVersion(pvesim.V92))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", watched(func(ha *v1beta1.HighAvailability) {
		nodes := v1beta1.NodeAffinity{Nodes: []v1beta1.AffinityNode{{Name: "pve1"}, {Name: "pve2"}, {Name: "pve3"}}}
		ha.Rules = []v1beta1.HighAvailabilityRule{{Name: "ours", ResourceAffinity: "negative"}, {Name: "theirs", NodeAffinity: nodes}}
	}))
	b.settled(machine)
	b.ruled("ours", machine)
	b.ruled("theirs", machine)
	b.says(machine, v1beta1.HighAvailabilityUpToDateCondition, metav1.ConditionTrue, "UpToDate")
	b.ask(http.MethodPut, "/cluster/ha/rules/theirs", url.Values{"type": {"node-affinity"}, "comment": {"not for CAPVE alone"}})
	b.change(machine, func() { machine.Spec.HighAvailability.Rules = nil })
	b.ruled("ours")
	b.Eventually(func() map[string]string { return b.pve.World.State().HA.Rules["theirs"] }, patience, poll).Should(And(
		HaveKeyWithValue("comment", "not for CAPVE alone"), HaveKeyWithValue("resources", sidOf(machine)), HaveKeyWithValue("disable", "1")))
	b.says(machine, v1beta1.HighAvailabilityUpToDateCondition, metav1.ConditionTrue, "UpToDate")
	b.restsWithoutRequests(machine)
}

// TestAnHAResourceOfOthersIsTakenOverAndGivenBack is one that an administrator made of a machine's VM.
func TestAnHAResourceOfOthersIsTakenOverAndGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	theirs := map[string]string{"state": "started", "max_restart": "7", "comment": "theirs"}
	b.ask(http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {sidOf(machine)}, "state": {"started"}, "max_restart": {"7"}, "comment": {"theirs"}})
	b.restsWithoutRequests(machine)
	b.toldHA(machine, theirs)
	b.change(machine, func() { machine.Spec.HighAvailability = v1beta1.HighAvailability{Enabled: ptr.To(false)} })
	b.restsWithoutRequests(machine)
	b.toldHA(machine, theirs)
	b.change(machine, func() {
		machine.Spec.HighAvailability = v1beta1.HighAvailability{Enabled: ptr.To(true), MaxRestart: ptr.To[int32](2), MaxRelocate: ptr.To[int32](2)}
	})
	b.toldHA(machine, map[string]string{"state": "started", "max_restart": "2", "max_relocate": "2", "comment": "theirs"})
	b.says(machine, v1beta1.HighAvailabilityUpToDateCondition, metav1.ConditionTrue, "UpToDate")
	b.stop()
	b.startControllers()
	b.change(machine, func() { machine.Spec.HighAvailability = v1beta1.HighAvailability{} })
	b.toldHA(machine, theirs)
	b.unrecorded(machine)
}

// TestHighAvailabilityThatCannotBe names what is missing, while the machine runs; it goes on when that is mended.
func TestHighAvailabilityThatCannotBe(t *testing.T) {
	t.Parallel()
	const upToDate = v1beta1.HighAvailabilityUpToDateCondition
	t.Run("8.4", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, pvesim.WithVersion(pvesim.V84))
		b.provisioned(b.cluster("c1"))
		machine := b.machine("c1", "m1", watched()) // with the group, it would wait for it before it is made
		b.running(machine)
		b.toldHA(machine, made(machine, "max_restart", "3"))
		b.change(machine, func() { machine.Spec.HighAvailability.Group = "nodes" })
		b.says(machine, upToDate, metav1.ConditionFalse, "HighAvailabilityInvalid", "there is no HA group nodes")
		b.tells(machine, "Warning", "HighAvailabilityInvalid", "there is no HA group nodes")
		b.settled(machine)
		b.ask(http.MethodPost, "/cluster/ha/groups", url.Values{"group": {"nodes"}, "nodes": {"pve1,pve2,pve3"}})
		b.change(machine, func() { machine.Spec.HighAvailability.MaxRestart = nil })
		b.toldHA(machine, made(machine, "group", "nodes"))
		b.says(machine, upToDate, metav1.ConditionTrue, "UpToDate")
		b.change(machine, func() { machine.Spec.HighAvailability.Group = ""; apart(&machine.Spec.HighAvailability) })
		b.says(machine, upToDate, metav1.ConditionFalse, "HighAvailabilityInvalid", "rules need Proxmox VE 9")
	})
	t.Run("9.2", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, pvesim.WithVersion(pvesim.V92))
		b.provisioned(b.cluster("c1"))
		machine := b.machine("c1", "m1", watched(func(ha *v1beta1.HighAvailability) { ha.Group = "nodes" }))
		b.running(machine)
		b.says(machine, upToDate, metav1.ConditionFalse, "HighAvailabilityInvalid", "use highAvailability.rules")
		b.change(machine, func() {
			machine.Spec.HighAvailability.Group, machine.Spec.HighAvailability.Rules = "", []v1beta1.HighAvailabilityRule{{Name: "theirs"}}
		})
		b.says(machine, upToDate, metav1.ConditionFalse, "HighAvailabilityInvalid", "there is no HA rule theirs")
		b.Expect(b.pve.World.State().HA.Resources).To(BeEmpty())
		b.change(machine, func() { apart(&machine.Spec.HighAvailability) })
		b.says(machine, upToDate, metav1.ConditionTrue, "UpToDate")
		b.ask(http.MethodPut, "/cluster/ha/resources/"+sidOf(machine), url.Values{"state": {"ignored"}})
		b.change(machine, func() { machine.Spec.HighAvailability.MaxRestart = ptr.To[int32](4) })
		b.says(machine, upToDate, metav1.ConditionFalse, "HighAvailabilityIgnored", "--state started")
	})
}

// TestHighAvailabilityNeedsTwoRights has a token with the documented rights: without those on / nothing else waits, and the
// condition names them.
func TestHighAvailabilityNeedsTwoRights(t *testing.T) {
	t.Parallel()
	for _, rights := range [][]string{nil, {"Sys.Audit"}, {"Sys.Audit", "Sys.Console"}} {
		t.Run(strings.Join(append(rights, "rights"), " "), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			admin := b.pve.Token
			granted := documentedRights()
			if rights != nil {
				granted["/"] = rights
			}
			b.pve.Token = b.pve.World.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "capve", Privileges: granted})
			b.provisioned(b.cluster("c1"))
			b.pve.Token = admin
			machine := b.machine("c1", "m1", watched(apart))
			b.settled(machine)
			if len(rights) == 2 {
				b.says(machine, v1beta1.HighAvailabilityUpToDateCondition, metav1.ConditionTrue, "UpToDate")
			} else {
				b.says(machine, v1beta1.HighAvailabilityUpToDateCondition, metav1.ConditionFalse, "Forbidden", "Sys.", "(/, ")
				b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionTrue, "Running")
			}
			b.delete(machine)
			b.leavesNothing()
		})
	}
}

// TestHighAvailabilitySurvivesLostReplies has the reply of each kind of edit be lost once, and the resource be removed.
func TestHighAvailabilitySurvivesLostReplies(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithVersion(pvesim.V92))
	lost := func(method, path string) pvesim.Fault {
		return pvesim.Fault{Method: method, Path: "/cluster/ha/" + path, Nth: 1, When: pvesim.AfterEffect, Status: 596, Reason: "Connection timed out"}
	}
	b.faults(lost(http.MethodPost, "resources"), lost(http.MethodPost, "rules"), lost(http.MethodPut, "resources/{sid}"), lost(http.MethodDelete, "resources/{sid}"))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", watched(apart))
	b.running(machine)
	b.ruled("apart", machine)
	b.change(machine, func() { machine.Spec.HighAvailability.MaxRestart = ptr.To[int32](5) })
	b.toldHA(machine, made(machine, "max_restart", "5"))
	b.change(machine, func() { machine.Spec.HighAvailability = v1beta1.HighAvailability{} })
	b.toldHA(machine, nil)
	b.unrecorded(machine)
	b.Expect(b.pve.World.State().HA.Rules).To(BeEmpty())
}
