package pve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
)

// GuestInterface is a network interface as the guest agent tells of it.
type GuestInterface struct {
	Name string
	// MAC is the hardware address, in the guest's spelling; empty where it has none.
	MAC       string
	Addresses []netip.Prefix
}

// GuestInterfaces asks the guest agent for the network interfaces. An agent that does not answer keeps one of the node's
// workers waiting for 3 s, and is an error of class Unresponsive: ask seldom. It needs VM.GuestAgent.Audit, on 8.4 VM.Monitor.
func (c *Client) GuestInterfaces(ctx context.Context, vm VMRef) ([]GuestInterface, error) {
	call, err := vm.call(http.MethodGet, "/agent/network-get-interfaces")
	data, err := c.get(ctx, call, err)
	if err != nil {
		return nil, err
	}
	interfaces, err := decodeGuestInterfaces(data)
	if err != nil {
		return nil, c.undecodable(call, err)
	}
	return interfaces, nil
}

// decodeGuestInterfaces reads the agent's answer. What the guest says is not believed further than it can be read.
func decodeGuestInterfaces(data []byte) ([]GuestInterface, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	list, err := decodeList(answer.Result)
	if err != nil {
		return nil, err
	}
	const most = 256
	list = list[:min(len(list), most)]
	interfaces := make([]GuestInterface, 0, len(list))
	for _, object := range list {
		found := GuestInterface{Name: string(object["name"]), MAC: string(object["hardware-address"])}
		addresses, _ := decodeList([]byte(object["ip-addresses"])) // an interface may have none
		for _, entry := range addresses[:min(len(addresses), most)] {
			ip, err := netip.ParseAddr(string(entry["ip-address"]))
			prefix := netip.PrefixFrom(ip.WithZone("").Unmap(), int(entry["prefix"].integer()))
			if err == nil && prefix.IsValid() {
				found.Addresses = append(found.Addresses, prefix)
			}
		}
		interfaces = append(interfaces, found)
	}
	return slices.Clip(interfaces), nil
}
