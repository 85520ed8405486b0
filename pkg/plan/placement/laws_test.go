package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

var (
	nodes    = []proxmox.NodeName{"pve1", "pve2", "pve3", "pve4"}
	storage  = rapid.SampledFrom([]proxmox.StorageID{"", "local", "local-lvm", "ceph"})
	zone     = rapid.SampledFrom([]string{"", "rack1", "rack2"})
	someSize = rapid.Custom(func(t *rapid.T) proxmox.Bytes { return proxmox.Bytes(rapid.Int64Range(0, 70).Draw(t, "GiB")) * gib })
)

func drawRequest(t *rapid.T) placement.Request {
	return placement.Request{
		FailureDomain: zone.Draw(t, "asked zone"), ControlPlane: rapid.Bool().Draw(t, "for the control plane"),
		AllowedNodes: rapid.SliceOfNDistinct(rapid.SampledFrom(nodes), 0, 2, rapid.ID[proxmox.NodeName]).Draw(t, "allowed"),
		CPUs:         rapid.IntRange(1, 20).Draw(t, "asked CPUs"), Memory: someSize.Draw(t, "asked memory"),
		DiskStorages: rapid.SliceOfN(storage, 0, 2).Draw(t, "disk storages"), SeedStorage: storage.Draw(t, "seed storage"),
	}
}

// drawHosts draws hosts of two regions, whose nodes may have the same names.
func drawHosts(t *rapid.T) []placement.Host {
	draw := rapid.Custom(func(t *rapid.T) placement.Host {
		return placement.Host{
			Region: rapid.SampledFrom([]proxmox.RegionName{"east", "west"}).Draw(t, "region"), Node: rapid.SampledFrom(nodes).Draw(t, "node"),
			FailureDomain: zone.Draw(t, "zone"), ControlPlane: rapid.Bool().Draw(t, "takes control planes"),
			Online: rapid.Float64Range(0, 1).Draw(t, "luck") > 0.1, CPUs: rapid.IntRange(0, 32).Draw(t, "CPUs"),
			Memory: someSize.Draw(t, "memory"), Allocated: someSize.Draw(t, "allocated"), Group: rapid.IntRange(0, 3).Draw(t, "group"),
			Template:      placement.Template{ID: rapid.SampledFrom([]proxmox.VMID{0, 9000, 9001}).Draw(t, "template")},
			SourceRefusal: rapid.SampledFrom([]string{"", "no template here"}).Draw(t, "template refusal"),
			Storages: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) placement.Storage {
				return placement.Storage{
					ID: storage.Draw(t, "storage"), Shared: rapid.Bool().Draw(t, "shared"),
					Images: rapid.Bool().Draw(t, "images"), ISO: rapid.Bool().Draw(t, "ISO"),
				}
			}), 0, 4).Draw(t, "storages"),
		}
	})
	return rapid.SliceOfNDistinct(draw, 0, 8, func(h placement.Host) string { return string(h.Region + "/" + proxmox.RegionName(h.Node)) }).Draw(t, "hosts")
}

// fits says in one sentence which hosts may take a VM. It is the oracle for the filters.
func fits(r placement.Request, h placement.Host) bool {
	takesSeed := func(s placement.Storage) bool { return s.ISO && (r.SeedStorage == "" || r.SeedStorage == s.ID) }
	lacksDisks := func(id proxmox.StorageID) bool {
		return !slices.ContainsFunc(h.Storages, func(s placement.Storage) bool { return s.Images && s.ID == id })
	}
	return h.Online && h.Template.ID != 0 && h.CPUs >= r.CPUs && h.Allocated+r.Memory <= h.Memory &&
		h.FailureDomain != "" && (r.FailureDomain == h.FailureDomain || r.FailureDomain == "" && (h.ControlPlane || !r.ControlPlane)) &&
		(len(r.AllowedNodes) == 0 || slices.Contains(r.AllowedNodes, h.Node)) &&
		!slices.ContainsFunc(r.DiskStorages, lacksDisks) && slices.ContainsFunc(h.Storages, takesSeed)
}

func TestTheChoicePassesEveryFilterAndEveryOtherHostHasAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request, hosts := drawRequest(t), drawHosts(t)
		choice, refusals, found := placement.Place(request, hosts)
		if found && !fits(request, choice.Host) {
			t.Fatalf("chose %+v for %+v", choice.Host, request)
		}
		var refused, misfits []string
		for _, refusal := range refusals {
			if refusal.Reason == "" {
				t.Fatalf("%s was refused without a reason", refusal.Host)
			}
			refused = append(refused, string(refusal.Host))
		}
		for _, host := range hosts {
			if !fits(request, host) {
				misfits = append(misfits, string(host.Node))
			}
		}
		slices.Sort(misfits)
		if diff := cmp.Diff(misfits, refused); diff != "" {
			t.Fatalf("refused hosts (-want +got):\n%s", diff)
		}
		if found != (len(misfits) < len(hosts)) {
			t.Fatalf("found = %t with %d hosts, %d of them refused", found, len(hosts), len(misfits))
		}
	})
}

func TestTheOrderOfTheHostsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request, hosts := drawRequest(t), drawHosts(t)
		choice, refusals, found := placement.Place(request, hosts)
		again, refusalsAgain, foundAgain := placement.Place(request, rapid.Permutation(hosts).Draw(t, "shuffled"))
		if diff := cmp.Diff([]any{choice, refusals, found}, []any{again, refusalsAgain, foundAgain}); diff != "" {
			t.Fatalf("another order gave another answer (-first +second):\n%s", diff)
		}
	})
}

// TestMachinesAreSpreadAndNoHostIsOverfilled places the machines of one group, one after another, until no host is left.
func TestMachinesAreSpreadAndNoHostIsOverfilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request := vm(func(r *placement.Request) { r.Memory = proxmox.Bytes(rapid.Int64Range(1, 8).Draw(t, "size")) * gib })
		var hosts []placement.Host
		for i := range rapid.IntRange(1, 5).Draw(t, "number of hosts") {
			size := proxmox.Bytes(rapid.Int64Range(0, 40).Draw(t, "memory")) * gib
			hosts = append(hosts, host(proxmox.NodeName(fmt.Sprintf("pve%d", i+1)), func(h *placement.Host) { h.Memory = size }))
		}
		room := func(h placement.Host) bool { return h.Allocated+request.Memory <= h.Memory }
		for {
			choice, _, found := placement.Place(request, hosts)
			if !found {
				break
			}
			chosen := slices.IndexFunc(hosts, func(h placement.Host) bool { return h.Node == choice.Host.Node })
			hosts[chosen].Allocated += request.Memory
			hosts[chosen].Group++
			if hosts[chosen].Allocated > hosts[chosen].Memory {
				t.Fatalf("%s has %d of %d bytes allocated", hosts[chosen].Node, hosts[chosen].Allocated, hosts[chosen].Memory)
			}
			for _, other := range hosts {
				if room(other) && hosts[chosen].Group-other.Group > 1 {
					t.Fatalf("%s got machine %d while %s, which has room, has %d", hosts[chosen].Node, hosts[chosen].Group, other.Node, other.Group)
				}
			}
		}
		if left := slices.IndexFunc(hosts, room); left >= 0 {
			t.Fatalf("refused while %s has room", hosts[left].Node)
		}
	})
}
