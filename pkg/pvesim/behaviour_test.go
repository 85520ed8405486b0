package pvesim_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestResourcesLag follows a new VM through cluster/resources with a clock that stands still.
func TestResourcesLag(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	a := newAPI(t, pvesim.WithClock(clock), pvesim.WithSpeed(1), pvesim.WithTemplates())
	entry := func() map[string]any {
		t.Helper()
		for _, x := range a.must("GET", "/cluster/resources", "type", "vm").([]any) {
			return x.(map[string]any)
		}
		return nil
	}
	a.must("POST", "/nodes/pve1/qemu", "vmid", "100", "name", "fresh", "tags", "t1", "pool", "capi", "memory", "256")
	clock.Step(time.Second)
	if got := entry(); got["status"] != "unknown" || got["name"] != nil || got["tags"] != "t1" || got["pool"] != "capi" || got["node"] != "pve1" {
		t.Errorf("right after the create: %v", got)
	}
	clock.Step(10 * time.Second)
	if got := entry(); got["status"] != "stopped" || got["name"] != "fresh" || got["maxmem"] != float64(256<<20) {
		t.Errorf("one cycle later: %v", got)
	}
	a.must("PUT", "/nodes/pve1/qemu/100/config", "name", "renamed", "tags", "t2")
	if got := entry(); got["name"] != "fresh" || got["tags"] != "t2" {
		t.Errorf("right after the rename: %v", got)
	}
	clock.Step(10 * time.Second)
	if got := entry(); got["name"] != "renamed" {
		t.Errorf("one cycle after the rename: %v", got)
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plain := &http.Client{Transport: a.server.World.Transport("pve1")}
	send := func(header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), header[0], "https://pve/api2/json"+header[1], strings.NewReader(header[2]))
		if err != nil {
			t.Fatal(err)
		}
		for i := 3; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	for header, want := range map[string]string{
		"":                                  "401 No ticket",
		"PVEAPIToken=root@pam!pvesim=wrong": "401 Authentication failed!",
		"Bearer x":                          "401 No ticket",
	} {
		if got := send("GET", "/version", "", "Authorization", header); got.Status != want || got.ContentLength != 0 {
			t.Errorf("Authorization %q: %s, %d bytes", header, got.Status, got.ContentLength)
		}
	}
	const form = "Content-Type"
	login := send("POST", "/access/ticket", "username=root@pam&password=pvesim", form, "application/x-www-form-urlencoded")
	var body struct {
		Data struct{ Ticket, CSRFPreventionToken string }
	}
	if err := json.NewDecoder(login.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	cookie := "PVEAuthCookie=" + body.Data.Ticket
	if got := send("GET", "/nodes", "", "Cookie", cookie); got.StatusCode != http.StatusOK {
		t.Errorf("GET with a ticket: %s", got.Status)
	}
	if got := send("POST", "/pools", "poolid=x", "Cookie", cookie, form, "application/x-www-form-urlencoded"); got.Status != "401 Permission denied - invalid csrf token" {
		t.Errorf("POST without CSRF token: %s", got.Status)
	}
	if got := send("PUT", "/nodes/pve1/qemu/9001/config", "affinity=0-3", "Cookie", cookie, "CSRFPreventionToken", body.Data.CSRFPreventionToken, form, "application/x-www-form-urlencoded"); got.StatusCode != http.StatusOK {
		t.Errorf("root-only option by ticket: %s", got.Status)
	}
	if got := a.do("PUT", "/nodes/pve1/qemu/9001/config", "affinity", "0-3"); got.reason != "only root can set 'affinity' config" {
		t.Errorf("root-only option by token: %+v", got)
	}
}

// TestPoolScopedToken has the rights that the recordings found to be enough, and loses sight of its VM when it is gone.
func TestPoolScopedToken(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	k := a.server.World.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "t1", Privileges: map[string][]string{
		"/pool/capi": {"VM.Allocate", "VM.Audit", "VM.PowerMgmt", "VM.Config.CPU"}, "/vms/9001": {"VM.Clone", "VM.Audit"},
		"/storage/local-lvm": {"Datastore.AllocateSpace"}, "/sdn/zones/localnetwork/vmbr0": {"SDN.Use"},
	}})
	a.server.Token = k
	a.client = a.server.Client()
	if got := a.must("GET", "/cluster/resources", "type", "vm").([]any); len(got) != 1 {
		t.Errorf("token sees %d VMs, want only the template", len(got))
	}
	if r := a.do("POST", "/nodes/pve1/qemu/9001/clone", "newid", "150"); r.status != 403 || r.reason != "Permission check failed" {
		t.Errorf("clone outside the pool: %+v", r)
	}
	if r := a.do("POST", "/nodes/pve1/qemu/9001/clone", "newid", "150", "full", "1", "storage", "shared", "pool", "capi"); r.reason != "Permission check failed (/storage/shared, Datastore.AllocateSpace)" {
		t.Errorf("clone to another storage: %+v", r)
	}
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "150", "pool", "capi")
	a.must("PUT", "/nodes/pve1/qemu/150/config", "cores", "4")
	if r := a.do("PUT", "/nodes/pve1/qemu/150/config", "memory", "1024"); r.reason != "Permission check failed (/vms/150, VM.Config.Memory)" {
		t.Errorf("memory without the privilege: %+v", r)
	}
	a.ok("DELETE", "/nodes/pve1/qemu/150")
	if r := a.do("GET", "/nodes/pve1/qemu/150/config"); r.status != 403 {
		t.Errorf("config of its own destroyed VM: %+v", r)
	}
}

func TestUnknownEndpointNamesItself(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if r := a.do("POST", "/nodes/pve1/qemu/9001/resize"); r.status != 501 || r.reason != "Method 'POST /nodes/pve1/qemu/9001/resize' not implemented" {
		t.Errorf("%+v", r)
	}
	if got := a.server.World.Coverage(); len(got) < 40 {
		t.Errorf("coverage lists %d endpoints", len(got))
	}
}

func TestTwoWorldsOfOneSeedAreTheSame(t *testing.T) {
	t.Parallel()
	var macs, secrets [2]string
	for i := range macs {
		a := newAPI(t, pvesim.WithSeed(7))
		a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
		v, _ := a.server.World.VM(200)
		macs[i], secrets[i] = v.Config["net0"], string(a.server.Token.Secret)
	}
	if macs[0] != macs[1] || secrets[0] != secrets[1] {
		t.Errorf("two runs differ: %v %v", macs, secrets)
	}
}

func TestOnlyHTTP1(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}}).DialContext(t.Context(), "tcp", strings.TrimPrefix(a.server.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol %q", got)
	}
}

func TestGuestsReportWhyTheyFail(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		label string
		files map[string]string
		want  string
	}{
		"no seed label":  {"other", map[string]string{"meta-data": "instance-id: i", "user-data": ""}, "no CD-ROM with the volume label cidata"},
		"no user-data":   {"cidata", map[string]string{"meta-data": "instance-id: i"}, "no file user-data"},
		"no instance-id": {"cidata", map[string]string{"meta-data": "a: b", "user-data": ""}, "meta-data has no instance-id"},
		"foreign MAC": {"cidata", map[string]string{
			"meta-data": "instance-id: i", "user-data": "",
			"network-config": "version: 2\nethernets:\n  e: {match: {macaddress: 'bc:24:11:00:00:01'}, addresses: [10.0.0.1/24]}\n",
		}, "wants MAC address BC:24:11:00:00:01"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &boots{}
			a := newAPI(t, pvesim.WithGuests(pvesim.Booting(seen.hooks())))
			a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
			a.uploadISO("pve1", "local", "s.iso", seedISO(t, tt.label, tt.files))
			a.must("PUT", "/nodes/pve1/qemu/200/config", "ide2", "local:iso/s.iso,media=cdrom")
			a.ok("POST", "/nodes/pve1/qemu/200/status/start")
			eventually(t, "boot fails", func() bool { _, n, _ := seen.count(); return n == 1 })
			if got := seen.failed[0].Err.Error(); !strings.Contains(got, tt.want) {
				t.Errorf("failed with %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReplacingTheCloudInitDriveFreesItsVolume(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
	a.must("PUT", "/nodes/pve1/qemu/200/config", "delete", "ide2")
	for _, v := range a.server.World.Volumes() {
		if v.ID == proxmox.VolumeID("local-lvm:vm-200-cloudinit") {
			t.Errorf("volume %s is left", v.ID)
		}
	}
}
