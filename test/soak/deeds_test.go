package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// deed is something that people or machines do while the controllers work.
type deed struct {
	name   string
	weight int
	do     func()
}

func (s *simulation) deeds() []deed {
	return []deed{
		{"create", 10, s.create},
		{"scale up", 3, func() { s.create(); s.create(); s.create() }},
		{"delete", 8, s.deleteOne},
		{"replace", 3, func() { s.deleteOne(); s.create() }},
		{"crash", 4, s.crashNow},
		{"wipe a status", 4, s.wipeStatus},
		{"restore a backup", 1, s.restoreBackup},
		{"rotate the token", 2, s.rotate},
		{"admin: kill QEMU", 3, s.onVM(func(vm pvesim.VM) { s.world.Kill(vm.VMID) })},
		{"admin: stop", 3, s.onVM(func(vm pvesim.VM) { s.admin("POST", vmPath(vm)+"/status/stop", nil) })},
		{"admin: start", 2, s.onVM(func(vm pvesim.VM) { s.admin("POST", vmPath(vm)+"/status/start", nil) })},
		{"admin: delete the VM", 3, s.onVM(s.destroy)},
		{"admin: edit the VM", 4, s.onVM(s.unmark)},
		{"admin: protect", 2, s.onVM(func(vm pvesim.VM) { s.admin("PUT", vmPath(vm)+"/config", url.Values{"protection": {"1"}}) })},
		{"admin: snapshot", 2, s.onVM(s.snapshot)},
		{"admin: hold the lock", 2, s.onVM(s.holdLock)},
		{"admin: HA", 2, s.onVM(func(vm pvesim.VM) {
			s.admin("POST", "/cluster/ha/resources", url.Values{"sid": {fmt.Sprintf("vm:%d", vm.VMID)}, "state": {"started"}})
		})},
		{"admin: migrate", 5, s.onVM(s.migrate)},
		{"admin: take a VMID", 3, s.thief},
		{"a worker dies", 3, s.killWorker},
		{"a host goes down", 3, s.onNode(s.world.StopNode, s.world.StartNode)},
		{"a host is cut off", 2, s.onNode(s.world.CutLink, s.world.MendLink)},
		{"quorum is lost", 1, func() {
			s.onNode(s.world.StopNode, s.world.StartNode)()
			s.onNode(s.world.StopNode, s.world.StartNode)()
		}},
		{"an endpoint is lost", 3, s.onNode(func(n proxmox.NodeName) { s.lost[n] = true }, func(n proxmox.NodeName) { delete(s.lost, n) })},
		{"a daemon freezes", 3, s.freeze},
		{"a daemon stops", 2, s.onDaemon(s.world.StopDaemon, s.world.StartDaemon)},
	}
}

// act does one deed, drawn.
func (s *simulation) act() {
	deeds := s.deeds()
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	drawn := s.random.IntN(total)
	for _, d := range deeds {
		if drawn -= d.weight; drawn < 0 {
			s.note(d)
			s.trace.add("deed", "%s", d.name)
			d.do()
			s.settle()
			s.watchIdentities()
			return
		}
	}
}

// note counts a deed.
func (s *simulation) note(d deed) {
	if slices.Contains([]string{"create", "scale up", "delete", "replace"}, d.name) {
		s.figures.wishes[d.name]++
		return
	}
	s.figures.deeds[d.name]++
	s.trouble()
}

// create makes a Machine, now and then one with the name of one that is gone.
func (s *simulation) create() {
	const most = 12
	if len(s.living()) >= most {
		return
	}
	for _, m := range s.sortedMachines() {
		if m.gone && s.random.IntN(3) == 0 {
			s.addMachine(m.name)
			return
		}
	}
	s.created++
	s.addMachine(fmt.Sprintf("m%d", s.created))
}

func (s *simulation) deleteOne() {
	if living := s.living(); len(living) > 0 {
		m := living[s.random.IntN(len(living))]
		s.trace.add("user", "deletes Machine %s", m.name)
		m.deleted = true
		s.soonSync()
	}
}

func (s *simulation) crashNow() {
	if s.manager != nil {
		s.crash()
	}
}

func (s *simulation) wipeStatus() {
	machines := all[*v1beta1.ProxmoxMachine](s.api)
	if len(machines) == 0 {
		return
	}
	if machine, found := find[*v1beta1.ProxmoxMachine](s.api, machines[s.random.IntN(len(machines))].Name); found {
		s.trace.add("user", "wipes the status of %s", machine.Name)
		machine.Status = v1beta1.ProxmoxMachineStatus{}
		s.must(s.api.updateStatus(machine))
	}
}

func (s *simulation) restoreBackup() {
	if s.manager == nil {
		return
	}
	s.crash()
	s.restore()
}

// rotate gives the controllers a new token; the old one ends a while later.
func (s *simulation) rotate() {
	old := s.token
	s.newToken()
	if secret, found := find[*corev1.Secret](s.api, credentialsName); found {
		secret.Data = s.credentials()
		s.must(s.api.update(secret))
	}
	user, name, _ := strings.Cut(old.ID, "!")
	s.after(s.upTo(time.Minute), func() { s.trouble(); s.admin("DELETE", "/access/users/"+user+"/token/"+name, nil) })
}

func (s *simulation) newToken() {
	s.tokens++
	s.token = s.world.AddToken(pvesim.TokenSpec{User: "capve@pve", Name: fmt.Sprintf("t%d", s.tokens), Unseparated: true, Privileges: map[string][]string{"/": privileges()}})
	s.keepSecret(string(s.token.Secret))
}

func (s *simulation) credentials() map[string][]byte {
	return map[string][]byte{"tokenID": []byte(s.token.ID), "tokenSecret": []byte(s.token.Secret)}
}

// onVM does something to the VM of a machine.
func (s *simulation) onVM(do func(pvesim.VM)) func() {
	return func() {
		var ours []pvesim.VM
		for _, vm := range s.world.VMs() {
			if s.ownerOf(vm) != nil {
				ours = append(ours, vm)
			}
		}
		if len(ours) > 0 {
			vm := ours[s.random.IntN(len(ours))]
			s.trace.add("admin", "VM %d of %s on %s", vm.VMID, s.ownerOf(vm).name, vm.Node)
			do(vm)
		}
	}
}

func vmPath(vm pvesim.VM) string { return fmt.Sprintf("/nodes/%s/qemu/%d", vm.Node, vm.VMID) }

// destroy deletes a VM behind the controllers' back.
func (s *simulation) destroy(vm pvesim.VM) {
	s.admin("POST", vmPath(vm)+"/status/stop", nil)
	s.after(s.upTo(6*time.Second), func() {
		if now, there := s.world.VM(vm.VMID); there && s.ownerOf(now) != nil && s.ownerOf(now) == s.ownerOf(vm) {
			s.ownerOf(now).destroyed = true
			s.admin("DELETE", vmPath(now), url.Values{"purge": {"1"}})
		}
	})
}

// unmark takes away some of what marks a configured VM; its SMBIOS UUID stays.
func (s *simulation) unmark(vm pvesim.VM) {
	owner := s.ownerOf(vm)
	if vmconfig.Config(vm.Config).SMBIOSUUID() != proxmox.SMBIOSUUID(owner.uuid) {
		return
	}
	changes := []url.Values{{"delete": {"tags"}}, {"description": {"mine"}}, {"net0": {"virtio,bridge=vmbr0"}}, {"tags": {"mine"}, "delete": {"description"}}, {"name": {"other"}}}
	s.admin("PUT", vmPath(vm)+"/config", changes[s.random.IntN(len(changes))])
}

func (s *simulation) snapshot(vm pvesim.VM) {
	s.admin("POST", vmPath(vm)+"/snapshot", url.Values{"snapname": {fmt.Sprintf("s%d", s.random.IntN(1000))}})
}

// holdLock is another process that works on the VM.
func (s *simulation) holdLock(vm pvesim.VM) {
	release := s.world.HoldLock(vm.VMID)
	s.undoLater(release)
}

// migrate leaves out clones that are not configured yet: their seed is on the node that they were made on.
func (s *simulation) migrate(vm pvesim.VM) {
	node, found := s.anyNode()
	if !found || vmconfig.Config(vm.Config).SMBIOSUUID() != proxmox.SMBIOSUUID(s.ownerOf(vm).uuid) {
		return
	}
	form := url.Values{"target": {string(node)}, "with-local-disks": {"1"}}
	if vm.Status == "running" {
		form.Set("online", "1")
	}
	s.admin("POST", vmPath(vm)+"/migrate", form)
}

// thief takes a VMID that is reserved and has no VM yet.
func (s *simulation) thief() {
	for _, object := range all[*v1beta1.ProxmoxMachine](s.api) {
		id := proxmox.VMID(object.Spec.Reservation.VMID)
		if _, there := s.world.VM(id); id != 0 && !there && object.Spec.ProviderID == "" {
			s.trace.add("admin", "takes VMID %d of %s", id, object.Name)
			s.addSentinel(pvesim.VMSpec{VMID: id, Node: proxmox.NodeName(object.Spec.Reservation.Node), Config: map[string]string{"name": "thief", "memory": "64"}})
			return
		}
	}
}

// killWorker has the process of the last task die, if it still runs.
func (s *simulation) killWorker() {
	if s.lastTask != "" {
		s.trace.add("admin", "kills the worker of %s", s.lastTask)
		s.world.KillWorker(s.lastTask)
	}
}

func (s *simulation) anyNode() (proxmox.NodeName, bool) {
	return proxmox.NodeName(fmt.Sprintf("pve%d", 1+s.random.IntN(s.setting.nodes))), true
}

func (s *simulation) onNode(do, undo func(proxmox.NodeName)) func() {
	return func() {
		if node, found := s.anyNode(); found {
			s.trace.add("admin", "node %s", node)
			do(node)
			s.undoLater(func() { undo(node) })
		}
	}
}

func (s *simulation) onDaemon(do, undo func(proxmox.NodeName, pvesim.Daemon)) func() {
	daemon := []pvesim.Daemon{pvesim.PVEProxy, pvesim.PVEDaemon, pvesim.PVEStatD}[s.random.IntN(3)]
	return s.onNode(func(n proxmox.NodeName) { s.trace.add("admin", "%s", daemon); do(n, daemon) }, func(n proxmox.NodeName) { undo(n, daemon) })
}

// freeze leaves pveproxy out: an upload that it holds lands after the machine's deletion has seen to its seed.
func (s *simulation) freeze() {
	daemon := []pvesim.Daemon{pvesim.PVEDaemon, pvesim.PVEStatD}[s.random.IntN(2)]
	s.onNode(func(n proxmox.NodeName) { s.world.FreezeDaemon(n, daemon) }, func(n proxmox.NodeName) { s.world.ThawDaemon(n, daemon) })()
}

// undoLater undoes something after a while, or when the run is to calm down.
func (s *simulation) undoLater(undo func()) {
	done := false
	s.unmended++
	once := func() {
		if !done {
			done = true
			s.unmended--
			s.trouble()
			s.trace.add("admin", "undoes")
			undo()
		}
	}
	s.heal = append(s.heal, once)
	s.after(s.upTo(4*time.Minute), once)
}

// admin sends a request as an administrator, past the gate.
func (s *simulation) admin(method, path string, form url.Values) {
	target := "https://pve/api2/json" + path
	var body io.Reader
	if method == http.MethodDelete {
		target += "?" + form.Encode()
	} else {
		body = strings.NewReader(form.Encode())
	}
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		cancel()
		s.must(err)
		return
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.login(request)
	node, _ := s.anyNode()
	go func() {
		defer cancel()
		answer, err := s.world.Transport(node).RoundTrip(request)
		s.gate.leave(&ticket{kind: pveReply, label: fmt.Sprintf("admin %s %s %s → %s", method, path, form.Encode(), told(answer, err))})
	}()
}

// login makes a request root's own: some things a token may not do.
func (s *simulation) login(request *http.Request) {
	if time.Since(s.ticketAt) > time.Hour || s.ticket == "" {
		form := url.Values{"username": {"root@pam"}, "password": {rootPassword}}
		ask, err := http.NewRequestWithContext(s.ctx, http.MethodPost, "https://pve/api2/json/access/ticket", strings.NewReader(form.Encode()))
		s.must(err)
		ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for n := range s.setting.nodes {
			answer, err := s.world.Transport(proxmox.NodeName(fmt.Sprintf("pve%d", n+1))).RoundTrip(ask.Clone(s.ctx))
			if err != nil {
				continue
			}
			var given struct {
				Data struct{ Ticket, CSRFPreventionToken string }
			}
			body, err := read(answer.Body)
			if err == nil && json.Unmarshal(body, &given) == nil && given.Data.Ticket != "" {
				s.ticket, s.csrf, s.ticketAt = given.Data.Ticket, given.Data.CSRFPreventionToken, time.Now()
				break
			}
		}
	}
	request.Header.Set("Cookie", "PVEAuthCookie="+url.PathEscape(s.ticket))
	request.Header.Set("CSRFPreventionToken", s.csrf)
}

// rootPassword is that of root@pam.
const rootPassword = "correct horse"

// furnish makes what is there before the first machine.
func (s *simulation) furnish() error {
	s.world.AddUser(pvesim.UserSpec{ID: "root@pam", Password: rootPassword})
	first, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "https://pve/", http.NoBody)
	if err != nil {
		return err
	}
	s.login(first)
	s.newToken()
	other := "0f0e0d0c-0b0a-4908-8706-050403020100"
	for _, sentinel := range []pvesim.VMSpec{
		{VMID: 101, Config: map[string]string{"name": "m1", "memory": "512", "description": vmconfig.Description("m1", proxmox.SMBIOSUUID(other)), "tags": vmconfig.IdentityTag(proxmox.SMBIOSUUID(other)), "scsi0": "local-lvm:vm-101-disk-0,size=4G"}},
		{VMID: 103, State: "running", Config: map[string]string{"name": "m2", "memory": "512", "description": "CAPVE-UUID:", "tags": "capve-"}},
		{VMID: 104, Config: map[string]string{"name": "m3", "memory": "512", "description": "Cluster API machine m3, managed by CAPVE.", "scsi0": "shared:104/vm-104-disk-0.qcow2,size=4G"}},
	} {
		sentinel.Node = proxmox.NodeName(fmt.Sprintf("pve%d", 1+int(sentinel.VMID)%s.setting.nodes))
		s.addSentinel(sentinel)
	}
	s.must(s.api.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: credentialsName}, Data: s.credentials()}))
	owner := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: v1beta1.GroupVersion.Group, Kind: clusterKind, Name: clusterName},
	}}
	s.must(s.api.create(owner))
	var endpoints []string
	for n := range s.setting.nodes {
		endpoints = append(endpoints, fmt.Sprintf("https://pve%d", n+1))
	}
	s.must(s.api.create(&v1beta1.ProxmoxCluster{
		ObjectMeta: metav1.ObjectMeta{Name: clusterName, Labels: clusterLabels(), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: clusterName, UID: owner.UID,
		}}},
		Spec: v1beta1.ProxmoxClusterSpec{
			ControlPlaneEndpoint: v1beta1.APIEndpoint{Host: "10.1.255.254", Port: 6443},
			Regions: []v1beta1.Region{{
				Name: "home", Endpoints: endpoints[:min(len(endpoints), 1+s.random.IntN(3))],
				CredentialsRef: v1beta1.SecretReference{Name: credentialsName}, VMIDRange: v1beta1.VMIDRange{Start: 100, End: 160},
			}},
		},
	}))
	return nil
}

// privileges are those of docs/permissions.md, and those to see all.
func privileges() []string {
	return strings.Fields(`Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit Pool.Audit Pool.Allocate SDN.Use Sys.Audit
		VM.Allocate VM.Audit VM.Clone VM.Config.CDROM VM.Config.CPU VM.Config.Cloudinit VM.Config.Disk VM.Config.HWType VM.Config.Memory
		VM.Config.Network VM.Config.Options VM.PowerMgmt`)
}
