package pve

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// resourcesJSON is what /cluster/resources says of a PVE cluster with so many guests, with all fields of PVE 9.
func resourcesJSON(guests int) []byte {
	entries := make([]map[string]any, guests)
	for i := range entries {
		entries[i] = map[string]any{
			"id": fmt.Sprintf("qemu/%d", 100+i), "type": "qemu", "vmid": 100 + i, "node": fmt.Sprintf("pve%d", i%16), "name": fmt.Sprintf("worker-%d", i),
			"status": "running", "cpu": 0.0123, "maxcpu": 8, "mem": 123456789, "maxmem": 17179869184, "memhost": 1234567890, "disk": 0,
			"maxdisk": 34359738368, "diskread": 123, "diskwrite": 456, "netin": 1, "netout": 2, "uptime": 86400, "template": 0,
			"tags": "capi;cluster-a;md-0", "pool": "capi",
		}
	}
	data, _ := json.Marshal(entries)
	return data
}

func BenchmarkSnapshotOf5000(b *testing.B) {
	data := resourcesJSON(5000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var last Snapshot
	for b.Loop() {
		list, err := decodeList(data)
		if err != nil {
			b.Fatal(err)
		}
		resources := make([]Resource, len(list))
		for i, object := range list {
			resources[i] = object.resource()
		}
		next := snapshotOf(resources...)
		_ = last.diff(next)
		last = next
	}
	if len(slices.Collect(last.VMs())) != 5000 {
		b.Error("guests are missing")
	}
}
