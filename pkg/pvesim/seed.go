package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// NodeSpec describes a host to add.
type NodeSpec struct {
	Name   proxmox.NodeName
	CPUs   int
	Memory proxmox.MiB
	// Bridges of the host; nil means vmbr0.
	Bridges []proxmox.BridgeName
}

// StorageSpec describes a storage to add.
type StorageSpec struct {
	ID proxmox.StorageID
	// Type is dir, nfs or lvmthin.
	Type string
	// Content types, for example images and iso.
	Content []string
	// Total is the capacity, per node unless the storage is on all nodes the same (nfs). Zero means 1 TiB.
	Total proxmox.Bytes
	// Nodes that have the storage; nil means all.
	Nodes []proxmox.NodeName
}

// VMSpec describes a VM to add, with its volumes: every drive in the config that names a volume gets one.
type VMSpec struct {
	VMID   proxmox.VMID
	Node   proxmox.NodeName
	Pool   proxmox.PoolID
	Config map[string]string
	// State is running or stopped; empty means stopped.
	State string
}

// TokenSpec describes an API token to add, and its user if that is new.
type TokenSpec struct {
	// User is user@realm.
	User string
	// Name of the token.
	Name string
	// Privileges by ACL path, all propagating. Nil means all privileges on /.
	Privileges map[string][]string
}

// AddNode adds a host, online.
func (w *World) AddNode(s NodeSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addNode(s)
}

func (w *World) addNode(s NodeSpec) {
	orDefault(&s.CPUs, 32)
	orDefault(&s.Memory, 128*1024)
	if s.Bridges == nil {
		s.Bridges = []proxmox.BridgeName{"vmbr0"}
	}
	i := len(w.nodes) + 1
	sockets := 1
	if s.CPUs >= 16 && s.CPUs%4 == 0 {
		sockets = 2
	}
	w.nodes = append(w.nodes, &node{
		name: s.Name, id: i, address: fmt.Sprintf("10.10.0.%d", 10+i), cpus: s.CPUs, sockets: sockets, memory: s.Memory, online: true,
		bridges: slices.Clone(s.Bridges), booted: w.clock.Now(),
	})
}

// AddStorage adds a storage to storage.cfg.
func (w *World) AddStorage(s StorageSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addStorage(s)
}

func (w *World) addStorage(s StorageSpec) {
	orDefault(&s.Total, 1<<40)
	path := "/mnt/pve/" + string(s.ID)
	if s.ID == "local" {
		path = "/var/lib/vz"
	} else if s.Type == string(lvmThinStorage) {
		path = ""
	}
	w.storages = append(w.storages, &storage{
		id: s.ID, typ: storageType(s.Type), path: path, shared: s.Type == string(nfsStorage), content: slices.Clone(s.Content), total: s.Total,
		nodes: slices.Clone(s.Nodes), used: map[proxmox.NodeName]proxmox.Bytes{},
	})
}

// AddPool adds an empty resource pool.
func (w *World) AddPool(id proxmox.PoolID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addPool(id)
}

func (w *World) addPool(id proxmox.PoolID) {
	w.pools[id] = &pool{id: id, members: map[proxmox.VMID]bool{}, storages: map[proxmox.StorageID]bool{}}
}

// AddUser adds a user who logs in with a password, without privileges, or sets the password of one there is.
func (w *World) AddUser(id string, password Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addUser(id).password = password
}

func (w *World) addUser(id string) *user {
	if w.users[id] == nil {
		w.users[id] = &user{id: id, grants: grants{}}
	}
	return w.users[id]
}

// AddToken adds an API token with a drawn secret.
func (w *World) AddToken(s TokenSpec) Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addToken(s)
}

func (w *World) addToken(s TokenSpec) Token {
	u := w.addUser(s.User)
	if s.Privileges == nil {
		s.Privileges = map[string][]string{"/": administrator(w.version)}
	}
	t := &token{id: s.User + "!" + s.Name, user: u, secret: Secret(w.newUUID()), separated: true, grants: maps.Clone(grants(s.Privileges))}
	if s.User == rootUser {
		t.separated = false
	}
	for path, privileges := range s.Privileges {
		for _, p := range privileges {
			if !slices.Contains(u.grants[path], p) {
				u.grants[path] = append(u.grants[path], p)
			}
		}
	}
	w.tokens[t.id] = t
	return Token{ID: t.id, Secret: t.secret}
}

// AddVM adds a VM with its volumes. It is an error if the VMID is taken, the node or a storage missing.
func (w *World) AddVM(s VMSpec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seedVM(s)
}

func (w *World) seedVM(s VMSpec) error {
	if w.vms[s.VMID] != nil {
		return fmt.Errorf("add VM %d: VMID is taken", s.VMID)
	}
	if w.node(s.Node) == nil {
		return fmt.Errorf("add VM %d: no node %q", s.VMID, s.Node)
	}
	config := maps.Clone(s.Config)
	if config == nil {
		config = map[string]string{}
	}
	v := &vm{id: s.VMID, node: s.Node, config: config, queue: &serial{world: w}}
	if err := w.seedVolumes(v); err != nil {
		return fmt.Errorf("add VM %d: %w", s.VMID, err)
	}
	for key, value := range config {
		if strings.TrimRight(key, "0123456789") == "net" {
			config[key] = (&change{World: w, vm: v}).normalNet(value)
		}
	}
	w.complete(v)
	w.vms[v.id] = v
	if p := w.pools[s.Pool]; p != nil {
		p.members[v.id] = true
	}
	if s.State == "running" {
		w.powerOn(v)
	}
	v.stats = v.currentStats()
	return nil
}

func (w *World) seedVolumes(v *vm) error {
	for _, name := range v.drives() {
		d := parseDrive(v.config[name])
		if d.storageID() == "" || w.volumeAt(v.node, d.volume) != nil {
			continue
		}
		s, msg := w.storageFor(d.storageID(), v.node)
		if s == nil {
			return fmt.Errorf("%s: %s", name, msg)
		}
		format := "raw"
		if i := strings.LastIndex(string(d.volume), "."); s.fileBased() && i > 0 {
			format = string(d.volume)[i+1:]
		}
		size := d.size()
		if d.cloudInit() {
			size = cloudInitSize
		}
		w.addVolume(&volume{
			key: volumeKey{s.scope(v.node), d.volume}, storage: s, content: "images", format: format, vmid: v.id, size: size,
			used: size / 5, parent: baseOf(d.volume),
		})
	}
	return nil
}

// baseOf is the base volume in the name of a linked clone, local:100/base-100-disk-0.qcow2/110/vm-110-disk-0.qcow2; or "".
func baseOf(id proxmox.VolumeID) proxmox.VolumeID {
	parts := strings.Split(string(id), "/")
	if len(parts) != 4 {
		return ""
	}
	return proxmox.VolumeID(parts[0] + "/" + parts[1])
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
		if !store.onNode(n.name) || (store.shared && len(out) > 0) {
			continue
		}
		id := s.FirstVMID + proxmox.VMID(i)
		if w.vms[id] != nil {
			return out, fmt.Errorf("add template %s: VMID %d is taken", s.Name, id)
		}
		if err := w.seedVM(VMSpec{VMID: id, Node: n.name, Config: s.config(store, id)}); err != nil {
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
		"name": s.Name, "tags": normalTags(joinTags(s.Tags)), "template": "1", "agent": "1", "boot": "order=scsi0", "cpu": "x86-64-v2-AES",
		"cores": fmt.Sprint(s.Cores), "sockets": "1", "memory": fmt.Sprint(s.Memory), "net0": "virtio,bridge=vmbr0", "numa": "0", "ostype": "l26",
		"scsi0": fmt.Sprintf("%s,size=%s", disk, formatSize(s.Disk.Bytes())), "scsihw": "virtio-scsi-single", "serial0": "socket", "vga": "serial0",
		"ide2": fmt.Sprintf("%s,media=cdrom,size=4M", seed),
	}
}

// seedModel builds the world that the model describes.
func (w *World) seedModel(m Model) {
	for i := range max(0, m.Nodes) {
		w.addNode(NodeSpec{Name: proxmox.NodeName(fmt.Sprintf("pve%d", i+1)), CPUs: m.CPUs, Memory: m.Memory})
	}
	w.addStorage(StorageSpec{ID: "local", Type: "dir", Content: []string{"iso", "import", "vztmpl", "snippets", "backup"}, Total: proxmox.GiB(94).Bytes()})
	w.addStorage(StorageSpec{ID: "local-lvm", Type: "lvmthin", Content: []string{"images", "rootdir"}})
	w.addStorage(StorageSpec{ID: "shared", Type: "nfs", Content: []string{"images", "iso"}, Total: 4 << 40})
	w.addPool("capi")
	w.addUser(rootUser).password = "pvesim"
	for _, t := range m.Templates {
		// A template that has no place, for example in a world without nodes, is left out.
		_, _ = w.addTemplate(t)
	}
}

// StopNode takes a host down: its VMs lose their power, and what is asked of it gets 595.
func (w *World) StopNode(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil {
		return
	}
	n.online = false
	for t := range w.tasks.active {
		if t.node == name {
			t.kill()
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		if v := w.vms[id]; v.node == name {
			w.powerOff(v, CauseHostLost)
		}
	}
}

// StartNode brings a host back; its VMs with onboot set are started.
func (w *World) StartNode(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil || n.online {
		return
	}
	n.online, n.booted = true, w.clock.Now()
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		if v := w.vms[id]; v.node == name && v.config["onboot"] == "1" && !v.isTemplate() {
			w.powerOn(v)
		}
	}
}

// Kill ends the VM's process, as a crash of QEMU does.
func (w *World) Kill(id proxmox.VMID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.vms[id]; v != nil {
		w.powerOff(v, CauseStop)
	}
}
