package pvesim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestUploadRules(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	image := make([]byte, 2048)
	sum := field{"checksum", strings.Repeat("0", 64)}
	algorithm, iso := field{"checksum-algorithm", "sha256"}, field{"content", "iso"}
	tests := map[string]struct {
		path, file string
		fields     []field
		status     int
		errors     map[string]string
		reason     string
	}{
		"no content":             {"/nodes/pve1/storage/local/upload", "a.iso", nil, 400, map[string]string{"content": "property is missing and it is not optional"}, ""},
		"checksum alone":         {"/nodes/pve1/storage/local/upload", "a.iso", []field{iso, algorithm}, 400, map[string]string{"checksum": "missing property required by 'checksum-algorithm'"}, ""},
		"checksum first":         {"/nodes/pve1/storage/local/upload", "a.iso", []field{iso, sum, algorithm}, 400, nil, "Bad Request"},
		"unknown field":          {"/nodes/pve1/storage/local/upload", "a.iso", []field{iso, {"foo", "1"}}, 400, nil, "Bad Request"},
		"extension":              {"/nodes/pve1/storage/local/upload", "a.txt", []field{iso}, 400, map[string]string{"filename": "wrong file extension"}, ""},
		"storage without images": {"/nodes/pve1/storage/local-lvm/upload", "a.iso", []field{iso}, 500, nil, "can't upload to storage type 'lvmthin', not a file based storage!"},
		"no storage":             {"/nodes/pve1/storage/nope/upload", "a.iso", []field{iso}, 500, nil, "storage 'nope' does not exist"},
	}
	for name, tt := range tests {
		r := a.upload(tt.path, tt.file, image, tt.fields...)
		if r.status != tt.status || (tt.reason != "" && r.reason != tt.reason) || fmt.Sprint(r.errors) != fmt.Sprint(tt.errors) {
			t.Errorf("%s: %d %s %v", name, r.status, r.reason, r.errors)
		}
	}
	r := a.upload("/nodes/pve1/storage/local/upload", "a.iso", image, iso, algorithm, sum)
	if exit := a.wait(r.data); !strings.HasPrefix(exit, "checksum mismatch: got '") {
		t.Errorf("wrong checksum: %s", exit)
	}
}

// TestUploadToAnotherHost runs on the host that was asked, which the task's identifier shows.
func TestUploadToAnotherHost(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.upload("/nodes/pve2/storage/local/upload", "../x y.iso", make([]byte, 2048), field{"content", "iso"})
	if upid := fmt.Sprint(r.data); !strings.HasPrefix(upid, "UPID:pve1:") || a.wait(upid) != "OK" {
		t.Errorf("task is %s", upid)
	}
	list := fmt.Sprint(a.must("GET", "/nodes/pve2/storage/local/content", "content", "iso"))
	if !strings.Contains(list, "volid:local:iso/x_y.iso") {
		t.Errorf("content is %s", list)
	}
	if list := a.must("GET", "/nodes/pve1/storage/local/content", "content", "iso").([]any); len(list) > 0 {
		t.Errorf("content of the other host is %v", list)
	}
	a.ok("DELETE", "/nodes/pve2/storage/local/content/local:iso/x_y.iso")
	a.ok("DELETE", "/nodes/pve2/storage/local/content/local:iso/x_y.iso")
	if r := a.do("DELETE", "/nodes/pve2/storage/local/content/shared:iso/x.iso"); r.errors["volume"] != "storage ID mismatch (shared != local)\n" {
		t.Errorf("volume of another storage: %+v", r)
	}
}

func TestStartNeedsItsMedia(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
	a.uploadISO("pve1", "local", "s.iso", make([]byte, 2048))
	if r := a.do("PUT", "/nodes/pve1/qemu/200/config", "ide3", "local:iso/s.iso"); r.errors["ide3"] != "explicit 'media=cdrom' is required for iso images" {
		t.Errorf("ISO image as a disk: %+v", r)
	}
	a.must("PUT", "/nodes/pve1/qemu/200/config", "ide3", "local:iso/s.iso,media=cdrom")
	a.ok("DELETE", "/nodes/pve1/storage/local/content/local:iso/s.iso")
	if exit := a.exit("POST", "/nodes/pve1/qemu/200/status/start"); exit != "volume 'local:iso/s.iso' does not exist" {
		t.Errorf("start without the image: %s", exit)
	}
}

func TestPools(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", "/pools", "poolid", "p")
	a.must("PUT", "/pools/p", "vms", "9001,9002")
	for _, tt := range []struct {
		method, path, reason string
		params               []string
	}{
		{"POST", "/pools", "create pool failed: pool 'p' already exists", []string{"poolid", "p"}},
		{"PUT", "/pools", "update pools failed: VM 9001 is already a pool member", []string{"poolid", "p", "vms", "9001"}},
		{"DELETE", "/pools/p", "delete pool failed: pool 'p' is not empty (contains VM 9001)", nil},
		{"GET", "/pools/none", "pool 'none' does not exist", nil},
	} {
		if r := a.do(tt.method, tt.path, tt.params...); r.status != http.StatusInternalServerError || r.reason != tt.reason {
			t.Errorf("%s %s: %d %s, want %s", tt.method, tt.path, r.status, r.reason, tt.reason)
		}
	}
	if members := a.object("/pools/p")["members"].([]any); len(members) != 2 {
		t.Errorf("members are %v", members)
	}
	a.must("PUT", "/pools/p", "vms", "9001,9002", "delete", "1")
	a.must("DELETE", "/pools/p")
}

func TestTaskLists(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
	a.exit("POST", "/nodes/pve1/qemu/9001/status/start")
	failed := a.must("GET", "/nodes/pve1/tasks", "errors", "1").([]any)
	if len(failed) != 1 || failed[0].(map[string]any)["status"] != "you can't start a vm if it's a template" {
		t.Errorf("failed tasks are %v", failed)
	}
	all := a.must("GET", "/cluster/tasks").([]any)
	if len(all) != 2 || all[1].(map[string]any)["user"] != "root@pam" || all[1].(map[string]any)["tokenid"] != "pvesim" {
		t.Errorf("tasks are %v", all)
	}
	if r := a.do("GET", "/nodes/pve1/tasks/UPID:pve1:0000FFFF:0FFFFFFF:6B000000:qmclone:100:root@pam:/status"); r.errors["upid"] != "no such task" {
		t.Errorf("unknown task: %+v", r)
	}
	log := fmt.Sprint(a.must("GET", "/nodes/pve1/tasks/"+all[1].(map[string]any)["upid"].(string)+"/log"))
	if !strings.Contains(log, "TASK OK") {
		t.Errorf("log is %s", log)
	}
}

func TestWorldsAreSeededWithoutSurprise(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pvesim.WithNodes(5), pvesim.WithTemplates(pvesim.TemplateSpec{Name: "t", Storage: "shared"}))
	if vms := w.VMs(); len(vms) != 1 || vms[0].Config["scsi0"] != "shared:9001/base-9001-disk-0.qcow2,size=10G" {
		t.Errorf("VMs are %v", vms)
	}
	if err := w.AddVM(pvesim.VMSpec{VMID: 9001, Node: "pve1"}); err == nil {
		t.Error("a VMID can be given twice")
	}
	if err := w.AddVM(pvesim.VMSpec{VMID: 100, Node: "pve9"}); err == nil {
		t.Error("a VM can be on a node that is not there")
	}
	if broken := w.Check(); len(broken) > 0 {
		t.Error(broken)
	}
}
