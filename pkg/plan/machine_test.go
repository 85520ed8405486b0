package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	uuid       = proxmox.SMBIOSUUID("8d1ab5f6-59f1-4a3e-9a0b-0d6f2a5b7c11")
	providerID = "proxmox://" + string(uuid)
	seedVolume = proxmox.VolumeID("local:iso/capve-" + string(uuid) + ".iso")
	gib        = proxmox.Bytes(1 << 30)
)

// change turns one state of a machine into another one.
type change func(*plan.Machine)

// machine is a ProxmoxMachine whose cluster, bootstrap data and address are there, and that has no place yet, with changes.
func machine(changes ...change) plan.Machine {
	m := plan.Machine{
		Name: "worker-1", ClusterReady: true, Spec: spec(), Bootstrap: plan.Bootstrap{UserData: "#cloud-config\n"},
		Addresses: plan.Addresses{Remain: true},
		Candidates: plan.Candidates{
			Hosts: []placement.Host{host("pve1")}, FreeVMIDs: map[proxmox.RegionName]proxmox.VMID{"home": 101}, LedgerVersion: 7,
		},
	}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func spec() v1beta1.ProxmoxMachineSpec {
	pool := v1beta1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: "machines"}
	return v1beta1.ProxmoxMachineSpec{
		Source: v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "ubuntu", CloneMode: v1beta1.CloneModeFull, Storage: "local-lvm"}},
		CPU:    v1beta1.CPU{Sockets: 1, Cores: 2}, Memory: v1beta1.Memory{SizeMiB: 4096},
		Disks:   v1beta1.Disks{Boot: v1beta1.BootDisk{SizeGiB: 20}},
		Network: v1beta1.Network{Devices: []v1beta1.NetworkDevice{{Name: "net0", Bridge: "vmbr0", Model: "virtio", IPv4: v1beta1.IPv4Addressing{AddressSource: v1beta1.AddressSource{PoolRef: pool}}}}},
		Pool:    "capi",
	}
}

func host(node proxmox.NodeName) placement.Host {
	return placement.Host{
		Region: "home", Node: node, FailureDomain: string(node), ControlPlane: true, Online: true, CPUs: 16, Memory: 64 * gib,
		Template: placement.Template{Node: "pve3", ID: 9000},
		Storages: []placement.Storage{{ID: "local", ISO: true}, {ID: "local-lvm", Images: true}},
	}
}

// reserved gives the machine its place.
func reserved(m *plan.Machine) {
	m.Spec.Reservation = v1beta1.Reservation{
		UUID: string(uuid), Region: "home", Node: "pve1", VMID: 101, SourceNode: "pve3", SourceVMID: 9000, SeedStorage: "local",
	}
	m.VM = plan.VM{Presence: plan.PresenceAbsent}
}

func task(kind string, state plan.TaskState) change {
	return func(m *plan.Machine) { m.Task = plan.Task{UPID: "UPID:x", Type: kind, State: state} }
}

func failed(kind, text string, wait time.Duration) change {
	return func(m *plan.Machine) {
		m.Task = plan.Task{UPID: "UPID:x", Type: kind, State: plan.TaskFailed, Failure: text, RetryAfter: wait}
	}
}

// cloned is a VM as the clone of a template leaves it.
func cloned(m *plan.Machine) {
	reserved(m)
	task("qmclone", plan.TaskSucceeded)(m)
	m.VM = plan.VM{Presence: plan.PresenceOurs, Node: "pve1", Power: plan.PowerStopped, Digest: "d1", Config: vmconfig.Config{
		"name": "worker-1", "description": vmconfig.Description("worker-1", uuid), "cores": "1", "memory": "128", "ostype": "l26",
		"smbios1": "uuid=966d3531-69bb-4cf7-889f-f8f652492abb", "net0": "virtio=BC:24:11:1B:F6:2C,bridge=vmbr0,firewall=1",
		"ide2": "local:101/vm-101-cloudinit.qcow2,media=cdrom,size=4M", "scsi0": "local-lvm:vm-101-disk-0,size=3G", "boot": "order=scsi0",
	}}
}

// configured is a VM that has all that was asked for, but for the size of its disk.
func configured(m *plan.Machine) {
	cloned(m)
	decision, _ := plan.MachineStep(*m).(plan.Do)
	configure, _ := decision.Action.(plan.Configure)
	m.VM.Config, m.VM.Digest = configure.Change.Apply(m.VM.Config), "d2"
}

func resized(m *plan.Machine) {
	configured(m)
	m.VM.Config["scsi0"] = "local-lvm:vm-101-disk-0,size=20G"
}

func running(m *plan.Machine) {
	resized(m)
	task("qmstart", plan.TaskSucceeded)(m)
	m.VM.Power = plan.PowerRunning
}

func recorded(m *plan.Machine) {
	running(m)
	m.Spec.ProviderID, m.Bootstrap = providerID, plan.Bootstrap{}
	m.Upkeep.Applied = vmconfig.WriteApplied(m.Spec)
}

func bootstrapped(m *plan.Machine) {
	recorded(m)
	m.Bootstrapped = true
}

func ejected(m *plan.Machine) {
	bootstrapped(m)
	m.VM.Config["ide2"] = "none,media=cdrom"
}

func unbound(m *plan.Machine) { m.VM = plan.VM{Presence: plan.PresenceUnknown, Why: whyUnknown} }

func foreign(m *plan.Machine) { m.VM = plan.VM{Presence: plan.PresenceForeign, Node: "pve2"} }

func absent(m *plan.Machine) { m.VM = plan.VM{Presence: plan.PresenceAbsent} }

func grown(disk string, gib proxmox.GiB) change {
	return func(m *plan.Machine) { m.Grown = map[string]proxmox.Bytes{disk: gib.Bytes()} }
}

func locked(lock string) change { return func(m *plan.Machine) { m.VM.Config["lock"] = lock } }

func power(power plan.Power) change { return func(m *plan.Machine) { m.VM.Power = power } }

func node(name proxmox.NodeName) change { return func(m *plan.Machine) { m.VM.Node = name } }

func seedVolumeSeen(seen plan.SeedVolume) change {
	return func(m *plan.Machine) { m.SeedVolume = seen }
}

func noVMIDs(m *plan.Machine) {
	m.Candidates.FreeVMIDs = nil
	cluster := v1beta1.ProxmoxClusterSpec{VMIDRange: v1beta1.VMIDRange{Start: 200, End: 299}}
	m.Candidates.VMIDs = map[proxmox.RegionName]plan.VMIDs{"home": plan.VMIDsFor(m.Spec, cluster, v1beta1.Region{})}
}

var whyUnknown = plan.Reason{Code: plan.Unobserved, Message: "region home does not answer"}

// told puts a decision in one line, as the tables have it.
func told(decision plan.Decision) string {
	reason := fmt.Sprintf(" | %s: %s", decision.Why().Code, decision.Why().Message)
	switch decision := decision.(type) {
	case plan.Do:
		return "do " + strings.TrimPrefix(fmt.Sprintf("%T", decision.Action), "plan.") + reason
	case plan.Wait:
		if decision.After > 0 {
			return "wait " + decision.After.String() + reason
		}
		return "wait" + reason
	case plan.Stalled:
		return "stalled" + reason
	case plan.Done:
		return "done" + reason
	}
	return "no decision"
}

// step is one row of the life of a machine: what is seen, and what is done about it.
type step struct {
	name    string
	machine plan.Machine
	want    string
}

func runSteps(t *testing.T, steps []step) {
	t.Helper()
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			if diff := cmp.Diff(step.want, told(plan.MachineStep(step.machine))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBeforeAMachineHasAPlace(t *testing.T) {
	claims := network.Claims("worker-1", "cluster", spec().Network)
	runSteps(t, []step{
		{
			"it waits for the cluster", machine(func(m *plan.Machine) { m.ClusterReady = false }),
			"wait | WaitingForClusterInfrastructure: waiting for the ProxmoxCluster to be provisioned",
		},
		{
			"it waits for the bootstrap data",
			machine(func(m *plan.Machine) {
				m.Bootstrap.Missing = plan.Reason{Code: plan.WaitingForBootstrapData, Message: "none yet"}
			}),
			"wait 15s | WaitingForBootstrapData: none yet",
		},
		{
			"it claims the addresses that it lacks", machine(func(m *plan.Machine) { m.Addresses.Absent = claims }),
			"do ClaimAddresses | ClaimingAddresses: claiming addresses",
		},
		{
			"it waits for the pool to give an address",
			machine(func(m *plan.Machine) { m.Addresses.Pending = "IPAddressClaim worker-1-net0-ipv4 has no address" }),
			"wait 1m0s | WaitingForAddresses: IPAddressClaim worker-1-net0-ipv4 has no address",
		},
		{
			"it waits for a pool that is used up",
			machine(func(m *plan.Machine) {
				m.Addresses.Pending, m.Addresses.Exhausted = "the pool has no free address", true
			}),
			"wait 1m0s | PoolExhausted: the pool has no free address",
		},
		{
			"it holds the addresses that it was given", machine(func(m *plan.Machine) { m.Addresses.Unheld = claims }),
			"do HoldAddresses | HoldingAddresses: holding the addresses",
		},
		{
			"it stops at an address that no machine can have", machine(func(m *plan.Machine) { m.Addresses.Invalid = "10.0.0.0 stands for the network" }),
			"stalled | InvalidAddress: 10.0.0.0 stands for the network",
		},
		{
			"it waits for room, saying why each host refuses it", machine(func(m *plan.Machine) { m.Candidates.Hosts[0].Online = false }),
			"wait 15s | WaitingForCapacity: 1 host refused: pve1: offline",
		},
		{
			"it waits for room, saying first which region could not be asked",
			machine(func(m *plan.Machine) {
				m.Candidates.Hosts[0].Online, m.Candidates.Unavailable = false, "region east does not answer"
			}),
			"wait 15s | WaitingForCapacity: region east does not answer; 1 host refused: pve1: offline",
		},
		{
			"it waits for a VMID", machine(noVMIDs),
			"wait 15s | VMIDRangeExhausted: region home: no VMID from 200 to 299 is known to be free: widen spec.vmIDRange of the ProxmoxCluster",
		},
		{"it is placed", machine(), "do Reserve | Placed: placed on pve1 of region home as VM 101"},
	})
}

func TestWhileTheVMIsMade(t *testing.T) {
	noDisk := func(m *plan.Machine) { delete(m.VM.Config, "scsi0") }
	templateSize := func(m *plan.Machine) { m.Spec.Disks = v1beta1.Disks{} }
	runSteps(t, []step{
		{"the seed is uploaded first", machine(reserved), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
		{"the upload is waited for", machine(reserved, task("imgcopy", plan.TaskRunning)), "wait | UploadingSeed: uploading the seed ISO with the bootstrap data"},
		{
			"a failed upload is waited out", machine(reserved, failed("imgcopy", "no space left on device", 4*time.Second)),
			"wait 4s | TaskFailed: uploading the seed ISO with the bootstrap data failed: no space left on device; it is tried again",
		},
		{"a failed upload is tried again", machine(reserved, failed("imgcopy", "no space left on device", 0)), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
		{
			"a name that no seed can hold stalls it", machine(reserved, func(m *plan.Machine) { m.Name = "worker\x7f" }),
			"stalled | InvalidSeed: render meta-data of worker\x7f: yaml: control characters are not allowed",
		},
		{
			"then the template is cloned", machine(reserved, task("imgcopy", plan.TaskSucceeded)),
			"do Clone | Cloning: cloning template 9000 of pve3 to VM 101 on pve1",
		},
		{"the clone is waited for", machine(reserved, unbound, task("qmclone", plan.TaskRunning)), "wait | Cloning: cloning the template"},
		{
			"a clone whose task was forgotten is waited for",
			machine(reserved, func(m *plan.Machine) {
				m.VM = plan.VM{Presence: plan.PresenceUnknown, Why: plan.Reason{Code: plan.Cloning, Message: "VM 101 on pve1 is being made (lock: clone)"}}
			}),
			"wait 15s | Cloning: VM 101 on pve1 is being made (lock: clone)",
		},
		{
			"a failed clone starts with the seed again", machine(reserved, failed("qmclone", "storage is full", 0)),
			"do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1",
		},
		{
			"a locked VM is waited for", machine(cloned, locked("migrate")),
			"wait 15s | Locked: VM 101 on pve1 is locked (migrate); if no task there works on it any more, run `qm unlock 101` there as root",
		},
		{
			"half a VM is not unlocked but destroyed", machine(cloned, locked("clone")),
			"wait 15s | Locked: VM 101 on pve1 is locked (clone); if no task there makes it any more, run `qm unlock 101 && qm destroy 101 --destroy-unreferenced-disks 1` there as root: " +
				"it takes all disks that are named after VM 101, on all storages, also the half-made one, which is in no config",
		},
		{"then the VM is configured", machine(cloned), "do Configure | Configuring: configuring VM 101"},
		{
			"before that the seed is uploaded once more when nobody knows that it was", machine(cloned, task("", plan.TaskNone)),
			"do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1",
		},
		{
			"but not when it was seen on its storage", machine(cloned, task("", plan.TaskNone), seedVolumeSeen(plan.SeedStored)),
			"do Configure | Configuring: configuring VM 101",
		},
		{
			"a VM that somebody started before it was configured is stopped", machine(cloned, power(plan.PowerRunning)),
			"do Stop | Stopping: stopping VM 101 on pve1, which was started before it was configured",
		},
		{
			"as is one that was started while it was", machine(configured, power(plan.PowerRunning), func(m *plan.Machine) { m.VM.StartedEarly = true }),
			"do Stop | Stopping: stopping VM 101 on pve1, which was started before it was configured",
		},
		{"then its disk is grown", machine(configured), "do Resize | Resizing: growing disk scsi0 of VM 101 to 20 GiB"},
		{"also when the tasks before are forgotten, since the drive has the seed", machine(configured, task("", plan.TaskNone)), "do Resize | Resizing: growing disk scsi0 of VM 101 to 20 GiB"},
		{"the growing is waited for", machine(configured, task("resize", plan.TaskRunning)), "wait | Resizing: growing a disk"},
		{"a disk that was grown is as large as asked, also if the config does not say so", machine(configured, grown("scsi0", 20)), "do Start | Starting: starting VM 101 on pve1"},
		{"which says nothing of another disk", machine(configured, grown("scsi1", 20)), "do Resize | Resizing: growing disk scsi0 of VM 101 to 20 GiB"},
		{"nor of a larger size", machine(configured, grown("scsi0", 19)), "do Resize | Resizing: growing disk scsi0 of VM 101 to 20 GiB"},
		{"a disk that is as large as asked stays", machine(resized), "do Start | Starting: starting VM 101 on pve1"},
		{"a disk that is larger than asked stays", machine(resized, func(m *plan.Machine) { m.VM.Config["scsi0"] = "local-lvm:vm-101-disk-0,size=1T" }), "do Start | Starting: starting VM 101 on pve1"},
		{"a disk of which no size is asked stays", machine(configured, templateSize), "do Start | Starting: starting VM 101 on pve1"},
		{
			"a VM without a disk to grow stalls it", machine(configured, noDisk),
			"stalled | NoBootDisk: VM 101 has no boot disk to grow to 20 GiB: its template 9000 has none; leave out disks.boot or use a template with a disk",
		},
		{"a VM without a disk is started when no size is asked", machine(configured, noDisk, templateSize), "do Start | Starting: starting VM 101 on pve1"},
		{"the start is waited for", machine(resized, task("qmstart", plan.TaskRunning)), "wait | Starting: starting the VM"},
		{
			"a failed start is waited out", machine(resized, failed("qmstart", "bridge 'vmbr7' does not exist", time.Minute)),
			"wait 1m0s | TaskFailed: starting the VM failed: bridge 'vmbr7' does not exist; it is tried again",
		},
		{"a VM whose power is not known is not started", machine(resized, power(plan.PowerUnknown)), "wait 15s | Unobserved: the state of VM 101 on pve1 is not known: is the node up?"},
		{"a task that we know nothing of is waited for", machine(resized, task("vzdump", plan.TaskRunning)), "wait | Unobserved: waiting for task vzdump"},
		{"a VM that runs is recorded", machine(running), "do RecordProviderID | Running: recording the providerID"},
	})
}

func TestWhenTheReservedVMIDIsNotOurs(t *testing.T) {
	once, swept := func(m *plan.Machine) { m.Spec.ProviderID = providerID }, task("imgdel", plan.TaskSucceeded)
	goneFor := "VM 101 (" + string(uuid) + ") is no longer in region home: it was removed outside of Cluster API and is not made again; delete the Machine, or let a MachineHealthCheck replace it"
	runSteps(t, []step{
		{"another VMID is taken before ours ever ran", machine(reserved, foreign), "do Reserve | Placed: placed on pve1 of region home as VM 101"},
		{
			"a VMID is waited for when the range is used up", machine(reserved, foreign, noVMIDs),
			"wait 15s | VMIDRangeExhausted: region home: no VMID from 200 to 299 is known to be free: widen spec.vmIDRange of the ProxmoxCluster",
		},
		{"ours is gone once it ran", machine(reserved, foreign, once, swept), "stalled | VirtualMachineGone: " + goneFor},
		{"ours is gone, not made again, when nobody has the VMID", machine(recorded, absent, swept), "stalled | VirtualMachineGone: " + goneFor},
		{"its seed is deleted before the Machine is", machine(recorded, absent), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
		{"also when another has its VMID", machine(reserved, foreign, once), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
		{"which is not waited for", machine(recorded, absent, task("imgdel", plan.TaskRunning)), "stalled | VirtualMachineGone: " + goneFor},
		{"nor is a host that is down", machine(recorded, absent, func(m *plan.Machine) { m.SeedHost = plan.HostOffline }), "stalled | VirtualMachineGone: " + goneFor},
		{"ours is made when nobody has the VMID and it never ran", machine(reserved, task("imgcopy", plan.TaskSucceeded)), "do Clone | Cloning: cloning template 9000 of pve3 to VM 101 on pve1"},
		{"nothing is done while that is not known", machine(reserved, unbound), "wait 15s | Unobserved: region home does not answer"},
		{"nothing is done while that is not known of one that ran", machine(recorded, unbound), "wait 15s | Unobserved: region home does not answer"},
	})
}

func TestOnceTheVMRan(t *testing.T) {
	noCluster := func(m *plan.Machine) { m.ClusterReady = false }
	changed := func(m *plan.Machine) {
		m.VM.Config["cores"], m.VM.Config["scsi0"] = "1", "local-lvm:vm-101-disk-0,size=3G"
	}
	seedRemoved := func(m *plan.Machine) { m.SeedRemoved = true }
	runSteps(t, []step{
		{"it runs, and keeps its seed until it has its Node", machine(recorded), "done | Running: VM 101 runs on pve1"},
		{
			"it holds its addresses again when someone let them loose",
			machine(recorded, func(m *plan.Machine) { m.Addresses.Unheld = network.Claims("worker-1", "cluster", spec().Network) }),
			"do HoldAddresses | HoldingAddresses: holding the addresses",
		},
		{"it does not depend on what it was made from", machine(recorded, noCluster), "done | Running: VM 101 runs on pve1"},
		{"it stays as people change it", machine(recorded, changed), "done | Running: VM 101 runs on pve1"},
		{"it is done wherever it has been moved", machine(recorded, node("pve2")), "done | Running: VM 101 runs on pve2"},
		{"it is started again when it was stopped", machine(recorded, power(plan.PowerStopped)), "do Start | Starting: starting VM 101 on pve1"},
		{"it is started where it is now", machine(recorded, power(plan.PowerStopped), node("pve2")), "do Start | Starting: starting VM 101 on pve2"},
		{"a backup does not keep it up", machine(recorded, locked("backup")), "done | Running: VM 101 runs on pve1"},
		{"but it is not started meanwhile", machine(recorded, power(plan.PowerStopped), locked("backup")), "wait 15s | Locked: VM 101 on pve1 is locked (backup); never unlock it while the task vzdump runs; if that was broken off, run `qm unlock 101` there as root"},
		{"nor shut down", machine(recorded, toBeOff, locked("backup")), "wait 15s | Locked: VM 101 on pve1 is locked (backup); never unlock it while the task vzdump runs; if that was broken off, run `qm unlock 101` there as root"},
		{"and keeps its seed", machine(bootstrapped, locked("snapshot")), "wait 15s | Locked: VM 101 on pve1 is locked (snapshot); if no task there works on it any more, run `qm unlock 101` there as root"},
		{"its seed is ejected once it has its Node", machine(bootstrapped), "do EjectSeed | RemovingSeed: ejecting the seed ISO"},
		{"its seed is then deleted", machine(ejected), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
		{"the deletion of the seed is waited for", machine(ejected, task("imgdel", plan.TaskRunning)), "wait | RemovingSeed: deleting the seed ISO"},
		{"it is started even while its seed is being deleted", machine(ejected, task("imgdel", plan.TaskRunning), power(plan.PowerStopped)), "do Start | Starting: starting VM 101 on pve1"},
		{
			"a failed deletion of the seed is waited out", machine(ejected, failed("imgdel", "timeout", 2*time.Second)),
			"wait 2s | TaskFailed: deleting the seed ISO failed: timeout; it is tried again",
		},
		{"a failed deletion of the seed is tried again", machine(ejected, failed("imgdel", "timeout", 0)), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
		{"it is done when its seed was deleted", machine(ejected, task("imgdel", plan.TaskSucceeded)), "done | Running: VM 101 runs on pve1"},
		{"it is done when its seed was not found on its storage", machine(ejected, seedVolumeSeen(plan.SeedAbsent)), "done | Running: VM 101 runs on pve1"},
		{"a seed in the drive is ejected also when its volume is gone", machine(bootstrapped, seedVolumeSeen(plan.SeedAbsent)), "do EjectSeed | RemovingSeed: ejecting the seed ISO"},
		{"it is done when its seed is known to be gone", machine(ejected, seedRemoved), "done | Running: VM 101 runs on pve1"},
	})
}
