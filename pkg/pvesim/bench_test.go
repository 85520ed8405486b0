package pvesim_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// manyVMs is the size of the clusters that the benchmarks look at.
const manyVMs = 2000

// crowd is a cluster of 20 hosts with many running VMs in ten pools.
func crowd() pvesim.State {
	s := pvesim.State{Storages: []pvesim.StorageSpec{{ID: "local-lvm", Type: "lvmthin", Content: []string{"images"}}}}
	for i := range 20 {
		s.Nodes = append(s.Nodes, pvesim.NodeSpec{Name: proxmox.NodeName(fmt.Sprintf("pve%d", i+1))})
	}
	for i := range 10 {
		s.Pools = append(s.Pools, pvesim.PoolSpec{ID: proxmox.PoolID(fmt.Sprintf("pool%d", i))})
	}
	for i := range manyVMs {
		id := proxmox.VMID(1000 + i)
		s.VMs = append(s.VMs, pvesim.VMSpec{
			VMID: id, Node: s.Nodes[i%20].Name, Pool: s.Pools[i%10].ID, State: "running",
			Config: map[string]string{
				"name": fmt.Sprintf("worker-%d", i), "cores": "4", "memory": "8192", "tags": "capi;cluster-a;worker", "agent": "1", "ostype": "l26",
				"scsi0": fmt.Sprintf("local-lvm:vm-%d-disk-0,size=40G", id), "ide2": fmt.Sprintf("local-lvm:vm-%d-cloudinit,media=cdrom", id),
				"net0": fmt.Sprintf("virtio=BC:24:11:00:%02X:%02X,bridge=vmbr0", i/256, i%256), "boot": "order=scsi0",
			},
		})
	}
	return s
}

func BenchmarkSeed2000(b *testing.B) {
	s := crowd()
	for b.Loop() {
		w, err := pvesim.NewWorld(pvesim.FromState(s))
		must(b, err)
		w.Close()
	}
}

// get makes a request that has to succeed and reads the answer.
func get(b *testing.B, client *http.Client, address string) {
	b.Helper()
	resp, err := client.Get(address)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n == 0 || resp.StatusCode != http.StatusOK {
		b.Errorf("GET %s: %d, %d bytes, %v", address, resp.StatusCode, n, err)
	}
}

// BenchmarkReads is what controllers ask of a cluster: once in a while for all VMs, mostly for single ones. Its clients are parallel,
// over HTTPS with kept connections.
func BenchmarkReads(b *testing.B) {
	s := pvesim.Run(b, pvesim.FromState(crowd()), pvesim.WithSpeed(1))
	mix := readMix(s.URL + "/api2/json")
	var turn atomic.Uint64
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		client := s.Client()
		for pb.Next() {
			get(b, client, mix(turn.Add(1)))
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// readMix gives the address of the n-th read: of twenty, one is for all VMs.
func readMix(api string) func(uint64) string {
	return func(n uint64) string {
		vm := fmt.Sprintf("%s/nodes/pve%d/qemu/%d", api, n%20+1, 1000+n%manyVMs)
		switch n % 20 {
		case 0:
			return api + "/cluster/resources?type=vm"
		case 1, 2:
			return api + "/cluster/nextid"
		case 3, 4:
			return api + "/nodes"
		case 5, 6, 7, 8, 9, 10:
			return vm + "/config"
		}
		return vm + "/status/current"
	}
}

func BenchmarkResources(b *testing.B) {
	w := newWorld(b, pvesim.FromState(crowd()))
	server, err := pvesim.Serve(w, "")
	must(b, err)
	b.Cleanup(server.Close)
	client := &http.Client{Transport: authorized{w.Transport("pve1"), server.Token.Header()}}
	for b.Loop() {
		get(b, client, "https://pve1/api2/json/cluster/resources")
	}
}

// authorized sends a token without a network.
type authorized struct {
	next   http.RoundTripper
	header string
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", a.header)
	return a.next.RoundTrip(r)
}
