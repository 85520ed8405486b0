package network

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// The bits of the first byte of a MAC address that say who gave it and whom it means.
const locallyAdministered, multicast = 0x02, 0x01

// MAC returns the MAC address of a VM's device, for which the spec has none. It follows from the VM's identity, so that the
// network config in the seed is known before the VM exists, and stays when the VM is configured again. It is a locally
// administered unicast address; of its 48 bits 46 come from a hash: among 100,000 devices two are alike with a probability
// below 1 in 10,000.
func MAC(uuid proxmox.SMBIOSUUID, device string) string {
	sum := hash(uuid, device)
	sum[0] = sum[0]&^multicast | locallyAdministered
	return text(sum)
}

// DeviceMAC returns the MAC address of a VM's device, in upper case as Proxmox VE writes it: the one that the spec has, or
// one that begins as the spec says, or else MAC. What follows a prefix comes from the VM's identity; after three bytes that
// is one of 16 million, so that devices are compared by SameMAC before a VM is made.
func DeviceMAC(uuid proxmox.SMBIOSUUID, device v1beta1.NetworkDevice) string {
	switch {
	case device.MACAddress != "":
		return strings.ToUpper(device.MACAddress)
	case device.MACPrefix == "":
		return MAC(uuid, device.Name)
	}
	sum := hash(uuid, device.Name)
	prefix, err := hex.DecodeString(strings.ReplaceAll(device.MACPrefix, ":", ""))
	if err != nil || len(prefix) > len(sum) {
		return MAC(uuid, device.Name) // not a prefix the API accepts
	}
	copy(sum[:], prefix)
	sum[0] &^= multicast
	return text(sum)
}

func hash(uuid proxmox.SMBIOSUUID, device string) [6]byte {
	sum := sha256.Sum256([]byte(string(uuid) + "/" + device))
	return [6]byte(sum[:6])
}

func text(mac [6]byte) string {
	return fmt.Sprintf("%02X:%02X:%02X:%02X:%02X:%02X", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5])
}

// Card is a network device of a machine with its MAC address.
type Card struct {
	Machine string
	Device  string
	MAC     string
}

// Cards returns the network devices of a machine.
func Cards(machine string, uuid proxmox.SMBIOSUUID, spec v1beta1.Network) []Card {
	cards := make([]Card, len(spec.Devices))
	for i, device := range Devices(spec) {
		cards[i] = Card{Machine: machine, Device: device.Name, MAC: DeviceMAC(uuid, device)}
	}
	return cards
}

// SameMAC returns the first of the machine's cards that has the MAC address of another of them, or of another machine's, and
// that other.
func SameMAC(cards, others []Card) (card, other Card, found bool) {
	seen := make(map[string]Card, len(cards)+len(others))
	for _, card := range others {
		seen[card.MAC] = card
	}
	for _, card := range cards {
		if other, taken := seen[card.MAC]; taken {
			return card, other, true
		}
		seen[card.MAC] = card
	}
	return Card{}, Card{}, false
}

// HasChosenMAC reports whether a device has a MAC address that another machine's may have as well.
func HasChosenMAC(spec v1beta1.Network) bool {
	for _, device := range spec.Devices {
		if device.MACAddress != "" || device.MACPrefix != "" {
			return true
		}
	}
	return false
}
