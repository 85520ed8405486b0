package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// documentedRights are those of docs/permissions.md.
func documentedRights() map[string][]string {
	storage := []string{"Datastore.Audit", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Allocate"}
	template := []string{"VM.Clone", "VM.Audit"}
	return map[string][]string{
		"/pool/capi": {
			"VM.Allocate", "VM.Audit", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Disk", "VM.Config.HWType", "VM.Config.Memory",
			"VM.Config.Network", "VM.Config.Options", "VM.Config.Cloudinit", "VM.PowerMgmt",
		},
		"/vms/9001": template, "/vms/9002": template, "/vms/9003": template,
		"/nodes": {"Sys.Audit"}, "/storage/local": storage, "/storage/local-lvm": storage,
		"/sdn/zones/localnetwork/vmbr0": {"SDN.Use"},
	}
}

// scoped makes a machine whose cluster has a token with the documented rights alone.
func (b *bench) scoped(name string, edit ...func(*v1beta1.ProxmoxMachine)) *v1beta1.ProxmoxMachine {
	b.t.Helper()
	return b.scopedTo(documentedRights(), name, edit...)
}

// scopedTo makes a machine whose cluster has a token with some rights alone.
func (b *bench) scopedTo(rights map[string][]string, name string, edit ...func(*v1beta1.ProxmoxMachine)) *v1beta1.ProxmoxMachine {
	b.t.Helper()
	admin := b.pve.Token
	b.pve.Token = b.pve.World.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "capve", Privileges: rights})
	b.provisioned(b.cluster("c1"))
	b.pve.Token = admin
	return b.machine("c1", name, append(edit, func(m *v1beta1.ProxmoxMachine) { m.Spec.Pool = "capi" })...)
}

// TestDocumentedRightsAreEnough takes a machine through its life with the token of docs/permissions.md.
func TestDocumentedRightsAreEnough(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.livesOnce(b.scoped("m1"))
}

// TestDocumentedRightsAreEnoughForAllHardware does so with a machine that asks for everything.
func TestDocumentedRightsAreEnoughForAllHardware(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bridge("vmbr0", vlanAware(), "pve1", "pve2", "pve3")
	b.livesOnce(b.scoped("m1", equip))
}

// TestUnseenVMAtTheVMIDIsLeftAlone has another manager, whose VMs our token may not see, take the VMID between its
// reservation and the clone: the machine takes another, and its deletion is not held up.
func TestUnseenVMAtTheVMIDIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.holdClones()
	machine := b.scoped("m1")
	reserved, foreign := b.losesVMID(machine)
	b.running(machine)
	b.Expect(machine.Spec.Reservation.VMID).NotTo(Equal(reserved.VMID))
	b.delete(machine)
	b.untouched(foreign)
	b.Expect(b.pveVMs()).To(HaveLen(1))
}

// TestMachineWithoutItsClusterIsDeleted has the Cluster object removed by force while the ProxmoxCluster, which waits for its
// machines, is still there.
func TestMachineWithoutItsClusterIsDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.Expect(b.client.Delete(b.ctx, &clusterv1.Cluster{ObjectMeta: b.meta("c1")})).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, cluster)).To(Succeed())
	b.delete(machine)
	b.gone(cluster)
	b.leavesNothing()
}
