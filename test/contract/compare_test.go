package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/test/contract"
)

// parse reads a body as recordings have it.
func parse(t *testing.T, text string) any {
	t.Helper()
	if !strings.HasPrefix(text, "{") {
		return text
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var body any
	if err := d.Decode(&body); err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return body
}

func settled(string) bool { return true }

// differences compares two bodies that were answered with 200 OK.
func differences(t *testing.T, path, want, got string) []string {
	t.Helper()
	e := contract.Exchange{Method: "GET", Path: path, Status: 200, Reason: "OK", Body: parse(t, want)}
	return contract.Compare(e, contract.Answer{Status: 200, Reason: "OK", Body: parse(t, got)}, contract.NewPairs(), settled)
}

const (
	upid1 = "UPID:pve1:00005570:000BFCBF:6B0114F0:qmclone:1300:root@pam!ci:"
	upid2 = "UPID:pve1:00001111:00022222:6B033333:qmclone:1300:root@pam!ci:"
)

func TestCompareSeesDifferences(t *testing.T) {
	t.Parallel()
	const config = "/nodes/pve1/qemu/100/config"
	for name, c := range map[string]struct{ path, want, got, diff string }{
		"missing key":             {config, `{"data":{"a":1,"b":2}}`, `{"data":{"a":1}}`, "data.b: missing, want 2"},
		"additional key":          {config, `{"data":{"a":1}}`, `{"data":{"a":1,"b":2}}`, "data.b: not wanted, got 2"},
		"text for a number":       {config, `{"data":{"cores":2}}`, `{"data":{"cores":"2"}}`, "data.cores: want number 2, got text 2"},
		"number for a text":       {config, `{"data":{"memory":"128"}}`, `{"data":{"memory":128}}`, "data.memory: want text 128, got number 128"},
		"null for a text":         {config, `{"data":"x"}`, `{"data":null}`, "data: want text x, got null null"},
		"other number":            {config, `{"data":{"cores":2}}`, `{"data":{"cores":3}}`, "data.cores: want 2, got 3"},
		"other text":              {config, `{"data":{"name":"a"}}`, `{"data":{"name":"b"}}`, "data.name: want a, got b"},
		"type of a counter":       {config, `{"data":{"uptime":2}}`, `{"data":{"uptime":"2"}}`, "data.uptime: want number 2, got text 2"},
		"no body":                 {config, `{"data":null}`, "", `body: want object {"data":null}, got text `},
		"text like a counter":     {config, `{"data":{"cpu":"host"}}`, `{"data":{"cpu":"max"}}`, "data.cpu: want host, got max"},
		"element too many":        {"/pools", `{"data":[{"poolid":"a"}]}`, `{"data":[{"poolid":"a"},{"poolid":"b"}]}`, `data: poolid b is not wanted, got {"poolid":"b"}`},
		"element missing":         {"/pools", `{"data":[{"poolid":"a"},{"poolid":"b"}]}`, `{"data":[{"poolid":"a"}]}`, `data: poolid b is missing, want {"poolid":"b"}`},
		"element of a plain list": {config, `{"data":["a"]}`, `{"data":["a","b"]}`, `data: want 1 elements ["a"], got 2 elements ["a","b"]`},
		"order of rules":          {config, `{"data":[{"pos":0},{"pos":1}]}`, `{"data":[{"pos":1},{"pos":0}]}`, "data order: want 0 1, got 1 0"},
		"value in an element":     {"/pools", `{"data":[{"poolid":"a","x":1}]}`, `{"data":[{"poolid":"a","x":2}]}`, "data[].x: want 1, got 2"},
		"log line":                {"/nodes/pve1/tasks/" + upid1 + "/log", `{"data":[{"n":1,"t":"a"}],"total":1}`, `{"data":[{"n":1,"t":"b"}],"total":1}`, "log line 1: want a, got b"},
		"log line missing":        {"/nodes/pve1/tasks/" + upid1 + "/log", `{"data":[{"n":1,"t":"a"}],"total":1}`, `{"data":[],"total":0}`, "log line 1: missing, want a"},
		"fewer content types":     {"/storage/local", `{"data":{"content":"iso,images"}}`, `{"data":{"content":"iso"}}`, "data.content: want iso,images, got iso"},
		"type of task":            {config, `{"data":"` + upid1 + `"}`, `{"data":"` + strings.Replace(upid2, "qmclone", "qmcreate", 1) + `"}`, "data: want UPID"},
		"user of task":            {config, `{"data":"` + upid1 + `"}`, `{"data":"` + strings.Replace(upid2, "!ci", "", 1) + `"}`, "data: want UPID"},
		"removed value is empty":  {config, `{"data":{"value":"TOKEN"}}`, `{"data":{"value":""}}`, "data.value: want TOKEN, got "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diffs := strings.Join(differences(t, c.path, c.want, c.got), "\n")
			if !strings.HasPrefix(diffs, c.diff) {
				t.Errorf("differences\n%s\nwant\n%s", diffs, c.diff)
			}
		})
	}
}

func TestCompareForgivesWhatIsIncidental(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, want, got string }{
		"order of keys":             {"/x", `{"data":{"a":1,"b":2}}`, `{"data":{"b":2,"a":1}}`},
		"order of an unsorted list": {"/pools", `{"data":[{"poolid":"a"},{"poolid":"b"}]}`, `{"data":[{"poolid":"b"},{"poolid":"a"}]}`},
		"writing of numbers":        {"/x", `{"data":1}`, `{"data":1.0}`},
		"counters":                  {"/x", `{"data":{"uptime":1,"cpu":0.1}}`, `{"data":{"uptime":7,"cpu":0}}`},
		"UPID":                      {"/x", `{"data":"` + upid1 + `"}`, `{"data":"` + upid2 + `"}`},
		"digest":                    {"/x", `{"data":{"digest":"cadccb798907c4a09d0d0b8cd2ae2e5100d9c714"}}`, `{"data":{"digest":"0000000000000000000000000000000000000000"}}`},
		"MAC address":               {"/x", `{"data":{"net0":"virtio=BC:24:11:00:00:01,bridge=vmbr0"}}`, `{"data":{"net0":"virtio=BC:24:11:00:00:02,bridge=vmbr0"}}`},
		"QEMU's name":               {"/x", `{"data":"qemu-system-x86_64: no"}`, `{"data":"kvm: no"}`},
		"removed value":             {"/x", `{"data":{"value":"TOKEN"}}`, `{"data":{"value":"5f8f1381"}}`},
		"order of content types":    {"/storage/local", `{"data":{"content":"iso,images"}}`, `{"data":{"content":"images,iso"}}`},
		"lines of qemu-img":         {"/nodes/pve1/tasks/" + upid1 + "/log", `{"data":[{"n":1,"t":"transferred 1 of 2"},{"n":2,"t":"a"}],"total":2}`, `{"data":[{"n":1,"t":"a"}],"total":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diffs := differences(t, c.path, c.want, c.got); len(diffs) > 0 {
				t.Errorf("differences\n%s\nwant none", strings.Join(diffs, "\n"))
			}
		})
	}
}

func TestCompareSeesStatusAndReason(t *testing.T) {
	t.Parallel()
	want := contract.Exchange{Method: "GET", Path: "/x", Status: 500, Reason: "VM 1 is locked", Body: ""}
	for name, c := range map[string]struct {
		got  contract.Answer
		diff string
	}{
		"as recorded":  {contract.Answer{Status: 500, Reason: "VM 1 is locked", Body: ""}, ""},
		"other status": {contract.Answer{Status: 501, Reason: "VM 1 is locked", Body: ""}, "status: want 500 VM 1 is locked, got 501 VM 1 is locked"},
		"other reason": {contract.Answer{Status: 500, Reason: "VM 2 is locked", Body: ""}, "reason: want VM 1 is locked, got VM 2 is locked"},
		"no answer":    {contract.Answer{Reason: "unexpected EOF"}, "status: want 500 VM 1 is locked, got 0 unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(contract.Compare(want, c.got, contract.NewPairs(), settled), "\n"); got != c.diff {
				t.Errorf("differences %q, want %q", got, c.diff)
			}
		})
	}
}

func TestCompareFollowsNotes(t *testing.T) {
	t.Parallel()
	e := contract.Exchange{
		Method: "GET", Path: "/nodes/pve3/qemu", Status: 596, Reason: "Connection reset by peer", Body: "",
		Note: "pveproxy stopped on pve3; incidental: a kept connection was used; expect 595 Connection refused",
	}
	if diffs := contract.Compare(e, contract.Answer{Status: 595, Reason: "Connection refused", Body: ""}, contract.NewPairs(), settled); len(diffs) > 0 {
		t.Errorf("differences %q from what the note expects, want none", diffs)
	}
	if diffs := contract.Compare(e, contract.Answer{Status: 596, Reason: "Connection reset by peer", Body: ""}, contract.NewPairs(), settled); len(diffs) == 0 {
		t.Error("what the note calls incidental is taken for expected")
	}
}

func TestPairsKeepIdentities(t *testing.T) {
	t.Parallel()
	p := contract.NewPairs()
	p.Choose("virtio=BC:24:11:00:00:01")
	for _, step := range []struct {
		name, want, got string
		same            bool
	}{
		{"a chosen address stays", "BC:24:11:00:00:01", "BC:24:11:00:00:01", true},
		{"a chosen address changes", "BC:24:11:00:00:01", "BC:24:11:00:00:09", false},
		{"a new address", "BC:24:11:00:00:02", "BC:24:11:AA:AA:02", true},
		{"the new address again", "BC:24:11:00:00:02", "BC:24:11:AA:AA:02", true},
		{"the new address has changed", "BC:24:11:00:00:02", "BC:24:11:AA:AA:03", false},
		{"an old address where a new one is due", "BC:24:11:00:00:04", "BC:24:11:AA:AA:03", false},
		{"a chosen address where a new one is due", "BC:24:11:00:00:05", "BC:24:11:00:00:01", false},
	} {
		if same := p.Same(step.want, step.got); same != step.same {
			t.Errorf("%s: same is %t, want %t", step.name, same, step.same)
		}
	}
	if got := p.Replace("virtio=BC:24:11:00:00:02,bridge=vmbr0"); got != "virtio=BC:24:11:AA:AA:03,bridge=vmbr0" {
		t.Errorf("a later request says %q, want the target's address", got)
	}
}
