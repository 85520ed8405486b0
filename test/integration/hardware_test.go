package integration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// equip asks for everything that needs no device of the host and no root@pam.
func equip(m *v1beta1.ProxmoxMachine) {
	s := &m.Spec
	s.CPU = v1beta1.CPU{Sockets: 1, Cores: 4, VCPUs: 2, Type: "x86-64-v2-AES", Flags: []string{"+aes"}, Units: 200, Limit: ptr.To(resource.MustParse("2.5"))}
	s.Memory = v1beta1.Memory{SizeMiB: 4096, MinimumMiB: ptr.To[int32](2048)}
	s.Hardware = v1beta1.Hardware{
		MachineType: "q35", BIOS: "ovmf", EFIDisk: v1beta1.EFIDisk{Storage: "local-lvm", PreEnrolledKeys: ptr.To(true)}, TPM: v1beta1.TPM{Storage: "local-lvm", Version: "v2.0"},
		SCSIController: "virtio-scsi-single", Display: v1beta1.Display{Type: "serial0"}, SerialPorts: []string{"serial0"},
		RNG: v1beta1.RNG{Source: "/dev/urandom", MaxBytes: ptr.To[int32](2048), PeriodMilliseconds: 500}, Watchdog: v1beta1.Watchdog{Model: "i6300esb", Action: "reset"},
	}
	s.Options = v1beta1.Options{
		OSType: "l26", OnBoot: ptr.To(true), Protection: ptr.To(true), Tablet: ptr.To(false), Hotplug: &[]string{"network", "disk", "cpu"},
		Agent: v1beta1.Agent{Enabled: ptr.To(true), FSTrimClonedDisks: ptr.To(true), FreezeFSOnBackup: ptr.To(false)},
	}
	s.Disks.Boot.DiskOptions = v1beta1.DiskOptions{Discard: ptr.To(true), SSD: ptr.To(true), IOThread: ptr.To(true), Cache: "none", AIO: "io_uring"}
	s.Disks.Additional = []v1beta1.AdditionalDisk{
		{Name: "scsi1", Storage: "local-lvm", SizeGiB: 10, DiskOptions: v1beta1.DiskOptions{
			Serial: "etcd", Backup: ptr.To(false), Replicate: ptr.To(false), Limits: v1beta1.DiskLimits{ReadMiBps: 100, ReadBurstMiBps: 200, WriteIOPS: 500},
		}},
		{Name: "virtio3", Storage: "local-lvm", SizeGiB: 5, DiskOptions: v1beta1.DiskOptions{ReadOnly: ptr.To(true)}},
	}
	device := &s.Network.Devices[0]
	device.MACPrefix, device.QueuesPerCPU, device.MTU, device.RateLimitKiBps = "BC:24:11", ptr.To(true), 1450, 12207
	device.Firewall, device.Trunks = ptr.To(true), []string{"5", "7-9"}
	second := *device
	second.Name, second.Model, second.MACPrefix, second.QueuesPerCPU, second.MTU, second.LinkDown = "net10", "e1000", "", nil, 0, ptr.To(true)
	s.Network.Devices = append(s.Network.Devices, second)
	s.Tags, s.Description, s.VMName = []string{"prod", "k8s.1"}, "Made **for** team A.", "{{ .Cluster }}-{{ .Machine }}"
	s.RawConfig = v1beta1.RawConfig{"localtime": "1"}
	s.Bootstrap.Bus = "sata"
}

// TestAMachineGetsTheHardwareThatIsAsked has Proxmox VE make a machine with everything, and finds it as it was asked.
func TestAMachineGetsTheHardwareThatIsAsked(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version))
			b.bridge("vmbr0", vlanAware(), "pve1", "pve2", "pve3")
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1", equip)
			b.running(machine)
			b.Expect(b.pveVMs()).To(HaveLen(1))
			config := vmconfig.Config(b.pveVMs()[0].Config)
			desired := vmconfig.Desired{
				UUID: proxmox.SMBIOSUUID(machine.Spec.Reservation.UUID), Machine: "m1", Cluster: "c1", Namespace: b.namespace, Spec: machine.Spec,
			}
			desired.Seed = vmconfig.SeedVolume(proxmox.StorageID(machine.Spec.Reservation.SeedStorage), desired.UUID)
			b.Expect(vmconfig.Compare(desired, config).Differences).To(BeEmpty(), "%s", pretty(config))
			b.hasWhole(machine, vmconfig.Decode(config))
			b.Expect(config).To(HaveKeyWithValue("sata5", HavePrefix(string(desired.Seed))))
			b.Expect(b.pve.World.Check()).To(BeEmpty())
			posts := 0
			for _, request := range own(b.requests()) {
				if strings.Contains(request, "/config") && strings.HasPrefix(request, "POST") {
					posts++
				}
			}
			b.Expect(posts).To(Equal(1), "disks are made at once")
			b.delete(machine)
			b.Expect(b.pve.World.Check()).To(BeEmpty())
		})
	}
}

// hasWhole checks what is asked for and is said as it is by every config.
func (b *bench) hasWhole(machine *v1beta1.ProxmoxMachine, got v1beta1.ProxmoxMachineSpec) {
	b.t.Helper()
	want := machine.Spec.DeepCopy()
	b.Expect(cmp.Diff(want.CPU, got.CPU, cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }))).To(BeEmpty())
	want.Hardware.EFIDisk.Format = "raw"
	b.Expect(cmp.Diff(want.Memory, got.Memory) + cmp.Diff(want.Hardware, got.Hardware) + cmp.Diff(want.Options, got.Options)).To(BeEmpty())
	b.Expect(got.Disks.Additional).To(HaveLen(2))
	b.Expect(cmp.Diff(want.Disks.Additional[0].DiskOptions, got.Disks.Additional[0].DiskOptions)).To(BeEmpty())
	b.Expect(got.Disks.Boot.SizeGiB).To(Equal(want.Disks.Boot.SizeGiB))
	b.Expect(got.VMName).To(Equal("c1-m1"))
	b.Expect(got.Description).To(Equal(want.Description))
	b.Expect(got.Tags).To(ContainElements("prod", "k8s.1"))
	b.Expect(got.Network.Devices[1].LinkDown).To(HaveValue(BeTrue()))
	b.Expect(got.Network.Devices[0].Queues).To(Equal(int32(2)), "one for each vCPU that is plugged in")
	b.Expect(got.Network.Devices[0].MACAddress).To(HavePrefix("BC:24:11:"))
}

// TestAMachineThatDoesNotFitItsTemplateSaysSo asks of a template's boot disk what its bus does not have.
func TestAMachineThatDoesNotFitItsTemplateSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi0", Storage: "local-lvm", SizeGiB: 1}}
	})
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.InvalidConfiguration, "disks.additional[scsi0]: the VM boots from scsi0: give the additional disk another name")
	b.delete(machine)
	b.Expect(b.pveVMs()).To(BeEmpty())
}

// TestARefusedFieldIsNamed has Proxmox VE refuse what admission cannot know.
func TestARefusedFieldIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.misfits = []string{"kvn: property is not defined"} // only Proxmox VE knows what it takes
	b.provisioned(b.cluster("c1"))
	rows := map[string]struct {
		edit    func(*v1beta1.ProxmoxMachineSpec)
		reason  string
		message string
	}{
		"hugepages": {func(s *v1beta1.ProxmoxMachineSpec) { s.Memory.Hugepages = "2MiB" }, "RootOnly", "leave memory.hugepages out of the ProxmoxMachineTemplate"},
		"raw-key":   {func(s *v1beta1.ProxmoxMachineSpec) { s.RawConfig = v1beta1.RawConfig{"kvn": "0"} }, "Error", "correct rawConfig[kvn] in the ProxmoxMachineTemplate"},
		"cpu-flag":  {func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Flags = []string{"+nonsense"} }, plan.WaitingForCapacity, "lets no VM switch the CPU flag +nonsense, which cpu.flags names"},
		"storage": {func(s *v1beta1.ProxmoxMachineSpec) {
			s.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi1", Storage: "nope", SizeGiB: 1}}
		}, plan.WaitingForCapacity, "storage nope is not there, cannot be seen (Datastore.Audit) or does not take images"},
	}
	machines := map[string]*v1beta1.ProxmoxMachine{}
	for name, row := range rows {
		machines[name] = b.machine("c1", name, func(m *v1beta1.ProxmoxMachine) { row.edit(&m.Spec) })
	}
	for name, row := range rows {
		b.says(machines[name], v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, row.reason, row.message)
		b.Expect(b.client.Delete(b.ctx, machines[name])).To(Succeed())
	}
	for _, machine := range machines {
		b.gone(machine)
	}
	b.Expect(b.pveVMs()).To(BeEmpty())
}

// TestRootMaySetWhatNoTokenMay has the region's credentials be root@pam and its password.
func TestRootMaySetWhatNoTokenMay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.create(&corev1.Secret{ObjectMeta: b.meta("root"), StringData: map[string]string{"username": "root@pam", "password": "pvesim"}})
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { c.Spec.Regions[0].CredentialsRef.Name = "root" }))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Memory.Hugepages = "2MiB"
		m.Spec.RawConfig = v1beta1.RawConfig{"args": "-no-reboot", "affinity": "0-1"}
		m.Spec.Options.Startup = v1beta1.Startup{Order: ptr.To[int32](3), UpSeconds: ptr.To[int32](10)}
	})
	b.running(machine)
	b.Expect(b.pveVMs()[0].Config).To(And(
		HaveKeyWithValue("hugepages", "2"), HaveKeyWithValue("numa", "1"), HaveKeyWithValue("args", "-no-reboot"), HaveKeyWithValue("affinity", "0-1"),
		HaveKeyWithValue("startup", "3,up=10"),
	))
	b.delete(machine)
}
