package observe

import (
	"context"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// cards returns the network devices of the machines of the same Proxmox VE cluster that come first, when one of the machine's
// own devices may have the MAC address of one of them. Of machines that have no place yet those of the same Cluster count.
func (o *Observer) cards(ctx context.Context, machine *v1beta1.ProxmoxMachine) ([]network.Card, error) {
	if machine.Spec.ProviderID != "" || machine.Spec.Reservation.UUID == "" || !network.HasChosenMAC(machine.Spec.Network) {
		return nil, nil
	}
	entries, _, err := o.Ledger.Entries(ctx)
	if err != nil {
		return nil, err
	}
	var all v1beta1.ProxmoxMachineList
	if err := o.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list the ProxmoxMachines, for their MAC addresses: %w", err)
	}
	here := entries[client.ObjectKeyFromObject(machine)].PVE
	var cards []network.Card
	for i := range all.Items {
		other := &all.Items[i]
		isHere := entries[client.ObjectKeyFromObject(other)].PVE == here
		if other.Spec.Reservation.UUID == "" {
			isHere = other.Namespace == machine.Namespace && other.Labels[clusterv1.ClusterNameLabel] == machine.Labels[clusterv1.ClusterNameLabel]
		}
		if isHere && precedes(other, machine) {
			cards = append(cards, cardsOf(other)...)
		}
	}
	return cards, nil
}

// cardsOf returns the network devices of a machine whose MAC addresses are known: those that it names, before it has its
// identity.
func cardsOf(machine *v1beta1.ProxmoxMachine) []network.Card {
	spec, uuid := machine.Spec.Network, proxmox.SMBIOSUUID(machine.Spec.Reservation.UUID)
	if uuid == "" {
		spec.Devices = slices.DeleteFunc(slices.Clone(spec.Devices), func(device v1beta1.NetworkDevice) bool { return device.MACAddress == "" })
	}
	return network.Cards(machine.Namespace+"/"+machine.Name, uuid, spec)
}

// precedes reports whether the one machine keeps a MAC address that the other would get, too: the one whose VM ran, or else the
// older one.
func precedes(one, other *v1beta1.ProxmoxMachine) bool {
	if one.UID == other.UID {
		return false
	}
	if one.Spec.ProviderID != "" {
		return true
	}
	if !one.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return one.CreationTimestamp.Before(&other.CreationTimestamp)
	}
	return client.ObjectKeyFromObject(one).String() < client.ObjectKeyFromObject(other).String()
}
