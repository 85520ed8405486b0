package pve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

var (
	alice = pve.Owner{Namespace: "ns", Name: "alice"}
	bob   = pve.Owner{Namespace: "ns", Name: "bob"}
)

// livingServer is a PVE cluster with one VM, and a task that ends when told.
type livingServer struct {
	journal
	taskEnded atomic.Bool
	tokens    sync.Map
}

func (s *livingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	s.tokens.Store(r.Header.Get("Authorization"), true)
	switch strings.TrimPrefix(r.URL.Path, "/api2/json") {
	case "/cluster/resources":
		answer(w, `[{"type":"qemu","vmid":101,"node":"pve1","status":"running"}]`)
	case "/cluster/tasks":
		end := ""
		if s.taskEnded.Load() {
			end = `,"endtime":1795232537,"status":"OK"`
		}
		answer(w, `[{"upid":"`+upid+`"`+end+`}]`)
	default:
		answer(w, "null")
	}
}

// runRegistry starts a registry and returns how to stop it; the test fails if that takes long.
func runRegistry(t *testing.T, options pve.RegistryOptions) *pve.Registry {
	t.Helper()
	registry := pve.NewRegistry(options)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- registry.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the registry does not stop")
		}
	})
	return registry
}

func livingConfig(t *testing.T) (*livingServer, pve.Config) {
	t.Helper()
	server := &livingServer{}
	_, config := serve(t, server.ServeHTTP)
	config.Options.Clock = nil
	config.Options.PollInterval, config.Options.TaskInterval = 20*time.Millisecond, 20*time.Millisecond
	return server, config
}

func TestClusterFromOpenToClose(t *testing.T) {
	g := NewWithT(t)
	server, config := livingConfig(t)
	var changes, done atomic.Int64
	registry := runRegistry(t, pve.RegistryOptions{
		OnVMChange: func(c *pve.Cluster, news []pve.VMChange) {
			if c.Region() == "test" && len(news) == 1 && news[0].ID == 101 {
				changes.Add(1)
			}
		},
		OnTaskDone: func(_ *pve.Cluster, owner pve.Owner, ended proxmox.UPID) {
			if owner == alice && ended == upid {
				done.Add(1)
			}
		},
	})
	cluster, err := registry.Get(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(changes.Load, "5s").Should(BeEquivalentTo(1))
	g.Expect(cluster.Inventory.Refresh(t.Context(), time.Now())).To(Succeed())
	vm, known := cluster.Inventory.Snapshot().VM(101)
	g.Expect(known).To(BeTrue())
	g.Expect(vm.Node).To(BeEquivalentTo("pve1"))

	cluster.Tracker.Follow(upid, alice)
	g.Consistently(done.Load, "100ms").Should(BeZero())
	server.taskEnded.Store(true)
	g.Eventually(done.Load, "5s").Should(BeEquivalentTo(1))
	outcome, _ := cluster.Tracker.Outcome(upid)
	g.Expect(outcome.State).To(Equal(pve.Succeeded))
}

// TestClusterMetrics: a closed cluster must not look like one whose inventory grows old.
func TestClusterMetrics(t *testing.T) {
	g := NewWithT(t)
	_, config := livingConfig(t)
	metrics := prometheus.NewRegistry()
	config.Options.Registerer = metrics
	cluster, err := pve.Open(config)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cluster.Run(ctx) }()
	cluster.Tracker.Follow(upid, alice)
	gauges := []string{"capve_pve_inventory_timestamp_seconds", "capve_pve_tasks_in_flight"}
	g.Eventually(func() (int, error) { return testutil.GatherAndCount(metrics, gauges...) }, "5s").Should(Equal(2))
	cancel()
	g.Eventually(done, "5s").Should(Receive(BeNil()))
	g.Expect(testutil.GatherAndCount(metrics, gauges...)).To(BeZero())
}

func TestRegistryShares(t *testing.T) {
	g := NewWithT(t)
	_, config := livingConfig(t)
	registry := pve.NewRegistry(pve.RegistryOptions{})
	first, err := registry.Get(config)
	g.Expect(err).NotTo(HaveOccurred())
	config.Region = "by another name"
	second, err := registry.Get(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).To(BeIdenticalTo(first))
	g.Expect(first.Fingerprint()).To(Equal(config.Fingerprint()))

	config.Credentials = pve.TokenCredentials{ID: token.ID, Secret: "rotated"}
	third, err := registry.Get(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(third).NotTo(BeIdenticalTo(first))
	g.Expect(registry.Len()).To(Equal(2))

	config.Endpoints = nil
	_, err = registry.Get(config)
	g.Expect(err).To(HaveOccurred())
	g.Expect(registry.Len()).To(Equal(2))
}

// TestClustersBeforeStart: what was got before the manager started must run as well.
func TestClustersBeforeStart(t *testing.T) {
	g := NewWithT(t)
	server, config := livingConfig(t)
	registry := pve.NewRegistry(pve.RegistryOptions{})
	cluster, err := registry.Get(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Consistently(server.all, "60ms").Should(BeEmpty())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- registry.Start(ctx) }()
	g.Eventually(func() error { return cluster.Inventory.Snapshot().Err }, "5s").Should(Succeed())
	g.Expect(registry.NeedLeaderElection()).To(BeTrue())
	cancel()
	g.Eventually(done, "5s").Should(Receive(BeNil()))
	_, err = registry.Get(config)
	g.Expect(err).To(HaveOccurred())
	before := len(server.all())
	g.Consistently(func() int { return len(server.all()) }, "60ms").Should(Equal(before))
}

func TestUnusedClustersAreClosed(t *testing.T) {
	g := NewWithT(t)
	server, config := livingConfig(t)
	registry := runRegistry(t, pve.RegistryOptions{IdleTimeout: 40 * time.Millisecond})
	held, err := registry.Hold(alice, config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = registry.Hold(bob, config)
	g.Expect(err).NotTo(HaveOccurred())

	rotated := config
	rotated.Credentials = pve.TokenCredentials{ID: token.ID, Secret: "rotated"}
	_, err = registry.Hold(alice, rotated)
	g.Expect(err).NotTo(HaveOccurred())
	g.Consistently(registry.Len, "150ms").Should(Equal(2), "bob holds the old one, alice the new one")

	registry.Release(bob)
	g.Eventually(registry.Len, "5s").Should(Equal(1))
	g.Eventually(func() bool {
		server.tokens.Clear()
		_, old := server.tokens.Load(fmt.Sprintf("PVEAPIToken=%s=%s", token.ID, string(token.Secret)))
		return old
	}, "5s").Should(BeFalse())
	if _, err := held[0].Version(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Logf("a closed cluster may still be asked: %v", err)
	}
	registry.Release(alice)
	g.Eventually(registry.Len, "5s").Should(BeZero())
	again, err := registry.Get(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).NotTo(BeIdenticalTo(held[0]))
}

func TestHoldIsAllOrNothing(t *testing.T) {
	g := NewWithT(t)
	_, config := livingConfig(t)
	registry := pve.NewRegistry(pve.RegistryOptions{})
	broken := config
	broken.Endpoints = nil
	_, err := registry.Hold(alice, config, broken)
	g.Expect(err).To(HaveOccurred())
	twice, err := registry.Hold(alice, config, config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(twice).To(HaveLen(2))
	g.Expect(twice[0]).To(BeIdenticalTo(twice[1]))
}

// TestClusterWithTasksIsKept: its owners wait to be woken.
func TestClusterWithTasksIsKept(t *testing.T) {
	g := NewWithT(t)
	server, config := livingConfig(t)
	registry := runRegistry(t, pve.RegistryOptions{IdleTimeout: 20 * time.Millisecond})
	cluster, err := registry.Get(config)
	g.Expect(err).NotTo(HaveOccurred())
	cluster.Tracker.Follow(upid, alice)
	g.Consistently(registry.Len, "150ms").Should(Equal(1))
	server.taskEnded.Store(true)
	g.Eventually(registry.Len, "5s").Should(BeZero())
}
