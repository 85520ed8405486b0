package pvesim_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const agentMAC = "BC:24:11:00:00:07"

// withDebian starts a VM with a booted Debian and returns the path of its agent.
func withDebian(t *testing.T, hooks pvesim.BootHooks, opts ...pvesim.Option) (a *api, agent string) {
	t.Helper()
	up := make(chan pvesim.BootedGuest, 1)
	hooks.OnBoot = func(g pvesim.BootedGuest) { up <- g }
	a = newAPI(t, append([]pvesim.Option{pvesim.WithGuests(pvesim.Booting(hooks))}, opts...)...)
	vm := a.withVM(100, "", map[string]string{
		"name": "node-1", "agent": "1", "cores": "2", "memory": "512", "net0": "virtio=" + agentMAC + ",bridge=vmbr0", "ipconfig0": "ip=10.0.0.9/24",
		"scsi0": "local-lvm:vm-100-disk-0,size=4G", "ide2": "local-lvm:vm-100-cloudinit,media=cdrom",
	})
	a.ok("POST", vm+"/status/start")
	<-up
	return a, vm + "/agent"
}

func TestAgentChecks(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for id, c := range map[proxmox.VMID]struct {
		state string
		agent string
		want  string
	}{
		100: {"running", "", "500 No QEMU guest agent configured"},
		101: {"", "", "500 No QEMU guest agent configured"},
		102: {"", "1", "500 VM 102 is not running"},
		103: {"running", "0", "500 QEMU guest agent is not running"},
		104: {"running", "enabled=1", "500 QEMU guest agent is not running"},
	} {
		config := map[string]string{}
		if c.agent != "" {
			config["agent"] = c.agent
		}
		vm := a.withVM(id, c.state, config)
		a.expect(c.want, "POST", vm+"/agent/ping")
		a.expect(c.want, "GET", vm+"/agent/get-osinfo")
		a.expect(c.want, "POST", vm+"/agent/exec", "command", "id")
		a.expect(c.want, "POST", vm+"/agent", "command", "fstrim")
	}
	a.expect("500 Configuration file 'nodes/pve1/qemu-server/199.conf' does not exist", "GET", "/nodes/pve1/qemu/199/agent/info")
	a.expect("501 Method 'GET /nodes/pve1/qemu/100/agent/ping' not implemented", "GET", "/nodes/pve1/qemu/100/agent/ping")
	if got := len(a.must("GET", "/nodes/pve1/qemu/100/agent").([]any)); got != 25 {
		t.Errorf("the index has %d entries", got)
	}
}

func TestAgentsThatAreSlowOrAbsent(t *testing.T) {
	t.Parallel()
	a, agent := withDebian(t, pvesim.BootHooks{AgentDelay: 2 * time.Second})
	a.must("POST", agent+"/ping")
	a, agent = withDebian(t, pvesim.BootHooks{AgentDelay: 4 * time.Second})
	a.expect("500 QEMU guest agent is not running", "POST", agent+"/ping")
	a, agent = withDebian(t, pvesim.BootHooks{NoAgent: true})
	a.expect("500 QEMU guest agent is not running", "POST", agent+"/ping")
	a.must("PUT", "/nodes/pve1/qemu/100/config", "agent", "0")
	a.expect("500 QEMU guest agent is not running", "POST", agent+"/ping")
}

// TestAgentRights differ between the releases: 9.x split VM.Monitor.
func TestAgentRights(t *testing.T) {
	t.Parallel()
	for version, want := range map[pvesim.Version]string{
		pvesim.V84: "403 Permission check failed (/vms/100, VM.Monitor)", pvesim.V92: "403 Permission check failed (/vms/100, VM.GuestAgent.FileRead|VM.GuestAgent.Unrestricted)",
	} {
		a, agent := withDebian(t, pvesim.BootHooks{}, pvesim.WithVersion(version))
		audit := "VM.GuestAgent.Audit"
		if version == pvesim.V84 {
			audit = "VM.Audit"
		}
		other := a.as(a.server.World.AddToken(pvesim.TokenSpec{User: "x@pve", Name: "t", Privileges: map[string][]string{"/vms/100": {audit}}}))
		other.expect(want, "GET", agent+"/file-read", "file", "/etc/hostname")
		if version == pvesim.V92 {
			other.must("GET", agent+"/get-osinfo")
			other.expect("403 Permission check failed (/vms/100, VM.GuestAgent.Unrestricted)", "POST", agent+"/exec", "command", "id")
		}
	}
}

func TestAgentLooksIntoDebian(t *testing.T) {
	t.Parallel()
	a, agent := withDebian(t, pvesim.BootHooks{})
	for name, want := range map[string]string{
		"get-host-name": "map[host-name:node-1]", "get-timezone": "map[offset:0 zone:UTC]", "get-users": "[]", "get-memory-block-info": "map[size:1.34217728e+08]",
		"get-vcpus": "[map[can-offline:false logical-id:0 online:true] map[can-offline:true logical-id:1 online:true]]",
	} {
		if got := fmt.Sprint(a.object(agent + "/" + name)["result"]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := a.object(agent + "/get-osinfo")["result"].(map[string]any); got["id"] != "debian" || got["version-id"] != "12" {
		t.Errorf("osinfo is %v", got)
	}
	if got := a.object(agent + "/get-fsinfo")["result"].([]any)[0].(map[string]any); got["mountpoint"] != "/" || got["name"] != "sda" || got["total-bytes"].(float64) < 3<<30 {
		t.Errorf("fsinfo is %v", got)
	}
	if got := a.object(agent + "/get-memory-blocks")["result"].([]any); len(got) != 4 {
		t.Errorf("%d memory blocks", len(got))
	}
	if got := a.object(agent + "/get-time")["result"].(float64); got < float64(time.Now().Add(-time.Hour).UnixNano()) {
		t.Errorf("time is %g", got)
	}
	if got := a.object(agent + "/info")["result"].(map[string]any)["supported_commands"].([]any); len(got) < 25 {
		t.Errorf("%d commands", len(got))
	}
	interfaces := columns(a.object(agent + "/network-get-interfaces")["result"], "name", "hardware-address")
	if diff := cmp.Diff([]string{"lo/00:00:00:00:00:00", "eth0/" + strings.ToLower(agentMAC)}, interfaces); diff != "" {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}
	addresses := a.object(agent + "/network-get-interfaces")["result"].([]any)[1].(map[string]any)["ip-addresses"]
	if diff := cmp.Diff([]string{"10.0.0.9/24", "fe80::be24:11ff:fe00:7/64"}, columns(addresses, "ip-address", "prefix")); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if got := a.must("POST", agent, "command", "get-host-name"); fmt.Sprint(got) != "map[result:map[host-name:node-1]]" {
		t.Errorf("POST …/agent gives %v", got)
	}
	a.expect("400 map[command:value 'exec' does not have a value in the enumeration 'fsfreeze-freeze, fsfreeze-status, fsfreeze-thaw, fstrim, get-fsinfo, get-host-name, "+
		"get-memory-block-info, get-memory-blocks, get-osinfo, get-time, get-timezone, get-users, get-vcpus, info, network-get-interfaces, ping, shutdown, suspend-disk, suspend-hybrid, suspend-ram']",
		"POST", agent, "command", "exec")
}

// run starts a program with its words as repeated keys and waits for its end.
func (a *api) run(agent string, words ...string) map[string]any {
	a.t.Helper()
	form := url.Values{"command": words}
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.server.URL+"/api2/json"+agent+"/exec", strings.NewReader(form.Encode()))
	must(a.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r := a.send(req)
	pid, ok := r.data.(map[string]any)
	if !ok {
		a.t.Fatalf("exec of %q: %+v", words, r)
	}
	for {
		if out := a.object(agent+"/exec-status", "pid", fmt.Sprint(pid["pid"])); out["exited"] == 1.0 {
			a.expect("500 Agent error: Invalid parameter 'pid'", "GET", agent+"/exec-status", "pid", fmt.Sprint(pid["pid"]))
			return out
		}
		poll()
	}
}

func TestAgentRunsPrograms(t *testing.T) {
	t.Parallel()
	a, agent := withDebian(t, pvesim.BootHooks{})
	for _, c := range []struct {
		words []string
		want  map[string]any
	}{
		{[]string{"cat", "/etc/hostname"}, map[string]any{"out-data": "node-1\n", "out-truncated": 0.0, "exitcode": 0.0}},
		{[]string{"/usr/bin/id", "-u"}, map[string]any{"out-data": "0\n", "out-truncated": 0.0, "exitcode": 0.0}},
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 3"}, map[string]any{
			"out-data": "out\n", "out-truncated": 0.0, "err-data": "err\n", "err-truncated": 0.0, "exitcode": 3.0,
		}},
		{[]string{"bash", "-c", "nope"}, map[string]any{"err-data": "sh: 1: nope: not found\n", "err-truncated": 0.0, "exitcode": 127.0}},
		{[]string{"cat", "/nope"}, map[string]any{"err-data": "cat: /nope: No such file or directory\n", "err-truncated": 0.0, "exitcode": 1.0}},
		{[]string{"uname", "-r"}, map[string]any{"out-data": "6.1.0-56-cloud-amd64\n", "out-truncated": 0.0, "exitcode": 0.0}},
		{[]string{"sleep", "6"}, map[string]any{"exitcode": 0.0}},
		{[]string{"sleep", "x"}, map[string]any{
			"err-data": "sleep: invalid time interval 'x'\nTry 'sleep --help' for more information.\n", "err-truncated": 0.0, "exitcode": 1.0,
		}},
		{[]string{"cloud-init", "status"}, map[string]any{"out-data": "status: done\n", "out-truncated": 0.0, "exitcode": 0.0}},
		{[]string{"false"}, map[string]any{"exitcode": 1.0}},
	} {
		c.want["exited"] = 1.0
		if diff := cmp.Diff(c.want, a.run(agent, c.words...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.words, diff)
		}
	}
	a.expect("596 Broken pipe", "POST", agent+"/exec", "command", "/no/such")
	a.expect("400 map[command:property is missing and it is not optional]", "POST", agent+"/exec")
	pid := a.must("POST", agent+"/exec", "command", "cat", "input-data", "hello").(map[string]any)["pid"]
	if got := a.object(agent+"/exec-status", "pid", fmt.Sprint(pid))["out-data"]; got != "hello" {
		t.Errorf("cat of its input gives %v", got)
	}
}

func TestAgentReadsAndWritesFiles(t *testing.T) {
	t.Parallel()
	a, agent := withDebian(t, pvesim.BootHooks{})
	a.expect("500 Agent error: failed to open file '/nope' (mode: 'r'): No such file or directory", "GET", agent+"/file-read", "file", "/nope")
	a.expect("500 Agent error: failed to open file '/nope/x' (mode: 'w'): No such file or directory", "POST", agent+"/file-write", "file", "/nope/x", "content", "a")
	if got := a.must("POST", agent+"/file-write", "file", "/tmp/x", "content", "hello"); got != nil {
		t.Errorf("file-write answers %v", got)
	}
	if got := fmt.Sprint(a.object(agent+"/file-read", "file", "/tmp/x")); got != "map[bytes-read:5 content:hello]" {
		t.Errorf("file-read gives %s", got)
	}
	if got := fmt.Sprint(a.object(agent+"/file-read", "file", "/tmp/x", "offset", "1", "count", "2")); got != "map[bytes-read:2 content:el truncated:1]" {
		t.Errorf("part of a file is %s", got)
	}
	if got := fmt.Sprint(a.must("POST", agent+"/set-user-password", "username", "root", "password", "secret")); got != "map[result:map[]]" {
		t.Errorf("set-user-password answers %s", got)
	}
}

func TestAgentFreezesFileSystems(t *testing.T) {
	t.Parallel()
	a, agent := withDebian(t, pvesim.BootHooks{})
	result := func(command string) string {
		t.Helper()
		return fmt.Sprint(a.must("POST", agent+"/"+command).(map[string]any)["result"])
	}
	got := fmt.Sprint(result("fsfreeze-status"), result("fsfreeze-freeze"), result("fsfreeze-status"), result("fsfreeze-thaw"), result("fsfreeze-thaw"))
	if got != fmt.Sprint("thawed", "1", "frozen", "1", "0") {
		t.Errorf("freezing and thawing gives %s", got)
	}
	a.must("POST", agent+"/fsfreeze-freeze")
	a.expect("500 Agent error: Command guest-fstrim has been disabled: the command is not allowed", "POST", agent+"/fstrim")
	a.must("POST", agent+"/ping")
}

func TestAgentPower(t *testing.T) {
	t.Parallel()
	a, agent := withDebian(t, pvesim.BootHooks{})
	vm := "/nodes/pve1/qemu/100"
	a.must("POST", agent+"/suspend-ram")
	if got := a.power(vm); got != "running/suspended" {
		t.Errorf("a VM that sleeps is %s", got)
	}
	a.expect("500 QEMU guest agent is not running", "POST", agent+"/ping")
	a.ok("POST", vm+"/status/resume")
	a.must("POST", agent+"/shutdown")
	eventually(t, "the VM is off", func() bool { return a.power(vm) == "stopped/stopped" })
}
