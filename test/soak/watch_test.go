package soak_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// addSentinel adds a VM that is somebody else's, and remembers how it looks.
func (s *simulation) addSentinel(spec pvesim.VMSpec) {
	if err := s.world.AddVM(spec); err != nil {
		s.trace.add("admin", "%v", err)
		return
	}
	s.sentinels[spec.VMID] = s.looks(spec.VMID)
}

// looks is all of a VM but whether and where it runs, which hosts that go down and the HA manager change, and what that knew of the VMID.
func (s *simulation) looks(id proxmox.VMID) string {
	vm, there := s.world.VM(id)
	if !there {
		return "gone"
	}
	vm.Status, vm.HAState, vm.Node = "", "", ""
	var volumes []pvesim.Volume
	for _, volume := range s.world.Volumes() {
		if volume.VMID == id {
			volumes = append(volumes, volume)
		}
	}
	return text(vm) + text(volumes) + text(s.world.Firewall(id))
}

// volumesOf is how all volumes look that a UUID is in the names of.
func (s *simulation) volumesOf(uuid string) string {
	return text(slices.DeleteFunc(s.world.Volumes(), func(v pvesim.Volume) bool { return !strings.Contains(string(v.ID), uuid) }))
}

func (s *simulation) checkSentinels() {
	ha := s.world.HA()
	if theirs := fmt.Sprintf("vm:%d", haVM); ha.Resources[theirs]["state"] != "ignored" || s.setting.version != pvesim.V84 && !hasResource(ha.Rules[haRule], theirs) {
		s.violate("the HA manager was told otherwise of a foreign VM: %s", text(ha))
	}
	if now := s.volumesOf(foreignUUID); now != s.foreignVolumes {
		s.violate("foreign volumes were changed:\nfrom %s\nto   %s", s.foreignVolumes, now)
	}
	for _, id := range slices.Sorted(maps.Keys(s.sentinels)) {
		if now := s.looks(id); now != s.sentinels[id] {
			s.violate("foreign VM %d was changed:\nfrom %s\nto   %s", id, s.sentinels[id], now)
		}
	}
}

// ownerOf is the machine whose identity a VM carries; nil if it is none's.
func (s *simulation) ownerOf(vm pvesim.VM) *machine {
	if _, foreign := s.sentinels[vm.VMID]; foreign {
		return nil
	}
	for _, m := range s.sortedMachines() {
		if m.uuid != "" && vmconfig.Config(vm.Config).BelongsTo(proxmox.SMBIOSUUID(m.uuid)) {
			return m
		}
	}
	return nil
}

// vmsOf are the VMs that carry the identity of a machine.
func (s *simulation) vmsOf(m *machine) []pvesim.VM {
	return slices.DeleteFunc(s.world.VMs(), func(vm pvesim.VM) bool { return s.ownerOf(vm) != m })
}

// watchIdentities checks that no two VMs carry one identity, and notes whose VM has vanished.
func (s *simulation) watchIdentities() {
	count := map[*machine]int{}
	vms := s.world.VMs()
	for id := range s.walls {
		if !slices.ContainsFunc(vms, func(vm pvesim.VM) bool { return vm.VMID == id }) {
			delete(s.walls, id)
		}
	}
	for _, vm := range vms {
		if owner := s.ownerOf(vm); owner != nil {
			count[owner]++
		}
	}
	for _, m := range s.sortedMachines() {
		switch {
		case count[m] > 1:
			s.violate("%d VMs carry the identity of %s", count[m], m.name)
		case count[m] == 1 && m.vanished:
			s.violate("the VM of %s was made again after it was seen to be gone", m.name)
		case count[m] == 0 && m.providerID != "" && !m.deleted && !m.vanished:
			m.vanished = true
			if !m.destroyed {
				s.violate("the VM of %s is lost", m.name)
			}
		case count[m] == 1 && m.gone:
			s.violate("the VM of %s is there although its Machine is gone", m.name)
		}
	}
}

// watchObject checks each write: identities stay, and secrets are in Secrets alone.
func (s *simulation) watchObject(_, after client.Object) {
	if isNil(after) {
		return
	}
	if _, isSecret := after.(*corev1.Secret); !isSecret {
		s.keepsSecrets(kindOf(after)+" "+after.GetName(), text(after))
	}
	object, isMachine := after.(*v1beta1.ProxmoxMachine)
	m := s.machines[after.GetName()]
	if !isMachine || m == nil {
		return
	}
	if m.uuid != "" && m.uuid != object.Spec.Reservation.UUID {
		s.violate("the UUID of %s changes from %s to %q", m.name, m.uuid, object.Spec.Reservation.UUID)
	}
	if m.providerID != "" && m.providerID != object.Spec.ProviderID {
		s.violate("the providerID of %s changes from %s to %q", m.name, m.providerID, object.Spec.ProviderID)
	}
	s.ready(object)
	m.uuid, m.providerID = object.Spec.Reservation.UUID, object.Spec.ProviderID
}

var targetVM = regexp.MustCompile(`^/nodes/[^/]+/qemu/(\d+)`)

// witness checks each request of the controllers at the moment when it arrives.
func (s *simulation) witness(c call) {
	s.count(c)
	if c.method == http.MethodGet || strings.HasSuffix(c.path, "/clone") {
		return
	}
	m := s.machines[c.who]
	if m == nil {
		s.violate("a write of nobody's: %s", c)
		return
	}
	if match := targetVM.FindStringSubmatch(c.path); match != nil {
		id, _ := strconv.Atoi(match[1])
		if vm, there := s.world.VM(proxmox.VMID(id)); there && s.ownerOf(vm) != m && (!m.adopted || c.method == http.MethodDelete) {
			s.violate("a foreign VM is written to: %s", c)
		}
		if strings.HasSuffix(c.path, "/config") && !strings.Contains(string(c.body), "digest=") {
			s.violate("a config is changed whatever it is by now: %s", c)
		}
	}
	if strings.Contains(c.path, "/content/") && !strings.Contains(c.path, m.uuid) {
		s.violate("a foreign volume is written to: %s", c)
	}
}

func (s *simulation) isLost(node proxmox.NodeName) bool { return s.lost[node] }

// unsettled says what is not yet as it has to be once nothing goes wrong any more.
func (s *simulation) unsettled() []string {
	var found []string
	for _, m := range s.sortedMachines() {
		if problem := s.unsettledMachine(m); problem != "" {
			found = append(found, m.name+": "+problem)
		}
	}
	found = append(found, s.unlike()...)
	found = append(found, s.leftObjects()...)
	found = append(found, s.leftVMs()...)
	found = append(found, s.leftVolumes()...)
	for _, finding := range s.world.Findings() {
		if !s.isOfAnothers(finding) {
			found = append(found, string(finding.Kind)+": "+finding.Text)
		}
	}
	return found
}

// isOfAnothers tells of two VMs with one address whether one of them is another's: who takes over a VM has to see to that.
func (s *simulation) isOfAnothers(finding pvesim.Finding) bool {
	if finding.Kind != pvesim.SharedAddress {
		return false
	}
	named := strings.Fields(finding.Text)
	return slices.ContainsFunc(slices.Collect(maps.Keys(s.sentinels)), func(id proxmox.VMID) bool { return slices.Contains(named, id.String()) })
}

func (s *simulation) unsettledMachine(m *machine) string {
	vms := s.vmsOf(m)
	object, found := find[*v1beta1.ProxmoxMachine](s.api, m.name)
	switch {
	case m.gone && len(vms) > 0:
		return "it is gone and has a VM"
	case m.gone:
		return ""
	case m.deleted:
		return fmt.Sprintf("it is to be deleted; VMs: %d; %s", len(vms), reasons(object, found))
	case !found:
		return "its ProxmoxMachine is not there"
	case m.vanished:
		if ready := conditions.Get(object, v1beta1.VirtualMachineReadyCondition); len(vms) > 0 || ready == nil || ready.Reason != plan.VirtualMachineGone {
			return fmt.Sprintf("its VM was deleted, which is not said; VMs: %d; %s", len(vms), reasons(object, found))
		}
		return ""
	case m.off:
		if len(vms) != 1 || vms[0].Status != "stopped" {
			return fmt.Sprintf("it is to be off: %v; %s", vms, reasons(object, found))
		}
		return ""
	case len(vms) != 1 || vms[0].Status != "running" || object.Spec.ProviderID == "":
		return fmt.Sprintf("it has no running VM: %v; %s", vms, reasons(object, found))
	case conditions.Get(object, clusterv1.ReadyCondition) == nil || conditions.Get(object, clusterv1.ReadyCondition).Status != metav1.ConditionTrue:
		return "it is not Ready: " + reasons(object, found)
	}
	return ""
}

func reasons(object *v1beta1.ProxmoxMachine, found bool) string {
	if !found {
		return "no ProxmoxMachine"
	}
	var out []string
	for _, condition := range object.Status.Conditions {
		if condition.Status != metav1.ConditionTrue {
			out = append(out, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
		}
	}
	return fmt.Sprintf("%+v %s", object.Spec.Reservation, strings.Join(out, "; "))
}
