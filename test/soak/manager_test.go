package soak_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/controllers"
	"github.com/capve/cluster-api-provider-proxmox/pkg/act"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
)

// item is an object that a controller has to look at.
type item struct{ kind, name string }

const (
	machineKind = "ProxmoxMachine"
	clusterKind = "ProxmoxCluster"
)

// outcome is what a reconcile came to.
type outcome struct {
	result ctrl.Result
	err    error
}

// process is a running manager: the real controllers with all that they keep in memory.
type process struct {
	number   int
	ctx      context.Context //nolint:containedctx // the life of the process
	cancel   context.CancelFunc
	cache    *cache
	queue    *queue
	machines *controllers.MachineReconciler
	clusters *controllers.ClusterReconciler
	busy     map[item]bool
	failures map[item]int
	// later is when objects come into the queue.
	later map[item]time.Time
	// most is how many objects are looked at at a time.
	most int
}

// startManager starts a new process that knows nothing but what is in Kubernetes and Proxmox VE.
func (s *simulation) startManager() {
	s.processes++
	ctx, cancel := context.WithCancel(s.ctx)
	p := &process{
		number: s.processes, ctx: ctx, cancel: cancel, cache: newCache(s.api), queue: &queue{gate: s.gate, ready: map[item]bool{}},
		busy: map[item]bool{}, failures: map[item]int{}, later: map[item]time.Time{}, most: 1 + s.random.IntN(6),
	}
	kube := &kubeClient{api: s.api, cache: p.cache, gate: s.gate}
	log := s.logger()
	observer, polling, err := observe.New(observe.Options{
		Client: kube, Live: &uncached{api: s.api}, Clock: clock.RealClock{}, Logger: log, Transport: &wire{sim: s}, Draw: s.draw,
	})
	s.must(err)
	_ = observer.Waker.Start(ctx, p.queue)
	events := controllers.EventRecorder{Recorder: recorder{s, p}}
	actor := act.New(kube, observer)
	actor.NewUUID = s.newUUID
	p.machines = &controllers.MachineReconciler{Client: kube, Observer: observer, Events: events, Actor: actor}
	p.clusters = &controllers.ClusterReconciler{Client: kube, Observer: observer, Events: events}
	go func() { _ = polling.Start(ctx) }()
	s.manager = p
	s.trace.add("manager", "process %d starts, %d objects at a time", p.number, p.most)
	s.resync(p)
}

// resync has all objects looked at, now and every ten minutes.
func (s *simulation) resync(p *process) {
	if p.ctx.Err() != nil {
		return
	}
	for _, name := range p.cache.names() {
		if name.kind == machineKind || name.kind == clusterKind {
			p.queue.add(item(name))
		}
	}
	s.after(10*time.Minute, func() { s.resync(p) })
}

func (c *cache) names() []ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]ref, 0, len(c.objects))
	for name := range c.objects {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b ref) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return names
}

// kill ends the process between two of its steps. What it had sent may still arrive.
func (s *simulation) kill(p *process) {
	for _, t := range s.gate.waiting() {
		lands := s.random.IntN(2) == 0
		switch {
		case t.kind == kubeWrite && lands:
			s.trace.add("manager", "the write of the dead lands: %s", t.label)
			s.gate.let(t, verdict{fate: replyLost})
			s.settle() // one at a time, here as well
		case t.kind == pveRequest && lands:
			delay := s.upTo(lateArrival(t))
			s.after(delay, func() {
				s.trace.add("manager", "the request of the dead arrives: %s", t.label)
				s.trouble()
				s.seeFirst(t)
				go t.resend()
				s.settle()
				s.watchWall(t)
			})
		}
	}
	s.settle()
	p.cancel()
	s.settle()
	s.gate.clear()
	s.manager = nil
}

// lateArrival is how long a request may be under way from a sender that died: what makes something may wait in a daemon that is busy.
func lateArrival(t *ticket) time.Duration {
	if strings.HasSuffix(t.what, "/clone") || strings.HasSuffix(t.what, "/upload") {
		return heldLongest
	}
	return 3 * time.Second
}

func (g *gate) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked = nil
}

// reconcile runs a controller for an object.
func (s *simulation) reconcile(p *process, i item) {
	s.trace.add(i.name, "%s is reconciled", i.kind)
	p.busy[i] = true
	p.queue.take(i)
	ctx := ctrl.LoggerInto(withWho(p.ctx, i.name), s.logger())
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: i.name}}
	go func() {
		var out outcome
		if i.kind == machineKind {
			out.result, out.err = p.machines.Reconcile(ctx, request)
		} else {
			out.result, out.err = p.clusters.Reconcile(ctx, request)
		}
		s.gate.leave(&ticket{kind: reconciled, label: i.name + " " + i.kind, item: i, result: out, process: p})
	}()
}

// ended takes in what a reconcile came to, as the controllers' work queue does.
func (s *simulation) ended(p *process, i item, out outcome) {
	if p != s.manager {
		return
	}
	delete(p.busy, i)
	after := out.result.RequeueAfter
	if out.err != nil {
		const first, last = 5 * time.Millisecond, 1000 * time.Second
		after = min(first<<min(p.failures[i], 20), last)
		p.failures[i]++
	} else {
		delete(p.failures, i)
	}
	s.trace.add(i.name, "%s reconciled, again after %s%s", i.kind, after, errorText(out.err))
	if after > 0 {
		s.addAfter(p, i, after)
	}
}

// addAfter puts an object into the queue later, unless it will be there before.
func (s *simulation) addAfter(p *process, i item, after time.Duration) {
	at := time.Now().Add(after)
	if sooner, waits := p.later[i]; waits && !sooner.After(at) {
		return
	}
	p.later[i] = at
	s.after(after, func() {
		if p.later[i].Equal(at) {
			delete(p.later, i)
			p.queue.add(i)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// ready are the objects that could be looked at now.
func (p *process) ready() []item {
	if len(p.busy) >= p.most {
		return nil
	}
	return slices.DeleteFunc(p.queue.items(), func(i item) bool { return p.busy[i] })
}

// queue is the work queue of both controllers.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	gate  *gate
	mu    sync.Mutex
	ready map[item]bool
}

// Add is what the Waker calls.
func (q *queue) Add(request reconcile.Request) { q.add(item{machineKind, request.Name}) }

func (q *queue) add(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready[i] = true
	q.gate.poke()
}

func (q *queue) take(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.ready, i)
}

func (q *queue) items() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := make([]item, 0, len(q.ready))
	for i := range q.ready {
		items = append(items, i)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind)) })
	return items
}

// observed shows a change to a manager's cache, and wakes who watches it, as SetupWithManager has it.
func (s *simulation) observed(p *process, name ref, object client.Object, before client.Object) {
	p.cache.show(name, object)
	either := object
	if either == nil {
		either = before
	}
	switch either := either.(type) {
	case *v1beta1.ProxmoxMachine:
		p.queue.add(item{machineKind, name.name})
		if object == nil {
			p.queue.add(item{clusterKind, clusterName})
		}
	case *v1beta1.ProxmoxCluster, *clusterv1.Cluster:
		p.queue.add(item{clusterKind, clusterName})
		for _, known := range p.cache.names() {
			if known.kind == machineKind {
				p.queue.add(item(known))
			}
		}
	case *clusterv1.Machine:
		p.queue.add(item{machineKind, either.Spec.InfrastructureRef.Name})
	case *ipamv1.IPAddressClaim:
		for _, owner := range either.OwnerReferences {
			p.queue.add(item{machineKind, owner.Name})
		}
	case *ipamv1.IPAddress:
		if machine, _, found := strings.Cut(either.Name, "-net"); found {
			p.queue.add(item{machineKind, machine})
		}
	}
}

// recorder takes the controllers' events.
type recorder struct {
	*simulation
	process *process
}

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	if r.process.ctx.Err() != nil {
		return // what the dead say comes in any order
	}
	name := ""
	if object, ok := regarding.(client.Object); ok {
		name = object.GetName()
	}
	said := fmt.Sprintf("%s %s: %s", kind, reason, fmt.Sprintf(note, args...))
	r.trace.add(name, "event %s", said)
	r.keepsSecrets("an event", said)
}

func (s *simulation) logger() logr.Logger {
	return funcr.New(func(prefix, args string) { s.keepsSecrets("the log", prefix+args) }, funcr.Options{Verbosity: 5})
}
