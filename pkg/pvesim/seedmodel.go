package pvesim

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// seedModel builds the world that the model describes: its state, or else that of DefaultModel.
func (w *World) seedModel(m Model) error {
	if m.State != nil {
		return w.load(*m.State)
	}
	if err := w.load(m.defaultState()); err != nil {
		return err
	}
	if len(w.nodes) == 0 {
		return nil
	}
	for _, t := range m.Templates {
		if _, err := w.addTemplate(t); err != nil {
			return err
		}
	}
	return nil
}

func (m Model) defaultState() State {
	s := State{
		Storages: []StorageSpec{
			{ID: "local", Type: "dir", Content: []string{"iso", "import", "vztmpl", "snippets", "backup"}, Total: proxmox.GiB(94).Bytes()},
			{ID: "local-lvm", Type: "lvmthin", Content: []string{"images", "rootdir"}},
			{ID: "shared", Type: "nfs", Content: []string{"images", "iso"}, Total: 4 << 40},
		},
		Pools: []PoolSpec{{ID: "capi"}},
		DHCP:  []DHCPSpec{{Bridge: "vmbr0", Subnet: "10.20.0.0/16"}},
		Users: []UserSpec{{ID: rootUser, Password: "pvesim"}},
	}
	for i := range max(0, m.Nodes) {
		s.Nodes = append(s.Nodes, NodeSpec{Name: proxmox.NodeName(fmt.Sprintf("pve%d", i+1)), CPUs: m.CPUs, Memory: m.Memory})
	}
	return s
}

// AddTemplate adds a VM template: one copy per node on node-local storage, or one in all. It returns their VMIDs.
func (w *World) AddTemplate(s TemplateSpec) ([]proxmox.VMID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addTemplate(s)
}

func (w *World) addTemplate(s TemplateSpec) ([]proxmox.VMID, error) {
	s = s.completed()
	var out []proxmox.VMID
	store := w.storageByID(s.Storage)
	if store == nil {
		return nil, fmt.Errorf("add template %s: no storage %q", s.Name, s.Storage)
	}
	for i, n := range w.nodes {
		if !store.onNode(n.Name) || (store.shared && len(out) > 0) {
			continue
		}
		id := s.FirstVMID + proxmox.VMID(i)
		if w.vms[id] != nil {
			return out, fmt.Errorf("add template %s: VMID %d is taken", s.Name, id)
		}
		if err := w.seedVM(VMSpec{VMID: id, Node: n.Name, Config: s.config(store, id)}); err != nil {
			return out, fmt.Errorf("add template %s: %w", s.Name, err)
		}
		out = append(out, id)
	}
	return out, nil
}

// config is that of a cloud image turned into a template in the usual way.
func (s TemplateSpec) config(store *storage, id proxmox.VMID) map[string]string {
	disk := store.volumeName(id, fmt.Sprintf("base-%d-disk-0", id), "qcow2")
	seed := store.volumeName(id, fmt.Sprintf("vm-%d-cloudinit", id), cloudInitFormat(store))
	return map[string]string{
		"name": s.Name, "tags": schema.NormalTags(joinTags(s.Tags)), "template": "1", "agent": "1", "boot": "order=scsi0", "cpu": "x86-64-v2-AES",
		"cores": fmt.Sprint(s.Cores), "sockets": "1", "memory": fmt.Sprint(s.Memory), "net0": "virtio,bridge=vmbr0", "numa": "0", "ostype": "l26",
		"scsi0": fmt.Sprintf("%s,size=%s", disk, schema.FormatSize(s.Disk.Bytes())), "scsihw": "virtio-scsi-single", "serial0": "socket", "vga": "serial0",
		"ide2": fmt.Sprintf("%s,media=cdrom,size=4M", seed),
	}
}
