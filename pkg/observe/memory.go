package observe

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// Memory is what one process remembers of its VMs. Most of it spares Proxmox VE requests, and forgetting it costs some and
// changes no decision. What it knows of clones is more: whether a VMID that cannot be seen is another's, and whether a clone
// may still come late. Without that a machine waits where it could have gone on (docs/adr/0005).
type Memory struct {
	clock clock.PassiveClock
	// started is when this process was first asked about a VM. Until it is the leader another one sends requests.
	started time.Time
	// late is how long Proxmox VE may take to carry out a request whose answer was lost.
	late time.Duration
	mu   sync.Mutex
	vms  map[proxmox.SMBIOSUUID]*recollection
	// troubles are the hosts where clones failed lately.
	troubles map[hostPlace]hostTrouble
	caches
}

// caches are what Proxmox VE told of other things than VMs.
type caches struct {
	// templates are the configs of templates.
	templates *cache[place, vmconfig.Config]
	// images are the images on storages.
	images *cache[imagePlace, []proxmox.VolumeID]
	// releases, securityGroups and haGroups are the clusters', as some credentials, by their fingerprint, see them.
	releases                 *cache[string, pve.Version]
	securityGroups, haGroups *cache[string, []string]
	// equipment is what hosts have.
	equipment *cache[factPlace, told]
}

func newCaches(clock clock.PassiveClock) caches {
	return caches{
		templates: newCache[place, vmconfig.Config](clock, templateTTL), images: newCache[imagePlace, []proxmox.VolumeID](clock, imagesTTL),
		releases: newCache[string, pve.Version](clock, clusterTTL), equipment: newCache[factPlace, told](clock, factTTL),
		securityGroups: newCache[string, []string](clock, clusterTTL), haGroups: newCache[string, []string](clock, clusterTTL),
	}
}

// How long what was told is believed, so that many machines cost few requests.
const (
	// templateTTL is for templates: VMIDs come free, and templates are made anew.
	templateTTL = 5 * time.Minute
	imagesTTL   = 30 * time.Second
	clusterTTL  = 10 * time.Second
)

// recollection is what is remembered of one VM.
type recollection struct {
	// untouched says that this process reserved the VMID, found it free, and has sent nothing since that made the VM.
	untouched bool
	// reserved says that this process reserved the VMID, so that it knows of all clones that were sent for it.
	reserved bool
	// clones counts the clones that were sent since then and may have made the VM, or may still make it.
	clones int
	// lostAt is when the answer to a clone was lost.
	lostAt time.Time
	// anothers says that the VMID is taken, and not by what one of our clones made.
	anothers bool
	// ranAt is when the VM's node last said that the VM runs.
	ranAt  time.Time
	config vmconfig.Config
	digest proxmox.Digest
	// task is the last task that this process started for the VM. The cache may not show it in the status yet.
	task proxmox.UPID
	// ended is the last task that was seen to succeed. The tracker of other credentials does not know it.
	ended   proxmox.UPID
	endedAt time.Time
	failed  proxmox.UPID
	// growing is the last growing of a disk, grown what others came to.
	growing growing
	grown   map[string]proxmox.Bytes
	// failures counts the tasks that failed since one succeeded.
	failures int
	retryAt  time.Time
	// failedClone is the last task of a clone that failed, cloneFailures how many did since the reservation.
	failedClone   proxmox.UPID
	cloneFailures int
	// leave says why the VM should go to another host.
	leave      string
	unanswered unanswered
	// withdrawn says that the seed was deleted from the host that is left.
	withdrawn bool
	uploads   uploads
	firewall  knownFirewall
	ha        knownHA
	upkeep    knownUpkeep
	pool      knownPool
	// talk is what the guest said of its addresses.
	talk guestTalk
	// old says that nothing that an earlier process sent can make the VM any more.
	old bool
	// errors counts the passes in a row that an error of Proxmox VE ended.
	errors int
}

// growing is a task that grows a disk.
type growing struct {
	task proxmox.UPID
	disk string
	size proxmox.Bytes
}

// NewMemory returns an empty Memory.
func NewMemory(clock clock.PassiveClock) *Memory {
	return &Memory{
		clock: clock, late: lateAfter, vms: map[proxmox.SMBIOSUUID]*recollection{},
		troubles: map[hostPlace]hostTrouble{}, caches: newCaches(clock),
	}
}

func (m *Memory) with(uuid proxmox.SMBIOSUUID, do func(*recollection)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started.IsZero() {
		m.started = m.clock.Now()
	}
	if m.vms[uuid] == nil {
		m.vms[uuid] = &recollection{uploads: uploads{until: m.started.Add(m.late), several: true}}
	}
	do(m.vms[uuid])
}

// isOld says that the VM has run for longer than a request may come late: all that makes a VM, or its seed, is sent before it
// is first started.
func (m *Memory) isOld(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) {
		r.old, r.lostAt, r.uploads.until, r.uploads.lost = true, time.Time{}, time.Time{}, false
	})
}

// Reserved says that a free VMID was reserved for the VM and that nothing was sent about it yet.
func (m *Memory) Reserved(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) { *r = recollection{untouched: true, reserved: true, uploads: r.uploads} })
}

// MayBeReserved says that it is not known whether another VMID was written as the VM's: what was known of the one before
// tells nothing any more, but for the uploads.
func (m *Memory) MayBeReserved(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) { *r = recollection{uploads: r.uploads} })
}

// Followed says that the VM's reservation names the host that it was moved to, where its seed is not.
func (m *Memory) Followed(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) { r.task, r.withdrawn = "", false })
}

// Touched says that a request that may have made the VM is about to be sent.
func (m *Memory) Touched(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) { r.untouched = false })
}

func (m *Memory) isUntouched(uuid proxmox.SMBIOSUUID) (untouched bool) {
	m.with(uuid, func(r *recollection) { untouched = r.untouched })
	return untouched
}

// Cloned says how the request for a clone ended. A VMID that is refused as taken before anything of ours can have taken it
// is another's, also where the credentials may not see whose.
func (m *Memory) Cloned(uuid proxmox.SMBIOSUUID, err error) {
	class := pve.ClassOf(err)
	m.with(uuid, func(r *recollection) {
		r.growing, r.grown = growing{}, nil // the disks of a VM that somebody destroyed went with it
		switch class {
		case pve.None, pve.Other: // an error that nobody knows may have come after the VM was made
			r.clones++
		case pve.Ambiguous:
			r.clones, r.lostAt = r.clones+1, m.clock.Now()
		case pve.AlreadyExists:
			r.anothers = r.reserved && r.clones == 0
		default:
			r.untouched = r.reserved && r.clones == 0
		}
	})
}

func (m *Memory) isAnothers(uuid proxmox.SMBIOSUUID) (anothers bool) {
	m.with(uuid, func(r *recollection) { anothers = r.anothers })
	return anothers
}

// lateAfter is how long Proxmox VE may take to carry out a request whose answer was lost, if nothing else is configured.
const lateAfter = 2 * time.Minute

// mayComeLate reports whether a clone whose answer was lost may still make the VM.
func (m *Memory) mayComeLate(uuid proxmox.SMBIOSUUID) (late bool) {
	m.with(uuid, func(r *recollection) { late = !r.lostAt.IsZero() && m.clock.Since(r.lostAt) < m.late })
	return late
}

// Started says that a task was started for the VM.
func (m *Memory) Started(uuid proxmox.SMBIOSUUID, task proxmox.UPID) {
	m.with(uuid, func(r *recollection) { r.task, r.uploads.lostLast = task, false })
}

func (m *Memory) lastTask(uuid proxmox.SMBIOSUUID) (task proxmox.UPID) {
	m.with(uuid, func(r *recollection) { task = r.task })
	return task
}

// taskEnded notes a task that was seen to succeed.
func (m *Memory) taskEnded(uuid proxmox.SMBIOSUUID, task proxmox.UPID) {
	m.with(uuid, func(r *recollection) {
		r.ended, r.endedAt, r.failures = task, m.clock.Now(), 0
		if task != "" && r.growing.task == task {
			grown := map[string]proxmox.Bytes{}
			maps.Copy(grown, r.grown)
			grown[r.growing.disk] = r.growing.size
			r.grown = grown
		}
	})
}

// Grows says that a task grows a disk of the VM.
func (m *Memory) Grows(uuid proxmox.SMBIOSUUID, task proxmox.UPID, disk string, size proxmox.Bytes) {
	m.with(uuid, func(r *recollection) { r.growing = growing{task, disk, size} })
}

// grown are the sizes that disks of the VM were seen to be grown to.
func (m *Memory) grown(uuid proxmox.SMBIOSUUID) (sizes map[string]proxmox.Bytes) {
	m.with(uuid, func(r *recollection) { sizes = r.grown })
	return sizes
}

// endedAgo tells whether a task was seen to succeed, and how long ago that was.
func (m *Memory) endedAgo(uuid proxmox.SMBIOSUUID, task proxmox.UPID) (age time.Duration, ended bool) {
	m.with(uuid, func(r *recollection) { age, ended = m.clock.Since(r.endedAt), r.ended == task })
	return age, ended
}

// keepConfig keeps what was read of a VM. It is what the lost clone has made, unless others were sent as well.
func (m *Memory) keepConfig(uuid proxmox.SMBIOSUUID, config vmconfig.Config, digest proxmox.Digest) {
	m.with(uuid, func(r *recollection) {
		r.config, r.digest = config, digest
		if r.clones <= 1 {
			r.lostAt = time.Time{}
		}
	})
}

func (m *Memory) config(uuid proxmox.SMBIOSUUID) (config vmconfig.Config, digest proxmox.Digest) {
	m.with(uuid, func(r *recollection) { config, digest = r.config, r.digest })
	return config, digest
}

// Ejected keeps the config of a VM whose seed was taken out of its drive. Its digest is not known, so that it serves to see
// what is still to do, but for no further change.
func (m *Memory) Ejected(uuid proxmox.SMBIOSUUID, config vmconfig.Config) {
	m.keepConfig(uuid, config, "")
}

// Changed forgets the VM's config and power: they are about to change, or have changed.
func (m *Memory) Changed(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) {
		r.config, r.digest, r.ranAt, r.firewall.edited, r.upkeep.live = nil, "", time.Time{}, false, nil
	})
}

// inventoryLag is how far /cluster/resources may be behind on a guest's power: pvestatd reports every 10 s.
const inventoryLag = 12 * time.Second

// ran notes that the VM's node says that it runs.
func (m *Memory) ran(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) { r.ranAt = m.clock.Now() })
}

// ranLately reports whether the node said that the VM runs, after what an inventory of the time can know.
func (m *Memory) ranLately(uuid proxmox.SMBIOSUUID, inventory time.Time) (lately bool) {
	m.with(uuid, func(r *recollection) { lately = !r.ranAt.IsZero() && inventory.Before(r.ranAt.Add(inventoryLag)) })
	return lately
}

// The pauses after a failed task: they double from the first to the last, and begin anew once a task succeeded.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 2 * time.Minute
)

// retryAfter notes a failed task, once, and returns how long to wait before its step is tried again.
func (m *Memory) retryAfter(uuid proxmox.SMBIOSUUID, failed proxmox.UPID) (wait time.Duration) {
	now := m.clock.Now()
	m.with(uuid, func(r *recollection) {
		if r.failed != failed {
			const mostDoublings = 6
			pause := firstRetry << min(r.failures, mostDoublings)
			r.failed, r.retryAt, r.failures = failed, now.Add(min(pause, lastRetry)), r.failures+1
		}
		wait = max(r.retryAt.Sub(now), 0)
	})
	return wait
}

// The pauses after an error of Proxmox VE: they double from the first to the last, so that what was mended goes on soon.
const (
	firstPause = time.Second
	lastPause  = 16 * time.Second
)

// Pause returns how long to wait after an error of Proxmox VE until the next pass.
func (m *Memory) Pause(uuid proxmox.SMBIOSUUID) (pause time.Duration) {
	m.with(uuid, func(r *recollection) {
		pause = min(firstPause<<r.errors, lastPause)
		r.errors = min(r.errors+1, 8)
	})
	return pause
}

// Went says that a pass ended without an error of Proxmox VE.
func (m *Memory) Went(uuid proxmox.SMBIOSUUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.vms[uuid]; known != nil { // after the last step it is forgotten, and stays so
		known.errors = 0
	}
}

// hasErred reports whether an error of Proxmox VE ended the last pass.
func (m *Memory) hasErred(uuid proxmox.SMBIOSUUID) (erred bool) {
	m.with(uuid, func(r *recollection) { erred = r.errors > 0 })
	return erred
}

// Forget drops what is remembered of a VM that is gone.
func (m *Memory) Forget(uuid proxmox.SMBIOSUUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.vms, uuid)
}
