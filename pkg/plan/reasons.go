package plan

// Codes of the reasons that the machine step gives. They are the reasons of the condition VirtualMachineReady.
const (
	WaitingForCluster       = "WaitingForClusterInfrastructure"
	WaitingForBootstrapData = "WaitingForBootstrapData"
	WaitingForAddresses     = "WaitingForAddresses"
	WaitingForCapacity      = "WaitingForCapacity"
	ClaimingAddresses       = "ClaimingAddresses"
	HoldingAddresses        = "HoldingAddresses"
	InvalidAddress          = "InvalidAddress"
	Placed                  = "Placed"
	VMIDRangeExhausted      = "VMIDRangeExhausted"
	Cloning                 = "Cloning"
	UploadingSeed           = "UploadingSeed"
	InvalidSeed             = "InvalidSeed"
	Configuring             = "Configuring"
	Resizing                = "Resizing"
	Starting                = "Starting"
	Running                 = "Running"
	RemovingSeed            = "RemovingSeed"
	TaskFailedReason        = "TaskFailed"
	Unobserved              = "Unobserved"
	Locked                  = "Locked"
	Unmarked                = "Unmarked"
	VirtualMachineGone      = "VirtualMachineGone"
	NoBootDisk              = "NoBootDisk"

	Stopping           = "Stopping"
	Destroying         = "Destroying"
	ReleasingAddresses = "ReleasingAddresses"
	Deleted            = "Deleted"
)
