package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// world is as much of Kubernetes and Proxmox VE as a machine's life touches. It fails the test when an action touches what
// is not the machine's, and when there are ever two VMs of the machine.
type world struct {
	t *rapid.T
	// what Kubernetes holds
	spec         v1beta1.ProxmoxMachineSpec
	status       struct{ seedRemoved bool }
	task         plan.Task
	claims       int // 0: none, 1: made, 2: bound
	bootstrapped bool
	deleting     bool
	gone         bool
	// what Proxmox VE holds
	vms map[proxmox.VMID]*guest
	// seeds are the hosts that have the seed.
	seeds map[proxmox.NodeName]bool
	jobs  []*job
	// failing are the hosts where a clone failed, leave is why the machine's host is to be left.
	failing map[proxmox.NodeName]string
	leave   string
	lateUploads
	origin
	lateOrders
	// hampers is what keeps the VM from being worked on for now.
	hampers
	follows
	walls
	haTold
	// trouble says how many more faults there will be.
	trouble int
	// off is for how many more rounds the machine is asked to be off.
	off int
	// grown are the sizes that disks were grown to.
	grown map[string]proxmox.Bytes
	// drawn counts the identities and tasks so far.
	drawn int
}

// guest is a VM. It is in the making, locked and without its description, until its clone ends.
type guest struct {
	node                     proxmox.NodeName
	foreign, making, running bool
	config                   vmconfig.Config
	firewall                 firewall.State
	pool                     proxmox.PoolID
	// abandoned says that the machine went to another host than that of this VM of it, which was declared gone.
	abandoned bool
}

// job is a running task of Proxmox VE, which the machine may have forgotten or never learned of. Jobs end in the order they began.
type job struct {
	kind string
	// rounds is how long it still takes.
	rounds int
	apply  func() error
	undo   func()
	upid   proxmox.UPID
}

var (
	errNoReply = errors.New("no reply")
	errRefused = errors.New("refused")
)

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, spec: spec(), vms: map[proxmox.VMID]*guest{}, seeds: map[proxmox.NodeName]bool{}, failing: map[proxmox.NodeName]string{},
		lateUploads: lateUploads{landing: map[proxmox.NodeName]int{}}, origin: origin{makes: plan.Cloning},
		trouble: rapid.IntRange(0, 12).Draw(t, "trouble"),
	}
	for _, key := range []string{"scsi1", "virtio3"} {
		if rapid.Bool().Draw(t, "the VM has a disk "+key) {
			w.spec.Disks.Additional = append(w.spec.Disks.Additional, v1beta1.AdditionalDisk{Name: key, Storage: "local-lvm", SizeGiB: 5})
		}
	}
	w.sharedSeed = rapid.Bool().Draw(t, "the seed is on shared storage")
	w.drawWalls()
	w.drawHA()
	for id := range proxmox.VMID(5) {
		if rapid.Bool().Draw(t, fmt.Sprintf("VMID %d is taken", 101+id)) {
			w.vms[101+id] = stranger()
		}
	}
	return w
}

// stranger is somebody else's VM, cloned from the same template, which carries another machine's marks.
func stranger() *guest {
	return &guest{node: "pve1", foreign: true, running: true, config: vmconfig.Config{
		"description": vmconfig.Description("other", "11111111-2222-3333-4444-555555555555"), "scsi0": "local-lvm:vm-1-disk-0,size=3G",
	}}
}

// happens draws whether something goes wrong, while there is trouble left.
func (w *world) happens(what string) bool {
	if w.trouble == 0 || rapid.IntRange(0, 5).Draw(w.t, what) != 0 {
		return false
	}
	w.trouble--
	return true
}

func (w *world) observe() plan.Machine {
	m := plan.Machine{
		Name: "worker-1", Spec: w.spec, Deleting: w.deleting, ClusterReady: true, Bootstrapped: w.bootstrapped,
		SeedRemoved: w.status.seedRemoved, Addresses: w.addresses(), Task: w.task, Grown: maps.Clone(w.grown),
	}
	if m.Spec.ProviderID == "" {
		m.Bootstrap.UserData = "#cloud-config\n"
	}
	m.CloneTrouble.Leave = w.leave
	if w.happens("all slots are taken") {
		m.CloneSlot.Full = "2 VMs are being made on pve3 already: a, b"
	}
	m.Candidates = plan.Candidates{Hosts: []placement.Host{w.host("pve1"), w.host("pve2")}, FreeVMIDs: map[proxmox.RegionName]proxmox.VMID{"home": w.freeVMID()}}
	m.Unanswered = w.unanswered()
	m.Task.Age, m.HostGone = time.Duration(w.age)*5*time.Second, w.hostGone
	if w.spec.Reservation.UUID != "" {
		m.VM = w.look()
		w.seeWalls(&m)
		w.seeHA(&m)
		w.seeUpkeep(&m)
		m.SeedNode, m.SeedHost = w.seedHost()
		w.lookForSeed(&m)
		m.SeedStranded = !w.sharedSeed && m.VM.Presence == plan.PresenceOurs && string(m.VM.Node) != w.spec.Reservation.Node
		if w.isDown(proxmox.NodeName(w.spec.Reservation.Node)) {
			m.CloneTrouble = plan.CloneTrouble{Leave: "it is down", Unfit: true}
		}
	}
	return m
}

func (w *world) host(node proxmox.NodeName) placement.Host {
	host := host(node)
	host.CloneFailure, host.Online = w.failing[node], !w.isDown(node)
	return host
}

func (w *world) addresses() plan.Addresses {
	switch w.claims {
	case 0:
		return plan.Addresses{Absent: network.Claims("worker-1", "cluster", w.spec.Network)}
	case 1:
		return plan.Addresses{Pending: "the pool is slow", Remain: true}
	}
	return plan.Addresses{Remain: true, Bound: given()}
}

func (w *world) freeVMID() proxmox.VMID {
	id := proxmox.VMID(101)
	for w.vms[id] != nil {
		id++
	}
	return id
}

func (w *world) look() plan.VM {
	vm := w.vms[proxmox.VMID(w.spec.Reservation.VMID)]
	switch {
	case vm != nil && w.isDown(vm.node):
		return plan.VM{Why: whyUnknown, Node: vm.node, Host: plan.HostOffline}
	case w.task.State == plan.TaskRunning && !w.task.RemovesSeed():
		return plan.VM{} // nobody asks while a task holds it
	case w.happens("Proxmox VE does not answer"):
		return plan.VM{Why: whyUnknown}
	case vm == nil:
		return plan.VM{Presence: plan.PresenceAbsent}
	case vm.making:
		return plan.VM{Why: plan.Reason{Code: w.makes, Message: "it is being made"}}
	case !vm.config.BelongsTo(proxmox.SMBIOSUUID(w.spec.Reservation.UUID)):
		return plan.VM{Presence: plan.PresenceForeign, Node: vm.node}
	}
	found := plan.VM{Presence: plan.PresenceOurs, Node: vm.node, Power: plan.PowerStopped, Config: maps.Clone(vm.config)}
	if vm.running {
		found.Power = plan.PowerRunning
	}
	return found
}

// do executes an action. Like the real thing it may be refused, and it may be done without anybody learning of it.
func (w *world) do(action plan.Action) (err error) {
	defer func() { w.refused = err != nil }()
	if w.happens("the request is refused") || w.cannot(action) {
		return errRefused
	}
	job, err := w.request(action)
	if err != nil {
		return err
	}
	lost := w.happens("the reply is lost")
	if upload, is := action.(plan.UploadSeed); is && w.upload(upload, lost) {
		return errNoReply
	}
	if job != nil {
		w.drawn++
		job.upid, job.rounds = proxmox.UPID(fmt.Sprintf("UPID:%d", w.drawn)), rapid.IntRange(0, 2).Draw(w.t, "rounds of "+job.kind)
		w.jobs = append(w.jobs, job)
	}
	switch {
	case lost:
		w.lose(action)
		return errNoReply
	case job != nil:
		w.task, w.age = plan.Task{UPID: job.upid, Type: job.kind, State: plan.TaskRunning}, 0
	}
	return nil
}

// request has the effect of an action, or starts the job that will have it.
func (w *world) request(action plan.Action) (*job, error) {
	switch action := action.(type) {
	case plan.ClaimAddresses:
		w.claims = 1
	case plan.Reserve:
		w.reserve(action.Reservation)
		w.applied = action.Applied
	case plan.RecordFirewall:
		w.before = action.Before
	case plan.EditFirewall:
		return nil, w.editWalls(action)
	case plan.RecordHA:
		w.record = action.Record
	case plan.EditHA:
		return nil, w.editHA(action)
	case plan.Follow:
		w.follow(action)
	case plan.RecordProviderID:
		w.spec.ProviderID, w.applied = action.ProviderID, action.Applied
	case plan.MovePool:
		w.own(action.VM).pool = action.To
	case plan.RecordApplied:
		w.applied = action.Spec
	case plan.Reconfigure:
		return w.request(plan.Configure{VM: action.VM, Change: action.Change})
	case plan.ReleaseAddresses:
		w.claims = 0
	case plan.RemoveFinalizer:
		w.gone = true
	case plan.UploadSeed:
		return &job{kind: "imgcopy", apply: func() error { w.seeds[w.storedOn(action.VM.Node)] = true; return nil }}, nil
	case plan.DeleteSeed:
		return w.deleteSeed(action.VM.Node), nil
	case plan.WithdrawSeed:
		return w.deleteSeed(action.VM.Node), nil
	case plan.Clone:
		return w.clone(action)
	case plan.Create:
		return w.create(action)
	case plan.Configure:
		if action.Change.Allocates() {
			vm := w.own(action.VM)
			return &job{kind: "qmconfig", apply: func() error {
				if vm.config["lock"] != "" { // it came after the request
					return errRefused
				}
				return w.reconfigure(vm, action.Change)
			}}, nil
		}
		return nil, w.reconfigure(w.own(action.VM), action.Change)
	case plan.EjectSeed:
		return nil, w.reconfigure(w.own(action.VM), action.Change)
	case plan.Resize:
		vm := w.own(action.VM)
		return &job{kind: "resize", apply: func() error {
			if w.grown == nil {
				w.grown = map[string]proxmox.Bytes{}
			}
			w.grown[action.Disk] = action.Size
			if !w.happens("the config is not written") {
				vm.config[action.Disk] = fmt.Sprintf("local-lvm:vm-101-disk-0,size=%dG", action.Size/gib)
			}
			return nil
		}}, nil
	case plan.Start:
		return w.start(action.VM), nil
	case plan.Shutdown:
		return w.shutdown(action.VM), nil
	case plan.Stop:
		vm := w.own(action.VM)
		if w.ha {
			return w.askHA("hastop", func() { vm.running = false }), nil
		}
		return &job{kind: "qmstop", apply: func() error { vm.running = false; return nil }}, nil
	case plan.Destroy:
		return w.destroy(action.VM), nil
	case plan.SetEndpoint:
		w.t.Fatal("a machine sets no endpoint")
	}
	return nil, nil
}

func (w *world) reserve(r v1beta1.Reservation) {
	if before := w.spec.Reservation.UUID; before != "" && r.UUID != before {
		w.t.Fatalf("the identity %s was changed to %q", before, r.UUID)
	}
	if r.UUID == "" {
		w.drawn++
		r.UUID = fmt.Sprintf("8d1ab5f6-59f1-4a3e-9a0b-%012d", w.drawn)
	}
	w.abandon()
	if before := w.spec.Reservation; before.Node != "" && before.Node != r.Node {
		w.left(proxmox.NodeName(before.Node))
	}
	w.spec.Reservation, w.task, w.grown, w.leave = r, plan.Task{}, nil, ""
}

// own returns the VM that an action is for. Whatever is not the machine's, or is still in the making, may not be touched.
func (w *world) own(ref plan.VirtualMachine) *guest {
	vm := w.vms[ref.ID]
	if vm == nil || vm.foreign || vm.making || ref.UUID == "" || !vm.config.BelongsTo(ref.UUID) {
		w.t.Fatalf("touched VM %d, which is %+v", ref.ID, vm)
	}
	if vm.config["lock"] != "" || w.deleting && vm.config["protection"] != "" {
		w.t.Fatalf("touched VM %d, which is %+v", ref.ID, vm)
	}
	return vm
}

// clone makes a VM that is locked until the job ends. Proxmox VE takes a failed one away again.
func (w *world) clone(action plan.Clone) (*job, error) {
	if w.vms[action.VM.ID] != nil {
		return nil, errRefused
	}
	if !w.spec.Source.UsesTemplate() {
		w.t.Fatal("cloned a VM that has no template")
	}
	vm := &guest{node: action.VM.Node, making: true, pool: action.Pool}
	w.vms[action.VM.ID] = vm
	return &job{kind: "qmclone", undo: func() { delete(w.vms, action.VM.ID) }, apply: func() error {
		vm.making, vm.firewall, vm.config = false, w.template, vmconfig.Config{
			"description": action.Description, "name": action.Name, "scsi0": "local-lvm:vm-101-disk-0,size=3G", "boot": "order=scsi0",
			"smbios1": "uuid=966d3531-69bb-4cf7-889f-f8f652492abb", "net0": "virtio=BC:24:11:1B:F6:2C,bridge=vmbr0",
			"ide2": "local:101/vm-101-cloudinit.qcow2,media=cdrom,size=4M", "tags": "base",
		}
		return nil
	}}, nil
}

// reconfigure changes a config as Proxmox VE does: it refuses an image that does not exist, and notes the image's size.
func (w *world) reconfigure(vm *guest, change vmconfig.Change) error {
	after := change.Apply(vm.config)
	if vmconfig.HasSeed(after) && !w.reachesSeed(vm) {
		return errRefused
	}
	vm.config = w.kept(after)
	return nil
}

// kept is a config as Proxmox VE keeps it: with the volumes that it made, and sizes.
func (w *world) kept(config vmconfig.Config) vmconfig.Config {
	for key, value := range config {
		switch value {
		case string(vmconfig.SeedVolume("local", proxmox.SMBIOSUUID(w.spec.Reservation.UUID))) + ",media=cdrom":
			config[key] = value + ",size=40K"
		case "local-lvm:5", "local-lvm:20":
			config[key] = "local-lvm:vm-101-" + key + ",size=" + strings.TrimPrefix(value, "local-lvm:") + "G"
		case "local-lvm:0,import-from=" + debian:
			config[key] = "local-lvm:vm-101-" + key + ",size=3G"
		}
	}
	return config
}

func (w *world) start(ref plan.VirtualMachine) *job {
	vm := w.own(ref)
	if w.spec.ProviderID == "" && (!vmconfig.HasSeed(vm.config) || !w.reachesSeed(vm)) {
		w.t.Fatal("started a VM for the first time without its seed")
	}
	if !w.wallsStand(vm) {
		w.t.Fatalf("started a VM without its firewall: %+v", vm.firewall)
	}
	if w.ha {
		return w.askHA("hastart", func() { vm.running = w.findsDrives(vm) }) // it may have been moved since
	}
	return &job{kind: "qmstart", apply: func() error {
		if vm.running {
			return errors.New("VM 101 already running")
		}
		if !w.findsDrives(vm) {
			return errRefused
		}
		vm.running = true
		return nil
	}}
}

func (w *world) shutdown(ref plan.VirtualMachine) *job {
	vm := w.own(ref)
	if w.off == 0 || w.spec.ProviderID == "" {
		w.t.Fatal("shut down a VM that is to run, or that is not known to have run")
	}
	return &job{kind: "qmshutdown", apply: func() error { vm.running = false; return nil }}
}

// wish has the machine be off for some rounds, or lets it run again.
func (w *world) wish() {
	switch {
	case w.off > 1:
		w.off--
	case w.off == 1:
		w.off, w.spec.PowerState = 0, v1beta1.PowerStateRunning
	case w.happens("the machine is to be off"):
		w.off, w.spec.PowerState = rapid.IntRange(1, 20).Draw(w.t, "rounds to be off"), v1beta1.PowerStateStopped
	}
}

func (w *world) destroy(ref plan.VirtualMachine) *job {
	vm := w.own(ref)
	return &job{kind: "qmdestroy", apply: func() error {
		switch {
		case vm.running:
			return errors.New("VM 101 is running - destroy failed")
		case w.vms[ref.ID] != nil && w.vms[ref.ID] != vm:
			w.t.Fatalf("destroyed another's VM %d", ref.ID)
		case w.vms[ref.ID] != vm:
			return errors.New("Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist")
		}
		delete(w.vms, ref.ID)
		return nil
	}}
}

// findsDrives reports whether all that the VM's drives name is where it is: it does not start otherwise.
func (w *world) findsDrives(vm *guest) bool { return !vmconfig.HasSeed(vm.config) || w.reachesSeed(vm) }

// reachesSeed reports whether the seed is where a VM is.
func (w *world) reachesSeed(vm *guest) bool { return w.seeds[w.storedOn(vm.node)] }

// follow moves the reservation to where the VM is.
func (w *world) follow(action plan.Follow) {
	before := proxmox.NodeName(w.spec.Reservation.Node)
	if w.isDown(before) && w.hostGone == before {
		delete(w.seeds, before)
		delete(w.landing, before)
	}
	if w.seeds[w.storedOn(before)] || before == action.Node {
		w.t.Fatalf("left %s for %s with the seed there", before, action.Node)
	}
	w.spec.Reservation.Node, w.task = string(action.Node), plan.Task{}
}

// move has somebody move a VM that has not run yet to another host.
func (w *world) move(vm *guest) {
	if vm.node = "pve2"; w.spec.Reservation.Node == "pve2" {
		vm.node = "pve1"
	}
}

// hasSeed reports whether the seed is where the VM is made.
func (w *world) hasSeed() bool { return w.seeds[w.storedOn(proxmox.NodeName(w.spec.Reservation.Node))] }

func (w *world) deleteSeed(node proxmox.NodeName) *job {
	for id, vm := range w.vms {
		if vmconfig.HasSeed(vm.config) && !w.isDown(vm.node) && !vm.abandoned && w.storedOn(vm.node) == w.storedOn(node) {
			w.t.Fatalf("deleted the seed while VM %d has it in a drive", id)
		}
	}
	return &job{kind: "imgdel", apply: func() error { delete(w.seeds, w.storedOn(node)); return nil }}
}

// pass lets time go by: jobs end, pools answer, nodes join, and things happen behind the machine's back.
func (w *world) pass() {
	w.task.RetryAfter = 0
	w.landUploads()
	w.ordered = max(w.ordered-1, 0)
	for len(w.jobs) > 0 && w.jobs[0].rounds == 0 {
		w.end(w.jobs[0])
		w.jobs = w.jobs[1:]
	}
	if len(w.jobs) > 0 {
		w.jobs[0].rounds--
	}
	if w.claims == 1 {
		w.claims = 2
	}
	w.groupless = max(w.groupless-1, 0)
	w.wish()
	reserved := w.vms[proxmox.VMID(w.spec.Reservation.VMID)]
	if reserved != nil && reserved.running && w.spec.ProviderID != "" {
		w.bootstrapped = true
	}
	if w.happens("the status is wiped") {
		w.task, w.status.seedRemoved, w.grown, w.leave = plan.Task{}, false, nil, ""
		w.ordered, w.order = lateRounds, plan.DestroyUnanswered
		w.uploaded, w.doubt, w.unsure, w.several = true, lateRounds, true, true // by a new process that is not told of anything
	}
	switch id := proxmox.VMID(w.spec.Reservation.VMID); {
	case reserved == nil && id != 0 && w.deleting && w.happens("somebody else takes the VMID that came free"):
		w.vms[id] = stranger()
	case reserved == nil && id != 0 && w.spec.ProviderID == "" && w.happens("somebody else takes the VMID"):
		w.vms[id] = stranger()
	case reserved != nil && !reserved.foreign && reserved.running && w.happens("somebody stops the VM"):
		reserved.running = false
	}
	w.sayAnew(reserved)
	w.hamper(reserved)
	w.check()
}

func (w *world) end(job *job) {
	var err error
	if w.happens(job.kind + " fails") {
		if err = errRefused; job.undo != nil {
			job.undo()
		}
		if plan.MakesVM(job.kind) && rapid.Bool().Draw(w.t, "the host is the cause") {
			w.leave = "its storage is full"
			w.failing[proxmox.NodeName(w.spec.Reservation.Node)] = "a VM could not be made here"
		}
	} else {
		err = job.apply()
	}
	if job.upid != w.task.UPID {
		return
	}
	w.task.State = plan.TaskSucceeded
	if err != nil {
		w.task.State, w.task.Failure, w.task.RetryAfter = plan.TaskFailed, err.Error(), time.Second
	}
}

func (w *world) ours() []*guest {
	var ours []*guest
	for _, vm := range w.vms {
		if !vm.foreign && !vm.abandoned {
			ours = append(ours, vm)
		}
	}
	return ours
}

func (w *world) check() {
	if ours := w.ours(); len(ours) > 1 {
		w.t.Fatalf("the machine has %d VMs", len(ours))
	}
}
