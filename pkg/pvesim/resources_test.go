package pvesim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// guests are some members of the guests in cluster/resources as seen from pve1.
func (b *bubble) guests(keys ...string) []string {
	b.t.Helper()
	return pick(b.data("pve1", "/cluster/resources", "type", "vm"), keys...)
}

func (b *bubble) same(what string, got, want []string) {
	b.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestResourcesLagBehind: node, tags and lock are those of now, all else is what pvestatd last broadcast.
func TestResourcesLagBehind(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		if exit := b.exit("pve1", "POST", "/nodes/pve1/qemu", "vmid", "110", "name", "new", "tags", "a"); exit != "OK" {
			b.t.Fatal(exit)
		}
		b.pass(10 * time.Second)
		for id := range 3 {
			b.ask("pve1", "DELETE", fmt.Sprintf("/nodes/pve%d/qemu/%d00", id+1, id+1))
		}
		b.pass(12 * time.Second)
		b.same("some time later", b.guests("vmid", "name", "status", "tags"), []string{"vmid=110 name=new status=stopped tags=a", "vmid=301 name=vm301 status=running tags=<nil>"})
		b.ask("pve1", "PUT", "/nodes/pve1/qemu/110/config", "name", "renamed", "tags", "b", "memory", "1024")
		b.same("at once", b.guests("name", "tags", "maxmem")[:1], []string{"name=new tags=b maxmem=5.36870912e+08"})
		b.pass(10 * time.Second)
		b.same("in the next cycle", b.guests("name", "tags", "maxmem")[:1], []string{"name=renamed tags=b maxmem=1.073741824e+09"})
		b.exit("pve1", "POST", "/nodes/pve1/qemu/110/template")
		b.pass(11 * time.Second)
		b.same("a template", b.guests("vmid", "template")[:1], []string{"vmid=110 template=1"})
	})
}

func TestANewVMIsFirstKnownByItsNodeAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.pass(11 * time.Second) // the next cycle is far
		b.exit("pve1", "POST", "/nodes/pve1/qemu", "vmid", "110", "name", "new", "pool", "capi")
		entry := b.data("pve1", "/cluster/resources", "type", "vm").([]any)[1]
		want := map[string]any{"id": "qemu/110", "type": "qemu", "vmid": 110.0, "node": "pve1", "status": "unknown", "pool": "capi"}
		if diff := cmp.Diff(want, entry); diff != "" {
			b.t.Errorf("entry (-want +got):\n%s", diff)
		}
	})
}

func TestUptimeIsThatOfTheLastBroadcast(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.pass(17 * time.Second)
		b.same("in the second cycle", b.guests("vmid", "uptime")[3:], []string{"vmid=301 uptime=10"})
		b.pass(10 * time.Second)
		b.same("in the third cycle", b.guests("vmid", "uptime")[3:], []string{"vmid=301 uptime=20"})
		b.exit("pve1", "POST", "/nodes/pve3/qemu/301/status/stop")
		b.pass(11 * time.Second)
		b.same("stopped", b.guests("vmid", "status", "uptime", "mem")[3:], []string{"vmid=301 status=stopped uptime=0 mem=0"})
	})
}

func TestResourcesByTypeAndRelease(t *testing.T) {
	t.Parallel()
	for version, want := range map[pvesim.Version][]string{
		pvesim.V84: {"/pool/capi", "qemu/9001", "node/pve1", "storage/pve1/local", "sdn/pve1/localnetwork"},
		pvesim.V92: {"/pool/capi", "qemu/9001", "node/pve1", "storage/pve1/local", "network/pve1/zone/localnetwork"},
	} {
		a := newAPI(t, pvesim.WithVersion(version), pvesim.WithNodes(1))
		var got []string
		for _, x := range a.must("GET", "/cluster/resources").([]any) {
			id := x.(map[string]any)["id"].(string)
			if id != "storage/pve1/local-lvm" && id != "storage/pve1/shared" {
				got = append(got, id)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
		memhost := a.must("GET", "/cluster/resources", "type", "vm").([]any)[0].(map[string]any)["memhost"]
		mode := a.must("GET", "/cluster/resources", "type", "node").([]any)[0].(map[string]any)["cgroup-mode"]
		if (memhost == nil) != (version == pvesim.V84) || (mode == nil) == (version == pvesim.V84) {
			t.Errorf("%s: memhost is %v, cgroup-mode %v", version, memhost, mode)
		}
	}
}
