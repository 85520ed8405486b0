package soak_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// guest is a machine with its VM, as they are.
type guest struct {
	*machine
	object *v1beta1.ProxmoxMachine
	vm     pvesim.VMSpec
	ha     pvesim.HASpec
}

// config is the VM's config as it will be when it is started the next time.
func (g guest) config() vmconfig.Config { return effective(g.vm) }

func effective(vm pvesim.VMSpec) vmconfig.Config {
	config := vmconfig.Config(maps.Clone(vm.Config))
	maps.Copy(config, vm.Pending)
	for _, key := range vm.PendingDelete {
		delete(config, strings.TrimPrefix(key, "!"))
	}
	return config
}

// guests are the machines that are to have a VM, and have one.
func (s *simulation) guests() []guest {
	state := s.world.State()
	var found []guest
	for _, m := range s.living() {
		object, made := find[*v1beta1.ProxmoxMachine](s.api, m.name)
		vms := s.vmsOf(m)
		if !made || m.vanished || len(vms) != 1 {
			continue
		}
		at := slices.IndexFunc(state.VMs, func(vm pvesim.VMSpec) bool { return vm.VMID == vms[0].VMID })
		found = append(found, guest{machine: m, object: object, vm: state.VMs[at], ha: state.HA})
	}
	return found
}

// unlike says what of the VMs is not as their specs say, once nothing goes wrong any more.
func (s *simulation) unlike() []string {
	var found []string
	for _, g := range s.guests() {
		for _, check := range []func(guest) string{s.unlikeConfig, s.unlikeDecoded, s.untoldConfig, s.unlikeFirewall, s.unlikeHA} {
			if problem := check(g); problem != "" {
				found = append(found, g.name+": "+problem)
			}
		}
	}
	return found
}

// unlikeConfig compares the config with the spec as the planner does. What somebody changed by hand may differ unless it is to be
// repaired.
func (s *simulation) unlikeConfig(g guest) string {
	desired := vmconfig.Desired{UUID: proxmox.SMBIOSUUID(g.uuid), Machine: g.name, Cluster: clusterName, Namespace: namespace, Spec: g.object.Spec}
	config := g.config()
	comparison := vmconfig.Compare(desired, config)
	for _, difference := range comparison.Differences {
		if difference.Part == "size" && s.isGrown(g, difference.Key) {
			continue // a worker that died did not write it down, and Proxmox VE has nothing left to grow
		}
		hand, changed := g.byHand[difference.Key]
		isAsLeft := hand.value == config[difference.Key] || hand.changes != g.changes // the spec may have changed another part of it since
		isKept := difference.Effect == vmconfig.Replace || isAsLeft && g.object.Spec.DriftPolicy != v1beta1.DriftPolicyRepair
		if !changed || !isKept {
			return fmt.Sprintf("%s, and it is to be %s: %s", difference, g.object.Spec.DriftPolicy, reasons(g.object, true))
		}
	}
	if g.object.Spec.DriftPolicy == v1beta1.DriftPolicyRepair {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(g.byHand)) {
		if hand := g.byHand[key]; hand.isCertain && hand.changes == g.changes && config[key] != hand.value {
			return fmt.Sprintf("somebody set %s to %q, which is not to be changed back, and it is %q", key, hand.value, config[key])
		}
	}
	return ""
}

// isGrown reports whether the volume of a disk is as large as the spec says, whatever the config says of it.
func (s *simulation) isGrown(g guest, key string) bool {
	wanted := g.object.Spec.Disks.Boot.SizeGiB
	for _, disk := range g.object.Spec.Disks.Additional {
		if disk.Name == key {
			wanted = disk.SizeGiB
		}
	}
	name, _, _ := strings.Cut(g.config()[key], ",")
	return slices.ContainsFunc(s.world.Volumes(), func(volume pvesim.Volume) bool {
		return string(volume.ID) == name && (volume.Node == "" || volume.Node == g.vm.Node) && volume.Size >= proxmox.GiB(wanted).Bytes()
	})
}

// unlikeDecoded reads some of the config without the planner's help.
func (s *simulation) unlikeDecoded(g guest) string {
	config, spec := g.config(), g.object.Spec
	tags := strings.Split(config["tags"], ";")
	isTouched := func(key string) bool { _, touched := g.byHand[key]; return touched }
	for _, tag := range append(slices.Clone(spec.Tags), "capve-"+g.uuid) {
		if !isTouched("tags") && !slices.Contains(tags, tag) {
			return fmt.Sprintf("it lacks the tag %s: %q", tag, config["tags"])
		}
	}
	for _, tag := range g.dropped {
		if !isTouched("tags") && slices.Contains(tags, tag) {
			return fmt.Sprintf("it still has the tag %s: %q", tag, config["tags"])
		}
	}
	if !isTouched("description") && (!strings.Contains(config["description"], spec.Description) || !strings.Contains(config["description"], g.uuid)) {
		return fmt.Sprintf("its description is %q", config["description"])
	}
	for key, value := range map[string]int32{"cores": spec.CPU.Cores, "cpuunits": spec.CPU.Units, "memory": spec.Memory.SizeMiB} {
		is := cmp.Or(strings.TrimPrefix(config[key], "current="), map[string]string{"cpuunits": "100"}[key])
		if value != 0 && !isTouched(key) && is != fmt.Sprint(value) {
			return fmt.Sprintf("%s is %q, and not %d", key, config[key], value)
		}
	}
	return s.unlikeDisks(g)
}

// unlikeDisks looks whether each disk is there once, and as large as it is to be, on its storage.
func (s *simulation) unlikeDisks(g guest) string {
	config := g.config()
	volumes := map[string]pvesim.Volume{}
	for _, volume := range s.world.Volumes() {
		if volume.Node == "" || volume.Node == g.vm.Node {
			volumes[string(volume.ID)] = volume
		}
	}
	for _, disk := range g.object.Spec.Disks.Additional {
		name, _, _ := strings.Cut(config[disk.Name], ",")
		volume, there := volumes[name]
		if !there || !strings.HasPrefix(name, disk.Storage+":") || volume.Size < proxmox.GiB(disk.SizeGiB).Bytes() {
			return fmt.Sprintf("disk %s is %q, of %d bytes, and is to be of %d GiB on %s: %s", disk.Name, config[disk.Name], volume.Size, disk.SizeGiB, disk.Storage, reasons(g.object, true))
		}
	}
	return ""
}

// untoldConfig looks whether the condition says what is not as asked, and no more.
func (s *simulation) untoldConfig(g guest) string {
	condition := conditions.Get(g.object, v1beta1.ConfigurationUpToDateCondition)
	isRunning := g.vm.State == "running" && g.object.Spec.ProviderID != ""
	switch {
	case !isRunning:
		return ""
	case condition == nil || condition.ObservedGeneration < g.object.Generation:
		return "nothing says whether its config is up to date"
	case condition.Status == metav1.ConditionTrue:
		if name, hand := g.vm.Config["name"], g.byHand["name"]; name != g.name && name == hand.value && g.object.Spec.DriftPolicy == v1beta1.DriftPolicyReport {
			return "somebody renamed it to " + name + ", which is not told"
		}
		return ""
	case condition.Reason == plan.Drifted && len(g.byHand) > 0, condition.Reason == plan.RepairContested && len(g.byHand) > 0:
		return ""
	case condition.Reason == plan.RestartRequired && len(g.vm.Pending)+len(g.vm.PendingDelete) > 0:
		return ""
	}
	return fmt.Sprintf("its config is said not to be up to date: %s: %s", condition.Reason, condition.Message)
}
