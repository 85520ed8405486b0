package soak_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// simulation is the run of one seed.
type simulation struct {
	ctx     context.Context //nolint:containedctx // of the bubble
	seed    uint64
	random  *rand.Rand
	trace   *trace
	figures *figures
	gate    *gate
	agenda  []event
	events  int

	setting  setting
	world    *pvesim.World
	api      *apiServer
	machines map[string]*machine
	created  int
	token    pvesim.Token
	// ticket is root's login.
	ticket, csrf string
	ticketAt     time.Time
	tokens       int
	manager      *process
	processes    int
	sentinels    map[proxmox.VMID]string
	// foreignVolumes are the ISO images of another management cluster, as they look.
	foreignVolumes string
	// lost are the hosts whose API cannot be reached, heal undoes what was done to hosts.
	lost map[proxmox.NodeName]bool
	// frozen counts the daemons that hang, of those that carry out requests or not.
	frozen map[proxmox.NodeName]int
	heal   []func()
	// unmended is how much of that still lasts, troubles how often something went wrong.
	unmended, troubles int
	// begun are the machines that are not Ready yet.
	begun map[string]*begun
	// walls are the firewalls of machines' VMs as they were last seen.
	walls map[proxmox.VMID]wall
	// lastTask is the last one that was started.
	lastTask proxmox.UPID
	// trap says that the next VM that is to be destroyed becomes somebody else's just before.
	trap bool
	// last is the last thing that a manager did.
	last string
	// calm says that nothing is made to go wrong any more.
	calm bool
	// syncing says that the stand-in for Cluster API is about to look.
	syncing bool

	mu         sync.Mutex
	drawn      *rand.Rand
	secrets    []string
	booted     []proxmox.SMBIOSUUID
	violations []string
}

// setting is what the seed has drawn for the whole run.
type setting struct {
	version      pvesim.Version
	nodes, deeds int
	template     pvesim.TemplateSpec
	seedStorage  string
	pveFaults    int // of a thousand requests
	kubeFaults   int // of a thousand writes
	crashes      int // of ten thousand steps
	slowCache    time.Duration
	slowIPAM     time.Duration
	// walledTemplate says that the templates have a firewall.
	walledTemplate bool
}

// event is something that happens at a time.
type event struct {
	at  time.Time
	seq int
	do  func()
}

// newSimulation draws the setting and builds the world. It runs in a bubble of synctest.
func newSimulation(t *testing.T, seed uint64) (*simulation, error) {
	t.Helper()
	s := &simulation{
		ctx: t.Context(), seed: seed, random: rand.New(rand.NewPCG(seed, 1)), drawn: rand.New(rand.NewPCG(seed, 2)), trace: &trace{start: time.Now()},
		figures: newFigures(), gate: newGate(), machines: map[string]*machine{}, sentinels: map[proxmox.VMID]string{}, lost: map[proxmox.NodeName]bool{}, frozen: map[proxmox.NodeName]int{},
		begun: map[string]*begun{}, walls: map[proxmox.VMID]wall{},
	}
	s.setting = s.drawSetting()
	s.trace.add("seed", "%d: %+v", seed, s.setting)
	var err error
	if s.api, err = newAPIServer(); err != nil {
		return nil, err
	}
	s.api.wrote = s.wrote
	s.world, err = pvesim.NewWorld(pvesim.WithSeed(seed+1), pvesim.WithVersion(s.setting.version), pvesim.WithNodes(s.setting.nodes),
		pvesim.WithTemplates(s.setting.template), pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{OnBoot: s.onBoot})))
	if err != nil {
		return nil, err
	}
	return s, s.furnish()
}

func (s *simulation) drawSetting() setting {
	r := s.random
	version := []pvesim.Version{pvesim.V84, pvesim.V92}[r.IntN(2)]
	return setting{
		version: version, nodes: []int{1, 2, 3, 3, 3, 4, 5}[r.IntN(7)], deeds: 5 + r.IntN(30),
		template:    pvesim.TemplateSpec{Name: "k8s", Tags: []string{"kubernetes"}, Storage: []proxmox.StorageID{"local-lvm", "shared"}[r.IntN(2)]},
		seedStorage: []string{"", "local", "shared"}[r.IntN(3)],
		pveFaults:   []int{0, 10, 50, 150}[r.IntN(4)], kubeFaults: []int{0, 10, 100}[r.IntN(3)], crashes: []int{0, 20, 100}[r.IntN(3)],
		slowCache: []time.Duration{0, 50 * time.Millisecond, 3 * time.Second}[r.IntN(3)], slowIPAM: time.Duration(r.Int64N(int64(5 * time.Second))),
		walledTemplate: r.IntN(3) == 0,
	}
}

// draw gives numbers to the clients of Proxmox VE.
func (s *simulation) draw(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drawn.Int64N(n)
}

func (s *simulation) newUUID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var id uuid.UUID
	for i := range id {
		id[i] = byte(s.drawn.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// after plans something.
func (s *simulation) after(d time.Duration, do func()) {
	s.events++
	s.agenda = append(s.agenda, event{at: time.Now().Add(d), seq: s.events, do: do})
	slices.SortFunc(s.agenda, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq)) })
}

// upTo draws a duration.
func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d) + 1))
}

// settle lets everything happen that can happen now.
func (s *simulation) settle() { synctest.Wait() }

// run goes on until a moment, or a violation.
func (s *simulation) run(until time.Time) {
	for time.Now().Before(until) && !s.isViolated() {
		s.step(until)
	}
}

// step lets one thing happen, or time pass when there is nothing to do.
func (s *simulation) step(until time.Time) {
	s.settle()
	s.takeBoots()
	if len(s.agenda) > 0 && !s.agenda[0].at.After(time.Now()) {
		next := s.agenda[0]
		s.agenda = s.agenda[1:]
		next.do()
		return
	}
	tickets := s.gate.waiting()
	var items []item
	if s.manager != nil {
		items = s.manager.ready()
	}
	choices := len(tickets) + len(items)
	if choices == 0 {
		s.idle(until)
		return
	}
	s.figures.steps++
	if s.manager != nil && !s.calm && s.random.IntN(10_000) < s.setting.crashes {
		s.crash()
		return
	}
	if choice := s.random.IntN(choices); choice < len(tickets) {
		s.letOn(tickets[choice])
	} else {
		s.reconcile(s.manager, items[choice-len(tickets)])
	}
	s.settle()
	time.Sleep(s.upTo(8 * time.Millisecond)) //nolint:forbidigo // virtual time
}

// idle waits for what comes next.
func (s *simulation) idle(until time.Time) {
	if len(s.agenda) > 0 && s.agenda[0].at.Before(until) {
		until = s.agenda[0].at
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.gate.wake:
	}
}

// letOn lets a ticket on, and draws what becomes of it.
func (s *simulation) letOn(t *ticket) {
	if t.what != "" {
		s.last = t.what
	}
	switch t.kind {
	case reconciled:
		s.gate.let(t, verdict{})
		s.ended(t.process, t.item, t.result)
	case pveReply:
		s.trace.add("pve", "%s", t.label)
		if _, task, started := strings.Cut(t.label, `{"data":"UPID:`); started {
			s.lastTask = proxmox.UPID("UPID:" + strings.TrimRight(task, `"}`))
		}
		s.spring(t)
		s.gate.let(t, verdict{})
		s.settle()
		s.watchIdentities()
		s.watchWall(t)
	case kubeWrite:
		v := verdict{}
		if !s.calm && s.random.IntN(1000) < s.setting.kubeFaults {
			v.fate = []fate{conflicts, refused, replyLost}[s.random.IntN(3)]
			s.figures.unwritten.add(t.what, v.fate.String())
			s.trouble()
		}
		s.trace.add("kube", "%s%s", t.label, v.fate.note())
		s.gate.let(t, v)
	case pveRequest:
		s.letRequest(t)
	}
}

func (f fate) String() string {
	return [...]string{"carried out", "conflict", "refused", "lost"}[f]
}

func (f fate) note() string {
	if f == carriedOut {
		return ""
	}
	return ": " + strings.ToUpper(f.String())
}

// crash kills the manager; the next one starts soon.
func (s *simulation) crash() {
	s.figures.kills[cmp.Or(s.last, "nothing yet")]++
	s.trouble()
	s.trace.add("manager", "process %d is killed", s.manager.number)
	s.kill(s.manager)
	s.after(s.upTo(20*time.Second), func() {
		if s.manager == nil {
			s.startManager()
		}
	})
}

// wrote hears of each write to the API server.
func (s *simulation) wrote(before, after client.Object) {
	object := after
	if isNil(after) {
		object, after = before, nil
	}
	if isNil(object) {
		return
	}
	s.watchObject(before, after)
	s.soonSync()
	p := s.manager
	if p == nil || p.ctx.Err() != nil {
		return
	}
	name := refOf(object)
	s.mu.Lock()
	shown := time.Now().Add(time.Duration(s.drawn.Int64N(int64(s.setting.slowCache) + 1)))
	s.mu.Unlock()
	if last := p.cache.shown[name.kind]; shown.Before(last) {
		shown = last
	}
	p.cache.shown[name.kind] = shown
	s.after(time.Until(shown), func() { s.observed(p, name, after, before) })
}

func isNil(object client.Object) bool { return object == nil || fmt.Sprintf("%v", object) == "<nil>" }

// violate notes that a promise was broken.
func (s *simulation) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if slices.Contains(s.violations, text) {
		return
	}
	s.violations = append(s.violations, text)
	s.trace.add("VIOLATION", "%s", text)
}

func (s *simulation) isViolated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.violations) > 0
}

// keepsSecrets checks that a text holds no secret.
func (s *simulation) keepsSecrets(where, text string) {
	s.mu.Lock()
	secrets := slices.Clone(s.secrets)
	s.mu.Unlock()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			s.violate("a secret is in %s: %s", where, text)
		}
	}
}

func (s *simulation) onBoot(guest pvesim.BootedGuest) {
	s.mu.Lock()
	s.booted = append(s.booted, guest.UUID)
	s.mu.Unlock()
	s.gate.poke()
}
