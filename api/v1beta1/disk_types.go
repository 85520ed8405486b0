package v1beta1

// Disks are a VM's disks.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.boot) || !has(self.boot.name) || !has(self.additional) || self.additional.all(d, d.name != self.boot.name)",fieldPath=".additional",messageExpression="'\"' + self.boot.name + '\"' + \": an additional disk has the boot disk's name: give one of them another\""
type Disks struct {
	// boot is the disk that the VM boots from: the template's, the imported image's, or a new one.
	// +optional
	Boot BootDisk `json:"boot,omitempty,omitzero"`

	// additional are further disks, which are made empty. They are found in the guest by their serial, or by their place on the
	// bus.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Additional []AdditionalDisk `json:"additional,omitempty"`
}

// BootDisk is the disk that a VM boots from.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.aio) || self.aio != 'native' || !has(self.cache) || self.cache in ['none', 'directsync']",fieldPath=".aio",messageExpression="'\"native\" with cache ' + self.cache + ': aio native needs a disk that the host does not cache: set cache to none or directsync, or aio to io_uring or threads'"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.ssd) || !self.name.startsWith('virtio')",fieldPath=".ssd",messageExpression="(self.ssd ? 'true' : 'false') + ' of ' + self.name + ': virtio disks have no ssd: leave it out, or name the disk scsi…'"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.ioThread) || self.name.startsWith('scsi') || self.name.startsWith('virtio')",fieldPath=".ioThread",messageExpression="(self.ioThread ? 'true' : 'false') + ' of ' + self.name + ': ioThread is for scsi and virtio disks: leave it out, or name the disk scsi… or virtio…'"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.readOnly) || self.name.startsWith('scsi') || self.name.startsWith('virtio')",fieldPath=".readOnly",messageExpression="(self.readOnly ? 'true' : 'false') + ' of ' + self.name + ': readOnly is for scsi and virtio disks: leave it out, or name the disk scsi… or virtio…'"
type BootDisk struct {
	// sizeGiB is the size in GiB that the disk is grown to; a disk that is as large or larger is left alone, since Proxmox
	// VE cannot shrink one. Without it the disk keeps the size of the template or image. It may be raised later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	SizeGiB int32 `json:"sizeGiB,omitempty"`

	// name is the Proxmox VE name of a new boot disk, for the sources image and netboot: scsi0 by default. A template's boot
	// disk has the name that it has there.
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5])|sata[0-5]|ide[0-3])$`
	Name string `json:"name,omitempty"`

	// storage is where a new boot disk goes, for the sources image and netboot. For a template see source.template.storage.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`
	Storage string `json:"storage,omitempty"`

	// format is the format of a new boot disk, for the sources image and netboot. For a template see source.template.format.
	// +optional
	Format DiskFormat `json:"format,omitempty"`

	DiskOptions `json:",inline"`
}

// AdditionalDisk is a disk besides the boot disk.
// +kubebuilder:validation:XValidation:rule="!has(self.aio) || self.aio != 'native' || !has(self.cache) || self.cache in ['none', 'directsync']",fieldPath=".aio",messageExpression="'\"native\" with cache ' + self.cache + ': aio native needs a disk that the host does not cache: set cache to none or directsync, or aio to io_uring or threads'"
// +kubebuilder:validation:XValidation:rule="!has(self.ssd) || !self.name.startsWith('virtio')",fieldPath=".ssd",messageExpression="(self.ssd ? 'true' : 'false') + ' of ' + self.name + ': virtio disks have no ssd: leave it out, or name the disk scsi…'"
// +kubebuilder:validation:XValidation:rule="!has(self.ioThread) || self.name.startsWith('scsi') || self.name.startsWith('virtio')",fieldPath=".ioThread",messageExpression="(self.ioThread ? 'true' : 'false') + ' of ' + self.name + ': ioThread is for scsi and virtio disks: leave it out, or name the disk scsi… or virtio…'"
// +kubebuilder:validation:XValidation:rule="!has(self.readOnly) || self.name.startsWith('scsi') || self.name.startsWith('virtio')",fieldPath=".readOnly",messageExpression="(self.readOnly ? 'true' : 'false') + ' of ' + self.name + ': readOnly is for scsi and virtio disks: leave it out, or name the disk scsi… or virtio…'"
type AdditionalDisk struct {
	// name is the Proxmox VE name of the disk, with its bus: scsi0 to scsi30, virtio0 to virtio15, sata0 to sata5 or ide0 to
	// ide3.
	// +required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5])|sata[0-5]|ide[0-3])$`
	Name string `json:"name,omitempty"`

	// storage is where the disk is made; it must have the content type `images`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`
	Storage string `json:"storage,omitempty"`

	// sizeGiB is the size in GiB. It may be raised later: the disk grows in place. Proxmox VE cannot shrink one.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	SizeGiB int32 `json:"sizeGiB,omitempty"`

	// format is the format of the image; by default, the one that the storage prefers.
	// +optional
	Format DiskFormat `json:"format,omitempty"`

	DiskOptions `json:",inline"`
}

// DiskCache is how the host caches a disk, as Proxmox VE names it.
// +kubebuilder:validation:Enum=none;writethrough;writeback;unsafe;directsync
type DiskCache string

// DiskAIO is how the host does a disk's input and output, as Proxmox VE names it.
// +kubebuilder:validation:Enum=native;threads;io_uring
type DiskAIO string

// DiskOptions are what Proxmox VE can set of any disk. What is not set here stays as the template has it, or is Proxmox VE's
// default.
type DiskOptions struct {
	// cache is how the host caches the disk.
	// +optional
	Cache DiskCache `json:"cache,omitempty"`

	// aio is how the host does the disk's input and output.
	// +optional
	AIO DiskAIO `json:"aio,omitempty"`

	// discard hands the guest's discards on to the storage, which can then give the space to others.
	// +optional
	Discard *bool `json:"discard,omitempty"`

	// ssd shows the disk to the guest as a solid-state drive. Not for virtio disks.
	// +optional
	SSD *bool `json:"ssd,omitempty"`

	// ioThread gives the disk a thread of its own. For scsi disks with the controller virtio-scsi-single, and for virtio disks.
	// +optional
	IOThread *bool `json:"ioThread,omitempty"`

	// backup has the disk included in backups.
	// +optional
	Backup *bool `json:"backup,omitempty"`

	// replicate has the disk included in storage replication.
	// +optional
	Replicate *bool `json:"replicate,omitempty"`

	// readOnly has the guest only read the disk. For scsi and virtio disks.
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// serial is the disk's serial number, by which the guest finds it: /dev/disk/by-id/…
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	Serial string `json:"serial,omitempty"`

	// limits bound the disk's throughput.
	// +optional
	Limits DiskLimits `json:"limits,omitempty,omitzero"`
}

// DiskLimits bound a disk's throughput. Bursts may go up to the burst value until the credit for them is used up.
// +kubebuilder:validation:MinProperties=1
type DiskLimits struct {
	// readMiBps is how many MiB may be read per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	ReadMiBps int32 `json:"readMiBps,omitempty"`

	// readBurstMiBps is how many MiB may be read per second in a burst.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	ReadBurstMiBps int32 `json:"readBurstMiBps,omitempty"`

	// writeMiBps is how many MiB may be written per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	WriteMiBps int32 `json:"writeMiBps,omitempty"`

	// writeBurstMiBps is how many MiB may be written per second in a burst.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	WriteBurstMiBps int32 `json:"writeBurstMiBps,omitempty"`

	// readIOPS is how many read operations there may be per second.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=2000000000
	ReadIOPS int32 `json:"readIOPS,omitempty"`

	// readBurstIOPS is how many read operations there may be per second in a burst.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=2000000000
	ReadBurstIOPS int32 `json:"readBurstIOPS,omitempty"`

	// writeIOPS is how many write operations there may be per second.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=2000000000
	WriteIOPS int32 `json:"writeIOPS,omitempty"`

	// writeBurstIOPS is how many write operations there may be per second in a burst.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=2000000000
	WriteBurstIOPS int32 `json:"writeBurstIOPS,omitempty"`
}
