package pve_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
)

var vm101 = pve.VMRef{Node: "pve1", ID: 101}

// request is one that the client can send, and what PVE should get to see.
type request struct {
	name string
	send func(context.Context, *pve.Client) (any, error)
	// line is the method and path with its query; form the body.
	line string
	form url.Values
	// data is PVE's answer, want what the caller gets.
	data string
	want any
}

// task drops the type, so that requests with all kinds of results fit one table.
func task(upid proxmox.UPID, err error) (any, error) { return string(upid), err }

func requests() []request {
	return slices.Concat(reads(), equipmentReads(), firewallReads(), haReads(), writes(), firewallWrites(), haWrites())
}

func reads() []request {
	return []request{
		{
			name: "version", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.Version(ctx) },
			line: "GET /version", data: `{"release":"9.2","repoid":"oracle","version":"9.2.11"}`,
			want: pve.Version{Version: "9.2.11", Release: "9.2"},
		}, {
			name: "resources", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.Resources(ctx) },
			line: "GET /cluster/resources",
			data: `[{"cpu":0,"name":"a","status":"stopped","id":"qemu/105","tags":"x;y","node":"pve1","type":"qemu","maxmem":134217728,"template":1,"vmid":105,"maxcpu":0.5}, 7]`,
			want: []pve.Resource{{
				Type: pve.VMResource, ID: "qemu/105", Node: "pve1", VMID: 105, Name: "a", Status: "stopped", Tags: []string{"x", "y"},
				Template: true, MaxCPU: 0.5, MaxMemory: 134217728, Content: []string{},
			}},
		}, {
			name: "authority", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.Authority(ctx, "pve1") },
			line: "GET /nodes/pve1/certificates/info",
			data: `[{"filename":"pve-ssl.pem","fingerprint":"01:23"},{"filename":"pve-root-ca.pem","fingerprint":"AB:CD"}]`, want: "AB:CD",
		}, {
			name: "permissions", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.Permissions(ctx) },
			line: "GET /access/permissions", data: `{"/":{"Sys.Audit":1},"/vms/100":{"VM.Clone":"0"}}`,
			want: pve.Permissions{"/": {"Sys.Audit": true}, "/vms/100": {"VM.Clone": false}},
		}, {
			name: "config", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.VMConfig(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/config",
			data: `{"digest":"2a80","cores":2,"memory":"4096","kvm":0,"name":"w1","lock":"clone","tags":"a;b","agent":true,"gone":null}`,
			want: pve.VMConfig{Digest: "2a80", Lock: "clone", Values: map[string]string{
				"cores": "2", "memory": "4096", "kvm": "0", "name": "w1", "tags": "a;b", "agent": "1", "gone": "", "lock": "clone",
			}},
		}, {
			name: "current config", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.CurrentVMConfig(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/config?current=1", data: `{}`, want: pve.VMConfig{Values: map[string]string{}},
		}, {
			name: "config of a snapshot", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.SnapshotConfig(ctx, vm101, "v1") },
			line: "GET /nodes/pve1/qemu/101/config?snapshot=v1", data: `{}`, want: pve.VMConfig{Values: map[string]string{}},
		}, {
			name: "pending config", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.PendingVMConfig(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/pending",
			data: `[{"key":"digest","value":"2a80"},{"key":"cores","value":1,"pending":2},{"key":"memory","value":"4096"},{"key":"serial0","value":"socket","delete":2},
				{"key":"agent","pending":"1"},{"key":"args","value":"x","delete":"1"},{"key":"lock","value":"backup"},{"value":"nameless"},7]`,
			want: pve.PendingVMConfig{
				VMConfig: pve.VMConfig{Digest: "2a80", Lock: "backup", Values: map[string]string{"cores": "2", "memory": "4096", "agent": "1", "lock": "backup"}},
				Waiting:  []string{"agent", "args", "cores", "serial0"},
			},
		}, {
			name: "status", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.VMStatus(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/status/current",
			data: `{"status":"running","qmpstatus":"running","name":"w1","ha":{"managed":1},"pid":24774,"uptime":61,"tags":"a","lock":"backup"}`,
			want: pve.VMStatus{
				Status: "running", QMPStatus: "running", Name: "w1", HAManaged: true, PID: 24774, Uptime: 61 * time.Second,
				Tags: []string{"a"}, Lock: "backup",
			},
		}, {
			name: "guest interfaces", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.GuestInterfaces(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/agent/network-get-interfaces",
			data: `{"result":[{"name":"lo","ip-addresses":[{"ip-address":"127.0.0.1","prefix":8,"ip-address-type":"ipv4"}]},
				{"name":"eth0","hardware-address":"bc:24:11:00:00:01","statistics":{"rx-bytes":1},"ip-addresses":[
				{"ip-address":"10.0.0.9","prefix":24},{"ip-address":"fe80::1%eth0","prefix":"64"},{"ip-address":"x","prefix":1},{"ip-address":"fd00::1","prefix":129}]},
				{"name":"down"},7]}`,
			want: []pve.GuestInterface{
				{Name: "lo", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
				{Name: "eth0", MAC: "bc:24:11:00:00:01", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.9/24"), netip.MustParsePrefix("fe80::1/64")}},
				{Name: "down"},
			},
		}, {
			name: "task status", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.TaskStatus(ctx, upid) },
			line: "GET /nodes/pve1/tasks/" + upid + "/status",
			data: `{"tokenid":"ci","id":"1200","node":"pve1","user":"root@pam","type":"qmclone","starttime":1795232536,"status":"stopped","exitstatus":"WARNINGS: 2"}`,
			want: pve.TaskStatus{
				UPID: upid, Node: "pve1", Type: "qmclone", ID: "1200", User: "root@pam!ci", State: pve.Succeeded,
				ExitStatus: "WARNINGS: 2", Warnings: 2, Start: time.Unix(1795232536, 0).UTC(),
			},
		}, {
			name: "cluster tasks", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.ClusterTasks(ctx) },
			line: "GET /cluster/tasks",
			data: `[{"starttime":1795232536,"id":"1200","pid":18982,"type":"qmclone","node":"pve1","user":"root@pam","upid":"a"},
				{"starttime":1795231875,"endtime":1795231876,"status":"VM is locked (clone)","saved":"1","upid":"b"}]`,
			want: []pve.TaskStatus{
				{UPID: "a", Node: "pve1", Type: "qmclone", ID: "1200", User: "root@pam", State: pve.Running, Start: time.Unix(1795232536, 0).UTC()},
				{UPID: "b", State: pve.Failed, ExitStatus: "VM is locked (clone)", Start: time.Unix(1795231875, 0).UTC(), End: time.Unix(1795231876, 0).UTC()},
			},
		}, {
			name: "VMID", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.VMIDFree(ctx, 101) },
			line: "GET /cluster/nextid?vmid=101", data: `"101"`, want: true,
		}, {
			name: "storages", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.Storages(ctx, "pve1") },
			line: "GET /nodes/pve1/storage",
			data: `[{"storage":"shared","active":1,"content":"iso,images","avail":4,"total":10,"enabled":1,"type":"dir","shared":1,"used":6}]`,
			want: []pve.StorageStatus{{
				Storage: "shared", Type: "dir", Content: []string{"iso", "images"}, Shared: true, Active: true, Enabled: true, Total: 10, Used: 6, Available: 4,
			}},
		}, {
			name: "content", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return c.StorageContent(ctx, "pve1", "local", "iso")
			},
			line: "GET /nodes/pve1/storage/local/content?content=iso",
			data: `[{"format":"iso","volid":"local:iso/seed.iso","ctime":1795233468,"content":"iso","size":40960}]`,
			want: []pve.Volume{{ID: "local:iso/seed.iso", Content: "iso", Format: "iso", Size: 40960, Created: time.Unix(1795233468, 0).UTC()}},
		},
	}
}

func writes() []request {
	return []request{
		{
			name: "clone", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.CloneVM(ctx, pve.CloneRequest{
					Source: pve.VMRef{Node: "pve1", ID: 9001}, NewID: 101, Name: "w1", Description: "Grüße\nzwei", Target: "pve2",
					Pool: "capi", Storage: "local", Format: "qcow2", Mode: pve.CloneFull,
				}))
			},
			line: "POST /nodes/pve1/qemu/9001/clone", data: `"` + upid + `"`, want: upid,
			form: url.Values{
				"newid": {"101"}, "name": {"w1"}, "description": {"Grüße\nzwei"}, "target": {"pve2"}, "pool": {"capi"},
				"storage": {"local"}, "format": {"qcow2"}, "full": {"1"},
			},
		}, {
			name: "linked clone", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.CloneVM(ctx, pve.CloneRequest{Source: vm101, NewID: 1_000_000, SnapName: "s1", Mode: pve.CloneLinked}))
			},
			line: "POST /nodes/pve1/qemu/101/clone", data: `"` + upid + `"`, want: upid,
			form: url.Values{"newid": {"1000000"}, "snapname": {"s1"}, "full": {"0"}},
		}, {
			name: "create", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.CreateVM(ctx, pve.CreateRequest{VM: vm101, Pool: "capi", Config: map[string]string{"scsi0": "local-lvm:0,import-from=nfs:import/a.qcow2", "tags": "a;b"}}))
			},
			line: "POST /nodes/pve1/qemu", data: `"` + upid + `"`, want: upid,
			form: url.Values{"vmid": {"101"}, "pool": {"capi"}, "scsi0": {"local-lvm:0,import-from=nfs:import/a.qcow2"}, "tags": {"a;b"}},
		}, {
			name: "update config", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.UpdateConfig(ctx, pve.ConfigUpdate{
					VM: vm101, Set: map[string]string{"cores": "2", "sshkeys": "ssh-ed25519%20AAAA", "cipassword": "hunter22"},
					Delete: []string{"tags", "ide3"}, Digest: "2a80efddcff5f83378ae34e35f76a5ffd611fde5",
				})
			},
			line: "PUT /nodes/pve1/qemu/101/config", data: `null`,
			form: url.Values{
				"cores": {"2"}, "sshkeys": {"ssh-ed25519%20AAAA"}, "cipassword": {"hunter22"}, "delete": {"tags,ide3"},
				"digest": {"2a80efddcff5f83378ae34e35f76a5ffd611fde5"},
			},
		}, {
			name: "update config in a task", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.UpdateConfigInTask(ctx, pve.ConfigUpdate{
					VM: vm101, Set: map[string]string{"scsi1": "local-lvm:20,serial=data"}, Delete: []string{"net1"}, Digest: "2a80efddcff5f83378ae34e35f76a5ffd611fde5",
				}))
			},
			line: "POST /nodes/pve1/qemu/101/config", data: `"` + upid + `"`, want: upid,
			form: url.Values{"scsi1": {"local-lvm:20,serial=data"}, "delete": {"net1"}, "digest": {"2a80efddcff5f83378ae34e35f76a5ffd611fde5"}},
		}, {
			name: "resize", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.ResizeDisk(ctx, pve.ResizeRequest{VM: vm101, Disk: "scsi0", Size: proxmox.GiB(32).Bytes()}))
			},
			line: "PUT /nodes/pve1/qemu/101/resize", data: `"` + upid + `"`, want: upid, form: url.Values{"disk": {"scsi0"}, "size": {"32G"}},
		}, {
			name: "start", send: func(ctx context.Context, c *pve.Client) (any, error) { return task(c.StartVM(ctx, vm101)) },
			line: "POST /nodes/pve1/qemu/101/status/start", data: `"` + upid + `"`, want: upid, form: url.Values{},
		}, {
			name: "stop", send: func(ctx context.Context, c *pve.Client) (any, error) { return task(c.StopVM(ctx, vm101)) },
			line: "POST /nodes/pve1/qemu/101/status/stop", data: `"` + upid + `"`, want: upid, form: url.Values{},
		}, {
			name: "destroy", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.DestroyVM(ctx, pve.DestroyRequest{VM: vm101}))
			},
			line: "DELETE /nodes/pve1/qemu/101?purge=1", data: `"` + upid + `"`, want: upid,
		}, {
			name: "delete volume", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.DeleteVolume(ctx, "pve1", "local:iso/seed.iso"))
			},
			line: "DELETE /nodes/pve1/storage/local/content/local:iso/seed.iso", data: `"` + upid + `"`, want: upid,
		}, {
			name: "delete volume at once", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.DeleteVolume(ctx, "pve1", "local:iso/seed.iso"))
			},
			line: "DELETE /nodes/pve1/storage/local/content/local:iso/seed.iso", data: `null`, want: "",
		}, {
			name: "upload", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return task(c.UploadISO(ctx, pve.UploadRequest{Node: "pve1", Storage: "local", Filename: "seed.iso", Content: []byte("user-data secret")}))
			},
			line: "POST /nodes/pve1/storage/local/upload", data: `"` + upid + `"`, want: upid,
		},
	}
}

func TestRequests(t *testing.T) {
	for _, r := range requests() {
		t.Run(r.name, func(t *testing.T) {
			client := connect(t, func(w http.ResponseWriter, got *http.Request) {
				checkRequest(t, r, got)
				answer(w, r.data)
			})
			got, err := r.send(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func checkRequest(t *testing.T, want request, got *http.Request) {
	t.Helper()
	target, err := url.PathUnescape(strings.TrimPrefix(got.URL.RequestURI(), "/api2/json"))
	if line := got.Method + " " + target; err != nil || line != want.line {
		t.Errorf("got  %s\nwant %s", line, want.line)
	}
	if got.Header.Get("Authorization") != "PVEAPIToken="+token.ID+"="+string(token.Secret) {
		t.Error("no token")
	}
	if len(got.TransferEncoding) > 0 || got.ContentLength < 0 || got.ProtoMajor != 1 {
		t.Errorf("chunks %v, length %d, HTTP/%d", got.TransferEncoding, got.ContentLength, got.ProtoMajor)
	}
	if want.form == nil {
		return
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Error(err)
	}
	form, err := url.ParseQuery(string(body))
	if diff := cmp.Diff(want.form, form); diff != "" || err != nil {
		t.Errorf("form (-want +got):\n%s%v", diff, err)
	}
}

// TestRequestsFitSchema checks every request the client can send, as its own log tells them, against PVE's schema.
func TestRequestsFitSchema(t *testing.T) {
	for _, version := range []string{"8.4", "9.2"} {
		t.Run(version, func(t *testing.T) {
			schema, err := pveschema.LoadSchema("../../../shared/pve-api", version)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("no API schema beside the repository")
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range loggedRequests(t) {
				if version == "8.4" && (strings.HasPrefix(line.Path, "/cluster/ha/rules") || strings.HasSuffix(line.Path, "/cpu-flags")) {
					continue // they came with 9
				}
				if err := schema.Validate(line.Method, line.Path, line.Params); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// loggedRequests sends every request, with a login, and returns what the request log says.
func loggedRequests(t *testing.T) []pve.RequestRecord {
	t.Helper()
	data := map[string]string{}
	for _, r := range requests() {
		method, target, _ := strings.Cut(r.line, " ")
		path, _, _ := strings.Cut(target, "?")
		data[method+" "+path] = r.data
	}
	data["POST /access/ticket"] = `{"ticket":"PVE:capi@pve:6B01::sig==","CSRFPreventionToken":"6B01:csrf"}`
	_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		answer(w, data[r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api2/json")])
	})
	log := &syncBuffer{}
	config.Options.RequestLog = pve.NewRequestLog(log)
	config.Credentials = pve.PasswordCredentials{Username: "capi@pve", Password: "correct horse"}
	client := newClient(t, config)
	for _, r := range requests() {
		if _, err := r.send(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	records := parseLog(t, log.String())
	if want := len(requests()) + 1; len(records) != want {
		t.Fatalf("%d lines for %d requests", len(records), want)
	}
	return records
}

func parseLog(t *testing.T, log string) []pve.RequestRecord {
	t.Helper()
	var records []pve.RequestRecord
	for line := range strings.Lines(log) {
		var record pve.RequestRecord
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		records = append(records, record)
	}
	return records
}

func TestUploadForm(t *testing.T) {
	content := bytes.Repeat([]byte{0, 1, 2, 255}, 512)
	client := connect(t, func(w http.ResponseWriter, r *http.Request) {
		form, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		var got []string
		for {
			part, err := form.NextPart()
			if err != nil {
				break
			}
			got = append(got, partText(t, part))
		}
		want := []string{
			"content=iso", "checksum-algorithm=sha256",
			fmt.Sprintf("checksum=%x", sha256.Sum256(content)), `filename=seed "1".iso:2048 bytes`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("parts (-want +got):\n%s", diff)
		}
		answer(w, `"`+upid+`"`)
	})
	_, err := client.UploadISO(t.Context(), pve.UploadRequest{Node: "pve1", Storage: "local", Filename: `seed "1".iso`, Content: content})
	if err != nil {
		t.Fatal(err)
	}
}

func partText(t *testing.T, part *multipart.Part) string {
	t.Helper()
	body, err := io.ReadAll(part)
	if err != nil {
		t.Error(err)
	}
	if name := part.FileName(); name != "" {
		return fmt.Sprintf("%s=%s:%d bytes", part.FormName(), name, len(body))
	}
	return part.FormName() + "=" + string(body)
}

// TestRefusedBeforeSending: input that would name another object, or none, must not reach PVE.
func TestRefusedBeforeSending(t *testing.T) {
	client := connect(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent %s %s", r.Method, r.URL) })
	sends := map[string]func(context.Context) error{
		"no node": func(ctx context.Context) error { _, err := client.VMConfig(ctx, pve.VMRef{ID: 101}); return err },
		"no VMID": func(ctx context.Context) error {
			_, err := client.DestroyVM(ctx, pve.DestroyRequest{VM: pve.VMRef{Node: "pve1"}})
			return err
		},
		"dots": func(ctx context.Context) error {
			_, err := client.StartVM(ctx, pve.VMRef{Node: "..", ID: 101})
			return err
		},
		"no volume":  func(ctx context.Context) error { _, err := client.DeleteVolume(ctx, "pve1", ""); return err },
		"no storage": func(ctx context.Context) error { _, err := client.DeleteVolume(ctx, "pve1", ":iso/a.iso"); return err },
		"no file name": func(ctx context.Context) error {
			_, err := client.UploadISO(ctx, pve.UploadRequest{Node: "pve1", Storage: "local"})
			return err
		},
		"no size": func(ctx context.Context) error {
			_, err := client.ResizeDisk(ctx, pve.ResizeRequest{VM: vm101, Disk: "scsi0"})
			return err
		},
		"malformed UPID": func(ctx context.Context) error { _, err := client.TaskStatus(ctx, "UPID:x"); return err },
	}
	for name, send := range sends {
		err := send(t.Context())
		if pve.ClassOf(err) != pve.Invalid {
			t.Errorf("%s: got %v of class %v", name, err, pve.ClassOf(err))
		}
		if failure := (*pve.Error)(nil); !errors.As(err, &failure) || failure.Region != "test" {
			t.Errorf("%s: %v does not name the region", name, err)
		}
	}
	if err := client.UpdateConfig(t.Context(), pve.ConfigUpdate{VM: vm101, Digest: "x"}); err != nil {
		t.Errorf("an empty update: %v", err)
	}
}

func TestNamesStayWithinTheirPiece(t *testing.T) {
	client := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if want := "/api2/json/nodes/a%2F..%2Fb%3Fc/storage"; r.URL.EscapedPath() != want {
			t.Errorf("path %s, want %s", r.URL.EscapedPath(), want)
		}
		answer(w, `[]`)
	})
	if _, err := client.Storages(t.Context(), "a/../b?c"); err != nil {
		t.Fatal(err)
	}
}

func TestSizes(t *testing.T) {
	cases := map[proxmox.Bytes]string{1: "1", 1000: "1000", 1024: "1K", 1536: "1536", 5 << 20: "5M", 1 << 30: "1G", 3 << 40: "3T", 1 << 50: "1024T"}
	for size, want := range cases {
		var got string
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.FormValue("size")
			answer(w, `"`+upid+`"`)
		})
		if _, err := client.ResizeDisk(t.Context(), pve.ResizeRequest{VM: vm101, Disk: "scsi0", Size: size}); err != nil || got != want {
			t.Errorf("%d bytes: got %q, want %q (%v)", size, got, want, err)
		}
	}
}

func TestPermissionsAllow(t *testing.T) {
	permissions := pve.Permissions{
		"/": {"Sys.Audit": true, "Local": false}, "/vms": {"VM.Audit": true}, "/vms/100": {"VM.Clone": false},
	}
	cases := []struct {
		path, privilege string
		want            bool
	}{
		{"/", "Sys.Audit", true},
		{"/", "Local", true},
		{"/nodes/pve1", "Sys.Audit", true},
		{"/nodes/pve1", "Local", false},
		{"/vms/101", "VM.Audit", true},
		{"/vms/100", "VM.Clone", true},
		{"/vms/100/x", "VM.Clone", false},
		{"/vms/101", "VM.Clone", false},
		{"", "Sys.Audit", false},
	}
	for _, c := range cases {
		if got := permissions.Allows(c.path, c.privilege); got != c.want {
			t.Errorf("%s at %s: %v", c.privilege, c.path, got)
		}
	}
}

func TestVMIDTaken(t *testing.T) {
	body := `{"data":null,"message":"Parameter verification failed.\n","errors":{"vmid":"VM 101 already exists"}}`
	client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(t, w, 400, "Parameter verification failed.", body)
	})
	if free, err := client.VMIDFree(t.Context(), 101); free || err != nil {
		t.Errorf("got %v, %v", free, err)
	}
}

func TestVersionAtLeast(t *testing.T) {
	version := pve.Version{Version: "9.2.11"}
	if !version.AtLeast(9, 2) || !version.AtLeast(8, 4) || version.AtLeast(9, 3) || version.AtLeast(10, 0) {
		t.Error("9.2.11 is compared wrongly")
	}
	if (pve.Version{Version: "x"}).AtLeast(1, 0) {
		t.Error("an unreadable version is new")
	}
}
