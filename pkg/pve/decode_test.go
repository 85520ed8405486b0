package pve

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func TestScalar(t *testing.T) {
	cases := []struct {
		json, text string
		number     float64
		integer    int64
		flag       bool
	}{
		{`1`, "1", 1, 1, true},
		{`"1"`, "1", 1, 1, true},
		{`true`, "1", 1, 1, true},
		{`1.0`, "1.0", 1, 1, true},
		{`0`, "0", 0, 0, false},
		{`""`, "", 0, 0, false},
		{`false`, "0", 0, 0, false},
		{`null`, "", 0, 0, false},
		{`0.5`, "0.5", 0.5, 0, false},
		{`"on"`, "on", 0, 0, true},
		{`"x"`, "x", 0, 0, false},
		{`134217728`, "134217728", 134217728, 134217728, false},
		{`1e9`, "1e9", 1e9, 1_000_000_000, false},
		{`9223372036854775807`, "9223372036854775807", math.MaxInt64, math.MaxInt64, false},
		{`1e300`, "1e300", 1e300, math.MaxInt64, false},
		{`-1e300`, "-1e300", -1e300, math.MinInt64, false},
		{`"NaN"`, "NaN", 0, 0, false},
		{`"Inf"`, "Inf", 0, 0, false},
		{`{"a": 1}`, `{"a":1}`, 0, 0, false},
		{`[ 1 ]`, `[1]`, 0, 0, false},
		{`"\ud800"`, "\uFFFD", 0, 0, false},
	}
	for _, c := range cases {
		var s scalar
		if err := json.Unmarshal([]byte(c.json), &s); err != nil {
			t.Errorf("%s: %v", c.json, err)
		}
		if string(s) != c.text || s.number() != c.number || s.integer() != c.integer || s.flag() != c.flag {
			t.Errorf("%s: got %q, %v, %v, %v", c.json, s, s.number(), s.integer(), s.flag())
		}
	}
}

func TestScalarUnits(t *testing.T) {
	if got := scalar("99").vmid(); got != 0 {
		t.Errorf("99 is VMID %v", got)
	}
	if got := scalar("1e300").vmid(); got != 0 {
		t.Errorf("1e300 is VMID %v", got)
	}
	if got := scalar("-5").bytes(); got != 0 {
		t.Errorf("-5 is %v bytes", got)
	}
	if got := scalar("1e300").seconds(); got < 0 {
		t.Errorf("1e300 s is %v", got)
	}
	if got := scalar("60").seconds(); got != time.Minute {
		t.Errorf("60 s is %v", got)
	}
	if got := scalar("1e300").time(); !got.IsZero() {
		t.Errorf("1e300 is %v", got)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, scalar("a;b, c").list()); diff != "" {
		t.Error(diff)
	}
}

func TestVMConfigReaders(t *testing.T) {
	config, err := decodeVMConfig([]byte(`{"cores":4,"name":"w1","description":"two\nlines","template":"1","tags":" ","memory":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := config.Int("cores"); !ok || n != 4 {
		t.Errorf("cores %v, %v", n, ok)
	}
	if _, ok := config.Int("memory"); ok {
		t.Error("x is a number")
	}
	if name, ok := config.Get("name"); !ok || name != config.Name() || config.Description() != "two\nlines" || !config.Template() {
		t.Errorf("got %+v", config)
	}
	if _, ok := config.Get("scsi0"); ok || len(config.Tags()) != 0 || config.Flag("scsi0") {
		t.Errorf("got %+v", config)
	}
	if _, err := decodeVMConfig([]byte(`[]`)); err == nil {
		t.Error("a list is a config")
	}
}

// FuzzDecode: whatever a server sends, nothing panics, and what comes out is within bounds.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`[{"type":"qemu","vmid":101,"node":"pve1","status":"running","maxcpu":0.5,"uptime":1e30,"tags":"a;b"}]`,
		`{"digest":"x","lock":1,"cores":[{}],"ha":{"managed":{"x":1}}}`, `[{"upid":null,"endtime":"1e99","status":{}}]`,
		`[null,1,"x",[],{"vmid":"99999999999"}]`, `{"data":`, "null", `""`, `[[[[[[`, `{"a":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _ := decodeList(data)
		var resources []Resource
		for _, object := range list {
			resources = append(resources, object.resource())
			_ = object.clusterTask().Err()
			_ = object.taskStatus("x").Err()
		}
		for vm := range snapshotOf(resources...).VMs() {
			if vm.ID < proxmox.MinVMID || vm.Node == "" || vm.MaxMemory < 0 {
				t.Errorf("got %+v", vm)
			}
		}
		if config, err := decodeVMConfig(data); err == nil {
			_, _ = config.Tags(), config.Template()
		}
		_, _ = decodeVMStatus(data)
		_ = namesTask(data)
		if message, params := (&call{}).complaint(data); len(message) > maxMessage || len(params) > maxParams {
			t.Errorf("%d bytes and %d parameters", len(message), len(params))
		}
		text := string(data)
		if line := (&Error{Method: "GET", Status: 500, Reason: text, Message: text}).Error(); len(line) > maxErrorLine {
			t.Errorf("an error of %d bytes", len(line))
		}
		_, _ = proxmox.UPID(text).Parse()
		_ = ClassOf(&TaskError{UPID: proxmox.UPID(text), ExitStatus: text})
	})
}
