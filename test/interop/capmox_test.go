package interop

import (
	"testing"

	"github.com/go-logr/logr"
	capmox "github.com/ionos-cloud/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/ionos-cloud/cluster-api-provider-proxmox/pkg/proxmox/goproxmox"
	"github.com/luthermonson/go-proxmox"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// capmoxClient is the client of CAPMOX, the Cluster API provider by IONOS.
func capmoxClient(t *testing.T, server *pvesim.Server) *goproxmox.APIClient {
	t.Helper()
	client, err := goproxmox.NewAPIClient(t.Context(), logr.Discard(), server.URL, options(server)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestCAPMOXLeadsAMachineThroughItsLife(t *testing.T) {
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} { // one after the other: go-proxmox writes ISO images to one place
		t.Run(string(version), func(t *testing.T) {
			server := newServer(t, version)
			client := capmoxClient(t, server)
			node, template, err := client.FindVMTemplateByTags(t.Context(), []string{"kubernetes", "shared", "ubuntu"}, "exact")
			if err != nil || node != "pve1" {
				t.Fatalf("template %d on %s: %v", template, node, err)
			}
			clone, err := client.CloneVM(t.Context(), int(template), capmox.VMCloneRequest{Node: node, Name: "worker", Full: 1, Target: "pve2", Pool: "capi", Storage: "shared"})
			if err != nil {
				t.Fatal(err)
			}
			wait(t, clone.Task)
			vm, err := client.GetVM(t.Context(), "pve2", clone.NewID)
			if err != nil || vm.Name != "worker" || !vm.IsStopped() {
				t.Fatalf("VM is %+v: %v", vm, err)
			}
			task, err := client.ConfigureVM(t.Context(), vm, proxmox.VirtualMachineOption{Name: "memory", Value: 4096}, proxmox.VirtualMachineOption{Name: "cores", Value: 4},
				proxmox.VirtualMachineOption{Name: "net0", Value: "virtio=BC:24:11:00:00:01,bridge=vmbr0"},
				proxmox.VirtualMachineOption{Name: "delete", Value: "ide2"}) // images for CAPMOX have no cloud-init drive of Proxmox VE
			if err != nil {
				t.Fatal(err)
			}
			wait(t, task)
			task, err = client.ResizeDisk(t.Context(), vm, "scsi0", "20G")
			if err != nil {
				t.Fatal(err)
			}
			wait(t, task)
			bootWithSeed(t, client, vm)
			remove(t, server, client, "pve2", clone.NewID)
		})
	}
}

// bootWithSeed starts the VM with a NoCloud ISO, as CAPMOX does, and waits for its agent.
func bootWithSeed(t *testing.T, client *goproxmox.APIClient, vm *proxmox.VirtualMachine) {
	t.Helper()
	network := "version: 2\nethernets:\n  eth0:\n    match: {macaddress: \"bc:24:11:00:00:01\"}\n    addresses: [10.1.1.5/24]\n"
	if err := vm.CloudInit(t.Context(), "ide0", "#cloud-config\n", "instance-id: one\nlocal-hostname: worker\n", "", network); err != nil {
		t.Fatal(err)
	}
	task, err := client.StartVM(t.Context(), vm)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, task)
	if err := client.QemuAgentStatus(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	interfaces, err := vm.AgentGetNetworkIFaces(t.Context())
	if err != nil || !hasAddress(interfaces, "10.1.1.5") {
		t.Errorf("interfaces are %+v: %v", interfaces, err)
	}
	if err := client.UnmountCloudInitISO(t.Context(), vm, "ide0"); err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, server *pvesim.Server, client *goproxmox.APIClient, node string, id int64) {
	t.Helper()
	vm, err := client.GetVM(t.Context(), node, id)
	if err != nil {
		t.Fatal(err)
	}
	task, err := vm.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait(t, task)
	if task, err = client.DeleteVM(t.Context(), node, id); err != nil {
		t.Fatal(err)
	}
	wait(t, task)
	if free, err := client.CheckID(t.Context(), id); err != nil || !free {
		t.Errorf("VMID %d is free: %t, %v", id, free, err)
	}
	if broken := server.World.Check(); len(broken) > 0 {
		t.Errorf("broken: %v", broken)
	}
}
