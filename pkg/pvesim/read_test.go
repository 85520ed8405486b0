package pvesim_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// pick reduces entries of a list to some of their members.
func pick(list any, keys ...string) []string {
	var out []string
	for _, x := range list.([]any) {
		entry, line := x.(map[string]any), ""
		for _, key := range keys {
			line += fmt.Sprintf("%s=%v ", key, entry[key])
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

func TestReadingTheCluster(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.server.World.StopNode("pve3")
	must(t, a.server.World.AddNode(pvesim.NodeSpec{Name: "pve4", CPUs: 8, Memory: 1024, Bridges: []proxmox.BridgeName{"vmbr0", "vmbr1"}}))
	must(t, a.server.World.AddStorage(pvesim.StorageSpec{ID: "fast", Type: "dir", Content: []string{"images"}, Nodes: []proxmox.NodeName{"pve4"}, Total: 1 << 30}))
	a.server.World.AddPool(pvesim.PoolSpec{ID: "p"})
	tests := []struct {
		path string
		keys []string
		want []string
	}{
		{"/nodes", []string{"node", "status", "maxcpu"}, []string{"node=pve1 status=online maxcpu=32", "node=pve2 status=online maxcpu=32", "node=pve3 status=offline maxcpu=32", "node=pve4 status=online maxcpu=8"}},
		{"/cluster/status", []string{"type", "name", "online", "quorate"}, []string{"type=cluster name=pvesim online=<nil> quorate=1", "type=node name=pve1 online=1 quorate=<nil>", "type=node name=pve2 online=1 quorate=<nil>", "type=node name=pve3 online=0 quorate=<nil>", "type=node name=pve4 online=1 quorate=<nil>"}},
		{"/nodes/pve4/network?type=bridge", []string{"iface", "type"}, []string{"iface=vmbr0 type=bridge", "iface=vmbr1 type=bridge"}},
		{"/nodes/pve4/storage?content=images", []string{"storage", "type", "shared"}, []string{"storage=local-lvm type=lvmthin shared=0", "storage=shared type=nfs shared=1", "storage=fast type=dir shared=0"}},
		{"/nodes/localhost/qemu", []string{"vmid", "status", "template", "tags"}, []string{"vmid=9001 status=stopped template=1 tags=kubernetes;ubuntu"}},
		{"/storage?type=nfs", []string{"storage", "shared"}, []string{"storage=shared shared=1"}},
		{"/pools", []string{"poolid"}, []string{"poolid=capi", "poolid=p"}},
		{"/pools?poolid=p", []string{"poolid", "members"}, []string{"poolid=p members=[]"}},
		{"/cluster/resources?type=node", []string{"id", "status"}, []string{"id=node/pve1 status=online", "id=node/pve2 status=online", "id=node/pve3 status=offline", "id=node/pve4 status=online"}},
		{"/cluster/resources?type=vm", []string{"vmid", "status"}, []string{"vmid=9001 status=stopped", "vmid=9002 status=stopped", "vmid=9003 status=stopped"}},
		{"/cluster/resources?type=sdn", nil, nil},
	}
	for _, tt := range tests {
		path, query, _ := strings.Cut(tt.path, "?")
		key, value, _ := strings.Cut(query, "=")
		params := []string{key, value}
		if query == "" {
			params = nil
		}
		if diff := cmp.Diff(tt.want, pick(a.must("GET", path, params...), tt.keys...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
	if got := a.object("/nodes/pve4/status")["cpuinfo"].(map[string]any); got["cpus"] != 8.0 {
		t.Errorf("cpuinfo is %v", got)
	}
	if got := a.object("/cluster/options"); fmt.Sprint(got["allowed-tags"]) != "[kubernetes ubuntu]" {
		t.Errorf("options are %v", got)
	}
	if got := a.must("GET", "/cluster/nextid"); got != "100" {
		t.Errorf("nextid is %v", got)
	}
	if got := a.object("/access/permissions", "path", "/vms")["/vms"].(map[string]any); got["VM.Clone"] != 1.0 {
		t.Errorf("permissions are %v", got)
	}
}

// TestRebootKeepsTheSeed boots a second time with no medium in the drive.
func TestRebootKeepsTheSeed(t *testing.T) {
	t.Parallel()
	seen := &boots{}
	a := newAPI(t, pvesim.WithGuests(pvesim.Booting(seen.hooks())))
	const vm = "/nodes/pve1/qemu/200"
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200", "name", "w")
	a.must("PUT", vm+"/config", "delete", "ide2")
	a.uploadISO("pve1", "local", "s.iso", seedISO(t, "CIDATA", map[string]string{"meta-data": `{"instance-id": "i", "hostname": "h"}`, "user-data": "x"}))
	a.must("PUT", vm+"/config", "ide3", "local:iso/s.iso,media=cdrom")
	if r := a.do("POST", vm+"/agent/ping"); r.reason != "VM 200 is not running" {
		t.Errorf("agent of a stopped VM: %+v", r)
	}
	a.ok("POST", vm+"/status/start")
	eventually(t, "first boot", func() bool { n, _, _ := seen.count(); return n == 1 })
	a.must("POST", vm+"/agent/ping")
	a.must("PUT", vm+"/config", "ide3", "none,media=cdrom")
	a.ok("POST", vm+"/status/shutdown")
	a.ok("POST", vm+"/status/start")
	eventually(t, "second boot", func() bool { n, _, _ := seen.count(); return n == 2 })
	if got := seen.booted[1]; got.Boots != 2 || got.Hostname != "h" || got.InstanceID != "i" {
		t.Errorf("second boot is %+v", got)
	}
	a.server.World.Kill(200)
	if v, _ := a.server.World.VM(200); v.Status != "stopped" {
		t.Errorf("killed VM is %s", v.Status)
	}
}

// TestTwoSeeds has Proxmox VE's own cloud-init drive and another seed in the drives: the last one wins.
func TestTwoSeeds(t *testing.T) {
	t.Parallel()
	for drive, host := range map[string]string{"ide3": "ours", "ide0": "w"} {
		t.Run(drive, func(t *testing.T) {
			t.Parallel()
			seen := &boots{}
			a := newAPI(t, pvesim.WithGuests(pvesim.Booting(seen.hooks())))
			a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200", "name", "w")
			a.uploadISO("pve1", "local", "s.iso", seedISO(t, "cidata", map[string]string{"meta-data": "instance-id: i\nlocal-hostname: ours", "user-data": ""}))
			a.must("PUT", "/nodes/pve1/qemu/200/config", drive, "local:iso/s.iso,media=cdrom", "ipconfig0", "ip=10.0.0.9/24,gw=10.0.0.1")
			a.ok("POST", "/nodes/pve1/qemu/200/status/start")
			eventually(t, "boot", func() bool { n, _, _ := seen.count(); return n == 1 })
			if got := seen.booted[0]; got.Hostname != host {
				t.Errorf("host name is %q, want %q", got.Hostname, host)
			}
		})
	}
}

func TestTemplateAndCreate(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, pvesim.WithVersion(version))
			a.ok("POST", "/nodes/pve1/qemu", "vmid", "100", "scsi0", "shared:1,format=qcow2", "ide2", "local-lvm:cloudinit", "tags", "b;a")
			a.ok("POST", "/nodes/pve1/qemu/100/status/start")
			if r := a.do("POST", "/nodes/pve1/qemu", "vmid", "100"); r.reason != "unable to create VM 100 - VM 100 already exists on node 'pve1'" {
				t.Errorf("VMID taken: %+v", r)
			}
			if r := a.do("POST", "/nodes/pve1/qemu/100/template"); r.reason != "you can't convert a VM to template if VM is running" {
				t.Errorf("template of a running VM: %+v", r)
			}
			a.ok("POST", "/nodes/pve1/qemu/100/status/stop")
			a.ok("POST", "/nodes/pve1/qemu/100/template")
			v, _ := a.server.World.VM(100)
			tags := map[pvesim.Version]string{pvesim.V84: "b;a", pvesim.V92: "a;b"}[version]
			if v.Config["scsi0"] != "shared:100/base-100-disk-0.qcow2,size=1G" || v.Config["template"] != "1" || v.Config["tags"] != tags || v.Config["boot"] != "order=scsi0;ide2" {
				t.Errorf("template is %v", v.Config)
			}
			if broken := a.server.World.Check(); len(broken) > 0 {
				t.Error(broken)
			}
		})
	}
}

func TestNUMAIsCheckedAtStart(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	tests := map[string]string{
		"cpus=0-1,memory=1024":                         "total memory for NUMA nodes must be equal to vm static memory",
		"cpus=0-1,memory=2048,hostnodes=7,policy=bind": "host NUMA node7 doesn't exist",
		"cpus=0-7,memory=2048":                         "start failed: QEMU exited with code 1",
		"cpus=0-1,memory=2048,hostnodes=1,policy=bind": "OK",
	}
	id := 200
	for numa, exit := range tests {
		id++
		vm := fmt.Sprintf("/nodes/pve1/qemu/%d", id)
		a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", fmt.Sprint(id))
		a.must("PUT", vm+"/config", "numa", "1", "numa0", numa)
		if got := a.exit("POST", vm+"/status/start"); got != exit {
			t.Errorf("%s: %s, want %s", numa, got, exit)
		}
	}
}

func TestJSONBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, a.server.URL+"/api2/json/nodes/pve1/qemu/9001/config",
		strings.NewReader(`{"tags": ["k2", "k1"], "onboot": true, "cores": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if r := a.send(req); r.status != http.StatusOK {
		t.Fatalf("%+v", r)
	}
	if v, _ := a.server.World.VM(9001); v.Config["tags"] != "k1;k2" || v.Config["onboot"] != "1" || v.Config["cores"] != "3" {
		t.Errorf("config is %v", v.Config)
	}
}

func TestControlEndpoints(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if err := a.server.World.AddFault(pvesim.Fault{Path: "/version", Status: 500}); err != nil {
		t.Fatal(err)
	}
	get := func(method, path string) string {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), method, a.server.URL+path, strings.NewReader("no JSON"))
		resp, err := a.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		raw, _ := io.ReadAll(resp.Body)
		return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(raw)))
	}
	for request, want := range map[string]string{
		"GET /pvesim/faults":   `200 [{"path":"/version","when":"before","status":500,"matched":0,"struck":0}]`,
		"GET /pvesim/check":    "200 []",
		"POST /pvesim/faults":  "400 read fault",
		"GET /pvesim/other":    "404 ",
		"GET /pvesim/coverage": `200 [{"method":"GET","path":"/","parameters":[`,
		"GET /elsewhere":       "501",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := get(method, path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.200s", request, got)
		}
	}
	if got := get("DELETE", "/pvesim/faults"); got != "200 []" {
		t.Errorf("faults after their removal: %s", got)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	k := pvesim.Token{ID: "root@pam!x", Secret: "geheim"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, k); strings.Contains(text, "geheim") {
			t.Errorf("%s prints %s", format, text)
		}
	}
	if k.Header() != "PVEAPIToken=root@pam!x=geheim" {
		t.Errorf("header is %s", k.Header())
	}
}
