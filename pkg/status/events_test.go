package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// after is a machine as a pass leaves it.
func after(t *testing.T, machine *v1beta1.ProxmoxMachine, pass status.MachinePass) *v1beta1.ProxmoxMachine {
	t.Helper()
	if err := status.Machine(machine, pass); err != nil {
		t.Fatal(err)
	}
	return machine
}

// tellings puts events in lines.
func tellings(events []status.Event) []string {
	var lines []string
	for _, event := range events {
		kind := "Normal "
		if event.Warning {
			kind = "Warning "
		}
		lines = append(lines, kind+event.Code+": "+event.Message)
	}
	return lines
}

var (
	running     = status.MachinePass{Observed: sees(runningVM), Decision: done}
	poweredOff  = plan.Done{Reason: plan.Reason{Code: plan.PoweredOff, Message: "VM 101 is off"}}
	foreignVM   = plan.VM{Presence: plan.PresenceForeign, Node: "pve2"}
	gone        = plan.Stalled{Reason: plan.Reason{Code: plan.VirtualMachineGone, Message: "VM 101 is gone"}}
	start       = plan.Do{Action: plan.Start{}, Reason: plan.Reason{Code: plan.Starting, Message: "starting VM 101"}}
	farewell    = plan.Do{Action: plan.RemoveFinalizer{}, Reason: plan.Reason{Code: plan.Deleted, Message: "all is gone"}}
	elsewhere   = plan.Do{Action: plan.Reserve{Reservation: v1beta1.Reservation{UUID: uuid, Region: "home", Node: "pve1", VMID: 102}}, Reason: plan.Reason{Code: plan.Placed, Message: "placed on pve1 of region home as VM 102"}}
	noCapacity  = status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.WaitingForCapacity, "1 host refused")}
	noAddress   = status.MachinePass{Observed: plan.Machine{Addresses: plan.Addresses{Pending: "no free address", Exhausted: true}}, Decision: wait(plan.PoolExhausted, "no free address")}
	cloning     = status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.Cloning, "cloning the template")}
	starting    = status.MachinePass{Observed: sees(stoppedVM), Decision: wait(plan.Starting, "starting the VM")}
	movedAway   = status.MachinePass{Observed: sees(plan.VM{Presence: plan.PresenceOurs, Node: "pve2", Power: plan.PowerRunning}), Decision: done}
	unseen      = status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.Unobserved, "region home does not answer")}
	notAllowed  = plan.Reason{Code: "Forbidden", Message: "VM.Config.CDROM is missing"}
	unwatched   = status.MachinePass{Observed: sees(runningVM), Decision: plan.Done{Reason: plan.Reason{Code: plan.HighAvailabilityFailed, Message: "the HA manager gave up"}}}
	backedUp    = status.MachinePass{Observed: sees(runningVM), Decision: wait(plan.Locked, "VM 101 is locked (backup)")}
	whileItRuns = status.MachinePass{Observed: plan.Machine{Name: "worker-1", Spec: dual(network.IPv4), Addresses: bound("10.0.0.5/24"), VM: runningVM, Bootstrapped: true}, Failure: notAllowed}
)

// relocated is a step to another host, under another VMID.
func relocated(left string) plan.Do {
	return plan.Do{
		Action: plan.Reserve{Reservation: v1beta1.Reservation{UUID: uuid, Region: "home", Node: "pve2", VMID: 102}, Abandoned: left},
		Reason: plan.Reason{Code: plan.Placed, Message: "placed on pve2"},
	}
}

func drifted(name string) status.MachinePass {
	vm := runningVM
	vm.Listing = &plan.Listing{Running: true, Name: name, Tags: []string{vmconfig.IdentityTag(uuid)}}
	pass := status.MachinePass{Observed: sees(vm), Decision: done}
	pass.Observed.Name, pass.Observed.Spec = "worker-1", proxmoxMachine(recorded).Spec
	return pass
}

func reconfigured(repairs bool) status.MachinePass {
	pass := looked("worker-1")
	pass.Done = []plan.Do{{Action: plan.Reconfigure{Change: vmconfig.Change{Set: map[string]string{"cores": "2"}, Delete: []string{"hostpci0"}}, Repairs: repairs}}}
	return pass
}

func waiting() status.MachinePass {
	pass := looked("worker-1")
	pass.Observed.Upkeep.Live.Waiting = []string{"name"}
	return pass
}

// looked is drifted after a look at the VM's config.
func looked(name string) status.MachinePass {
	pass := drifted(name)
	spec := pass.Observed.Spec
	config := vmconfig.Desired{UUID: uuid, Machine: name, Spec: spec}.Encode()
	pass.Observed.Upkeep = plan.Upkeep{Applied: vmconfig.WriteApplied(spec), Live: &plan.Live{Config: config}}
	return pass
}

func TestWhatHappenedInAPassIsTold(t *testing.T) {
	cases := []struct {
		name    string
		machine *v1beta1.ProxmoxMachine
		// first is the pass before; none for a machine without a status.
		first, pass status.MachinePass
		want        []string
	}{
		{"the VM was cloned", proxmoxMachine(reserved), cloning, starting, []string{"Normal Cloned: cloned template 0 of  to VM 101 on pve1"}},
		{"the VM runs", proxmoxMachine(recorded), starting, running, []string{"Normal Started: VM 101 runs on pve1"}},
		{"nothing", proxmoxMachine(recorded), running, running, nil},
		{"the VM cannot be seen for a while", proxmoxMachine(recorded), running, unseen, nil},
		{"the VM is seen again", proxmoxMachine(recorded), unseen, running, nil},
		{"the VM moved", proxmoxMachine(recorded), running, movedAway, []string{"Normal Migrated: VM 101 moved from pve1 to pve2"}},
		{
			"the VM was stopped", proxmoxMachine(recorded), running,
			status.MachinePass{Observed: sees(stoppedVM), Decision: start, Done: []plan.Do{start}},
			[]string{"Warning StoppedOutside: VM 101 on pve1 was stopped outside of Cluster API and is started again: set spec.powerState to Stopped to have it stay off"},
		},
		{"the VM was shut down", proxmoxMachine(recorded), running, status.MachinePass{Observed: sees(stoppedVM), Decision: poweredOff}, []string{"Normal PoweredOff: VM 101 on pve1 is off, as spec.powerState asks"}},
		{
			"the VM is started after it was shut down", proxmoxMachine(recorded),
			status.MachinePass{Observed: sees(stoppedVM), Decision: poweredOff},
			status.MachinePass{Observed: sees(stoppedVM), Decision: start, Done: []plan.Do{start}},
			nil,
		},
		{"the VM was removed", proxmoxMachine(recorded), running, status.MachinePass{Observed: sees(absentVM), Decision: gone}, []string{"Warning VirtualMachineGone: VM 101 is gone"}},
		{
			"the VM's number is another's", proxmoxMachine(recorded), running,
			status.MachinePass{Observed: sees(foreignVM), Decision: gone},
			[]string{"Warning VirtualMachineGone: VM 101 is gone", "Warning Refused: VM 101 of region home is not this machine's and is left alone"},
		},
		{
			"the number was taken", proxmoxMachine(reserved), cloning,
			status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.UploadingSeed, ""), Done: []plan.Do{elsewhere}},
			[]string{"Warning Refused: VM 101 of region home is not this machine's and is left alone", "Normal Placed: placed on pve1 of region home as VM 102"},
		},
		{
			"the machine goes to another host", proxmoxMachine(reserved), cloning,
			status.MachinePass{Observed: sees(absentVM), Decision: wait(plan.UploadingSeed, ""), Done: []plan.Do{relocated("")}},
			[]string{"Normal Placed: placed on pve2"},
		},
		{
			"the machine goes without what is on its host", proxmoxMachine(reserved), cloning,
			status.MachinePass{Observed: sees(absentVM), Decision: wait(plan.UploadingSeed, ""), Done: []plan.Do{relocated("its seed is left")}},
			[]string{"Warning Abandoned: its seed is left", "Normal Placed: placed on pve2"},
		},
		{"the machine is gone", proxmoxMachine(reserved, leaving), running, status.MachinePass{Observed: sees(absentVM), Decision: farewell, Done: []plan.Do{farewell}}, []string{"Normal Deleted: all is gone"}},
		{
			"the machine is gone and another's VM stays", proxmoxMachine(reserved, leaving), running,
			status.MachinePass{Observed: sees(foreignVM), Decision: farewell, Done: []plan.Do{farewell}},
			[]string{"Warning Refused: VM 101 of region home is not this machine's and is left alone", "Normal Deleted: all is gone"},
		},
		{"there is no room", proxmoxMachine(), cloning, noCapacity, []string{"Warning WaitingForCapacity: 1 host refused"}},
		{"there is still no room", proxmoxMachine(), noCapacity, noCapacity, nil},
		{"there is no free address", proxmoxMachine(), cloning, noAddress, []string{"Warning PoolExhausted: no free address"}},
		{"there is still no free address", proxmoxMachine(), noAddress, noAddress, nil},
		{"something is refused while the VM runs", proxmoxMachine(recorded), running, whileItRuns, []string{"Warning Forbidden: VM.Config.CDROM is missing"}},
		{"something is still refused while the VM runs", proxmoxMachine(recorded), whileItRuns, whileItRuns, nil},
		{
			"somebody changed the VM", proxmoxMachine(recorded), running, drifted("pet"),
			[]string{"Warning Drifted: VM 101 on pve1 was changed outside of Cluster API (wanted → is): name: worker-1 → pet. Change it back in Proxmox VE or have that done by spec.driftPolicy Repair, have the spec say what it is, or roll the machine"},
		},
		{"the VM is as changed as before", proxmoxMachine(recorded), drifted("pet"), drifted("pet"), nil},
		{"somebody changed it back", proxmoxMachine(recorded), drifted("pet"), looked("worker-1"), nil},
		{"the VM follows its spec", proxmoxMachine(recorded), running, reconfigured(false), []string{"Normal Reconfigured: changed cores, hostpci0 of VM 101 on pve1 as the spec says"}},
		{"the VM is changed back", proxmoxMachine(recorded), running, reconfigured(true), []string{"Warning Repaired: somebody changed VM 101 on pve1, and cores, hostpci0 is changed back to what the spec says, since spec.driftPolicy is Repair"}},
		{"keys wait for a restart", proxmoxMachine(recorded), running, waiting(), []string{"Normal RestartRequired: VM 101 on pve1 has to be restarted for name to take effect: shut it down and start it, by spec.powerState or in Proxmox VE, or reboot it there, when it suits. A reboot from inside the guest does not do, and nothing restarts it by itself"}},
		{"they still do", proxmoxMachine(recorded), waiting(), waiting(), nil},
		{"the HA manager gave up on the VM", proxmoxMachine(recorded), running, unwatched, []string{"Warning HighAvailabilityFailed: the HA manager gave up"}},
		{"it still does not look after it", proxmoxMachine(recorded), unwatched, unwatched, nil},
		{"a backup keeps what is to be done from the VM", proxmoxMachine(recorded), running, backedUp, []string{"Warning Locked: VM 101 is locked (backup)"}},
		{"it still does", proxmoxMachine(recorded), backedUp, backedUp, nil},
		{"it looks after it again", proxmoxMachine(recorded), unwatched, running, nil},
		{"the status was lost", proxmoxMachine(recorded), status.MachinePass{}, running, []string{"Normal Adopted: found VM 101 on pve1, which carries this machine's identity"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := c.machine
			if c.first.Decision != nil || c.first.Failure.Code != "" {
				before = after(t, before, c.first)
			}
			events := status.MachineEvents(before, after(t, before.DeepCopy(), c.pass), c.pass)
			if diff := cmp.Diff(c.want, tellings(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheConfigurationIsToldButNotPartOfReady(t *testing.T) {
	machine := after(t, proxmoxMachine(recorded), drifted("pet"))
	conditions := told(machine.Status.Conditions)
	if conditions[clusterv1.ReadyCondition] != ready {
		t.Errorf("Ready: %s", conditions[clusterv1.ReadyCondition])
	}
	want := "False Drifted: VM 101 on pve1 was changed outside of Cluster API (wanted → is): name: worker-1 → pet. Change it back in Proxmox VE or have that done by spec.driftPolicy Repair, have the spec say what it is, or roll the machine"
	if diff := cmp.Diff(want, conditions[v1beta1.ConfigurationUpToDateCondition]); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	after(t, machine, starting) // what cannot be compared stays as it was
	if diff := cmp.Diff(want, told(machine.Status.Conditions)[v1beta1.ConfigurationUpToDateCondition]); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	after(t, machine, drifted("worker-1")) // the inventory does not show all that a look at the config does
	if diff := cmp.Diff(want, told(machine.Status.Conditions)[v1beta1.ConfigurationUpToDateCondition]); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	after(t, machine, looked("worker-1"))
	if got := told(machine.Status.Conditions)[v1beta1.ConfigurationUpToDateCondition]; got != "True UpToDate" {
		t.Errorf("changed back: %s", got)
	}
}
