package pvesim

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// guestEntry is a VM's or container's entry in cluster/resources.
type guestEntry struct {
	ID     string           `json:"id"`
	Type   string           `json:"type"`
	VMID   proxmox.VMID     `json:"vmid"`
	Node   proxmox.NodeName `json:"node"`
	Status string           `json:"status"`
	Tags   string           `json:"tags,omitempty"`
	Pool   proxmox.PoolID   `json:"pool,omitempty"`
	Lock   string           `json:"lock,omitempty"`
	// HAState is that of the HA manager; empty without it.
	HAState string `json:"hastate,omitempty"`
	*guestFigures
}

// guestFigures are what pvestatd broadcasts; a guest that it has not seen yet has none.
type guestFigures struct {
	Name      string        `json:"name"`
	Template  int           `json:"template"`
	MaxCPU    int           `json:"maxcpu"`
	MaxMem    proxmox.Bytes `json:"maxmem"`
	MaxDisk   proxmox.Bytes `json:"maxdisk"`
	CPU       float64       `json:"cpu"`
	Mem       proxmox.Bytes `json:"mem"`
	Disk      proxmox.Bytes `json:"disk"`
	DiskRead  int           `json:"diskread"`
	DiskWrite int           `json:"diskwrite"`
	NetIn     int           `json:"netin"`
	NetOut    int           `json:"netout"`
	Uptime    int64         `json:"uptime"`
	// MemHost is new in 9.x, of VMs.
	MemHost *proxmox.Bytes `json:"memhost,omitempty"`
}

// entryKey is all that a VM's entry depends on.
type entryKey struct {
	node       proxmox.NodeName
	tags, lock string
	haState    string
	pool       proxmox.PoolID
	stats      *vmStats
	// until is when the figures were broadcast, of running VMs: theirs change every time.
	until time.Time
}

// cachedEntry is an entry as JSON, good as long as the key is that of the VM.
type cachedEntry struct {
	key  entryKey
	json []byte
}

// entries is a list that is JSON already, one piece for each element. Writing thousands of VMs anew for every reader of
// cluster/resources would take most of the time of a simulated cluster.
type entries [][]byte

// add appends values that are not JSON yet.
func (e *entries) add(values ...any) {
	for _, v := range values {
		if raw, err := json.Marshal(v); err == nil {
			*e = append(*e, raw)
		}
	}
}

// MarshalJSON joins the pieces.
func (e entries) MarshalJSON() ([]byte, error) { return e.envelope("[", "]"), nil }

// envelope joins the pieces between a head and a tail.
func (e entries) envelope(head, tail string) []byte {
	size := len(head) + len(tail) + len(e)
	for _, raw := range e {
		size += len(raw)
	}
	out := append(make([]byte, 0, size), head...)
	for i, raw := range e {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, tail...)
}

// guestReader reads guests' entries for one request. What the caller may see of most guests is found out once: where the
// access control list has no entry for a guest of its own, the answer is that of its pool or of /vms.
type guestReader struct {
	*call
	pools map[proxmox.VMID]proxmox.PoolID
	// named guests have entries of their own in the access control list.
	named map[proxmox.VMID]bool
	// seen tells of the other guests by their pool whether they may be audited, and audited whether the pool may; as far as that
	// was looked at.
	seen, audited map[proxmox.PoolID]bool
	// nodes are what is heard of hosts.
	nodes map[proxmox.NodeName]hearing
}

// hearing is what the node that is asked knows of the broadcasts of another.
type hearing struct {
	// nothing tells that it knows nothing, or nothing any more.
	nothing bool
	// old are the figures as they were when the host fell silent; nil means those of now.
	old   map[proxmox.VMID]*vmStats
	until time.Time
}

func (c *call) newGuestReader() *guestReader {
	r := &guestReader{call: c, pools: c.guestsInPools(), named: map[proxmox.VMID]bool{}, seen: map[proxmox.PoolID]bool{}, audited: map[proxmox.PoolID]bool{}, nodes: map[proxmox.NodeName]hearing{}}
	for _, n := range c.nodes {
		r.nodes[n.Name] = c.hears(n)
	}
	for path := range c.acl {
		if id, ok := strings.CutPrefix(path, "/vms/"); ok {
			r.named[toVMID(id)] = true
		}
	}
	return r
}

func (c *call) hears(n *node) hearing {
	quiet := c.at.heard(n)
	switch {
	case quiet == nil:
		return hearing{until: c.cycleTime()}
	case c.forgotten(quiet):
		return hearing{nothing: true}
	}
	return hearing{old: quiet.stats, until: quiet.since}
}

// sees tells whether the guest may be audited.
func (r *guestReader) sees(id proxmox.VMID) bool {
	if r.named[id] {
		return r.canSee(id)
	}
	return remembered(r.seen, r.pools[id], func() bool { return r.canSee(id) })
}

// mayAuditPool tells whether a pool is shown, and that guests are in it.
func (r *guestReader) mayAuditPool(id proxmox.PoolID) bool {
	return remembered(r.audited, id, func() bool { return r.may(r.who, "/pool/"+string(id), "Pool.Audit") })
}

// remembered looks an answer up, and finds it out the first time.
func remembered(known map[proxmox.PoolID]bool, id proxmox.PoolID, find func() bool) bool {
	out, found := known[id]
	if !found {
		out = find()
		known[id] = out
	}
	return out
}

// entry is the guest's entry: node, pool, tags and lock are of now, the rest as last broadcast. The pool is shown to those
// alone who may audit it.
func (r *guestReader) entry(id proxmox.VMID) []byte {
	pool := r.pools[id]
	if !r.mayAuditPool(pool) {
		pool = ""
	}
	v := r.vms[id]
	if v == nil {
		raw, _ := json.Marshal(r.containerEntry(r.containers[id], pool))
		return raw
	}
	key := entryKey{node: v.node, tags: v.config["tags"], lock: v.lock(), pool: pool}
	if len(r.ha.services) > 0 {
		key.haState = r.haState(id)
	}
	key.stats, key.until = r.broadcastOf(v)
	if v.entry.json == nil || v.entry.key != key {
		raw, _ := json.Marshal(r.vmEntry(v, key))
		v.entry = cachedEntry{key: key, json: raw}
	}
	return v.entry.json
}

// broadcastOf is what was last heard of a VM, nil if nothing, and for a running one when that was.
func (r *guestReader) broadcastOf(v *vm) (*vmStats, time.Time) {
	h, s := r.nodes[v.node], v.stats
	if h.old != nil {
		s = h.old[v.id]
	}
	switch {
	case s == nil, h.nothing:
		return nil, time.Time{}
	case !s.running:
		return s, time.Time{}
	}
	return s, h.until
}

// entries are those of all guests that the caller may see, by VMID.
func (r *guestReader) entries() entries {
	out := make(entries, 0, len(r.vms)+len(r.containers))
	for _, id := range r.guestIDs() {
		if r.sees(id) {
			out = append(out, r.entry(id))
		}
	}
	return out
}

// guestIDs are the VMIDs of all guests in order. The list is kept as long as no guest comes or goes.
func (w *World) guestIDs() []proxmox.VMID {
	if len(w.order) == len(w.vms)+len(w.containers) && !slices.ContainsFunc(w.order, func(id proxmox.VMID) bool { return !w.hasGuest(id) }) {
		return w.order
	}
	w.order = w.order[:0]
	for id := range w.vms {
		w.order = append(w.order, id)
	}
	for id := range w.containers {
		w.order = append(w.order, id)
	}
	slices.SortFunc(w.order, cmp.Compare)
	return w.order
}

func (w *World) hasGuest(id proxmox.VMID) bool { return w.vms[id] != nil || w.containers[id] != nil }

func (w *World) vmEntry(v *vm, k entryKey) guestEntry {
	out := guestEntry{
		ID: "qemu/" + v.id.String(), Type: "qemu", VMID: v.id, Node: v.node, Status: "unknown", Pool: k.pool, Lock: k.lock, HAState: k.haState,
		Tags: strings.TrimSpace(k.tags), guestFigures: w.vmFigures(k.stats, k.until),
	}
	if k.stats != nil {
		out.Status = k.stats.status
	}
	return out
}

func (w *World) vmFigures(s *vmStats, until time.Time) *guestFigures {
	if s == nil {
		return nil
	}
	out := &guestFigures{Name: s.name, Template: pveBool(s.template), MaxCPU: s.maxCPU, MaxMem: s.maxMem, MaxDisk: s.maxDisk}
	if w.version != V84 {
		out.MemHost = new(proxmox.Bytes)
	}
	load := s.load(until)
	out.Uptime, out.CPU, out.Mem = load.uptime, load.cpu, load.mem
	return out
}

// guestLoad is what a running guest has and uses.
type guestLoad struct {
	uptime      int64
	cpu         float64
	maxCPU      int
	mem, maxMem proxmox.Bytes
}

func (s *vmStats) load(until time.Time) guestLoad {
	if s == nil || !s.running {
		return guestLoad{}
	}
	return guestLoad{uptime: secondsUntil(until, s.started), cpu: 0.02, maxCPU: s.maxCPU, mem: s.maxMem / 2, maxMem: s.maxMem}
}

// load is that of any guest; zero if it is off or nothing is known.
func (r *guestReader) load(id proxmox.VMID) guestLoad {
	if v := r.vms[id]; v != nil {
		s, until := r.broadcastOf(v)
		return s.load(until)
	}
	if ct := r.containers[id]; ct != nil {
		return r.containerLoad(ct)
	}
	return guestLoad{}
}

// secondsUntil is an uptime; what was started after the last broadcast has none.
func secondsUntil(until, started time.Time) int64 {
	return max(0, int64(until.Sub(started).Seconds()))
}

// memory is the VM's assigned memory; qemu-server's default is 512 MiB.
func (v *vm) memory() proxmox.Bytes {
	return proxmox.MiB(atoi(firstProperty(v.config["memory"]), 512)).Bytes()
}

func (v *vm) cpus() int { return atoi(v.config["sockets"], 1) * atoi(v.config["cores"], 1) }

// diskSize is the size of the boot disk.
func (v *vm) diskSize() proxmox.Bytes {
	boot := v.config["boot"]
	if order, ok := strings.CutPrefix(boot, "order="); ok {
		for _, name := range strings.Split(order, ";") {
			if d := parseDrive(v.config[name]); d.volume != "" && !d.cdrom() {
				return d.size()
			}
		}
	}
	return 0
}
