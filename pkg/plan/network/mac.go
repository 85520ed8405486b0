package network

import (
	"crypto/sha256"
	"fmt"

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
