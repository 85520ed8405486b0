package plan_test

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

func TestAMACAddressOfAnotherMachineIsNotUsed(t *testing.T) {
	chosen := func(m *plan.Machine) { m.Spec.Network.Devices[0].MACAddress = "bc:24:11:00:00:01" }
	taken := func(m *plan.Machine) {
		m.Cards = []network.Card{{Machine: "default/worker-0", Device: "net1", MAC: "BC:24:11:00:00:01"}}
	}
	const waits = "wait 1m0s | DuplicateMACAddress: net0 would have the MAC address BC:24:11:00:00:01, which net1 of ProxmoxMachine default/worker-0 has: " +
		"delete one of the two machines, leave macAddress out of their template, or make macPrefix shorter"
	runSteps(t, []step{
		{"nothing is made of a machine with it", machine(reserved, chosen, taken), waits},
		{"a machine with another one goes on", machine(reserved, taken), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
		{"a machine that ran is left alone", machine(recorded, chosen, taken), "done | Running: VM 101 runs on pve1"},
		{"a machine can be deleted", machine(reserved, absent, chosen, taken, deleting), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
	})
}
