package pvesim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// logOf makes a request, waits for its task and returns the lines of its log with slashes between.
func (a *api) logOf(method, path string, pairs ...string) string {
	a.t.Helper()
	upid := a.must(method, path, pairs...)
	a.wait(upid)
	return strings.Join(columns(a.must(http.MethodGet, fmt.Sprintf("/nodes/%s/tasks/%s/log", strings.Split(fmt.Sprint(upid), ":")[1], upid)), "t"), " / ")
}

// withVM adds a VM to pve1 and returns its path.
func (a *api) withVM(id proxmox.VMID, state string, config map[string]string) string {
	a.t.Helper()
	must(a.t, a.server.World.AddVM(pvesim.VMSpec{VMID: id, Node: "pve1", State: state, Config: config}))
	return "/nodes/pve1/qemu/" + id.String()
}

// power is status and qmpstatus of a VM.
func (a *api) power(vm string) string {
	a.t.Helper()
	status := a.object(vm + "/status/current")
	return fmt.Sprint(status["status"], "/", status["qmpstatus"])
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", map[string]string{"name": "a"})
	if diff := cmp.Diff([]string{"current", "start", "stop", "reset", "shutdown", "suspend", "reboot"}, columns(a.must("GET", vm+"/status"), "subdir")); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	a.ok("POST", vm+"/status/suspend")
	if got := a.power(vm); got != "running/paused" {
		t.Errorf("a paused VM is %s", got)
	}
	a.expect("500 VM is paused - cannot shutdown", "POST", vm+"/status/shutdown")
	a.expect("500 VM is paused - cannot shutdown", "POST", vm+"/status/reboot")
	if exit := a.exit("POST", vm+"/status/start"); exit != "VM 100 already running" {
		t.Errorf("start of a paused VM: %s", exit)
	}
	a.ok("POST", vm+"/status/resume")
	a.ok("POST", vm+"/status/resume")
	if got := a.power(vm); got != "running/running" {
		t.Errorf("a resumed VM is %s", got)
	}
	a.ok("POST", vm+"/status/suspend")
	if got := a.logOf("POST", vm+"/status/shutdown", "forceStop", "1"); got != "VM is paused - stop instead of shutdown / TASK OK" {
		t.Errorf("forced shutdown of a paused VM: %s", got)
	}
	for _, act := range []string{"suspend", "resume", "reset", "reboot"} {
		a.expect("500 VM 100 not running", "POST", vm+"/status/"+act)
		a.expect("500 unable to find configuration file for VM 199 on node 'pve1'", "POST", "/nodes/pve1/qemu/199/status/"+act)
	}
}

func TestOnlyATicketOfRootMayAskForMigrationsOfOthers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", nil)
	for act, name := range map[string]string{"start": "stateuri", "stop": "keepActive", "shutdown": "keepActive"} {
		a.expect("400 map["+name+":Only root may use this option.]", "POST", vm+"/status/"+act, name, "1")
	}
}

func TestVMThatIsSuspendedToDiskCanBeDestroyed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", map[string]string{"memory": "128", "scsi0": "shared:100/vm-100-disk-0.raw,size=1G"})
	a.ok("POST", vm+"/status/suspend", "todisk", "1")
	if exit := a.exit("DELETE", vm); exit != "OK" {
		t.Errorf("destroy: %s", exit)
	}
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Error(broken)
	}
}

func TestLockThatIsTakenAwayAtTheHost(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "stopped", nil)
	a.server.World.Lock(100, "backup")
	if exit := a.exit("DELETE", vm); exit != "VM is locked (backup)" {
		t.Errorf("destroy of a locked VM: %s", exit)
	}
	a.server.World.Unlock(100)
	if exit := a.exit("DELETE", vm); exit != "OK" {
		t.Errorf("destroy: %s", exit)
	}
}

func TestSuspendToDisk(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", map[string]string{"memory": "128", "scsi0": "shared:100/vm-100-disk-0.raw,size=1G"})
	a.expect("400 map[todisk:missing property required by 'statestorage']", "POST", vm+"/status/suspend", "statestorage", "local")
	a.ok("POST", vm+"/status/suspend", "todisk", "1")
	config := a.object(vm + "/config")
	state := fmt.Sprint(config["vmstate"])
	if a.power(vm) != "stopped/stopped" || config["lock"] != "suspended" || !strings.HasPrefix(state, "shared:100/vm-100-state-suspend-") {
		t.Errorf("suspended VM: %s, %v", a.power(vm), config)
	}
	if exit := a.exit("POST", vm+"/status/stop"); exit != "OK" {
		t.Errorf("stop of a suspended VM: %s", exit)
	}
	if got := a.logOf("POST", vm+"/status/resume"); got != "Resuming suspended VM / Resumed VM, removing state / TASK OK" {
		t.Errorf("start of a suspended VM: %s", got)
	}
	if config = a.object(vm + "/config"); config["lock"] != nil || config["vmstate"] != nil {
		t.Errorf("config of a resumed VM: %v", config)
	}
	for _, v := range a.server.World.Volumes() {
		if string(v.ID) == state {
			t.Error("the saved memory is left")
		}
	}
}

func TestQEMUWithoutPatchesCannotSaveMemory(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.FromState(pvesim.State{
		Nodes:    []pvesim.NodeSpec{{Name: "pve1", StockQEMU: true}},
		Storages: []pvesim.StorageSpec{{ID: "local", Type: "dir", Content: []string{"images"}}},
	}))
	vm := a.withVM(100, "running", map[string]string{"scsi0": "local:100/vm-100-disk-0.raw,size=1G"})
	if exit := a.exit("POST", vm+"/status/suspend", "todisk", "1"); exit != "VM 100 qmp command 'savevm-start' failed - The command savevm-start has not been found" {
		t.Errorf("suspend to disk: %s", exit)
	}
	if exit := a.exit("POST", vm+"/status/stop"); exit != "VM is locked (suspending)" {
		t.Errorf("stop afterwards: %s", exit)
	}
	vm = a.withVM(101, "running", nil)
	if exit := a.exit("POST", vm+"/status/shutdown", "timeout", "5"); exit != "VM quit/powerdown failed" {
		t.Errorf("shutdown without qmeventd: %s", exit)
	}
	if got := a.power(vm); got != "running/shutdown" {
		t.Errorf("the VM that went down is %s", got)
	}
	if got := a.logOf("POST", vm+"/status/stop"); got != "TASK OK" || a.power(vm) != "stopped/stopped" {
		t.Errorf("stop of what is left: %s, %s", got, a.power(vm))
	}
}

// TestRebootsBringPendingChangesIntoForce unlike a reset.
func TestRebootsBringPendingChangesIntoForce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", map[string]string{"memory": "128", "cores": "1"})
	a.must("PUT", vm+"/config", "cores", "2")
	a.ok("POST", vm+"/status/reset")
	if got := a.object(vm+"/config", "current", "1")["cores"]; got != 1.0 {
		t.Errorf("cores after a reset are %v", got)
	}
	a.ok("POST", vm+"/status/reboot")
	if got := a.object(vm+"/config", "current", "1")["cores"]; got != 2.0 || a.power(vm) != "running/running" {
		t.Errorf("cores after a reboot are %v, %s", got, a.power(vm))
	}
}

func TestGuestsThatDoNotReact(t *testing.T) {
	t.Parallel()
	for version, protocol := range map[pvesim.Version]string{pvesim.V84: "qmp", pvesim.V92: "qga"} {
		a := newAPI(t, pvesim.WithVersion(version), pvesim.WithGuests(pvesim.Deaf))
		vm := a.withVM(100, "running", map[string]string{"agent": "1"})
		ping := "QEMU Guest Agent is not running - VM 100 " + protocol + " command 'guest-ping' failed - got timeout / "
		for act, want := range map[string]string{"shutdown": ping, "reboot": ping} {
			if got := a.logOf("POST", vm+"/status/"+act, "timeout", "2"); got != want+"TASK ERROR: VM quit/powerdown failed - got timeout" {
				t.Errorf("%s: %s", act, got)
			}
		}
		if got := a.logOf("POST", vm+"/status/shutdown", "timeout", "2", "forceStop", "1"); got != ping+"VM still running - terminating now with SIGTERM / TASK OK" {
			t.Errorf("forced shutdown: %s", got)
		}
	}
}

func TestStopOverrulesShutdowns(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		vm := a.withVM(100, "running", nil)
		if got := a.logOf("POST", vm+"/status/stop", "overrule-shutdown", "1"); got != "TASK OK" {
			t.Errorf("stop without a shutdown: %s", got)
		}
		a.ok("POST", vm+"/status/start")
		shutdown := a.must("POST", vm+"/status/shutdown", "timeout", "7000")
		if exit := a.exit("POST", vm+"/status/stop"); !strings.HasPrefix(exit, "can't lock file") {
			t.Errorf("stop while a shutdown waits: %s", exit)
		}
		if got, want := a.logOf("POST", vm+"/status/stop", "overrule-shutdown", "1"), fmt.Sprintf("overruled qmshutdown tasks: %s / TASK OK", shutdown); got != want {
			t.Errorf("overruling stop: %s", got)
		}
		if exit := a.wait(shutdown); exit != "received interrupt" {
			t.Errorf("the overruled shutdown ended with %s", exit)
		}
	}, pvesim.WithGuests(pvesim.Deaf))
}

func TestHardwareThatCannotBe(t *testing.T) {
	t.Parallel()
	world := pvesim.State{
		Nodes:    []pvesim.NodeSpec{{Name: "pve1", CPUs: 4, Sockets: 1, NUMANodes: 1, Memory: 4096, PCI: []pvesim.PCIDeviceSpec{{ID: "0000:02:00.0"}}}},
		Storages: []pvesim.StorageSpec{{ID: "local", Type: "dir", Content: []string{"images", "iso"}}},
		PCI: []pvesim.PCIMappingSpec{
			{ID: "gone", Map: []string{"node=pve1,path=0000:01:00.0,id=10de:1234"}},
			{ID: "there", Map: []string{"node=pve1,path=0000:02:00.0,id=10de:1234"}},
			{ID: "elsewhere", Map: []string{"node=pve2,path=0000:02:00.0,id=10de:1234"}},
		},
	}
	const quit = "TASK ERROR: start failed: QEMU exited with code 1"
	for i, c := range []struct {
		config map[string]string
		want   string
	}{
		{map[string]string{"cores": "5"}, "TASK ERROR: MAX 4 vcpus allowed per VM on this node"},
		{map[string]string{"memory": "9000"}, "kvm: cannot set up guest memory 'pc.ram': Cannot allocate memory / " + quit},
		{map[string]string{"memory": "256", "numa": "1", "numa0": "cpus=0,memory=128"}, "TASK ERROR: total memory for NUMA nodes must be equal to vm static memory"},
		{map[string]string{"memory": "256", "numa": "1", "numa0": "cpus=0,memory=256,hostnodes=1,policy=bind"}, "TASK ERROR: host NUMA node1 doesn't exist"},
		{map[string]string{"memory": "256", "numa": "1", "numa0": "cpus=0"}, "TASK ERROR: missing NUMA node0 memory value"},
		{
			map[string]string{"memory": "256", "numa": "1", "numa0": "cpus=0-3,memory=256"},
			"kvm: -numa node,nodeid=0,cpus=0-3,memdev=ram-node0: CPU index (1) should be smaller than maxcpus (1) / " + quit,
		},
		{map[string]string{"memory": "256", "numa": "1", "numa0": "cpus=0,memory=256,hostnodes=0,policy=bind"}, "TASK OK"},
		{map[string]string{"hugepages": "2"}, "TASK ERROR: numa needs to be enabled to use hugepages"},
		{map[string]string{"affinity": "3,50"}, "TASK OK"},
		{map[string]string{"machine": "pc-q35-99.0"}, "TASK ERROR: Installed QEMU version '10.1.2' is too old to run machine type 'pc-q35-99.0+pve0', please upgrade node 'pve1'"},
		{map[string]string{"machine": "pc-q35-7.2"}, "TASK OK"},
		{map[string]string{"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr9"}, "TASK ERROR: bridge 'vmbr9' does not exist"},
		{map[string]string{"hostpci0": "mapping=none"}, "TASK ERROR: PCI device mapping not found for 'none'"},
		{map[string]string{"hostpci0": "mapping=elsewhere"}, "TASK ERROR: PCI device mapping not found for 'elsewhere'"},
		{map[string]string{"hostpci0": "mapping=there"}, "TASK OK"},
		{map[string]string{"hostpci0": "mapping=gone"}, "PCI device mapping invalid (hardware probably changed): pci device '0000:01:00.0' not found /  / " +
			"TASK ERROR: PCI device mapping invalid (hardware probably changed): pci device '0000:01:00.0' not found "},
	} {
		a := newAPI(t, pvesim.FromState(world))
		vm := a.withVM(proxmox.VMID(100+i), "", c.config)
		if got := a.logOf("POST", vm+"/status/start"); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.config, got, c.want)
		}
	}
}

func TestStartErrorsOf84(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.WithVersion(pvesim.V84))
	vm := a.withVM(100, "", map[string]string{"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr9"})
	if got := a.logOf("POST", vm+"/status/start"); !strings.HasPrefix(got, "bridge 'vmbr9' does not exist / kvm: -netdev type=tap,id=net0,ifname=tap100i0,") ||
		!strings.HasSuffix(got, " failed with status 512 / TASK ERROR: start failed: QEMU exited with code 1") {
		t.Errorf("missing bridge: %s", got)
	}
	vm = a.withVM(101, "", map[string]string{"affinity": "50"})
	if got := a.logOf("POST", vm+"/status/start"); !strings.HasPrefix(got, "taskset: failed to set pid ") || !strings.Contains(got, "'s affinity: Invalid argument / ") {
		t.Errorf("affinity to a CPU that is not there: %s", got)
	}
	a.uploadISO("pve1", "local", "s.iso", make([]byte, 40960))
	vm = a.withVM(102, "", map[string]string{"ide2": "local:iso/s.iso,media=cdrom"})
	a.ok("DELETE", "/nodes/pve1/storage/local/content/local:iso/s.iso")
	if got := a.logOf("POST", vm+"/status/start"); got != "TASK ERROR: volume 'local:iso/s.iso' does not exist" {
		t.Errorf("missing ISO: %s", got)
	}
}

func TestStatusTellsOfDevices(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "", map[string]string{"cores": "64", "serial1": "socket", "vga": "qxl,clipboard=vnc", "agent": "enabled=1"})
	got := a.object(vm + "/status/current")
	if got["cpus"] != 32.0 || got["serial"] != 1.0 || got["clipboard"] != "vnc" || got["spice"] != 1.0 || got["agent"] != 1.0 {
		t.Errorf("status is %v", got)
	}
}

func TestConsoles(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", map[string]string{"name": "a", "serial1": "socket"})
	for command, want := range map[string]string{
		"info version": "10.1.2pve-qemu-kvm_10.1.2-1\r\n", "info status": "VM status: running\r\n", "info name": "a\r\n", "x": "unknown command: 'x'\r\n",
	} {
		if got := a.must("POST", vm+"/monitor", "command", command); got != want {
			t.Errorf("monitor %q answers %q", command, got)
		}
	}
	got, _ := a.must("POST", vm+"/vncproxy", "generate-password", "1").(map[string]any)
	if got["user"] != a.server.Token.ID || got["cert"] == "" || len(fmt.Sprint(got["password"])) != 8 || a.wait(got["upid"]) != "connection timed out" {
		t.Errorf("vncproxy gave %v", got)
	}
	a.expect("500 unable to find a serial interface", "POST", vm+"/termproxy")
	a.expect("500 serial interface 'serial2' is not configured", "POST", vm+"/termproxy", "serial", "serial2")
	if got, _ = a.must("POST", vm+"/termproxy", "serial", "serial1").(map[string]any); got["port"] == nil {
		t.Errorf("termproxy gave %v", got)
	}
	a.must("PUT", vm+"/sendkey", "key", "ctrl-alt-delete")
}

func TestBulkPower(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.WithTemplates())
	a.withVM(100, "", map[string]string{"onboot": "1"})
	a.withVM(101, "", map[string]string{"onboot": "1", "startup": "order=1"})
	a.withVM(102, "", nil)
	if got := a.logOf("POST", "/nodes/pve1/startall"); got != "Starting VM 101 / Starting VM 100 / TASK OK" {
		t.Errorf("startall: %s", got)
	}
	if got := a.logOf("POST", "/nodes/pve1/startall", "vms", "102"); got != "Starting VM 102 / TASK OK" {
		t.Errorf("startall of one: %s", got)
	}
	if got := a.logOf("POST", "/nodes/pve1/stopall", "timeout", "10"); got != "Stopping VM 102 (timeout = 10 seconds) / Stopping VM 100 (timeout = 10 seconds) / Stopping VM 101 (timeout = 10 seconds) / TASK OK" {
		t.Errorf("stopall: %s", got)
	}
	a.expect("500 either 'max-workers' parameter or max_workers in datacenter.cfg must be set!", "POST", "/nodes/pve1/migrateall", "target", "pve2")
	a.expect("400 map[target:target is local node.]", "POST", "/nodes/pve1/migrateall", "target", "pve1", "max-workers", "1")
	if got := a.logOf("POST", "/nodes/pve1/migrateall", "target", "pve2", "max-workers", "1", "vms", "100,102"); got != "Migrating VM 100 / Migrating VM 102 / TASK OK" {
		t.Errorf("migrateall: %s", got)
	}
	if v, _ := a.server.World.VM(102); v.Node != "pve2" {
		t.Errorf("VM 102 is on %s", v.Node)
	}
	other := a.as(a.server.World.AddToken(pvesim.TokenSpec{User: "x@pve", Name: "t", Privileges: map[string][]string{"/vms/101": {"VM.PowerMgmt"}}}))
	other.expect("403 Permission check failed (/, VM.PowerMgmt)", "POST", "/nodes/pve1/startall")
	other.expect("403 Permission check failed (/vms/100, VM.PowerMgmt)", "POST", "/nodes/pve1/startall", "vms", "100,101")
	if got := other.logOf("POST", "/nodes/pve1/suspendall", "vms", "101"); got != "TASK OK" {
		t.Errorf("suspendall of a stopped VM: %s", got)
	}
}
