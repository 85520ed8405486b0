package v1beta1

// Reasons of the events of a ProxmoxMachine. Each is told once, when it happens. Warnings that are no event of their own have
// the reason of the condition that they come with: WaitingForCapacity, TaskFailed and so on.
const (
	// PlacedEvent says that the machine was given its host, VMID and identity.
	PlacedEvent = "Placed"
	// AddressesAssignedEvent says that the machine has all its addresses.
	AddressesAssignedEvent = "AddressesAssigned"
	// ClonedEvent says that the VM was made from a template.
	ClonedEvent = "Cloned"
	// CreatedEvent says that the VM was made without a template.
	CreatedEvent = "Created"
	// StartedEvent says that the VM runs, for the first time or again.
	StartedEvent = "Started"
	// PoweredOffEvent says that the VM is off, as spec.powerState asks.
	PoweredOffEvent = "PoweredOff"
	// MigratedEvent says that the VM is on another node than before.
	MigratedEvent = "Migrated"
	// AdoptedEvent says that the machine's VM was found although the status knew nothing of it, as after a move or a restore.
	AdoptedEvent = "Adopted"
	// DeletedEvent says that the VM and all that belonged to it are gone.
	DeletedEvent = "Deleted"
	// StoppedOutsideEvent is a warning: somebody stopped the VM, and it is started again.
	StoppedOutsideEvent = "StoppedOutside"
	// DriftedEvent is a warning: somebody changed the VM.
	DriftedEvent = "Drifted"
	// ReconfiguredEvent says that the VM's config was changed as the spec says.
	ReconfiguredEvent = "Reconfigured"
	// RepairedEvent is a warning: somebody changed the VM, and it is changed back.
	RepairedEvent = "Repaired"
	// RepairContestedEvent is a warning: somebody changes again and again what is changed back, which is left alone for a while.
	RepairContestedEvent = "RepairContested"
	// RestartRequiredEvent says that what was changed takes effect when the VM is restarted.
	RestartRequiredEvent = "RestartRequired"
	// VirtualMachineGoneEvent is a warning: somebody removed the VM.
	VirtualMachineGoneEvent = "VirtualMachineGone"
	// RefusedEvent is a warning: what is at the machine's VMID is not the machine's, and was not touched.
	RefusedEvent = "Refused"
)
