package soak_test

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// deed is something that people or machines do while the controllers work.
type deed struct {
	name   string
	weight int
	do     func()
}

// wishes are what users ask of Cluster API.
func (s *simulation) wishes() []deed {
	return []deed{
		{"create", 10, s.create},
		{"scale up", 3, func() { s.create(); s.create(); s.create() }},
		{"scale down", 2, func() { s.deleteOne(); s.deleteOne(); s.deleteOne() }},
		{"delete", 8, s.deleteOne},
		{"replace", 3, func() { s.deleteOne(); s.create() }},
		{"roll out", 2, s.rollOut},
		{"switch off or on", 3, s.turn},
		{"change the cluster", 2, s.changeCluster},
		{"change the spec", 16, s.changeSpec},
	}
}

// deeds are what else happens.
func (s *simulation) deeds() []deed {
	return []deed{
		{"crash", 4, s.crashNow},
		{"wipe a status", 4, s.wipeStatus},
		{"restore a backup", 1, s.restoreBackup},
		{"rotate the token", 2, s.rotate},
		{"admin: kill QEMU", 3, s.onVM(func(vm pvesim.VM) { s.world.Kill(vm.VMID) })},
		{"admin: stop", 3, s.onVM(func(vm pvesim.VM) { s.admin("POST", vmPath(vm)+"/status/stop", nil) })},
		{"admin: start", 2, s.onVM(func(vm pvesim.VM) { s.admin("POST", vmPath(vm)+"/status/start", nil) })},
		{"admin: delete the VM", 3, s.onVM(s.destroy)},
		{"admin: edit the VM", 6, s.onVM(s.edit)},
		{"admin: protect", 2, s.onVM(func(vm pvesim.VM) { s.admin("PUT", vmPath(vm)+"/config", url.Values{"protection": {"1"}}) })},
		{"admin: snapshot", 2, s.onVM(s.snapshot)},
		{"admin: back up", 2, s.onVM(s.backUp)},
		{"admin: copy", 2, s.onVM(s.duplicate)},
		{"admin: hold the lock", 2, s.onVM(s.holdLock)},
		{"admin: firewall", 6, s.onVM(s.breach)},
		{"admin: HA", 4, s.onVM(s.manage)},
		{"admin: adopt at the last moment", 3, func() { s.trap = true }},
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
		{"a daemon stops", 2, s.stopDaemon},
	}
}

// act does one deed, drawn.
func (s *simulation) act() {
	wishes := s.wishes()
	all := append(wishes, s.deeds()...) //nolint:gocritic // both
	total := 0
	for _, d := range all {
		total += d.weight
	}
	drawn := s.random.IntN(total)
	for i, d := range all {
		if drawn -= d.weight; drawn >= 0 {
			continue
		}
		s.trace.add("deed", "%s", d.name)
		if i < len(wishes) {
			s.figures.wishes[d.name]++
		} else {
			s.figures.deeds[d.name]++
			s.trouble()
		}
		d.do()
		s.settle()
		s.watchIdentities()
		return
	}
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

// rollOut replaces all machines by new ones, as a change of a template does.
func (s *simulation) rollOut() {
	for _, m := range s.living() {
		s.create()
		s.after(s.upTo(3*time.Minute), func() { m.deleted = true; s.soonSync() })
	}
}

// turn switches a machine off, or on again.
func (s *simulation) turn() {
	living := s.living()
	if len(living) == 0 {
		return
	}
	m := living[s.random.IntN(len(living))]
	if object, found := find[*v1beta1.ProxmoxMachine](s.api, m.name); found {
		m.off = !m.off
		object.Spec.PowerState = v1beta1.PowerStateRunning
		if m.off {
			object.Spec.PowerState = v1beta1.PowerStateStopped
		}
		s.trace.add("user", "%s is to be %s", m.name, object.Spec.PowerState)
		s.must(s.api.update(object))
	}
}

// changeCluster gives the cluster other endpoints and VMIDs; its machines keep theirs.
func (s *simulation) changeCluster() {
	if object, found := find[*v1beta1.ProxmoxCluster](s.api, clusterName); found {
		region := &object.Spec.Regions[0]
		region.Endpoints = s.drawEndpoints()
		region.VMIDRange.Start = 100 + s.random.Int32N(20)
		s.must(s.api.update(object))
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
	s.token = s.world.AddToken(pvesim.TokenSpec{User: "capve@pve", Name: fmt.Sprintf("t%d", s.tokens), Unseparated: true, Privileges: map[string][]string{"/": s.privileges()}})
	s.keepSecret(string(s.token.Secret))
}

func (s *simulation) credentials() map[string][]byte {
	return map[string][]byte{"tokenID": []byte(s.token.ID), "tokenSecret": []byte(s.token.Secret)}
}
