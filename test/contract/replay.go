package contract

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const (
	// pollTask is how often a task is asked for its status.
	pollTask = 200 * time.Millisecond
	// maxTask is how long a task is waited for.
	maxTask = 10 * time.Minute
	// pollPhase is how often an answer is looked at that shows a phase of a task.
	pollPhase = 100 * time.Millisecond
	// settling is how long after a change pvestatd has told all nodes of it: it works every 10 s.
	settling = 11 * time.Second
)

// Result is what came of one exchange.
type Result struct {
	Exchange Exchange
	// Diffs are the differences from the recorded answer, a line each; none if the answers agree.
	Diffs []string
}

// replay plays one recording.
type replay struct {
	target    Target
	recording *Recording
	// world is nil if the target is no simulated one.
	world *pvesim.World
	pairs *Pairs
	upids map[int]proxmox.UPID
	// changed is when a VM was last named by a request to change something, or its task ended.
	changed    map[string]time.Time
	ticket     string
	csrf       string
	undo       func()
	concurrent map[int]Answer
	// refused are concurrent calls that were refused at once where in the recording their tasks were.
	refused map[int]bool
}

// Replay sends the requests of a recording to the target, does what the recorder did beside them, and compares the answers.
// The world is the simulated one behind the target, or nil.
func Replay(ctx context.Context, r *Recording, target Target, world *pvesim.World) ([]Result, error) {
	p := newReplay(r, target, world)
	if err := p.actBefore(ctx, 0); err != nil {
		return nil, err
	}
	var out []Result
	for i, e := range r.Exchanges {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if err := p.actBefore(ctx, e.Seq); err != nil {
			return out, err
		}
		diffs, err := p.play(ctx, i)
		if err != nil {
			return out, err
		}
		if !e.HeldOut {
			out = append(out, Result{Exchange: e, Diffs: diffs})
		}
	}
	if p.undo != nil {
		p.undo()
	}
	return out, nil
}

func newReplay(r *Recording, target Target, world *pvesim.World) *replay {
	p := &replay{
		target: target, recording: r, world: world, pairs: NewPairs(), upids: map[int]proxmox.UPID{}, concurrent: map[int]Answer{}, refused: map[int]bool{},
		changed: map[string]time.Time{},
	}
	for _, g := range r.Setup.Guests {
		p.changed[fmt.Sprint(g.VMID)] = target.Clock.Now()
		for name, value := range g.Config {
			if name != "vmgenid" || world != nil {
				p.pairs.Choose(fmt.Sprint(value))
			}
		}
	}
	return p
}

// AllMissed are the results of a recording that cannot be replayed at all.
func (r *Recording) AllMissed(why string) []Result {
	var out []Result
	for _, e := range r.Exchanges {
		if !e.HeldOut {
			out = append(out, Result{Exchange: e, Diffs: []string{why}})
		}
	}
	return out
}

// actBefore does what the recorder did before the exchange.
func (r *replay) actBefore(ctx context.Context, seq int) error {
	for _, a := range acts {
		if a.scenario != r.recording.Scenario || a.before != seq || (a.version != "" && a.version != r.recording.Version) {
			continue
		}
		if a.do != nil && r.world != nil {
			s := &stage{World: r.world, upids: r.upids, undo: r.undo}
			a.do(s)
			r.undo = s.undo
		}
		for _, e := range a.calls {
			answer, err := r.send(ctx, e)
			if err != nil {
				return err
			}
			r.waitFor(ctx, proxmox.UPID(upidOf(answer.Body)))
		}
		r.target.sleep(a.wait)
	}
	return nil
}

// later matches notes that tell how long the recorder had waited.
var later = regexp.MustCompile(`\b(\d+) ?s (after|later|or more)\b`)

// polled matches notes on answers that the recorder had waited for: running 10s after the request, running now.
var polled = regexp.MustCompile(`^(?:running|stopped) (?:now|(\d+)s after the request)$`)

// play makes one exchange and returns the differences.
func (r *replay) play(ctx context.Context, i int) ([]string, error) {
	e := r.recording.Exchanges[i]
	if m := later.FindStringSubmatch(e.Note); m != nil && !e.Phase && !polled.MatchString(e.Note) {
		seconds, _ := strconv.Atoi(m[1])
		r.target.sleep(time.Duration(seconds) * time.Second)
	}
	if r.refused[e.TaskOf] {
		return nil, nil
	}
	if missing := r.findTask(ctx, e); missing != "" {
		return []string{missing}, nil
	}
	answer, diffs, err := r.exchange(ctx, e)
	if err != nil {
		return nil, err
	}
	if e.Method == http.MethodPost && e.Path == "/access/ticket" {
		r.learnTicket(answer.Body)
	}
	if upid := upidOf(answer.Body); upid != "" {
		r.upids[e.Seq] = proxmox.UPID(upid)
		if r.waited(i) {
			r.waitFor(ctx, proxmox.UPID(upid))
		}
	}
	r.touch(e)
	return diffs, nil
}

// number matches what may be a VMID.
var number = regexp.MustCompile(`\b\d{3,9}\b`)

// touch notes that an exchange may have changed VMs: by itself, or because it saw the end of a task that did.
func (r *replay) touch(e Exchange) {
	if e.Method == http.MethodGet && e.TaskOf == 0 {
		return
	}
	for _, id := range number.FindAllString(e.Path+" "+string(e.Params), -1) {
		r.changed[id] = r.target.Clock.Now()
	}
	for _, x := range r.recording.Exchanges {
		if x.Seq == e.TaskOf && x.TaskOf == 0 {
			r.touch(x)
		}
	}
}

// settled tells whether pvestatd had the time to tell all nodes of a VM.
func (r *replay) settled(vmid string) bool { return r.target.Clock.Since(r.changed[vmid]) >= settling }

// exchange sends the request, as often as its kind wants, and compares.
func (r *replay) exchange(ctx context.Context, e Exchange) (Answer, []string, error) {
	switch {
	case e.HeldOut:
		answer, err := r.send(ctx, e)
		return answer, nil, err
	case e.Concurrent:
		answer, err := r.sendTogether(ctx, e)
		if err != nil || r.refused[e.Seq] {
			return answer, nil, err
		}
		return answer, Compare(e, answer, r.pairs, r.settled), nil
	case e.Phase || polled.MatchString(e.Note):
		return r.lookFor(ctx, e)
	}
	answer, err := r.send(ctx, e)
	if err != nil {
		return answer, nil, err
	}
	return answer, Compare(e, answer, r.pairs, r.settled), nil
}

// send makes the request of an exchange.
func (r *replay) send(ctx context.Context, e Exchange) (Answer, error) {
	r.target.sleep(r.target.Think)
	req, err := r.pairs.request(ctx, e, r.target.Origin)
	if err != nil {
		return Answer{}, err
	}
	if err := r.authorize(ctx, e, req); err != nil {
		return Answer{}, err
	}
	via := e.Via
	if via == "" {
		via = "pve1"
	}
	return r.target.send(via, req), nil
}

// seen matches the notes of phases.
var seen = regexp.MustCompile(`as seen ([0-9.]+)s after`)

// lookFor asks until the answer agrees, at most some times as long as the recorder did.
func (r *replay) lookFor(ctx context.Context, e Exchange) (answer Answer, diffs []string, err error) {
	most := 2 * time.Second
	if polled.MatchString(e.Note) {
		most = quiet
	}
	if m := seen.FindStringSubmatch(e.Note); m != nil {
		seconds, _ := strconv.ParseFloat(m[1], 64)
		most += time.Duration(3 * seconds * float64(time.Second))
	}
	for end := r.target.Clock.Now().Add(most); ; r.target.sleep(pollPhase) {
		if answer, err = r.send(ctx, e); err != nil {
			return answer, nil, err
		}
		pairs := r.pairs.Clone()
		diffs = Compare(e, answer, pairs, r.settled)
		if len(diffs) == 0 || !r.target.Clock.Now().Before(end) {
			r.pairs = pairs
			return answer, diffs, nil
		}
	}
}

// sendTogether sends all exchanges at the same moment that are concurrent with this one and keeps the other answers. Which
// one wins is incidental, so the one that won in the recording goes a moment ahead.
func (r *replay) sendTogether(ctx context.Context, e Exchange) (Answer, error) {
	if answer, ok := r.concurrent[e.Seq]; ok {
		return answer, nil
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var failed error
	for _, other := range r.rivals(e) {
		group.Go(func() {
			answer, err := r.send(ctx, other)
			mu.Lock()
			defer mu.Unlock()
			r.concurrent[other.Seq] = answer
			if err != nil {
				failed = err
			}
		})
		r.target.sleep(time.Millisecond)
	}
	group.Wait()
	for _, other := range r.rivals(e) {
		r.lostAtOnce(other)
	}
	return r.concurrent[e.Seq], failed
}

// rivals are the exchanges that were made together with this one, the winner first.
func (r *replay) rivals(e Exchange) []Exchange {
	var out []Exchange
	for _, other := range r.recording.Exchanges {
		if !other.Concurrent || other.Note != e.Note {
			continue
		}
		if r.recordedExit(other.Seq) == "OK" {
			out = append([]Exchange{other}, out...)
		} else {
			out = append(out, other)
		}
	}
	return out
}

// recordedExit is the exit status of the task that the exchange started.
func (r *replay) recordedExit(seq int) string {
	for _, e := range r.recording.Exchanges {
		if e.TaskOf == seq && strings.HasSuffix(e.Path, "/status") {
			return exitOf(e.Body)
		}
	}
	return ""
}

// lostAtOnce takes a call that was refused at once for what its task was refused in the recording: that is incidental, too.
func (r *replay) lostAtOnce(e Exchange) {
	if answer := r.concurrent[e.Seq]; answer.Status == 500 && answer.Reason == r.recordedExit(e.Seq) {
		r.refused[e.Seq] = true
	}
}
