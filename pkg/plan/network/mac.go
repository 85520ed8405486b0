package network

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// MAC returns the MAC address of a VM's device. It follows from the VM's identity, so that the network config in the seed
// is known before the VM exists, and stays when the VM is configured again. It is a locally administered unicast address;
// of its 48 bits 46 come from a hash: among 100,000 devices two are alike with a probability below 1 in 10,000.
func MAC(uuid proxmox.SMBIOSUUID, device string) string {
	sum := sha256.Sum256([]byte(string(uuid) + "/" + device))
	const locallyAdministered, multicast = 0x02, 0x01
	sum[0] = sum[0]&^multicast | locallyAdministered
	return fmt.Sprintf("%02X:%02X:%02X:%02X:%02X:%02X", sum[0], sum[1], sum[2], sum[3], sum[4], sum[5])
}

// DeviceMAC returns the MAC address of a VM's device: the one that is asked for, or the one that follows from the VM's
// identity, whose first bytes the device may prescribe.
func DeviceMAC(uuid proxmox.SMBIOSUUID, device v1beta1.NetworkDevice) string {
	if device.MACAddress != "" {
		return strings.ToUpper(device.MACAddress)
	}
	mac := MAC(uuid, device.Name)
	return strings.ToUpper(device.MACPrefix) + mac[min(len(device.MACPrefix), len(mac)):]
}
