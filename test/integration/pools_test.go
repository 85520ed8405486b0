package integration_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// inPool waits until a machine's VM is in a pool, and the spec is carried out.
func (b *bench) inPool(machine *v1beta1.ProxmoxMachine, pool proxmox.PoolID) {
	b.t.Helper()
	b.Eventually(func() proxmox.PoolID { return b.vmOf(machine).Pool }, patience, poll).Should(Equal(pool))
	b.isFollowed(machine)
}

// putInto has somebody put a machine's VM into a pool.
func (b *bench) putInto(pool string, machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	id := proxmox.VMID(machine.Spec.Reservation.VMID).String()
	b.ask(http.MethodPut, "/pools", url.Values{"poolid": {pool}, "vms": {id}, "allow-move": {"1"}})
}

// TestARunningVMFollowsThePoolOfItsSpec moves a VM between pools, out of them, and lets somebody else do so.
func TestARunningVMFollowsThePoolOfItsSpec(t *testing.T) {
	t.Parallel()
	onBothVersions(t, func(m *v1beta1.ProxmoxMachine) { m.Spec.Pool = "capi" }, func(b *bench, machine *v1beta1.ProxmoxMachine) {
		b.ask(http.MethodPost, "/pools", url.Values{"poolid": {"team"}})
		b.ask(http.MethodPost, "/pools", url.Values{"poolid": {"team/a"}})
		sent := len(b.requests())
		b.change(machine, func() { machine.Spec.Pool = "team/a" })
		b.inPool(machine, "team/a")
		b.tells(machine, "Normal", v1beta1.ReconfiguredEvent, "changed pool of VM")
		b.change(machine, func() { machine.Spec.Pool = "" })
		b.inPool(machine, "")
		b.Expect(writes(b.requests()[sent:])).To(HaveLen(2), "one for each move: %v", writes(b.requests()[sent:]))
		b.restsWithoutRequests(machine)

		b.putInto("team", machine)
		b.restsWithoutRequests(machine)
		b.Expect(b.vmOf(machine).Pool).To(BeEquivalentTo("team"), "the spec names none")
		b.untold(machine, v1beta1.DriftedEvent)

		b.change(machine, func() { machine.Spec.Pool = "capi" })
		b.inPool(machine, "capi")
		b.putInto("team", machine)
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Drifted", "pool: capi → team")
		b.restsWithoutRequests(machine)
		b.Expect(b.vmOf(machine).Pool).To(BeEquivalentTo("team"), "it is told, and left alone")

		b.change(machine, func() { machine.Spec.DriftPolicy = v1beta1.DriftPolicyRepair })
		b.inPool(machine, "capi")
		b.tells(machine, "Warning", v1beta1.RepairedEvent, "pool is changed back")

		b.change(machine, func() { machine.Spec.Pool = "nowhere" })
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "ChangeRefused", "spec.pool: put VM", "pool 'nowhere' does not exist: create it in Proxmox VE")
		b.restsWithoutRequests(machine)
		b.Expect(b.vmOf(machine).Pool).To(BeEquivalentTo("capi"))
		b.change(machine, func() { machine.Spec.Pool = "capi" })
		b.inPool(machine, "capi")
	})
}

// TestRightsToMoveAVM has a token that may do less and less than a move takes. A VM that it would lose is not moved.
func TestRightsToMoveAVM(t *testing.T) {
	t.Parallel()
	const allocate = "Pool.Allocate"
	machines := documentedRights()["/pool/capi"]
	both := slices.Concat(machines, []string{allocate})
	for name, c := range map[string]struct {
		capi, team []string
		to         string
		refused    []string
	}{
		"all":                    {capi: both, team: both, to: "team"},
		"not of the old pool":    {capi: machines, team: both, to: "team", refused: []string{"Permission check failed (/pool/capi, Pool.Allocate)", "grant this privilege"}},
		"not of the new pool":    {capi: both, team: machines, to: "team", refused: []string{"Permission check failed (/pool/team, Pool.Allocate)", "grant this privilege"}},
		"not of what is in it":   {capi: both, team: []string{allocate, "VM.Audit"}, to: "team", refused: []string{"in pool team the credentials would lose VM.Allocate, VM.Config.CDROM", "grant that on /pool/team"}},
		"not of what is in none": {capi: both, team: both, refused: []string{"outside of pool capi the credentials would lose VM.Allocate, VM.Audit", "grant that on /vms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.ask(http.MethodPost, "/pools", url.Values{"poolid": {"team"}})
			rights := documentedRights()
			rights["/pool/capi"], rights["/pool/team"] = c.capi, c.team
			machine := b.scopedTo(rights, "m1")
			b.settled(machine)
			b.isFollowed(machine)
			b.change(machine, func() { machine.Spec.Pool = c.to })
			if c.refused == nil {
				b.inPool(machine, proxmox.PoolID(c.to))
				b.running(machine)
				b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
				b.gone(machine)
				return
			}
			b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "ChangeRefused", append(c.refused, "spec.pool")...)
			b.restsWithoutRequests(machine)
			b.Expect(b.vmOf(machine).Pool).To(BeEquivalentTo("capi"))
			b.running(machine)
		})
	}
}
