package v1beta1

// VirtualMachineSource is what a VM is made from: a template that is cloned, an image that becomes its boot disk, or nothing,
// for a VM that boots from the network.
// +kubebuilder:validation:XValidation:rule="[has(self.template), has(self.image), has(self.netboot)].filter(s, s).size() == 1",messageExpression="(has(self.template) ? 'template' : 'no template') + (has(self.image) ? ', image' : ', no image') + (has(self.netboot) ? ', netboot' : ', no netboot') + ': name one source: template, image or netboot'"
type VirtualMachineSource struct {
	// template is an existing Proxmox VE template to clone.
	// +optional
	Template TemplateSource `json:"template,omitempty,omitzero"`

	// image is a disk image, on a storage of Proxmox VE, that becomes the boot disk of a new VM.
	// +optional
	Image ImageSource `json:"image,omitempty,omitzero"`

	// netboot makes a new VM that boots from the network. With disks.boot.sizeGiB it has an empty disk to install to.
	// +optional
	Netboot NetbootSource `json:"netboot,omitempty,omitzero"`
}

// CloneMode says how a template's disks are copied.
// +kubebuilder:validation:Enum=Full;Linked
type CloneMode string

const (
	// CloneModeFull copies the disks.
	CloneModeFull CloneMode = "Full"
	// CloneModeLinked makes disks that refer to the template's, which is fast; the template cannot go while they exist.
	CloneModeLinked CloneMode = "Linked"
)

// DiskFormat is the format of a disk's image, on storages that keep images as files; others have `raw` alone.
// +kubebuilder:validation:Enum=raw;qcow2;vmdk
type DiskFormat string

// UsesTemplate reports whether the VM is a clone of a template; else it is made anew.
func (s VirtualMachineSource) UsesTemplate() bool {
	return s.Image.Volume == "" && s.Netboot.Device == ""
}

// TemplateSource finds templates by name, by tags or by VMID. With templates on local storage, prepare one on each node, with
// the same name or tags: a VM is cloned on the node it is placed on. A template on shared storage serves every node that has
// that storage.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="[has(self.name), has(self.tags), has(self.vmID)].filter(s, s).size() == 1",messageExpression="(has(self.name) ? 'name ' + self.name : 'no name') + (has(self.tags) ? ', tags' : ', no tags') + (has(self.vmID) ? ', vmID' : ', no vmID') + ': find the template by one of name, tags and vmID'"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || self.cloneMode == 'Full'",fieldPath=".storage",messageExpression="'\"' + self.storage + '\"' + \": storage needs cloneMode Full: a linked clone stays on the template's storage\""
// +kubebuilder:validation:XValidation:rule="!has(self.format) || self.cloneMode == 'Full'",fieldPath=".format",messageExpression="'\"' + self.format + '\"' + \": format needs cloneMode Full: a linked clone has the template's format\""
// +kubebuilder:validation:XValidation:rule="!has(self.snapshot) || self.cloneMode == 'Full'",fieldPath=".snapshot",messageExpression="'\"' + self.snapshot + '\": snapshot needs cloneMode Full: only templates, which have no snapshots, have linked clones'"
type TemplateSource struct {
	// name is the name of the template VM. Two of that name on one node are an error that names both.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// tags are Proxmox VE tags that the template must all have. Of several such templates on a node the one with the fewest
	// other tags is taken; when two have equally few, the node is not used, and the machine says which they are. A node that
	// has none of its own takes one on shared storage, chosen in the same way.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_][a-z0-9_+.-]*$`
	Tags []string `json:"tags,omitempty"`

	// vmID is the number of the template VM. A region in which it is no template, or is not there, is not used.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=999999999
	VMID int32 `json:"vmID,omitempty"`

	// snapshot is the name of a snapshot to clone, in place of the present state. Templates have no snapshots: with it, name, tags
	// or vmID find an ordinary VM. Name and tags find none that Cluster API made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_-]*$`
	Snapshot string `json:"snapshot,omitempty"`

	// cloneMode is Full (the default) or Linked.
	// +optional
	// +default="Full"
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// storage is where the disks of a full clone go; by default, where the template has them.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`
	Storage string `json:"storage,omitempty"`

	// format is the format of the disks of a full clone, on a storage that has it; by default, the template's, or else the one
	// that the storage prefers.
	// +optional
	Format DiskFormat `json:"format,omitempty"`
}

// ImageSource is a disk image on a storage, which is imported as the boot disk of a new VM.
type ImageSource struct {
	// volume is the image, as Proxmox VE names it: `<storage>:import/<file>` for an image of the content type `import` (qcow2,
	// raw or vmdk), or the disk of another VM or template. The VM is made on a node that the image is on:
	// with local storage keep a copy on each, or use shared storage. disks.boot says where the boot disk goes and how large it
	// gets.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]:[^\s,;]+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('[.]([oO][vV][aAfF])(/|$)')",message="an .ova or .ovf describes a whole VM and is no disk image: unpack it, and name the .vmdk that is in it"
	Volume string `json:"volume,omitempty"`
}

// NetbootSource is a VM that boots from the network, by PXE or UEFI HTTP boot. With a boot disk it boots from that once
// something is installed there.
type NetbootSource struct {
	// device is the network device to boot from.
	// +optional
	// +default="net0"
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^net([0-9]|[12][0-9]|3[01])$`
	Device string `json:"device,omitempty"`
}
