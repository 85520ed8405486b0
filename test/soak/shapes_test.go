package soak_test

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// drawSpec draws what a machine is to be.
func (s *simulation) drawSpec() v1beta1.ProxmoxMachineSpec {
	spec := v1beta1.ProxmoxMachineSpec{
		Source: v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "k8s", CloneMode: v1beta1.CloneModeFull}},
		CPU:    v1beta1.CPU{Sockets: 1, Cores: 2}, Memory: v1beta1.Memory{SizeMiB: 4096},
		Network:   v1beta1.Network{Devices: []v1beta1.NetworkDevice{device("net0")}},
		Bootstrap: v1beta1.Bootstrap{Storage: s.setting.seedStorage}, DriftPolicy: v1beta1.DriftPolicyReport,
	}
	if s.oneIn(2) {
		spec.Disks.Boot.SizeGiB = 12 + s.random.Int32N(10)
	}
	if s.oneIn(2) {
		spec.Source.Template = v1beta1.TemplateSource{Tags: []string{"kubernetes"}, CloneMode: v1beta1.CloneModeLinked}
	} else if s.oneIn(3) {
		spec.Source.Template.Storage = "shared"
	}
	if s.oneIn(4) {
		s.drawCreate(&spec)
	}
	if s.oneIn(2) {
		spec.Pool = "capi"
	}
	if s.oneIn(4) {
		spec.Network.Devices = append(spec.Network.Devices, device("net1"))
	}
	s.drawExtras(&spec)
	return spec
}

// oneIn is true once in so many times.
func (s *simulation) oneIn(n int) bool { return s.random.IntN(n) == 0 }

// device is a network device with an address from the pool.
func device(name string) v1beta1.NetworkDevice {
	pool := v1beta1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: "pool"}
	return v1beta1.NetworkDevice{Name: name, Bridge: "vmbr0", Model: "virtio", IPv4: v1beta1.IPv4Addressing{AddressSource: v1beta1.AddressSource{PoolRef: pool}}}
}

// imageName is an image that is on each host.
const imageName = "local:import/debian.qcow2"

// drawCreate has the VM be made without a template.
func (s *simulation) drawCreate(spec *v1beta1.ProxmoxMachineSpec) {
	spec.Disks.Boot.Storage, spec.Disks.Boot.SizeGiB = []string{"local-lvm", "shared"}[s.random.IntN(2)], 4+s.random.Int32N(8) // the image has 3
	switch s.random.IntN(3) {
	case 0:
		spec.Source = v1beta1.VirtualMachineSource{Netboot: v1beta1.NetbootSource{Device: "net0"}}
	case 1:
		spec.Source, spec.Disks.Boot = v1beta1.VirtualMachineSource{Netboot: v1beta1.NetbootSource{Device: "net0"}}, v1beta1.BootDisk{}
	default:
		spec.Source = v1beta1.VirtualMachineSource{Image: v1beta1.ImageSource{Volume: imageName}}
	}
}

// drawExtras draws what most machines go without.
func (s *simulation) drawExtras(spec *v1beta1.ProxmoxMachineSpec) {
	if s.oneIn(4) {
		s.addDHCP(spec)
	}
	if s.oneIn(4) {
		s.addDisk(spec)
	}
	if s.oneIn(3) {
		spec.DriftPolicy = s.drawPolicy()
	}
	for _, change := range []func(*v1beta1.ProxmoxMachineSpec){s.changeTags, s.changeDescription, s.changeCPU} {
		if s.oneIn(4) {
			change(spec)
		}
	}
	if s.oneIn(3) {
		s.changeFirewall(spec)
	}
	if s.oneIn(3) {
		share(spec)
		s.changeHA(spec)
	}
}

// addDHCP adds a device that gets its address from the network. Such a device cannot be filtered by addresses.
func (s *simulation) addDHCP(spec *v1beta1.ProxmoxMachineSpec) {
	dhcp := device(fmt.Sprintf("net%d", len(spec.Network.Devices)))
	dhcp.IPv4 = v1beta1.IPv4Addressing{Method: v1beta1.IPv4MethodDHCP}
	dhcp.Firewall = ptr.To(false)
	spec.Network.Devices = append(spec.Network.Devices, dhcp)
	spec.Options.Agent.Enabled = ptr.To(true)
}

// addDisk adds a disk, on shared storage where all else is.
func (s *simulation) addDisk(spec *v1beta1.ProxmoxMachineSpec) {
	free := []string{"scsi5", "scsi6", "virtio3", "sata1"}
	free = slices.DeleteFunc(free, func(name string) bool {
		return slices.ContainsFunc(spec.Disks.Additional, func(d v1beta1.AdditionalDisk) bool { return d.Name == name })
	})
	if len(free) == 0 {
		return
	}
	name := free[s.random.IntN(len(free))]
	disk := v1beta1.AdditionalDisk{Name: name, Storage: []string{"local-lvm", "shared"}[s.random.IntN(2)], SizeGiB: 1 + s.random.Int32N(8)}
	if s.isShared(*spec) {
		disk.Storage = "shared"
	}
	if s.oneIn(2) {
		disk.Serial = "data-" + name
	}
	spec.Disks.Additional = append(spec.Disks.Additional, disk)
}

// share puts all that a VM has on storage that each host sees.
func share(spec *v1beta1.ProxmoxMachineSpec) {
	spec.Bootstrap.Storage = "shared"
	if spec.Disks.Boot.Storage != "" {
		spec.Disks.Boot.Storage = "shared"
	}
	if spec.Source.UsesTemplate() {
		spec.Source.Template.CloneMode, spec.Source.Template.Storage = v1beta1.CloneModeFull, "shared"
	}
	for i := range spec.Disks.Additional {
		spec.Disks.Additional[i].Storage = "shared"
	}
}

// isShared reports whether all that the VM has is on storage that each host sees, so that it can be started on another.
func (s *simulation) isShared(spec v1beta1.ProxmoxMachineSpec) bool {
	boot := spec.Source.Template.Storage
	switch {
	case !spec.Source.UsesTemplate():
		boot = spec.Disks.Boot.Storage
	case boot == "":
		boot = string(s.setting.template.Storage)
	}
	isLocal := func(d v1beta1.AdditionalDisk) bool { return d.Storage != "shared" }
	return spec.Bootstrap.Storage == "shared" && (boot == "" || boot == "shared") && !slices.ContainsFunc(spec.Disks.Additional, isLocal)
}

func (s *simulation) drawPolicy() v1beta1.DriftPolicy {
	return []v1beta1.DriftPolicy{v1beta1.DriftPolicyIgnore, v1beta1.DriftPolicyReport, v1beta1.DriftPolicyRepair}[s.random.IntN(3)]
}

func (s *simulation) changeTags(spec *v1beta1.ProxmoxMachineSpec) {
	spec.Tags = s.some("web", "db", "gpu", "blue")
}

// some draws some of the texts.
func (s *simulation) some(texts ...string) []string {
	return slices.DeleteFunc(texts, func(string) bool { return s.oneIn(2) })
}

func (s *simulation) changeDescription(spec *v1beta1.ProxmoxMachineSpec) {
	spec.Description = []string{"", "# a node", "line one\nline two", "it's 100 % äöü: {}"}[s.random.IntN(4)]
}

func (s *simulation) changeCPU(spec *v1beta1.ProxmoxMachineSpec) {
	if s.oneIn(2) {
		spec.CPU.Units = 50 + s.random.Int32N(200)
	} else {
		spec.CPU.Cores = 1 + s.random.Int32N(4)
	}
}

// groups are the security groups that there are, each with the port that it opens.
var groups = map[string]string{"web": "80", "db": "5432", "mon": "9100"}

// changeFirewall draws another firewall, or none.
func (s *simulation) changeFirewall(spec *v1beta1.ProxmoxMachineSpec) {
	spec.Firewall = v1beta1.Firewall{}
	for i := range spec.Network.Devices {
		if spec.Network.Devices[i].IPv4.Method != v1beta1.IPv4MethodDHCP {
			spec.Network.Devices[i].Firewall = ptr.To(true)
		}
	}
	if s.oneIn(5) {
		return
	}
	perhaps := func() *bool { return []*bool{nil, nil, ptr.To(true), ptr.To(false)}[s.random.IntN(4)] }
	policy := func() v1beta1.FirewallPolicy {
		return []v1beta1.FirewallPolicy{"", "ACCEPT", "DROP", "REJECT"}[s.random.IntN(4)]
	}
	f := v1beta1.Firewall{
		Enabled: ptr.To(!s.oneIn(4)), PolicyIn: policy(), PolicyOut: policy(), MACFilter: perhaps(), DHCP: perhaps(), RouterAdvertisement: perhaps(),
		LogLevelIn: []v1beta1.FirewallLogLevel{"", "info", "nolog"}[s.random.IntN(3)],
	}
	if s.oneIn(2) {
		f.IPFilter = ptr.To(true)
	}
	for _, name := range s.some("web", "db", "mon") {
		group := v1beta1.SecurityGroup{Name: name}
		if s.oneIn(3) {
			group.Device = "net0"
		}
		f.SecurityGroups = append(f.SecurityGroups, group)
	}
	s.random.Shuffle(len(f.SecurityGroups), func(i, j int) {
		f.SecurityGroups[i], f.SecurityGroups[j] = f.SecurityGroups[j], f.SecurityGroups[i]
	})
	spec.Firewall = f
}

// changeHA draws other high availability, or none, for a VM that can be started on another host.
func (s *simulation) changeHA(spec *v1beta1.ProxmoxMachineSpec) {
	isOn := spec.HighAvailability.Enabled != nil && *spec.HighAvailability.Enabled
	spec.HighAvailability = v1beta1.HighAvailability{}
	if !s.isShared(*spec) || isOn && s.oneIn(2) {
		return
	}
	ha := v1beta1.HighAvailability{Enabled: ptr.To(!s.oneIn(6))}
	if s.oneIn(2) {
		ha.MaxRestart = ptr.To(s.random.Int32N(4))
	}
	if s.oneIn(2) {
		ha.MaxRelocate = ptr.To(s.random.Int32N(4))
	}
	if s.setting.version == pvesim.V84 {
		if s.oneIn(2) {
			ha.Group = haGroup
		}
	} else {
		ha.Rules = s.drawRules()
		if s.oneIn(3) {
			ha.Failback = ptr.To(s.oneIn(2))
		}
	}
	spec.HighAvailability = ha
}

// The HA group, on 8, and rule that administrators have made; the resource that theirs is for.
const (
	haGroup = "gpu"
	haRule  = "theirs"
	haVM    = 103
)

// drawRules draws HA rules that go together: Proxmox VE takes one affinity to nodes for a VM.
func (s *simulation) drawRules() []v1beta1.HighAvailabilityRule {
	var rules []v1beta1.HighAvailabilityRule
	switch s.random.IntN(3) {
	case 0:
		rules = append(rules, v1beta1.HighAvailabilityRule{Name: haRule})
	case 1:
		rules = append(rules, v1beta1.HighAvailabilityRule{Name: "fast", NodeAffinity: v1beta1.NodeAffinity{Nodes: []v1beta1.AffinityNode{{Name: "pve1"}}}})
	}
	if s.oneIn(2) {
		rules = append(rules, v1beta1.HighAvailabilityRule{Name: "together", ResourceAffinity: "positive"})
	}
	return rules
}
