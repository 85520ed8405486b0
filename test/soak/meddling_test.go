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

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

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

func (s *simulation) snapshot(vm pvesim.VM) {
	s.admin("POST", vmPath(vm)+"/snapshot", url.Values{"snapname": {fmt.Sprintf("s%d", s.random.IntN(1000))}})
}

// backUp locks a VM as a backup does.
func (s *simulation) backUp(vm pvesim.VM) {
	if vm.Lock == "" {
		s.world.Lock(vm.VMID, "backup")
		s.undoLater(func() {
			if now, there := s.world.VM(vm.VMID); there && now.Lock == "backup" {
				s.world.Unlock(vm.VMID)
			}
		})
	}
}

// duplicate makes a VM with all marks of a machine's but the UUID that its firmware shows, as a clone or a restored backup has them.
func (s *simulation) duplicate(vm pvesim.VM) {
	config := map[string]string{"smbios1": "uuid=" + s.newUUID(), "memory": "64"}
	for _, key := range []string{"name", "description", "tags"} {
		if value := vm.Config[key]; value != "" {
			config[key] = value
		}
	}
	s.addSentinel(pvesim.VMSpec{VMID: proxmox.VMID(105 + s.random.IntN(50)), Node: vm.Node, Config: config})
}

// holdLock is another process that works on the VM.
func (s *simulation) holdLock(vm pvesim.VM) {
	release := s.world.HoldLock(vm.VMID)
	s.undoLater(release)
}

// migrate moves a VM, with its disks.
func (s *simulation) migrate(vm pvesim.VM) {
	node, found := s.anyNode()
	if !found {
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

// spring makes a VM somebody else's that a controller was just told is stopped, and that it is about to destroy.
func (s *simulation) spring(t *ticket) {
	who, _, _ := strings.Cut(t.label, " ")
	m := s.machines[who]
	if !s.trap || m == nil || !m.deleted || !strings.HasSuffix(t.what, "/status/current") {
		return
	}
	vms := s.vmsOf(m)
	if len(vms) != 1 || vms[0].Status != "stopped" || vms[0].Lock != "" || s.isHalf(vms[0]) || s.frozen[vms[0].Node] > 0 {
		return
	}
	taken := s.reconfigure(vms[0], url.Values{"description": {"mine"}, "name": {"other"}, "smbios1": {"uuid=" + s.newUUID()}, "delete": {"tags"}})
	s.trace.add("admin", "VM %d of %s is another's from now on → %s", vms[0].VMID, m.name, taken)
	if now, _ := s.world.VM(vms[0].VMID); vmconfig.Config(now.Config).BelongsTo(proxmox.SMBIOSUUID(m.uuid)) {
		// It was being started: what is pending would make it another's as soon as it is stopped.
		s.trace.add("admin", "or not → %s", s.reconfigure(vms[0], url.Values{"revert": {"smbios1"}}))
		return
	}
	s.trap, m.destroyed, m.adopted = false, true, true
	s.sentinels[vms[0].VMID] = s.looks(vms[0].VMID)
}

// reconfigure changes a VM's config as an administrator, before anything else happens.
func (s *simulation) reconfigure(vm pvesim.VM, form url.Values) string {
	answer, _ := s.ask(vm.Node, http.MethodPut, vmPath(vm)+"/config", form)
	return answer
}

// isHalf tells whether a destroy of the VM was broken off when its disks were gone, or a clone before its config named them.
func (s *simulation) isHalf(vm pvesim.VM) bool {
	return slices.ContainsFunc(s.world.Findings(), func(finding pvesim.Finding) bool {
		destroyed := finding.Kind == pvesim.MissingVolume && strings.HasPrefix(finding.Text, fmt.Sprintf("VM %d has", vm.VMID))
		cloned := finding.Kind == pvesim.OrphanVolume && strings.HasSuffix(finding.Text, fmt.Sprintf("is in no config of VM %d", vm.VMID))
		return destroyed || cloned
	})
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
