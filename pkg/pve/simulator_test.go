package pve_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
)

// simulated is a running Cluster of a simulated PVE.
type simulated struct {
	*pve.Cluster
	g    *WithT
	ctx  context.Context
	sim  *pvesim.Server
	done chan proxmox.UPID
	log  *syncBuffer
}

// simulate runs a Cluster against a simulator; both end with the test.
func simulate(t *testing.T, credentials func(*pvesim.Server) pve.Credentials, options ...pvesim.Option) *simulated {
	t.Helper()
	sim := pvesim.Run(t, options...)
	s := &simulated{g: NewWithT(t), ctx: t.Context(), sim: sim, done: make(chan proxmox.UPID, 100), log: &syncBuffer{}}
	cluster, err := pve.Open(pve.Config{
		Region: "sim", Endpoints: []string{sim.URL}, Credentials: credentials(sim), TLS: pve.TLSConfig{CABundle: sim.CAPEM},
		Options: pve.Options{
			PollInterval: 50 * time.Millisecond, TaskInterval: 20 * time.Millisecond, RequestLog: pve.NewRequestLog(s.log),
		},
	})
	s.g.Expect(err).NotTo(HaveOccurred())
	cluster.Tracker.OnDone(func(_ pve.Owner, upid proxmox.UPID) { s.done <- upid })
	s.Cluster = cluster
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = cluster.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return s
}

func byToken(sim *pvesim.Server) pve.Credentials {
	return pve.TokenCredentials{ID: sim.Token.ID, Secret: pve.Secret(string(sim.Token.Secret))}
}

func byLogin(sim *pvesim.Server) pve.Credentials {
	sim.World.AddUser(pvesim.UserSpec{ID: "root@pam", Password: "correct horse"})
	return pve.PasswordCredentials{Username: "root@pam", Password: "correct horse"}
}

// ends follows a task and expects it to succeed.
func (s *simulated) ends(upid proxmox.UPID, err error) {
	s.g.THelper()
	s.g.Expect(err).NotTo(HaveOccurred())
	s.Tracker.Follow(upid, alice)
	s.g.Eventually(s.done, "20s").Should(Receive(Equal(upid)))
	outcome, known := s.Tracker.Outcome(upid)
	s.g.Expect(known).To(BeTrue())
	s.g.Expect(outcome.Err).NotTo(HaveOccurred())
	s.g.Expect(outcome.State).To(Equal(pve.Succeeded))
}

// sees waits until the inventory shows a VM as wanted.
func (s *simulated) sees(id proxmox.VMID, want func(vm pve.VM, known bool) bool) {
	s.g.THelper()
	s.g.Eventually(func() bool { return want(s.Inventory.Snapshot().VM(id)) }, "20s").Should(BeTrue())
}

// TestLifeOfVM goes the provider's way once: clone, configure, upload, grow, start, stop, destroy.
func TestLifeOfVM(t *testing.T) {
	for name, credentials := range map[string]func(*pvesim.Server) pve.Credentials{"token": byToken, "ticket": byLogin} {
		for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
			t.Run(name+" "+string(version), func(t *testing.T) {
				s := simulate(t, credentials, pvesim.WithVersion(version))
				s.live(t)
				s.checkLog(t, string(version))
			})
		}
	}
}

func (s *simulated) live(t *testing.T) {
	t.Helper()
	vm := pve.VMRef{Node: "pve1", ID: 123}
	s.ends(s.CloneVM(s.ctx, pve.CloneRequest{
		Source: pve.VMRef{Node: "pve1", ID: 9001}, NewID: vm.ID, Name: "w1", Description: "uuid=1", Pool: "capi", Mode: pve.CloneFull,
	}))
	s.sees(vm.ID, func(got pve.VM, known bool) bool { return known && got.Node == vm.Node && got.Pool == "capi" })
	s.ends(s.UploadISO(s.ctx, pve.UploadRequest{Node: "pve1", Storage: "local", Filename: "w1.iso", Content: make([]byte, 4096)}))
	config, err := s.VMConfig(s.ctx, vm)
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(config.Description()).To(Equal("uuid=1"))
	s.g.Expect(s.UpdateConfig(s.ctx, pve.ConfigUpdate{
		VM: vm, Digest: config.Digest, Set: map[string]string{"cores": "3", "tags": "capi;w1", "ide3": "local:iso/w1.iso,media=cdrom"},
	})).To(Succeed())
	err = s.UpdateConfig(s.ctx, pve.ConfigUpdate{VM: vm, Digest: config.Digest, Set: map[string]string{"cores": "4"}})
	s.g.Expect(pve.ClassOf(err)).To(Equal(pve.Conflict), "%v", err)
	s.ends(s.ResizeDisk(s.ctx, pve.ResizeRequest{VM: vm, Disk: "scsi0", Size: proxmox.GiB(12).Bytes()}))
	s.ends(s.StartVM(s.ctx, vm))
	status, err := s.VMStatus(s.ctx, vm)
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(status.Status).To(Equal(pve.StatusRunning))
	s.sees(vm.ID, func(got pve.VM, _ bool) bool {
		return got.Status == pve.StatusRunning && got.HasTag("w1") && got.Name == "w1"
	})
	s.ends(s.StopVM(s.ctx, vm))
	s.ends(s.DestroyVM(s.ctx, pve.DestroyRequest{VM: vm}))
	s.sees(vm.ID, func(_ pve.VM, known bool) bool { return !known })
	if upid, err := s.DeleteVolume(s.ctx, "pve1", "local:iso/w1.iso"); upid != "" {
		s.ends(upid, err)
	}
	_, err = s.VMConfig(s.ctx, vm)
	s.g.Expect(pve.ClassOf(err)).To(Equal(pve.NotFound), "%v", err)
	s.g.Expect(s.sim.World.Check()).To(BeEmpty())
}

// checkLog holds what was sent against PVE's schema.
func (s *simulated) checkLog(t *testing.T, version string) {
	t.Helper()
	schema, err := pveschema.LoadSchema("../../../shared/pve-api", version)
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("no API schema beside the repository")
		return
	}
	s.g.Expect(err).NotTo(HaveOccurred())
	for _, line := range parseLog(t, s.log.String()) {
		if err := schema.Validate(line.Method, line.Path, line.Params); err != nil {
			t.Error(err)
		}
	}
}

// TestLostReplyOfClone: the client must not clone twice, and the inventory shows what happened.
func TestLostReplyOfClone(t *testing.T) {
	s := simulate(t, byToken)
	s.g.Expect(s.sim.World.AddFault(pvesim.Fault{Method: "POST", Path: "/nodes/{node}/qemu/{vmid}/clone", Nth: 1, When: pvesim.DropReply})).To(Succeed())
	request := pve.CloneRequest{Source: pve.VMRef{Node: "pve2", ID: 9002}, NewID: 200, Name: "w1", Mode: pve.CloneFull}
	_, err := s.CloneVM(s.ctx, request)
	s.g.Expect(pve.ClassOf(err)).To(Equal(pve.Ambiguous), "%v", err)
	s.sees(200, func(vm pve.VM, known bool) bool { return known && vm.Node == "pve2" })
	clones := 0
	for _, line := range parseLog(t, s.log.String()) {
		if strings.HasSuffix(line.Path, "/clone") {
			clones++
		}
	}
	s.g.Expect(clones).To(Equal(1))
	s.g.Eventually(s.sim.World.RunningTasks, "20s").Should(BeZero())
	_, err = s.CloneVM(s.ctx, request)
	s.g.Expect(pve.ClassOf(err)).To(Equal(pve.AlreadyExists), "%v", err)
}

// TestSimulatedTrouble: the classes of what a provider runs into.
func TestSimulatedTrouble(t *testing.T) {
	s := simulate(t, byToken)
	_, err := s.VMConfig(s.ctx, pve.VMRef{Node: "pve1", ID: 999})
	s.g.Expect(pve.ClassOf(err)).To(Equal(pve.NotFound), "%v", err)
	upid, err := s.StartVM(s.ctx, pve.VMRef{Node: "pve1", ID: 9001})
	s.g.Expect(err).NotTo(HaveOccurred())
	s.Tracker.Follow(upid, alice)
	s.g.Eventually(s.done, "20s").Should(Receive(Equal(upid)))
	outcome, _ := s.Tracker.Outcome(upid)
	s.g.Expect(pve.ClassOf(outcome.Err)).To(Equal(pve.WrongState), "%v", outcome.Err)
	err = s.UpdateConfig(s.ctx, pve.ConfigUpdate{VM: pve.VMRef{Node: "pve1", ID: 9001}, Set: map[string]string{"affinity": "0-1"}})
	s.g.Expect(pve.ClassOf(err)).To(Equal(pve.RootOnly), "%v", err)

	s.sim.World.StopNode("pve3")
	_, err = s.VMConfig(s.ctx, pve.VMRef{Node: "pve3", ID: 9003})
	s.g.Expect(pve.ClassOf(err)).To(Equal(pve.Unreachable), "%v", err)
	s.g.Eventually(func() bool {
		node, _ := s.Inventory.Snapshot().Node("pve3")
		return node.Online
	}, "20s").Should(BeFalse())
}

// TestSimulatedInventory: what the snapshot shows of a fresh PVE.
func TestSimulatedInventory(t *testing.T) {
	s := simulate(t, byToken)
	s.g.Expect(s.Inventory.Refresh(s.ctx, time.Now())).To(Succeed())
	snapshot := s.Inventory.Snapshot()
	s.g.Expect(snapshot.Nodes()).To(HaveLen(3))
	s.g.Expect(slices.Collect(snapshot.Templates())).To(HaveLen(3))
	local, known := snapshot.Storage("pve1", "local")
	s.g.Expect(known && local.Holds("iso") && local.Available).To(BeTrue())
	node, known := snapshot.Node("pve2")
	s.g.Expect(known && node.Online).To(BeTrue())
	s.g.Expect(node.MaxMemory.MiB()).To(BeNumerically(">", 1024))
	version, err := s.Version(s.ctx)
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(version.AtLeast(8, 0)).To(BeTrue())
	permissions, err := s.Permissions(s.ctx)
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(permissions.Allows("/vms/100", "VM.Clone")).To(BeTrue())
}
