package status

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// Event is something that a person is told of once, when it happened.
type Event struct {
	plan.Reason
	// Warning says that a person may have to see to it.
	Warning bool
}

// MachineEvents compares a machine before and after a pass and says what happened. It goes by what the status said and says,
// so that a pass which changes nothing tells nothing.
func MachineEvents(before, after *v1beta1.ProxmoxMachine, pass MachinePass) []Event {
	change := machineChange{before: before, after: after, pass: pass}
	var events []Event
	for _, tell := range []func() []Event{
		change.adopted, change.addresses, change.cloned, change.power, change.migrated, change.done, change.drifted, change.trouble,
	} {
		events = append(events, tell()...)
	}
	return events
}

type machineChange struct {
	before, after *v1beta1.ProxmoxMachine
	pass          MachinePass
}

func normal(code, format string, args ...any) []Event {
	return []Event{{Reason: plan.Reason{Code: code, Message: fmt.Sprintf(format, args...)}}}
}

func warning(code, format string, args ...any) []Event {
	events := normal(code, format, args...)
	events[0].Warning = true
	return events
}

func (c machineChange) vm() plan.VM { return c.pass.Observed.VM }

func (c machineChange) id() int32 { return c.after.Spec.Reservation.VMID }

// isAdopted reports whether the status knew nothing of a VM that there is.
func (c machineChange) isAdopted() bool {
	return c.before.Spec.Reservation.UUID != "" && conditions.Get(c.before, v1beta1.VirtualMachineReadyCondition) == nil && c.vm().Presence == plan.PresenceOurs
}

func (c machineChange) adopted() []Event {
	if !c.isAdopted() {
		return nil
	}
	return normal(v1beta1.AdoptedEvent, "found VM %d on %s, which carries this machine's identity", c.id(), c.vm().Node)
}

func (c machineChange) addresses() []Event {
	if c.isAdopted() || len(c.before.Status.Addresses) > 0 || len(c.after.Status.Addresses) == 0 {
		return nil
	}
	var list []string
	for _, address := range c.after.Status.Addresses {
		if address.Type == clusterv1.MachineInternalIP {
			list = append(list, address.Address)
		}
	}
	return normal(v1beta1.AddressesAssignedEvent, "the machine has %s", strings.Join(list, ", "))
}

// cloned goes by the step that the machine was at: the task that made the VM has ended, and the VM is there.
func (c machineChange) cloned() []Event {
	was := reasonOf(c.before, v1beta1.VirtualMachineReadyCondition)
	if was != plan.Cloning && was != plan.Creating || c.vm().Presence != plan.PresenceOurs {
		return nil
	}
	r := c.after.Spec.Reservation
	if source := c.after.Spec.Source; !source.UsesTemplate() {
		return normal(v1beta1.CreatedEvent, "made VM %d on %s %s", r.VMID, c.vm().Node, plan.Origin(source))
	}
	return normal(v1beta1.ClonedEvent, "cloned %s to VM %d on %s", plan.Original(c.after.Spec), r.VMID, c.vm().Node)
}

// power tells that the VM runs or is off, unless it is told to be found so.
func (c machineChange) power() []Event {
	was, is := conditions.Get(c.before, v1beta1.VirtualMachineReadyCondition), conditions.Get(c.after, v1beta1.VirtualMachineReadyCondition)
	if was == nil || is == nil || !c.after.DeletionTimestamp.IsZero() {
		return nil
	}
	switch {
	case was.Status == metav1.ConditionFalse && is.Status == metav1.ConditionTrue:
		return normal(v1beta1.StartedEvent, "VM %d runs on %s", c.id(), c.vm().Node)
	case was.Reason != plan.PoweredOff && is.Reason == plan.PoweredOff:
		return normal(v1beta1.PoweredOffEvent, "VM %d on %s is off, as spec.powerState asks", c.id(), c.vm().Node)
	}
	return nil
}

func (c machineChange) migrated() []Event {
	from, to := c.before.Status.Node, c.after.Status.Node
	if c.before.Spec.ProviderID == "" || from == "" || from == to {
		return nil
	}
	return normal(v1beta1.MigratedEvent, "VM %d moved from %s to %s%s", c.id(), from, to, c.domains())
}

// domains says how the failure domain changed; nothing where it did not, or every node is its own.
func (c machineChange) domains() string {
	from, to := c.before.Status.FailureDomain, c.after.Status.FailureDomain
	switch {
	case from == to || from == c.before.Status.Node && to == c.after.Status.Node:
		return ""
	case to == "":
		return fmt.Sprintf(", out of failure domain %s: %s is in no zone of region %s", from, c.after.Status.Node, c.after.Spec.Reservation.Region)
	case from == "":
		return ", into failure domain " + to
	}
	return fmt.Sprintf(", from failure domain %s to %s", from, to)
}

// done tells what the actions of the pass came to.
func (c machineChange) done() []Event {
	var events []Event
	for _, do := range c.pass.Done {
		switch action := do.Action.(type) { // partial: the other actions are told of by what they lead to
		case plan.Reserve:
			events = append(events, c.placed(do.Reason, action)...)
		case plan.Reconfigure:
			events = append(events, c.reconfigured(strings.Join(action.Change.Keys(), ", "), action.Repairs)...)
		case plan.MovePool:
			events = append(events, c.reconfigured("pool", action.Repairs)...)
		case plan.Start:
			events = append(events, c.stoppedOutside()...)
		case plan.RemoveFinalizer:
			events = append(events, c.deleted(do)...)
		default:
		}
	}
	return events
}

// reconfigured tells what was changed of a VM that ran once.
func (c machineChange) reconfigured(keys string, repairs bool) []Event {
	if repairs {
		return warning(v1beta1.RepairedEvent, "somebody changed VM %d on %s, and %s is changed back to what the spec says, since spec.driftPolicy is Repair", c.id(), c.vm().Node, keys)
	}
	return normal(v1beta1.ReconfiguredEvent, "changed %s of VM %d on %s as the spec says", keys, c.id(), c.vm().Node)
}

// placed tells of a new place. One on the same host has another VMID because somebody took that, unless ours has it.
func (c machineChange) placed(why plan.Reason, action plan.Reserve) []Event {
	events := normal(v1beta1.PlacedEvent, "%s", why.Message)
	before, r := c.before.Spec.Reservation, action.Reservation
	switch {
	case action.Abandoned != "":
		return append(warning(plan.Abandoned, "%s", action.Abandoned), events...)
	case before.UUID != "" && before.Node == r.Node && before.VMID != r.VMID:
		return append(c.refused(before.VMID), events...)
	}
	return events
}

func (c machineChange) refused(id int32) []Event {
	return warning(v1beta1.RefusedEvent, "VM %d of region %s is not this machine's and is left alone", id, c.after.Spec.Reservation.Region)
}

// stoppedOutside tells of a VM that ran when it was last seen, and is started again without having been shut down.
func (c machineChange) stoppedOutside() []Event {
	if was := conditions.Get(c.before, v1beta1.VirtualMachineReadyCondition); was == nil || was.Status == metav1.ConditionFalse {
		return nil
	}
	return warning(v1beta1.StoppedOutsideEvent,
		"VM %d on %s was stopped outside of Cluster API and is started again: set spec.powerState to Stopped to have it stay off", c.id(), c.vm().Node)
}

func (c machineChange) deleted(do plan.Do) []Event {
	if do.Reason.Code == plan.Abandoned {
		return warning(plan.Abandoned, "%s", do.Reason.Message)
	}
	events := normal(v1beta1.DeletedEvent, "%s", do.Reason.Message)
	if c.vm().Presence == plan.PresenceForeign {
		return append(c.refused(c.id()), events...)
	}
	return events
}

func (c machineChange) drifted() []Event {
	was, is := conditions.Get(c.before, v1beta1.ConfigurationUpToDateCondition), conditions.Get(c.after, v1beta1.ConfigurationUpToDateCondition)
	told := []string{plan.Drifted, plan.RepairContested, plan.ChangeRefused, plan.ReplacementRequired, plan.RestartRequired}
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Message == is.Message || !slices.Contains(told, is.Reason) {
		return nil
	}
	if is.Reason == plan.RestartRequired {
		return normal(is.Reason, "%s", is.Message)
	}
	return warning(is.Reason, "%s", is.Message)
}

// trouble tells what holds the machine up, when no condition said so before.
func (c machineChange) trouble() []Event {
	why, found := c.pass.trouble()
	if !found || slices.ContainsFunc(c.before.Status.Conditions, func(condition metav1.Condition) bool { return condition.Reason == why.Code }) {
		return nil
	}
	events := warning(why.Code, "%s", why.Message)
	if why.Code == plan.VirtualMachineGone && c.vm().Presence == plan.PresenceForeign {
		return append(events, c.refused(c.id())...)
	}
	return events
}

// trouble is what the pass came upon, when that is more than the next step of the usual way.
func (p MachinePass) trouble() (plan.Reason, bool) {
	if p.Failure.Code != "" {
		return p.Failure, true
	}
	switch decision := p.Decision.(type) {
	case plan.Stalled:
		return decision.Reason, decision.Reason.Code != plan.Drifted // that has an event of its own
	case plan.Wait:
		return decision.Reason, slices.Contains([]string{
			plan.PoolExhausted, plan.WaitingForCapacity, plan.VMIDRangeExhausted, plan.SecurityGroupMissing, plan.TaskFailedReason, plan.Locked,
			plan.Protected, plan.TemplateInUse, plan.HighAvailabilityFailed, plan.HostDown,
			plan.HighAvailabilityInvalid, plan.HighAvailabilityIgnored,
		}, decision.Reason.Code)
	case plan.Done:
		return decision.Reason, decision.Reason.Code == plan.HighAvailabilityFailed
	case plan.Do:
	}
	return plan.Reason{}, false
}

func reasonOf(machine *v1beta1.ProxmoxMachine, conditionType string) string {
	if condition := conditions.Get(machine, conditionType); condition != nil {
		return condition.Reason
	}
	return ""
}
