package pve

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// returnAfter is when a client that left its first endpoint tries it again.
const returnAfter = time.Minute

// failover sends each request to the endpoint that answered last, and to the next ones if it is proven that no server has
// executed it. It remembers who does not answer.
type failover struct {
	endpoints []*url.URL
	clock     clock.Clock
	log       logr.Logger
	next      http.RoundTripper

	mu      sync.Mutex
	current int
	left    time.Time
}

func newFailover(endpoints []*url.URL, clock clock.Clock, log logr.Logger, next http.RoundTripper) *failover {
	return &failover{endpoints: endpoints, clock: clock, log: log, next: next}
}

// RoundTrip implements http.RoundTripper.
func (f *failover) RoundTrip(req *http.Request) (*http.Response, error) {
	var first error
	start := f.start()
	for i := range f.endpoints {
		at := (start + i) % len(f.endpoints)
		attempt, err := f.aim(req, f.endpoints[at])
		if err != nil {
			return nil, err
		}
		answer, err := f.next.RoundTrip(attempt)
		if err == nil {
			f.prefer(at)
			return answer, nil
		}
		if req.Context().Err() != nil {
			return nil, err // the caller gave up, which says nothing about the endpoint
		}
		f.judge(at, err)
		if !mayGoElsewhere(err) {
			return nil, err
		}
		first = moreTelling(first, err)
	}
	return nil, first
}

// start picks the endpoint to begin with. Once a while one request probes the preferred endpoint again.
func (f *failover) start() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != 0 && f.clock.Since(f.left) >= returnAfter {
		f.left = f.clock.Now()
		return 0
	}
	return f.current
}

// prefer goes back to an endpoint further up the list that answers again.
func (f *failover) prefer(at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = min(f.current, at)
}

// judge moves on from an endpoint that gives no answer, and stays with one that does.
func (f *failover) judge(at int, err error) {
	answer := (*Error)(nil)
	if !errors.As(err, &answer) || answer.Status != 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at != f.current || len(f.endpoints) == 1 {
		return
	}
	f.current, f.left = (at+1)%len(f.endpoints), f.clock.Now()
	f.log.Info("endpoint does not answer, using the next", "endpoint", f.endpoints[at].Host, "next", f.endpoints[f.current].Host,
		"error", err.Error())
}

// aim copies the request for an endpoint, with its body from the start.
func (f *failover) aim(req *http.Request, endpoint *url.URL) (*http.Request, error) {
	attempt := req.Clone(req.Context())
	attempt.URL.Scheme, attempt.URL.Host, attempt.Host = endpoint.Scheme, endpoint.Host, ""
	if req.GetBody == nil {
		return attempt, nil
	}
	body, err := req.GetBody()
	attempt.Body = body
	return attempt, err
}

// mayGoElsewhere says that no server has executed the request, or that it changes nothing, and that another endpoint may do
// better: one on the node that is asked for reaches its daemon when the others cannot. Where it took pveproxy or us long to
// find out, it would take as long again.
func mayGoElsewhere(err error) bool {
	answer := (*Error)(nil)
	if !errors.As(err, &answer) {
		return false
	}
	if answer.Status == statusNoConnection {
		return answer.refused()
	}
	lost := answer.Sent && (answer.writes() || errors.Is(err, context.DeadlineExceeded))
	return answer.Status == 0 && !lost
}

// moreTelling keeps the error that comes from a PVE node over one that says an endpoint is not there.
func moreTelling(first, second error) error {
	answer := (*Error)(nil)
	if first == nil || errors.As(second, &answer) && answer.Status != 0 {
		return second
	}
	return first
}
