package pve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// TestClassOfAnswer holds texts that real servers of PVE 8.4 and 9.2 gave.
func TestClassOfAnswer(t *testing.T) {
	cases := []struct {
		method string
		status int
		reason string
		params map[string]string
		want   pve.Class
	}{
		{"GET", 500, "Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist", nil, pve.NotFound},
		{"POST", 500, "unable to find configuration file for VM 999 on node 'pve1'", nil, pve.NotFound},
		{"GET", 400, "Parameter verification failed.", map[string]string{"upid": "no such task"}, pve.NotFound},
		{"POST", 500, "unable to create VM 100 - VM 100 already exists on node 'pve1'", nil, pve.AlreadyExists},
		{"POST", 500, "unable to create VM 101: config file already exists", nil, pve.AlreadyExists},
		{"GET", 400, "Parameter verification failed.", map[string]string{"vmid": "VM 100 already exists"}, pve.AlreadyExists},
		{"POST", 500, "create pool failed: pool 'capi' already exists", nil, pve.AlreadyExists},
		{"POST", 500, "create resource failed: resource ID 'vm:120' already defined", nil, pve.AlreadyExists},
		{"PUT", 500, "update pools failed: VM 120 is already a pool member", nil, pve.AlreadyExists},
		{"PUT", 500, "VM is locked (clone)", nil, pve.Locked},
		{"PUT", 500, "VM is locked (backup)", nil, pve.Locked},
		{"PUT", 500, "can't lock file '/var/lock/qemu-server/lock-122.conf' - got timeout", nil, pve.Locked},
		{"GET", 401, "No ticket", nil, pve.Unauthorized},
		{"GET", 401, "Authentication failed!", nil, pve.Unauthorized},
		{"POST", 401, "authentication failure", nil, pve.Unauthorized},
		{"PUT", 401, "Permission denied - invalid csrf token", nil, pve.Unauthorized},
		{"POST", 403, "Permission check failed (/vms/100, VM.Clone)", nil, pve.Forbidden},
		{"POST", 403, "Permission check failed (/storage/local, Datastore.AllocateTemplate)", nil, pve.Forbidden},
		{"PUT", 500, "update pools failed: 403 Permission check failed (/vms/120, Permissions.Modify|VM.Allocate)", nil, pve.Forbidden},
		{"POST", 403, "Permission check failed (pool 'nope' does not exist)", nil, pve.Missing},
		{"PUT", 400, "Parameter verification failed.", map[string]string{"cores": "type check ('integer') failed - got '2.0'"}, pve.Invalid},
		{"PUT", 400, "Parameter verification failed.", map[string]string{"delete": "no such option 'foo'"}, pve.Invalid},
		{"POST", 400, "Bad Request", nil, pve.Invalid},
		{"PUT", 500, "no options specified", nil, pve.Invalid},
		{"POST", 500, "can't clone VM to node 'pve3' (VM uses local storage)", nil, pve.Invalid},
		{"POST", 500, "can't clone to non-shared storage 'local'", nil, pve.Invalid},
		{"POST", 500, "parameter 'storage' not allowed for linked clones", nil, pve.Invalid},
		{"POST", 500, "No QEMU guest agent configured", nil, pve.Invalid},
		{"POST", 500, "cannot create group: ha groups have been migrated to rules", nil, pve.Invalid},
		{"GET", 501, "Method 'GET /foo' not implemented", nil, pve.Unimplemented},
		{"GET", 404, "Not Found", nil, pve.Unimplemented},
		{"POST", 595, "Connection refused", nil, pve.Unreachable},
		{"PUT", 595, "No route to host", nil, pve.Unreachable},
		{"POST", 595, "Connection timed out", nil, pve.Unreachable},
		{"PUT", 596, "Connection timed out", nil, pve.Ambiguous},
		{"POST", 596, "Connection reset by peer", nil, pve.Ambiguous},
		{"POST", 596, "Broken pipe", nil, pve.Ambiguous},
		{"GET", 596, "Connection reset by peer", nil, pve.Unreachable},
		{"POST", 502, "Bad Gateway", nil, pve.Ambiguous},
		{"GET", 503, "Service Unavailable", nil, pve.Unreachable},
		{"POST", 500, "cluster not ready - no quorum?", nil, pve.NoQuorum},
		{"PUT", 500, "unable to open file '/etc/pve/nodes/pve1/qemu-server/101.conf.tmp.712' - Permission denied", nil, pve.NoQuorum},
		{"POST", 500, "create pool failed: cfs-lock 'file-user_cfg' error: no quorum!", nil, pve.NoQuorum},
		{"PUT", 500, "checksum mismatch (file change by other user?)", nil, pve.Conflict},
		{"PUT", 500, "detected modified configuration - file changed by other user? Try again.", nil, pve.Conflict},
		{"PUT", 500, "only root can set 'affinity' config", nil, pve.RootOnly},
		{"PUT", 500, "only root can set 'hostpci0' config for non-mapped devices", nil, pve.RootOnly},
		{"DELETE", 400, "Parameter verification failed.", map[string]string{"skiplock": "Only root may use this option."}, pve.RootOnly},
		{"DELETE", 500, "can't remove VM 105 - protection mode enabled", nil, pve.Protected},
		{"DELETE", 500, "unable to remove VM 120 - used in HA resources and purge parameter not set.", nil, pve.Busy},
		{"DELETE", 500, "delete pool failed: pool 'capi' is not empty (contains pool 'capi/sub')", nil, pve.Busy},
		{"GET", 429, "Too Many Requests", nil, pve.Busy},
		{"DELETE", 500, "VM 101 is running - destroy failed", nil, pve.WrongState},
		{"POST", 500, "VM 101 is not running", nil, pve.WrongState},
		{"POST", 500, "VM 101 not running", nil, pve.WrongState},
		{"GET", 500, "hostname lookup 'pve7' failed - failed to get address info for: pve7: Temporary failure in name resolution", nil, pve.Missing},
		{"POST", 500, "no such cluster node 'pve9'", nil, pve.Missing},
		{"GET", 500, "storage 'nope' does not exist", nil, pve.Missing},
		{"DELETE", 500, "no such logical volume pve/vm-999-disk-0", nil, pve.Missing},
		{"GET", 500, "no such volume group 'data'", nil, pve.Missing},
		{"GET", 500, "no such security group 'none'", nil, pve.Missing},
		{"GET", 500, "no such IPSet 'none'", nil, pve.Missing},
		{"POST", 400, "Parameter verification failed.", map[string]string{"source": "no such ipset 'nope'"}, pve.Missing},
		{"POST", 500, "no such alias 'nope'", nil, pve.Missing},
		{"DELETE", 500, "no such resource 'vm:1199'", nil, pve.Missing},
		{"GET", 500, "no such ha rule 'nope'", nil, pve.Missing},
		{"GET", 500, "no such token 't2' for user 'a@pve'", nil, pve.Missing},
		{"POST", 500, "no such luck", nil, pve.Other},
		{"POST", 500, "no such device", nil, pve.Other},
		{"POST", 500, "unable to open file - No such file or directory", nil, pve.Other},
		{"PUT", 500, "volume 'local:iso/none.iso' does not exist", nil, pve.Missing},
		{"POST", 400, "Parameter verification failed.", map[string]string{"storage": "No such storage."}, pve.Missing},
		{"GET", 500, "storage 'pve1only' is not available on node 'pve2'", nil, pve.Unfit},
		{"GET", 500, "storage 'off' is disabled", nil, pve.Unfit},
		{"GET", 500, "unable to get any free VMID in range [100, 101]", nil, pve.Capacity},
		{"POST", 500, "QEMU guest agent is not running", nil, pve.Unresponsive},
		{"GET", 500, "something PVE never said", nil, pve.Other},
		{"GET", 302, "Found", nil, pve.Other},
	}
	for _, c := range cases {
		err := &pve.Error{Method: c.method, Path: "/x", Status: c.status, Reason: c.reason, Params: c.params}
		if got := pve.ClassOf(fmt.Errorf("do it: %w", err)); got != c.want {
			t.Errorf("%v: class %v, want %v", err, got, c.want)
		}
	}
}

// TestClassOfTask holds exit statuses of real tasks, and some that this lab could not produce.
func TestClassOfTask(t *testing.T) {
	cases := map[string]pve.Class{
		"VM is locked (clone)": pve.Locked,
		"can't lock file '/var/lock/qemu-server/lock-122.conf' - got timeout":                        pve.Locked,
		"unable to create VM 103: config file already exists":                                        pve.AlreadyExists,
		"close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/1201.conf' failed: File exists": pve.AlreadyExists,
		"Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist":                        pve.NotFound,
		"unable to find configuration file for VM 999 on node 'pve1'":                                pve.NotFound,
		"unexpected status":                                                                              pve.Interrupted,
		"received interrupt":                                                                             pve.Interrupted,
		"migration aborted":                                                                              pve.Interrupted,
		"VM 101 already running":                                                                         pve.WrongState,
		"you can't start a vm if it's a template":                                                        pve.WrongState,
		"shrinking disks is not supported":                                                               pve.Invalid,
		"you can't resize a cdrom":                                                                       pve.Invalid,
		"disk 'scsi5' does not exist":                                                                    pve.Missing,
		"volume 'local:iso/seed.iso' does not exist":                                                     pve.Missing,
		"failed to stat '/var/lib/vz/import/none.qcow2'":                                                 pve.Missing,
		"clone failed: volume 'local:600/vm-600-disk-0.qcow2' does not exist":                            pve.Missing,
		"MAX 2 vcpus allowed per VM on this node":                                                        pve.Unfit,
		"host NUMA node1 doesn't exist":                                                                  pve.Unfit,
		"bridge 'vmbr77' does not exist":                                                                 pve.Unfit,
		"total memory for NUMA nodes must be equal to vm static memory":                                  pve.Invalid,
		"VM quit/powerdown failed - got timeout":                                                         pve.Unresponsive,
		"base volume 'local:100/base-100-disk-0.qcow2' is still in use by linked cloned":                 pve.Busy,
		"checksum mismatch (file change by other user?)":                                                 pve.Conflict,
		"checksum mismatch: got '5cde' != expect '00'":                                                   pve.Invalid,
		"403 Permission check failed (/storage/local, Datastore.AllocateSpace)":                          pve.Forbidden,
		"unable to open file '/etc/pve/nodes/pve1/qemu-server/101.conf.tmp.7' - Permission denied":       pve.NoQuorum,
		"clone failed: copy failed: command '/usr/bin/qemu-img convert' failed: No space left on device": pve.Capacity,
		"start failed: command '/usr/bin/kvm' failed: cannot set up guest memory 'pc.ram': Cannot allocate memory":              pve.Capacity,
		"clone failed: lvcreate 'pve/vm-101-disk-0' error: Volume group has insufficient free space (10 extents): 20 required.": pve.Capacity,
		"start failed: QEMU exited with code 1": pve.Other,
	}
	for text, want := range cases {
		if got := pve.ClassOf(&pve.TaskError{UPID: "UPID:pve1:1:1:1:qmstart:101:root@pam:", ExitStatus: text}); got != want {
			t.Errorf("%s: class %v, want %v", text, got, want)
		}
	}
}

func TestClassOfNothing(t *testing.T) {
	if got := pve.ClassOf(nil); got != pve.None {
		t.Errorf("no error has class %v", got)
	}
	if got := pve.ClassOf(context.Canceled); got != pve.Other {
		t.Errorf("a foreign error has class %v", got)
	}
	if got := pve.Class(99).String(); got != "other" {
		t.Errorf("an unknown class prints %q", got)
	}
}

// TestClassWithoutAnswer is the distinction that everything else relies on.
func TestClassWithoutAnswer(t *testing.T) {
	reset := errors.New("connection reset by peer")
	cases := []struct {
		err  pve.Error
		want pve.Class
	}{
		{pve.Error{Method: "POST", Path: "/x", Cause: reset}, pve.Unreachable},
		{pve.Error{Method: "POST", Path: "/x", Cause: reset, Sent: true}, pve.Ambiguous},
		{pve.Error{Method: "GET", Path: "/x", Cause: reset, Sent: true}, pve.Unreachable},
		{pve.Error{Method: "POST", Path: "/access/ticket", Cause: reset, Sent: true}, pve.Unreachable},
		{pve.Error{Method: "DELETE", Path: "/x", Status: 200, Cause: errors.New("answer names no task")}, pve.Ambiguous},
		{pve.Error{Method: "GET", Path: "/x", Status: 200, Cause: errors.New("decode answer")}, pve.Other},
	}
	for _, c := range cases {
		if got := pve.ClassOf(&c.err); got != c.want {
			t.Errorf("%v (sent %v): class %v, want %v", &c.err, c.err.Sent, got, c.want)
		}
	}
}

func TestRetryable(t *testing.T) {
	for _, class := range []pve.Class{pve.Locked, pve.Unreachable, pve.NoQuorum, pve.Capacity, pve.Busy, pve.Unresponsive} {
		if !class.Retryable() {
			t.Errorf("%v is not retryable", class)
		}
	}
	for _, class := range []pve.Class{pve.None, pve.Other, pve.Ambiguous, pve.Forbidden, pve.Invalid, pve.NotFound, pve.RootOnly} {
		if class.Retryable() {
			t.Errorf("%v is retryable", class)
		}
	}
}

func TestErrorText(t *testing.T) {
	cases := []struct {
		err  error
		want string
	}{
		{
			&pve.Error{Method: "PUT", Path: "/nodes/pve1/qemu/101/config", Status: 500, Reason: "VM is locked (clone)", Message: "VM is locked (clone)"},
			"PUT /nodes/pve1/qemu/101/config: 500 VM is locked (clone)",
		},
		{
			&pve.Error{Method: "POST", Path: "/a", Status: 500, Reason: "first line", Message: "first line\nsecond line"},
			"POST /a: 500 first line second line",
		},
		{
			&pve.Error{Method: "POST", Path: "/a", Status: 400, Reason: "Parameter verification failed.", Params: map[string]string{"b": "bad\n", "a": "worse"}},
			"POST /a: 400 Parameter verification failed. a: worse; b: bad",
		},
		{&pve.Error{Method: "GET", Path: "/a", Cause: errors.New("dial tcp: connection refused")}, "GET /a: dial tcp: connection refused"},
		{&pve.TaskError{UPID: "UPID:pve1:1:1:1:qmclone:101:root@pam:", ExitStatus: "VM is locked (clone)"}, "task qmclone 101 on pve1: VM is locked (clone)"},
		{&pve.TaskError{UPID: "UPID:pve1:1:1:1:imgcopy::root@pam:", ExitStatus: "x"}, "task imgcopy on pve1: x"},
		{&pve.TaskError{UPID: "nonsense", ExitStatus: "x"}, `task "nonsense": x`},
	}
	for _, c := range cases {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	long := (&pve.Error{Method: "GET", Path: "/a", Status: 500, Reason: strings.Repeat("ä", 10_000)}).Error()
	if len(long) > 600 || !strings.HasSuffix(long, "ä…") {
		t.Errorf("a long text of %d bytes ends in %q", len(long), long[len(long)-6:])
	}
}

// unclassified are texts of recorded answers that need no class: nothing of ours makes such requests.
var unclassified = []string{
	"malformed JSON string", "command 'timedatectl", "invalid server response", "Undefined subroutine", "cannot lookup undefined type",
}

// TestClassOfRecordings wants a class for every recorded refusal.
func TestClassOfRecordings(t *testing.T) {
	files, err := filepath.Glob("../../../shared/pve-recordings/*/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Skip("no recordings beside the repository")
	}
	unknown, seen := map[string]string{}, map[pve.Class]int{}
	for _, name := range files {
		for _, failure := range recordedErrors(t, name) {
			class := pve.ClassOf(failure)
			seen[class]++
			text := failure.Error()
			listed := slices.ContainsFunc(unclassified, func(part string) bool { return strings.Contains(text, part) })
			if class == pve.Other && !listed {
				unknown[failure.Reason] = text
			}
		}
	}
	for _, text := range slices.Sorted(maps.Values(unknown)) {
		t.Errorf("no class: %s", text)
	}
	t.Logf("classes: %v", seen)
}

func recordedErrors(t *testing.T, name string) []*pve.Error {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	var failures []*pve.Error
	for lines.Scan() {
		var line struct {
			Method, Path, Reason string
			Status               int
			Body                 json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		var body struct {
			Message string
			Errors  map[string]string
		}
		_ = json.Unmarshal(line.Body, &body)
		if line.Status >= 400 {
			failures = append(failures, &pve.Error{
				Method: line.Method, Path: line.Path, Status: line.Status, Reason: line.Reason, Message: body.Message, Params: body.Errors,
			})
		}
	}
	return failures
}

func TestAStorageThatIsGoneIsToldFromOneThatCannotBeReached(t *testing.T) {
	for text, want := range map[string]bool{
		"storage 'nfs' does not exist": true, "storage 'nfs' is disabled": false, "bridge 'vmbr7' does not exist": false,
		"hostname lookup 'pve7' failed - failed to get address info for: pve7: Name or service not known": false,
	} {
		err := fmt.Errorf("delete: %w", &pve.Error{Method: "DELETE", Status: 500, Reason: text})
		if got := pve.IsNoStorage(err); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
	if pve.IsNoStorage(nil) {
		t.Error("no error says nothing")
	}
}
