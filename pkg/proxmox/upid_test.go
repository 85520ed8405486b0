package proxmox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func TestATaskIdentifierSays(t *testing.T) {
	started := time.Date(2026, 11, 21, 3, 32, 33, 0, time.UTC)
	hex := fmt.Sprintf("%08X", started.Unix())
	cases := []struct {
		name string
		upid string
		want proxmox.TaskID
	}{
		{
			"which VM a clone is of and which token started it", "UPID:pve1:0000A1B2:000F4240:" + hex + ":qmclone:400:capi@pve!token:",
			proxmox.TaskID{Node: "pve1", PID: 0xA1B2, PStart: 1000000, Started: started, Type: "qmclone", ID: "400", User: "capi@pve!token"},
		},
		{
			"nothing of what an upload is of", "UPID:pve-2:00000001:00000002:" + hex + ":imgcopy::root@pam:",
			proxmox.TaskID{Node: "pve-2", PID: 1, PStart: 2, Started: started, Type: "imgcopy", User: "root@pam"},
		},
		{
			"when it began, also in a long count of ticks", "UPID:pve1:7FFFFFFF:1234567890:" + hex + ":qmstart:101:root@pam!ci:",
			proxmox.TaskID{Node: "pve1", PID: 0x7FFFFFFF, PStart: 0x1234567890, Started: started, Type: "qmstart", ID: "101", User: "root@pam!ci"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := proxmox.UPID(c.upid).Parse()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("task (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoTaskIdentifierIsQuotedInTheError(t *testing.T) {
	const shape = ": want the form UPID:node:pid:pstart:starttime:type:id:user: of PVE"
	cases := []struct{ name, upid, want string }{
		{"nothing", "", `parse task identifier ""` + shape},
		{"too few fields", "UPID:pve1:1:2:3:qmstart:101:", `parse task identifier "UPID:pve1:1:2:3:qmstart:101:"` + shape},
		{"too many fields", "UPID:pve1:1:2:3:qmstart:101:a@b::", `parse task identifier "UPID:pve1:1:2:3:qmstart:101:a@b::"` + shape},
		{"no colon at the end", "UPID:pve1:1:2:3:qmstart:101:a@b:x", `parse task identifier "UPID:pve1:1:2:3:qmstart:101:a@b:x"` + shape},
		{"another prefix", "upid:pve1:1:2:3:qmstart:101:a@b:", `parse task identifier "upid:pve1:1:2:3:qmstart:101:a@b:"` + shape},
		{"no node", "UPID::1:2:3:qmstart:101:a@b:", `parse task identifier "UPID::1:2:3:qmstart:101:a@b:"` + shape},
		{"a process id that is no number", "UPID:pve1:xyz:2:3:qmstart:101:a@b:", `parse task identifier "UPID:pve1:xyz:2:3:qmstart:101:a@b:": field 2: strconv.ParseUint: parsing "xyz": invalid syntax`},
		{"a time beyond all times", "UPID:pve1:1:2:FFFFFFFFFFFFFFFF:qmstart:101:a@b:", `parse task identifier "UPID:pve1:1:2:FFFFFFFFFFFFFFFF:qmstart:101:a@b:": field 4: strconv.ParseUint: parsing "FFFFFFFFFFFFFFFF": value out of range`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := proxmox.UPID(c.upid).Parse()
			if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(proxmox.TaskID{}, got); diff != "" {
				t.Errorf("task (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzUPID(f *testing.F) {
	f.Add("UPID:pve1:0000A1B2:000F4240:6B2F1C01:qmclone:400:capi@pve!token:")
	f.Add("UPID:pve1:1:2:7FFFFFFFFFFFFFFF:imgcopy::root@pam:")
	f.Add(":::::::::")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := proxmox.UPID(text).Parse()
		if err != nil {
			return
		}
		again := fmt.Sprintf("UPID:%s:%X:%X:%X:%s:%s:%s:", id.Node, id.PID, id.PStart, id.Started.Unix(), id.Type, id.ID, id.User)
		if parsed, err := proxmox.UPID(again).Parse(); err != nil || parsed != id {
			t.Errorf("%q reads as %+v, and that as %+v (%v)", text, id, parsed, err)
		}
		if !strings.Contains(text, ":"+string(id.Node)+":") {
			t.Errorf("node %q is not in %q", id.Node, text)
		}
	})
}

func TestSizes(t *testing.T) {
	cases := []struct {
		name      string
		want, got int64
	}{
		{"a GiB has 2^30 bytes", 1 << 30, int64(proxmox.GiB(1).Bytes())},
		{"a MiB has 2^20 bytes", 1 << 20, int64(proxmox.MiB(1).Bytes())},
		{"bytes are rounded down to MiB", 1, int64(proxmox.Bytes(2<<20 - 1).MiB())},
		{"the largest disk that can be asked for fits", 131072 << 30, int64(proxmox.GiB(131072).Bytes())},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("size (-want +got):\n%s", diff)
			}
		})
	}
}
