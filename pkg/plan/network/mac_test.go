package network_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func TestTheMACAddressOfADevice(t *testing.T) {
	const uuid = proxmox.SMBIOSUUID("8d1ab5f6-59f1-4a3e-9a0b-0d6f2a5b7c11")
	whole := network.MAC(uuid, "net0")
	for name, c := range map[string]struct {
		device v1beta1.NetworkDevice
		want   string
	}{
		"follows from the identity":      {v1beta1.NetworkDevice{Name: "net0"}, whole},
		"is the one that is asked for":   {v1beta1.NetworkDevice{Name: "net0", MACAddress: "bc:24:11:00:00:ab"}, "BC:24:11:00:00:AB"},
		"starts with the prefix":         {v1beta1.NetworkDevice{Name: "net0", MACPrefix: "bc:24:11"}, "BC:24:11" + whole[8:]},
		"starts with a prefix of a byte": {v1beta1.NetworkDevice{Name: "net0", MACPrefix: "BC"}, "BC" + whole[2:]},
		"starts with five bytes":         {v1beta1.NetworkDevice{Name: "net0", MACPrefix: "BC:24:11:00:0A"}, "BC:24:11:00:0A" + whole[14:]},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, network.DeviceMAC(uuid, c.device)); diff != "" {
				t.Errorf("MAC address (-want +got):\n%s", diff)
			}
		})
	}
}
