package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func on(node proxmox.NodeName) plan.VirtualMachine {
	return plan.VirtualMachine{Region: "home", Node: node, ID: 101, UUID: uuid}
}

func TestWhatAnActionAsksFor(t *testing.T) {
	ejectedConfig := machine(bootstrapped).VM.Config
	ejectedConfig["ide2"] = "none,media=cdrom"
	cases := []struct {
		name    string
		machine plan.Machine
		want    plan.Action
	}{
		{
			"the claims that are absent", machine(func(m *plan.Machine) { m.Addresses.Absent = network.Claims("worker-1", "cluster", m.Spec.Network) }),
			plan.ClaimAddresses{Claims: network.Claims("worker-1", "cluster", spec().Network)},
		},
		{
			"a place of which the actor draws the identity", machine(),
			plan.Reserve{Applied: vmconfig.WriteApplied(spec()), LedgerVersion: 7, Reservation: v1beta1.Reservation{Region: "home", Node: "pve1", VMID: 101, SourceNode: "pve3", SourceVMID: 9000, SeedStorage: "local"}},
		},
		{
			"another VMID, all else as reserved", machine(reserved, foreign, func(m *plan.Machine) { m.Candidates.FreeVMIDs["home"] = 205 }),
			plan.Reserve{Applied: vmconfig.WriteApplied(spec()), LedgerVersion: 7, Reservation: v1beta1.Reservation{
				UUID: string(uuid), Region: "home", Node: "pve1", VMID: 205, SourceNode: "pve3", SourceVMID: 9000, SeedStorage: "local",
			}},
		},
		{
			"a clone that carries our marker from its first moment", machine(reserved, task("imgcopy", plan.TaskSucceeded)),
			plan.Clone{
				VM: on("pve1"), Source: 9000, SourceNode: "pve3", Name: "worker-1", Pool: "capi", Mode: v1beta1.CloneModeFull, Storage: "local-lvm",
				Description: "Cluster API machine worker-1, managed by CAPVE.\n\nCAPVE-UUID: " + string(uuid) + "\n",
			},
		},
		{
			"a change of the config that was read", machine(cloned),
			plan.Configure{VM: on("pve1"), Digest: "d1", Change: vmconfig.Change{Set: map[string]string{
				"cores": "2", "memory": "4096", "smbios1": "uuid=" + string(uuid), "tags": "capve-" + string(uuid),
				"ide2": string(seedVolume) + ",media=cdrom", "net0": "virtio=" + network.MAC(uuid, "net0") + ",bridge=vmbr0,firewall=1",
			}}},
		},
		{"an absolute size, which can be asked for twice", machine(configured), plan.Resize{VM: on("pve1"), Disk: "scsi0", Size: 20 * gib, Digest: "d2"}},
		{"a start", machine(resized), plan.Start{VM: on("pve1")}},
		{"the providerID", machine(running), plan.RecordProviderID{ProviderID: providerID, Applied: vmconfig.WriteApplied(spec())}},
		{
			"an empty drive", machine(bootstrapped),
			plan.EjectSeed{VM: on("pve1"), Digest: "d2", Change: vmconfig.Change{Set: map[string]string{"ide2": "none,media=cdrom"}}, Config: ejectedConfig},
		},
		{"the seed's volume, where it was put", machine(ejected, node("pve2")), plan.DeleteSeed{VM: on("pve1"), Volume: seedVolume}},
		{"a stop where the VM is", machine(recorded, node("pve2"), deleting), plan.Stop{VM: on("pve2")}},
		{"a destruction where the VM is", machine(resized, node("pve2"), deleting), plan.Destroy{VM: on("pve2")}},
		{"the addresses' release", machine(deleting), plan.ReleaseAddresses{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			do, acts := plan.MachineStep(c.machine).(plan.Do)
			if !acts {
				t.Fatalf("decided to %s", told(plan.MachineStep(c.machine)))
			}
			if diff := cmp.Diff(c.want, do.Action); diff != "" {
				t.Errorf("action (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSeedThatIsUploaded(t *testing.T) {
	do, _ := plan.MachineStep(machine(reserved)).(plan.Do)
	upload, uploads := do.Action.(plan.UploadSeed)
	if !uploads {
		t.Fatalf("action is %T", do.Action)
	}
	if diff := cmp.Diff([]any{on("pve1"), proxmox.StorageID("local")}, []any{upload.VM, upload.Storage}); diff != "" {
		t.Errorf("where it goes (-want +got):\n%s", diff)
	}
	want := []string{"#cloud-config\n", "instance-id: " + string(uuid) + "\nlocal-hostname: worker-1\n"}
	if diff := cmp.Diff(want, []string{string(upload.Seed.UserData), upload.Seed.MetaData}); diff != "" {
		t.Errorf("user-data and meta-data (-want +got):\n%s", diff)
	}
}

// TestAClaimedPlaceMeetsWhatTheMachineAsks has each wish of a spec refuse the only host there is.
func TestAClaimedPlaceMeetsWhatTheMachineAsks(t *testing.T) {
	cases := []struct {
		name string
		ask  change
		want string
	}{
		{"its CPUs, over all sockets", func(m *plan.Machine) { m.Spec.CPU = v1beta1.CPU{Sockets: 4, Cores: 8} }, "has 16 CPUs, the VM asks for 32"},
		{"its memory", func(m *plan.Machine) { m.Spec.Memory.SizeMiB = 65537 }, "65536 MiB of memory free of 65537 asked"},
		{"its failure domain", func(m *plan.Machine) { m.FailureDomain = "pve2" }, "in failure domain pve1, not pve2"},
		{"its allowed nodes", func(m *plan.Machine) { m.Spec.Placement.AllowedNodes = []string{"pve2"} }, "not in placement.allowedNodes"},
		{"the storage of its disks", func(m *plan.Machine) { m.Spec.Source.Template.Storage = "ceph" }, "storage ceph is not there, cannot be seen (Datastore.Audit) or does not take images"},
		{
			"the storage of its seed", func(m *plan.Machine) { m.Spec.Bootstrap.Storage = "nfs" },
			"storage nfs is not there, cannot be seen (Datastore.Audit) or does not take ISO images: set bootstrap.storage to one that does",
		},
		{"its role", func(m *plan.Machine) { m.ControlPlane, m.Candidates.Hosts[0].ControlPlane = true, false }, "failure domain pve1 is not for control planes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := "wait 15s | WaitingForCapacity: 1 host refused: pve1: " + c.want
			if diff := cmp.Diff(want, told(plan.MachineStep(machine(c.ask)))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}
