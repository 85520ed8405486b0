package integration_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// from gives a machine another source, and no boot disk but the one it says.
func from(source v1beta1.VirtualMachineSource, boot v1beta1.BootDisk) func(*v1beta1.ProxmoxMachine) {
	return func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Source, m.Spec.Disks.Boot, m.Spec.Pool = source, boot, "capi"
	}
}

func template(source v1beta1.TemplateSource) func(*v1beta1.ProxmoxMachine) {
	return from(v1beta1.VirtualMachineSource{Template: source}, v1beta1.BootDisk{})
}

func image(volume string, boot v1beta1.BootDisk) func(*v1beta1.ProxmoxMachine) {
	return from(v1beta1.VirtualMachineSource{Image: v1beta1.ImageSource{Volume: volume}}, boot)
}

func netboot(device string, boot v1beta1.BootDisk) func(*v1beta1.ProxmoxMachine) {
	return from(v1beta1.VirtualMachineSource{Netboot: v1beta1.NetbootSource{Device: device}}, boot)
}

// gallery is a Proxmox VE with images: one on shared storage, one on local storage of pve2 alone; with tagged templates, and a
// VM that has a snapshot.
func gallery(version pvesim.Version) []pvesim.Option {
	const gib = 1 << 30
	tagged := func(id proxmox.VMID, node proxmox.NodeName, tags, storage string) pvesim.VMSpec {
		disk := storage + ":base-" + id.String() + "-disk-0"
		if storage == "shared" {
			disk = storage + ":" + id.String() + "/base-" + id.String() + "-disk-0.qcow2"
		}
		return pvesim.VMSpec{VMID: id, Node: node, Config: map[string]string{
			"name": "golden-" + id.String(), "tags": tags, "template": "1", "scsihw": "virtio-scsi-single", "scsi0": disk + ",size=3G", "boot": "order=scsi0",
			"memory": "2048",
		}}
	}
	ordinary := pvesim.VMSpec{VMID: 9300, Node: "pve3", Config: map[string]string{
		"name": "workshop", "tags": "workshop", "scsi0": "local:9300/vm-9300-disk-0.qcow2,size=4G", "boot": "order=scsi0", "memory": "2048",
	}}
	before := map[string]string{}
	for key, value := range ordinary.Config {
		before[key] = value
	}
	before["balloon"] = "512"
	ordinary.Config["parent"] = "v1"
	ordinary.Snapshots = []pvesim.SnapshotSpec{{Name: "v1", Config: before}}
	state := pvesim.State{
		Version: version, Nodes: []pvesim.NodeSpec{{Name: "pve1"}, {Name: "pve2"}, {Name: "pve3"}},
		Storages: []pvesim.StorageSpec{
			{ID: "local", Type: "dir", Content: []string{"images", "iso", "import"}},
			{ID: "local-lvm", Type: "lvmthin", Content: []string{"images"}},
			{ID: "shared", Type: "nfs", Content: []string{"images", "iso", "import"}},
			{ID: "isos", Type: "nfs", Content: []string{"iso"}},
			{ID: "far", Type: "nfs", Content: []string{"images", "import"}, Nodes: []proxmox.NodeName{"pve3"}},
		},
		Volumes: []pvesim.VolumeSpec{
			{ID: "shared:import/debian-13.qcow2", Size: 2 * gib},
			{ID: "local:import/own.raw", Node: "pve2", Size: 3 * gib},
			{ID: "far:import/far.qcow2", Size: gib},
		},
		VMs: []pvesim.VMSpec{
			tagged(9001, "pve1", "k8s;ubuntu", "local-lvm"), tagged(9002, "pve1", "k8s;old;ubuntu", "local-lvm"),
			tagged(9101, "pve2", "k8s;one", "local-lvm"), tagged(9102, "pve2", "k8s;two", "local-lvm"),
			tagged(9200, "pve3", "common", "shared"), ordinary,
		},
		Pools: []pvesim.PoolSpec{{ID: "capi"}},
	}
	return []pvesim.Option{pvesim.FromState(state)}
}

// madeFrom is a source, and what comes of it.
type madeFrom struct {
	name string
	edit []func(*v1beta1.ProxmoxMachine)
	// event is part of what is told, config are keys of the VM with a part of their value.
	event  string
	config map[string]string
	sent   map[string]string
}

func sources() []madeFrom {
	return []madeFrom{
		{
			"template by VMID",
			[]func(*v1beta1.ProxmoxMachine){template(v1beta1.TemplateSource{VMID: 9102})},
			"cloned template 9102 of pve2",
			map[string]string{"scsi0": "local-lvm:vm-", "tags": "two"},
			map[string]string{"full": "1"},
		},
		{
			"the most specific template that has the tags",
			[]func(*v1beta1.ProxmoxMachine){template(v1beta1.TemplateSource{Tags: []string{"ubuntu", "k8s"}})},
			"cloned template 9001 of pve1",
			map[string]string{"scsi0": "local-lvm:vm-"},
			map[string]string{"full": "1"},
		},
		{
			"a more specific tag",
			[]func(*v1beta1.ProxmoxMachine){template(v1beta1.TemplateSource{Tags: []string{"old"}})},
			"cloned template 9002 of pve1",
			map[string]string{"tags": "old"},
			nil,
		},
		{
			"linked clone on another node",
			[]func(*v1beta1.ProxmoxMachine){template(v1beta1.TemplateSource{Name: "golden-9200", CloneMode: v1beta1.CloneModeLinked}), at("pve1")},
			"cloned template 9200 of pve3",
			map[string]string{"scsi0": "shared:9200/base-9200-disk-0.qcow2/"},
			map[string]string{"full": "0", "target": "pve1"},
		},
		{
			"full clone onto another storage",
			[]func(*v1beta1.ProxmoxMachine){template(v1beta1.TemplateSource{Name: "golden-9001", Storage: "local", Format: "qcow2"})},
			"cloned template 9001 of pve1",
			map[string]string{"scsi0": "disk-0.qcow2"},
			map[string]string{"full": "1", "storage": "local", "format": "qcow2"},
		},
		{
			"snapshot of a VM",
			[]func(*v1beta1.ProxmoxMachine){template(v1beta1.TemplateSource{Tags: []string{"workshop"}, Snapshot: "v1"})},
			"cloned snapshot v1 of VM 9300 of pve3",
			map[string]string{"balloon": "512"},
			map[string]string{"snapname": "v1"},
		},
		{
			"image on shared storage",
			[]func(*v1beta1.ProxmoxMachine){image("shared:import/debian-13.qcow2", v1beta1.BootDisk{Storage: "local-lvm", SizeGiB: 20, DiskOptions: v1beta1.DiskOptions{Discard: ptr.To(true)}})},
			"with a disk from image shared:import/debian-13.qcow2",
			map[string]string{"scsi0": "discard=on,size=20G", "boot": "order=scsi0", "scsihw": "virtio-scsi-single", "cpu": "x86-64-v2-AES", "ostype": "l26"},
			map[string]string{"scsi0": "local-lvm:0,import-from=shared:import/debian-13.qcow2,discard=on", "pool": "capi"},
		},
		{
			"image on one node",
			[]func(*v1beta1.ProxmoxMachine){image("local:import/own.raw", v1beta1.BootDisk{Name: "virtio0", Storage: "local", Format: "qcow2"})},
			"on pve2 with a disk from image local:import/own.raw",
			map[string]string{"virtio0": "disk-0.qcow2,size=3G", "boot": "order=virtio0"},
			map[string]string{"virtio0": "local:0,import-from=local:import/own.raw,format=qcow2"},
		},
		{
			"disk of a template",
			[]func(*v1beta1.ProxmoxMachine){image("local-lvm:base-9101-disk-0", v1beta1.BootDisk{Storage: "local-lvm"})},
			"on pve2 with a disk from image local-lvm:base-9101-disk-0",
			map[string]string{"scsi0": "size=3G"},
			map[string]string{"scsi0": "local-lvm:0,import-from=local-lvm:base-9101-disk-0"},
		},
		{
			"nothing",
			[]func(*v1beta1.ProxmoxMachine){netboot("net0", v1beta1.BootDisk{})},
			"to boot from the network by net0",
			map[string]string{"boot": "order=net0"},
			map[string]string{"boot": "order=net0"},
		},
		{
			"nothing, with disks",
			[]func(*v1beta1.ProxmoxMachine){netboot("net0", v1beta1.BootDisk{Storage: "local-lvm", SizeGiB: 8}), func(m *v1beta1.ProxmoxMachine) {
				m.Spec.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi1", Storage: "local-lvm", SizeGiB: 3}}
				m.Spec.Hardware = v1beta1.Hardware{BIOS: "ovmf", MachineType: "q35", EFIDisk: v1beta1.EFIDisk{Storage: "local-lvm"}}
			}},
			"to boot from the network by net0",
			map[string]string{"boot": "order=scsi0;net0", "scsi0": "size=8G", "scsi1": "size=3G", "efidisk0": "local-lvm:vm-", "bios": "ovmf"},
			map[string]string{"scsi0": "local-lvm:8"},
		},
	}
}

// TestAVMIsMadeFromEachSource takes a machine through its life from every source, and checks what was asked of Proxmox VE.
func TestAVMIsMadeFromEachSource(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		for _, row := range sources() {
			t.Run(string(version)+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, gallery(version)...)
				b.provisioned(b.cluster("c1"))
				others := len(b.pve.World.VMs())
				machine := b.machine("c1", "m1", row.edit...)
				b.running(machine)
				kind := v1beta1.ClonedEvent
				if !machine.Spec.Source.UsesTemplate() {
					kind = v1beta1.CreatedEvent
				}
				b.tells(machine, "Normal", kind, row.event)
				vm := b.vmOf(machine)
				for key, value := range row.config {
					b.Expect(vm.Config).To(HaveKeyWithValue(key, ContainSubstring(value)))
				}
				b.madeBy(machine, row.sent)
				b.hasNode(machine)
				b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
				b.delete(machine)
				b.Expect(b.pve.World.VMs()).To(HaveLen(others))
				b.Expect(b.pve.World.Check()).To(BeEmpty())
			})
		}
	}
}

// madeBy checks that one request made the VM, with the parameters, and that one without a template needed no other.
func (b *bench) madeBy(machine *v1beta1.ProxmoxMachine, parameters map[string]string) {
	b.t.Helper()
	var made, configured int
	for _, request := range b.requests() {
		switch {
		case request.Method == http.MethodPost && (strings.HasSuffix(request.Path, "/clone") || strings.HasSuffix(request.Path, "/qemu")):
			made++
			for name, value := range parameters {
				b.Expect(request.Params).To(HaveKeyWithValue(name, value))
			}
		case request.Method != http.MethodGet && strings.HasSuffix(request.Path, "/config"):
			configured++
		}
	}
	b.Expect(made).To(Equal(1))
	if !machine.Spec.Source.UsesTemplate() {
		b.Expect(configured).To(BeZero(), "all of the config is in the request that makes the VM")
	}
}

// TestASourceThatIsNotThereIsToldBeforeAnythingIsWritten asks for what no host has.
func TestASourceThatIsNotThereIsToldBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	disk := v1beta1.BootDisk{Storage: "local-lvm"}
	rows := []struct {
		name string
		edit func(*v1beta1.ProxmoxMachine)
		says []string
	}{
		{"tags that two have", template(v1beta1.TemplateSource{Tags: []string{"k8s"}, Storage: "nowhere"}), []string{
			"pve2: templates 9101 and 9102 on the node all have the tags k8s, and equally few others: give all but one of them another tag, or ask for a tag that only one has in source.template.tags",
			"pve3: no template that has the tags k8s is here or on shared storage",
		}},
		{"a VMID that is no template", template(v1beta1.TemplateSource{VMID: 9300}), []string{"guest 9300 of pve3 is no template: make it one (`qm template 9300`)", "source.template.snapshot"}},
		{"a VMID that is not there", template(v1beta1.TemplateSource{VMID: 9999}), []string{"no template that has the VMID 9999 is here or on shared storage: make one, or grant the token VM.Audit and VM.Clone on it"}},
		{"a snapshot that is not there", template(v1beta1.TemplateSource{Name: "workshop", Snapshot: "v2"}), []string{"pve3: snapshot v2 of VM 9300 cannot be cloned:", "correct source.template.snapshot"}},
		{"a snapshot of a template", template(v1beta1.TemplateSource{VMID: 9001, Snapshot: "v1"}), []string{"VM 9001 of pve1 is a template, which has no snapshots: leave out source.template.snapshot"}},
		{"an image that is not there", image("shared:import/none.qcow2", disk), []string{
			"pve1: image shared:import/none.qcow2 is not on storage shared of pve1, or the token may not use it", "put it there, or correct source.image.volume", "pve3: ",
		}},
		{"an image on a storage that takes none", image("isos:import/x.qcow2", disk), []string{"storage isos does not have the content type import of image isos:import/x.qcow2: add it there"}},
		{"the disk of a VM that is not there", image("local-lvm:vm-77-disk-0", disk), []string{"there is no VM 77, which image local-lvm:vm-77-disk-0 is a disk of", "VM.Audit and VM.Clone"}},
		{"the disk of a VM on another host", func(m *v1beta1.ProxmoxMachine) {
			image("local-lvm:base-9101-disk-0", disk)(m)
			at("pve1")(m)
		}, []string{"pve1: image local-lvm:base-9101-disk-0 is a disk of VM 9101 on pve2, and storage local-lvm is not shared: it can be imported there alone"}},
		{"a disk that its VM does not have", image("local-lvm:base-9101-disk-7", disk), []string{"pve2: VM 9101 of pve2 has no disk local-lvm:base-9101-disk-7: correct source.image.volume"}},
		{"an image on no storage", image("nowhere:import/x.qcow2", disk), []string{"storage nowhere of image nowhere:import/x.qcow2 is not there, or cannot be seen (Datastore.Audit)"}},
		{"an image on another host", func(m *v1beta1.ProxmoxMachine) {
			image("far:import/far.qcow2", disk)(m)
			at("pve1")(m)
		}, []string{"pve1: storage far of image far:import/far.qcow2 is not there", "pve3: not in placement.allowedNodes"}},
		{"a storage for the disk that is not there", image("shared:import/debian-13.qcow2", v1beta1.BootDisk{Storage: "nowhere"}), []string{"storage nowhere is not there"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, gallery(pvesim.V92)...)
			b.provisioned(b.cluster("c1"))
			before := len(b.pve.World.VMs())
			machine := b.machine("c1", "m1", row.edit)
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.WaitingForCapacity, row.says...)
			for _, request := range b.requests() {
				b.Expect(request.Method).To(Equal(http.MethodGet), "%s", request.Path)
			}
			b.delete(machine)
			b.Expect(b.pve.World.VMs()).To(HaveLen(before))
		})
	}
}

// TestAnImageThatIsPutThereIsFound has the image be uploaded later.
func TestAnImageThatIsPutThereIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, gallery(pvesim.V92)...)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", image("shared:import/late.qcow2", v1beta1.BootDisk{Storage: "local-lvm"}))
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.WaitingForCapacity, "image shared:import/late.qcow2 is not on storage shared")
	b.add(b.pve.World.AddVolume(pvesim.VolumeSpec{ID: "shared:import/late.qcow2", Size: 1 << 30}))
	b.running(machine)
}

// TestAVMIDThatIsTakenFirstIsLeft has another VM take the VMID before the VM without a template is made.
func TestAVMIDThatIsTakenFirstIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, gallery(pvesim.V84)...)
	b.faults(pvesim.Fault{Method: http.MethodPost, Path: "/nodes/{node}/qemu", Status: 500, Reason: lockTimeout})
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", netboot("net0", v1beta1.BootDisk{}))
	reserved, foreign := b.losesVMIDAt("/qemu", machine)
	b.running(machine)
	b.Expect(machine.Spec.Reservation.VMID).NotTo(Equal(reserved.VMID))
	b.delete(machine)
	b.untouched(foreign)
}

// TestACreateThatFailsIsTriedAgain has the task that makes the VM fail, which leaves nothing; and one whose answer is lost.
func TestACreateThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]pvesim.Fault{
		"in its task":        {TaskError: "unable to create VM 100 - lvcreate 'pve/vm-100-disk-0' error: something"},
		"its answer is lost": {When: pvesim.DropReply},
		"before it began":    {Status: 500, Reason: "cluster not ready - no quorum?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, gallery(pvesim.V92)...)
			fault.Method, fault.Path, fault.Nth, fault.Count = http.MethodPost, "/nodes/{node}/qemu", 1, 1
			b.faults(fault)
			b.provisioned(b.cluster("c1"))
			before := len(b.pve.World.VMs())
			machine := b.machine("c1", "m1", image("shared:import/debian-13.qcow2", v1beta1.BootDisk{Storage: "local-lvm"}))
			b.running(machine)
			b.Expect(b.pve.World.VMs()).To(HaveLen(before + 1))
			b.delete(machine)
			b.Expect(b.pve.World.VMs()).To(HaveLen(before))
			b.Expect(b.pve.World.Check()).To(BeEmpty())
		})
	}
}

// TestAVMThatIsBeingMadeIsWaitedFor deletes a machine while its VM is made.
func TestAVMThatIsBeingMadeIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, gallery(pvesim.V92)...)
	b.provisioned(b.cluster("c1"))
	before := len(b.pve.World.VMs())
	machine := b.machine("c1", "m1", image("shared:import/debian-13.qcow2", v1beta1.BootDisk{Storage: "local-lvm"}))
	b.Eventually(func() string { b.get(b, machine); return machine.Status.TaskID }, patience, poll).Should(ContainSubstring(":qmcreate:"))
	b.delete(machine)
	b.Expect(b.pve.World.VMs()).To(HaveLen(before))
	b.Expect(b.pve.World.Check()).To(BeEmpty())
}

// TestRightsForAVMWithoutATemplate has a token make VMs with the rights of docs/permissions.md.
func TestRightsForAVMWithoutATemplate(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*v1beta1.ProxmoxMachine){
		"image":              image("local:import/debian-13.qcow2", v1beta1.BootDisk{Storage: "local-lvm", SizeGiB: 20}),
		"netboot":            netboot("net0", v1beta1.BootDisk{Storage: "local-lvm", SizeGiB: 20}),
		"disk of a template": image("local-lvm:base-9001-disk-0", v1beta1.BootDisk{Storage: "local-lvm"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for _, node := range []proxmox.NodeName{"pve1", "pve2", "pve3"} {
				b.add(b.pve.World.AddVolume(pvesim.VolumeSpec{ID: "local:import/debian-13.qcow2", Node: node, Size: 1 << 30}))
			}
			b.livesOnce(b.scoped("m1", edit))
		})
	}
}

// TestSourcesThatCannotBe are refused by the API server.
func TestSourcesThatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const source, found = "spec.source.template.", "find the template by one of name, tags and vmID"
	d.refuses(func() client.Object { return d.validMachine() }, []refusal{
		{"none", []edit{without("spec.source.template")}, "source"},
		{"two", one("spec.source.image.volume", "local:import/a.qcow2"), "name one source: template, image or netboot"},
		{"a template that is not named", []edit{without(source + "tags")}, found},
		{"a template that is named twice", one(source+"vmID", int64(9000)), found},
		{"a VMID below all", []edit{without(source + "tags"), set(source+"vmID", int64(99))}, "should be greater than or equal to 100"},
		{"a linked clone onto another storage", one(source+"cloneMode", "Linked"), "storage needs cloneMode Full: a linked clone stays on the template's storage"},
		{"a linked clone of a snapshot", []edit{without(source + "storage"), set(source+"cloneMode", "Linked"), set(source+"snapshot", "v1")}, "snapshot needs cloneMode Full: only templates, which have no snapshots, have linked clones"},
		{"a snapshot of no name", one(source+"snapshot", "1st"), "snapshot in body should match"},
		{"an image as a path", []edit{without("spec.source.template"), set("spec.source.image.volume", "/etc/passwd"), set("spec.disks.boot.storage", "local")}, "volume in body should match"},
		{"an image with options", []edit{without("spec.source.template"), set("spec.source.image.volume", "local:import/a.qcow2,size=1G"), set("spec.disks.boot.storage", "local")}, "volume in body should match"},
		{"half a template in a reservation", []edit{without("spec.reservation.sourceVMID")}, "sourceNode and sourceVMID are those of one template: a reservation has both, or none for a VM that is made without a template"},
	})
}
