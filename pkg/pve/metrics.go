package pve

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// metrics are shared by all clients that register with the same Registerer. A nil *metrics keeps none.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inflight *prometheus.GaugeVec
	snapshot *prometheus.GaugeVec
	tasks    *prometheus.GaugeVec
}

// newMetrics registers the metrics, or finds those that another client has registered.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	if registerer == nil {
		return nil, nil //nolint:nilnil // nil keeps none
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capve_pve_requests_total", Help: "Requests sent to Proxmox VE, by class of their error.",
		}, []string{"region", "method", "route", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capve_pve_request_seconds", Help: "Time until Proxmox VE answered.",
			Buckets: []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60},
		}, []string{"region", "method", "route"}),
		inflight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "capve_pve_requests_in_flight", Help: "Requests under way, by PVE node; none for those of the whole cluster.",
		}, []string{"region", "node"}),
		snapshot: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "capve_pve_inventory_timestamp_seconds", Help: "When the inventory's snapshot was requested; its age is time() minus this.",
		}, []string{"region"}),
		tasks: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "capve_pve_tasks_in_flight", Help: "Proxmox VE tasks that are followed and have not ended.",
		}, []string{"region"}),
	}
	return m, m.register(registerer)
}

func (m *metrics) register(registerer prometheus.Registerer) error {
	return errors.Join(register(registerer, &m.requests), register(registerer, &m.seconds), register(registerer, &m.inflight),
		register(registerer, &m.snapshot), register(registerer, &m.tasks))
}

// register adds a collector, or replaces it by the one that is registered already.
func register[C prometheus.Collector](registerer prometheus.Registerer, collector *C) error {
	err := registerer.Register(*collector)
	if known := (prometheus.AlreadyRegisteredError{}); errors.As(err, &known) {
		if same, ok := known.ExistingCollector.(C); ok {
			*collector = same
			return nil
		}
	}
	return err
}

func (m *metrics) request(region proxmox.RegionName, call *call, class Class, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(string(region), call.method, call.route, class.String()).Inc()
	m.seconds.WithLabelValues(string(region), call.method, call.route).Observe(took.Seconds())
}

func (m *metrics) enter(region proxmox.RegionName, node proxmox.NodeName) {
	if m != nil {
		m.inflight.WithLabelValues(string(region), string(node)).Inc()
	}
}

func (m *metrics) leave(region proxmox.RegionName, node proxmox.NodeName) {
	if m != nil {
		m.inflight.WithLabelValues(string(region), string(node)).Dec()
	}
}

func (m *metrics) snapshotAt(region proxmox.RegionName, at time.Time) {
	if m != nil {
		m.snapshot.WithLabelValues(string(region)).Set(float64(at.UnixMilli()) / 1000)
	}
}

func (m *metrics) tasksInFlight(region proxmox.RegionName, count int) {
	if m != nil {
		m.tasks.WithLabelValues(string(region)).Set(float64(count))
	}
}

// forget drops what a closed cluster would leave behind as if it were current.
func (m *metrics) forget(region proxmox.RegionName) {
	if m != nil {
		m.snapshot.DeleteLabelValues(string(region))
		m.tasks.DeleteLabelValues(string(region))
	}
}

// statusOf is the HTTP status of a round trip.
func statusOf(answer *http.Response, err error) int {
	if failure := (*Error)(nil); errors.As(err, &failure) {
		return failure.Status
	}
	if answer == nil {
		return 0
	}
	return answer.StatusCode
}
