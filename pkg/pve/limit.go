package pve

import (
	"net/http"
	"sync"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// limiter lets only so many requests be under way at one PVE node. Requests that name no node share one more set of slots.
type limiter struct {
	region  proxmox.RegionName
	size    int
	metrics *metrics
	next    http.RoundTripper

	mu    sync.Mutex
	slots map[proxmox.NodeName]chan struct{}
}

func newLimiter(region proxmox.RegionName, size int, metrics *metrics, next http.RoundTripper) *limiter {
	return &limiter{region: region, size: size, metrics: metrics, next: next, slots: map[proxmox.NodeName]chan struct{}{}}
}

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(req *http.Request) (*http.Response, error) {
	call := callOf(req)
	slots := l.of(call.node)
	select {
	case slots <- struct{}{}:
	case <-req.Context().Done():
		failure := call.failure(l.region)
		failure.Cause = req.Context().Err()
		return nil, failure
	}
	l.metrics.enter(l.region, call.node)
	defer func() {
		l.metrics.leave(l.region, call.node)
		<-slots
	}()
	return l.next.RoundTrip(req)
}

// of returns the slots of a node.
func (l *limiter) of(node proxmox.NodeName) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	slots, ok := l.slots[node]
	if !ok {
		slots = make(chan struct{}, l.size)
		l.slots[node] = slots
	}
	return slots
}
