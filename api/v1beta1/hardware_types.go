package v1beta1

import "k8s.io/apimachinery/pkg/api/resource"

// CPU is a VM's processor.
// +kubebuilder:validation:MinProperties=1
type CPU struct {
	// sockets is the number of sockets.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4
	Sockets int32 `json:"sockets,omitempty"`

	// cores is the number of cores per socket.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Cores int32 `json:"cores,omitempty"`

	// vcpus is how many of the cores are plugged in at start; by default all. The others can be plugged in later, when
	// options.hotplug has `cpu`.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	VCPUs int32 `json:"vcpus,omitempty"`

	// type is the model that the guest sees, as Proxmox VE names it: host, x86-64-v2-AES, kvm64, EPYC, or custom-<name>. By
	// default it stays as the template has it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	Type string `json:"type,omitempty"`

	// flags are CPU flags to add to the type, `+aes`, or to take from it, `-pcid`.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^[+-][A-Za-z0-9_.-]+$`
	Flags []string `json:"flags,omitempty"`

	// units is the VM's weight when the host's CPUs are contended, against the others': 100 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=262144
	Units int32 `json:"units,omitempty"`

	// limit is how much CPU time the VM may use, in CPUs: "2.5" is two and a half. By default it is not limited.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(self).isGreaterThan(quantity('0')) && quantity(self).compareTo(quantity('128')) <= 0",message="limit is a number of CPUs above 0, and 128 at most"
	Limit *resource.Quantity `json:"limit,omitempty"`
}

// Hugepages is the size of the host's hugepages that a VM's memory is made of.
// +kubebuilder:validation:Enum="Any";"2MiB";"1GiB"
type Hugepages string

// Memory is a VM's memory.
// +kubebuilder:validation:MinProperties=1
type Memory struct {
	// sizeMiB is the amount in MiB.
	// +optional
	// +default=4096
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=8388608
	SizeMiB int32 `json:"sizeMiB,omitempty"`

	// minimumMiB is how far the host may take memory from the guest, by its balloon device, when memory is short. 0 takes the
	// balloon device away. By default it stays as the template has it. A kubelet does not know of memory that is taken: leave
	// it out, or at sizeMiB, for Nodes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8388608
	MinimumMiB *int32 `json:"minimumMiB,omitempty"`

	// hugepages has the memory made of hugepages of that size, which the host must have set aside. Proxmox VE lets only
	// root@pam with a password set it, no API token.
	// +optional
	Hugepages Hugepages `json:"hugepages,omitempty"`
}

// Hardware is what a VM has besides processor, memory, disks and network devices. What is not set stays as the template has
// it, or is Proxmox VE's default.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!(has(self.machineType) && self.machineType.startsWith('virt')) || !has(self.bios) || self.bios == 'ovmf'",fieldPath=".bios",messageExpression="'\"seabios\": the machineType virt has no seabios: set bios to ovmf'"
// +kubebuilder:validation:XValidation:rule="!(has(self.machineType) && self.machineType.startsWith('virt')) || !has(self.watchdog) || self.watchdog.model != 'ib700'",fieldPath=".watchdog.model",messageExpression="'\"ib700\": the machineType virt has no ISA bus, which the watchdog ib700 needs: use i6300esb'"
// +kubebuilder:validation:XValidation:rule="!has(self.display) || !has(self.display.type) || !self.display.type.startsWith('serial') || !has(self.serialPorts) || self.display.type in self.serialPorts",fieldPath=".display.type",message="the console is shown on a serial port that serialPorts does not have: add it there",messageExpression="'the console is shown on ' + self.display.type + ', which serialPorts does not have: add it there'"
// +kubebuilder:validation:XValidation:rule="!has(self.pciDevices) || !has(self.display) || !has(self.display.type) || self.display.type == 'none' || self.display.type.startsWith('serial') || !self.pciDevices.exists(d, has(d.primaryGPU) && d.primaryGPU)",fieldPath=".display.type",messageExpression="'\"' + self.display.type + '\"' + \": a primaryGPU takes the graphics card's place: set display.type to none or to a serial port, or leave it out\""
// +kubebuilder:validation:XValidation:rule="!has(self.efiDisk) || (has(self.bios) && self.bios == 'ovmf')",fieldPath=".efiDisk",messageExpression="(has(self.bios) ? 'bios ' + self.bios : 'bios is not set') + ': efiDisk needs bios ovmf: set bios to ovmf, or leave efiDisk out'"
type Hardware struct {
	// machineType is the QEMU machine: pc, q35 or virt, or a version of one, such as pc-q35-9.0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^(pc|q35|virt|(pc(-(i440fx|q35))?|virt)-[0-9]+(\.[0-9]+)+(\+pve[0-9]+)?(\.pxe)?)$`
	MachineType string `json:"machineType,omitempty"`

	// bios is seabios or ovmf (UEFI).
	// +optional
	BIOS BIOS `json:"bios,omitempty"`

	// efiDisk is where UEFI keeps its variables.
	// +optional
	EFIDisk EFIDisk `json:"efiDisk,omitempty,omitzero"`

	// tpm is a trusted platform module.
	// +optional
	TPM TPM `json:"tpm,omitempty,omitzero"`

	// scsiController is the controller of the scsi disks.
	// +optional
	SCSIController SCSIController `json:"scsiController,omitempty"`

	// display is the graphics card.
	// +optional
	Display Display `json:"display,omitempty,omitzero"`

	// serialPorts are serial ports, which `qm terminal` connects to.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=serial0;serial1;serial2;serial3
	SerialPorts []string `json:"serialPorts,omitempty"`

	// rng is a source of random numbers for the guest.
	// +optional
	RNG RNG `json:"rng,omitempty,omitzero"`

	// watchdog resets or stops the VM when the guest no longer answers.
	// +optional
	Watchdog Watchdog `json:"watchdog,omitempty,omitzero"`

	// pciDevices are devices of the host that are passed through to the guest.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	PCIDevices []PCIDevice `json:"pciDevices,omitempty"`

	// usbDevices are USB devices of the host that are passed through to the guest.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=14
	USBDevices []USBDevice `json:"usbDevices,omitempty"`
}

// BIOS is the firmware of a VM, as Proxmox VE names it.
// +kubebuilder:validation:Enum=seabios;ovmf
type BIOS string

// SCSIController is a model of SCSI controller, as Proxmox VE names it.
// +kubebuilder:validation:Enum=lsi;lsi53c810;virtio-scsi-pci;virtio-scsi-single;megasas;pvscsi
type SCSIController string

// EFIDisk is the disk on which UEFI keeps its variables. A template's own is kept.
type EFIDisk struct {
	// storage is where the disk is made.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`
	Storage string `json:"storage,omitempty"`

	// format is the format of the image; by default, the one that the storage prefers.
	// +optional
	Format DiskFormat `json:"format,omitempty"`

	// preEnrolledKeys has the keys of Microsoft and the distributions enrolled, and Secure Boot switched on.
	// +optional
	PreEnrolledKeys *bool `json:"preEnrolledKeys,omitempty"`
}

// TPM is a trusted platform module. A template's own is kept.
type TPM struct {
	// storage is where its state is kept.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`
	Storage string `json:"storage,omitempty"`

	// version is v2.0 (the default) or v1.2.
	// +optional
	// +default="v2.0"
	// +kubebuilder:validation:Enum=v1.2;v2.0
	Version string `json:"version,omitempty"`
}

// Display is a graphics card.
// +kubebuilder:validation:MinProperties=1
type Display struct {
	// type is the model, as Proxmox VE names it; serial0 to serial3 show the console on a serial port.
	// +optional
	// +kubebuilder:validation:Enum=cirrus;none;qxl;serial0;serial1;serial2;serial3;std;virtio;virtio-gl;vmware
	Type string `json:"type,omitempty"`

	// memoryMiB is the card's memory.
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=512
	MemoryMiB int32 `json:"memoryMiB,omitempty"`
}

// RNG is a virtio random number generator.
type RNG struct {
	// source is the device of the host that the numbers come from.
	// +required
	// +kubebuilder:validation:Enum=/dev/urandom;/dev/random;/dev/hwrng
	Source string `json:"source,omitempty"`

	// maxBytes is how many bytes the guest gets per period; 0 does not limit them. Proxmox VE's default is 1024.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxBytes *int32 `json:"maxBytes,omitempty"`

	// periodMilliseconds is the period. Proxmox VE's default is 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PeriodMilliseconds int32 `json:"periodMilliseconds,omitempty"`
}

// Watchdog is a watchdog timer.
// +kubebuilder:validation:MinProperties=1
type Watchdog struct {
	// model is the device that the guest sees.
	// +optional
	// +default="i6300esb"
	// +kubebuilder:validation:Enum=i6300esb;ib700
	Model string `json:"model,omitempty"`

	// action is what happens when the guest did not answer in time.
	// +optional
	// +kubebuilder:validation:Enum=debug;none;pause;poweroff;reset;shutdown
	Action string `json:"action,omitempty"`
}

// PCIDevice is a PCI device of the host.
type PCIDevice struct {
	// name is the Proxmox VE name of the device in the VM: hostpci0 to hostpci15.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:Pattern=`^hostpci([0-9]|1[0-5])$`
	Name string `json:"name,omitempty"`

	// mapping is the resource mapping, of Datacenter, Resource Mappings, that names the device on each host.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_-]+$`
	Mapping string `json:"mapping,omitempty"`

	// mdev is the type of mediated device, such as a vGPU's: nvidia-63.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	MDev string `json:"mdev,omitempty"`

	// pcie shows it as a PCI Express device. It needs the machine type q35.
	// +optional
	PCIe *bool `json:"pcie,omitempty"`

	// romBar makes the device's firmware visible to the guest; it is by default.
	// +optional
	ROMBar *bool `json:"romBar,omitempty"`

	// primaryGPU makes it the guest's first graphics card.
	// +optional
	PrimaryGPU *bool `json:"primaryGPU,omitempty"`
}

// USBDevice is a USB device of the host.
type USBDevice struct {
	// name is the Proxmox VE name of the device in the VM: usb0 to usb13.
	// +required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^usb([0-9]|1[0-3])$`
	Name string `json:"name,omitempty"`

	// mapping is the resource mapping that names the device on each host.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_-]+$`
	Mapping string `json:"mapping,omitempty"`

	// usb3 connects it as a USB 3 device.
	// +optional
	USB3 *bool `json:"usb3,omitempty"`
}
