package observe

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// Options are what an Observer is made of.
type Options struct {
	// Client reads from the manager's cache, Live past it.
	Client, Live client.Reader
	Clock        clock.Clock
	// RequestLog is the path of a file to which every request to Proxmox VE is appended, secrets masked; empty for none.
	RequestLog string
	Registerer prometheus.Registerer
	Logger     logr.Logger
	UserAgent  string
	// Transport and Draw are those of pve.Options.
	Transport http.RoundTripper
	Draw      func(n int64) int64
	// LateAfter is how long Proxmox VE may take to carry out a request whose answer was lost; two minutes when it is zero.
	LateAfter time.Duration
}

// New returns an Observer, and the Runnable that polls Proxmox VE and follows tasks for it.
func New(options Options) (*Observer, manager.Runnable, error) {
	shared := pve.Options{
		Clock: options.Clock, Registerer: options.Registerer, Logger: options.Logger, UserAgent: options.UserAgent,
		Transport: options.Transport, Draw: options.Draw,
	}
	if options.RequestLog != "" {
		requestLog, err := pve.OpenRequestLog(options.RequestLog)
		if err != nil {
			return nil, nil, fmt.Errorf("open the request log: %w", err)
		}
		shared.RequestLog = requestLog
	}
	waker := NewWaker()
	memory := NewMemory(options.Clock)
	memory.late = cmp.Or(options.LateAfter, lateAfter)
	slots := NewCloneSlots(options.Clock, waker.Wake)
	done := func(cluster *pve.Cluster, owner pve.Owner, task proxmox.UPID) {
		slots.taskDone(types.NamespacedName(owner), task)
		waker.TaskDone(cluster, owner, task)
	}
	registry := pve.NewRegistry(pve.RegistryOptions{OnVMChange: waker.VMChanged, OnTaskDone: done, Clock: options.Clock})
	return &Observer{
		Client: options.Client, Live: options.Live,
		Regions: NewRegions(options.Live, registry, shared),
		Ledger:  NewLedger(options.Client), Memory: memory, Waker: waker, Clock: options.Clock,
		Allocator: NewAllocator(options.Clock), Slots: slots,
	}, registry, nil
}
