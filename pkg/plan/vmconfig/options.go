package vmconfig

import (
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

func optionRows() []row[spec] {
	const sysModify = "The credentials need Sys.Modify on /."
	return []row[spec]{
		{Field: at("options.osType", "ostype", "", Reboot), codec: text(func(s *spec) *string { return &s.Options.OSType }), usual: "other"},
		{Field: at("options.onBoot", "onboot", "", Live), codec: flag(func(s *spec) **bool { return &s.Options.OnBoot }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("options.startup.order", "startup", "order", Live).noted(sysModify), codec: optional(func(s *spec) **int32 { return &s.Options.Startup.Order })},
		{Field: at("options.startup.upSeconds", "startup", "up", Live).noted(sysModify), codec: optional(func(s *spec) **int32 { return &s.Options.Startup.UpSeconds })},
		{Field: at("options.startup.downSeconds", "startup", "down", Live).noted(sysModify), codec: optional(func(s *spec) **int32 { return &s.Options.Startup.DownSeconds })},
		{Field: at("options.protection", "protection", "", Live), codec: flag(func(s *spec) **bool { return &s.Options.Protection }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("options.tablet", "tablet", "", HotplugUSB), codec: flag(func(s *spec) **bool { return &s.Options.Tablet }, "0", "1"), usual: "1", same: sameTruth},
		{Field: at("options.hotplug", "hotplug", "", Live).noted("Reboot where cpu or memory comes or goes. With memory, NUMA is switched on."), codec: hotplug(), usual: usualHotplug, same: sameFeatures},
	}
}

func agentRows() []row[spec] {
	return []row[spec]{
		{Field: at("options.agent.enabled", "agent", "enabled", Reboot), codec: flag(func(s *spec) **bool { return &s.Options.Agent.Enabled }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("options.agent.fstrimClonedDisks", "agent", "fstrim_cloned_disks", Live), codec: flag(func(s *spec) **bool { return &s.Options.Agent.FSTrimClonedDisks }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("options.agent.freezeFSOnBackup", "agent", "freeze-fs-on-backup", Reboot), codec: flag(func(s *spec) **bool { return &s.Options.Agent.FreezeFSOnBackup }, "0", "1"), usual: "1", same: sameTruth},
		{Field: at("options.agent.type", "agent", "type", Reboot), codec: text(func(s *spec) *string { return &s.Options.Agent.Type }), usual: "virtio"},
	}
}

// hotplug is the list of features, in which none is 0.
func hotplug() codec[spec] {
	plain := list(func(s *spec) *[]string { return s.Options.Hotplug }, ",")
	return codec[spec]{
		encode: func(s *spec) (string, bool) {
			switch {
			case s.Options.Hotplug == nil:
				return "", false
			case len(*s.Options.Hotplug) == 0:
				return "0", true
			}
			return plain.encode(s)
		},
		decode: func(s *spec, text string) {
			s.Options.Hotplug = ptr.To([]string{})
			if text := features(text); text != "" {
				plain.decode(s, text)
			}
		},
	}
}

// needsNUMA reports whether what is asked for needs NUMA: Proxmox VE refuses to start a VM that has it without.
func needsNUMA(s *spec) bool {
	if s.Memory.Hugepages != "" {
		return true
	}
	for _, feature := range ptr.Deref(s.Options.Hotplug, nil) {
		if feature == "memory" {
			return true
		}
	}
	return false
}

func deviceRows() []row[v1beta1.NetworkDevice] {
	type device = v1beta1.NetworkDevice
	return []row[device]{
		{Field: at("model", "", "model", HotplugNetwork), codec: text(func(d *device) *v1beta1.NetworkDeviceModel { return &d.Model })},
		{Field: at("macAddress", "", "macaddr", Replace).noted("The guest's network config finds the device by it."), codec: text(func(d *device) *string { return &d.MACAddress }), same: sameIgnoringCase},
		{Field: at("bridge", "", "bridge", Live), codec: text(func(d *device) *string { return &d.Bridge })},
		{Field: at("vlan", "", "tag", Live), codec: owned(number(func(d *device) *int32 { return &d.VLAN }))},
		{Field: at("trunks", "", "trunks", Live), codec: list(func(d *device) *[]string { return &d.Trunks }, ";"), same: sameSet},
		{Field: at("mtu", "", "mtu", HotplugNetwork), codec: number(func(d *device) *int32 { return &d.MTU })},
		{Field: at("rateLimitKiBps", "", "rate", Live), codec: kibibytes(func(d *device) *int32 { return &d.RateLimitKiBps }), same: sameNumber},
		{Field: at("queues", "", "queues", HotplugNetwork), codec: number(func(d *device) *int32 { return &d.Queues })},
		{Field: at("firewall", "", "firewall", Live), codec: flag(func(d *device) **bool { return &d.Firewall }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("linkDown", "", "link_down", Live), codec: flag(func(d *device) **bool { return &d.LinkDown }, "0", "1"), usual: "0", same: sameTruth},
	}
}
