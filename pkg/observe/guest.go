package observe

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// How often a guest is asked for the addresses that the network gave it. A guest that does not answer keeps a worker of its node
// waiting for 3 s, so it is given time to boot, and is asked less and less often; one that told is asked seldom.
const (
	firstAsk = 15 * time.Second
	mostAsk  = 5 * time.Minute
	askAgain = 10 * time.Minute
)

// guestTalk is what a guest was asked, and said.
type guestTalk struct {
	// nextAt is when it is asked next.
	nextAt time.Time
	// failures counts the times in a row that it did not tell all.
	failures int
	reported []network.Address
	// lacking says what it did not tell, and why.
	lacking string
}

// untold says why addresses are not known that the guest gets from the network; empty when they are, or when there are none.
func untold(subject MachineSubject, machine plan.Machine) string {
	if machine.Deleting || !network.HasDynamic(machine.Spec.Network) || isTold(subject, machine) {
		return ""
	}
	return "the addresses from DHCP and SLAAC are known some time after the VM runs: its guest agent tells them"
}

// isTold reports whether the status has addresses that only the guest can have told.
func isTold(subject MachineSubject, machine plan.Machine) bool {
	machine.Addresses.Reported = nil
	static, _ := machine.AddressList()
	count := 0
	for _, address := range subject.ProxmoxMachine.Status.Addresses {
		if address.Type == clusterv1.MachineInternalIP {
			count++
		}
	}
	return count > len(static)
}

// askGuest adds the addresses that the guest got from the network. It asks the guest agent when it is time to.
func (o *Observer) askGuest(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) {
	isUp := machine.VM.Presence == plan.PresenceOurs && machine.VM.Power == plan.PowerRunning && machine.Spec.ProviderID != ""
	if !isUp || machine.Deleting || !network.HasDynamic(machine.Spec.Network) {
		return
	}
	talk, isTime := o.Memory.talkTo(subject.uuid(), isTold(subject, *machine))
	if isTime {
		talk = o.Memory.talked(subject.uuid(), o.talk(ctx, cluster, subject, machine.VM.Node))
	}
	machine.Addresses.Reported = talk.reported
	if talk.reported != nil || talk.lacking != "" {
		machine.Addresses.Unreported = talk.lacking
	}
	machine.Addresses.AskAgain = max(talk.nextAt.Sub(o.Clock.Now()), time.Second)
}

func (o *Observer) talk(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, node proxmox.NodeName) guestTalk {
	spec := subject.ProxmoxMachine.Spec
	found, err := cluster.GuestInterfaces(ctx, pve.VMRef{Node: node, ID: proxmox.VMID(spec.Reservation.VMID)})
	if err != nil {
		return guestTalk{lacking: silence(err, spec.Reservation.VMID)}
	}
	interfaces := make([]network.Interface, len(found))
	for i, one := range found {
		interfaces[i] = network.Interface{MAC: one.MAC, Addresses: one.Addresses}
	}
	endpoint := ""
	if subject.ProxmoxCluster != nil {
		endpoint = subject.ProxmoxCluster.Spec.ControlPlaneEndpoint.Host
	}
	addresses, lacking := network.Reported(subject.uuid(), spec.Network, interfaces, endpoint)
	if lacking != "" {
		lacking = fmt.Sprintf("the guest of VM %d has no address yet on %s: does the network have a DHCP server, or a router that advertises?", spec.Reservation.VMID, lacking)
	}
	return guestTalk{reported: addresses, lacking: lacking}
}

// silence says why the guest agent did not answer, and what to do about it.
func silence(err error, vmID int32) string {
	switch pve.ClassOf(err) { //nolint:exhaustive // the others explain themselves
	case pve.Unresponsive, pve.Invalid:
		return fmt.Sprintf("the guest agent of VM %d does not answer, which tells the addresses from DHCP and SLAAC: is it installed in the template, and options.agent.enabled set?", vmID)
	case pve.Forbidden:
		return fmt.Sprintf("the credentials may not ask the guest agent of VM %d for its addresses: grant VM.GuestAgent.Audit, on Proxmox VE 8 VM.Monitor: %v", vmID, err)
	}
	return fmt.Sprintf("the guest agent of VM %d could not be asked for its addresses: %v", vmID, err)
}

// talkTo returns what the guest said, and whether it is time to ask it. A guest whose addresses an earlier process knew is
// not in a hurry; the guests of a process that starts are not asked all at once.
func (m *Memory) talkTo(uuid proxmox.SMBIOSUUID, isTold bool) (talk guestTalk, isTime bool) {
	m.with(uuid, func(r *recollection) {
		if r.talk.nextAt.IsZero() {
			r.talk.nextAt = m.clock.Now().Add(firstAsk)
			if isTold {
				r.talk.nextAt = r.talk.nextAt.Add(share(uuid, askAgain))
			}
		}
		talk, isTime = r.talk, !m.clock.Now().Before(r.talk.nextAt)
	})
	return talk, isTime
}

// talked keeps what the guest said. What it said before stands while it is silent.
func (m *Memory) talked(uuid proxmox.SMBIOSUUID, said guestTalk) (talk guestTalk) {
	m.with(uuid, func(r *recollection) {
		wait := askAgain
		if said.lacking == "" {
			said.failures = 0
		} else {
			wait = min(firstAsk<<min(r.talk.failures, 10), mostAsk)
			said.failures = r.talk.failures + 1
		}
		if said.reported == nil && len(r.talk.reported) > 0 && said.lacking != "" {
			said.reported, said.lacking, wait = r.talk.reported, "", mostAsk
		}
		said.nextAt = m.clock.Now().Add(wait)
		r.talk, talk = said, said
	})
	return talk
}

// share is a part of a duration that is always the same for a VM, and spread over VMs.
func share(uuid proxmox.SMBIOSUUID, whole time.Duration) time.Duration {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(uuid))
	return time.Duration(float64(whole) * float64(sum.Sum32()) / float64(1<<32))
}
