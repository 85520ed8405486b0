package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// leftObjects are the claims, addresses and Secrets of machines that are gone.
func (s *simulation) leftObjects() []string {
	var found []string
	check := func(object client.Object, end string) {
		machine, _, _ := strings.Cut(object.GetName(), end)
		if owner := s.machines[machine]; owner == nil || owner.gone {
			found = append(found, kindOf(object)+" "+object.GetName()+" is left")
		}
	}
	for _, claim := range all[*ipamv1.IPAddressClaim](s.api) {
		check(claim, "-net")
	}
	for _, address := range all[*ipamv1.IPAddress](s.api) {
		check(address, "-net")
	}
	for _, secret := range all[*corev1.Secret](s.api) {
		if secret.Name != credentialsName {
			check(secret, "-bootstrap")
		}
	}
	return found
}

// leftVMs are VMs that are nobody's, and what else there is of VMs that are gone.
func (s *simulation) leftVMs() []string {
	var found []string
	for _, vm := range s.world.VMs() {
		if _, foreign := s.sentinels[vm.VMID]; !foreign && s.ownerOf(vm) == nil {
			found = append(found, fmt.Sprintf("VM %d on %s is nobody's: %v", vm.VMID, vm.Node, vm.Config))
		}
	}
	state := s.world.State()
	for _, sid := range slices.Sorted(maps.Keys(state.HA.Resources)) {
		var id proxmox.VMID
		if _, err := fmt.Sscanf(sid, "vm:%d", &id); err != nil {
			s.must(err)
		}
		if _, there := s.world.VM(id); !there {
			found = append(found, "the HA resource "+sid+" is left")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(state.HA.Rules)) {
		for _, sid := range strings.Split(state.HA.Rules[name]["resources"], ",") {
			if state.HA.Resources[sid] == nil {
				found = append(found, fmt.Sprintf("%s is left in the HA rule %s", sid, name))
			}
		}
	}
	for id := range state.StrayFirewalls {
		found = append(found, fmt.Sprintf("the firewall file of VM %d is left", id))
	}
	return found
}

// leftVolumes are seeds, with the bootstrap token in them, of machines that need none any more.
func (s *simulation) leftVolumes() []string {
	var found []string
	for _, volume := range s.world.Volumes() {
		if !strings.Contains(string(volume.ID), "iso/capve-") || strings.Contains(string(volume.ID), foreignUUID) {
			continue
		}
		needed := slices.ContainsFunc(s.living(), func(m *machine) bool {
			return m.uuid != "" && strings.Contains(string(volume.ID), m.uuid) && !m.hasNode && !m.vanished
		})
		if !needed {
			found = append(found, fmt.Sprintf("the seed %s is left on %s", volume.ID, volume.Node))
		}
	}
	return found
}
