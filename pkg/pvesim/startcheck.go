package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// qemuVersion is the version of QEMU on the hosts.
func (w *World) qemuVersion() string {
	if w.version == V84 {
		return "9.2.0"
	}
	return "10.1.2"
}

// quitEarly is how qemu-server reports that QEMU ended instead of running.
const quitEarly = "start failed: QEMU exited with code 1"

// startFailure is why the VM's hardware cannot be set up on its node: lines of the task's log, and the error. The checks are
// those of config_to_command in qemu-server, then those of QEMU itself.
func (w *World) startFailure(v *vm, machine string) (lines []string, msg string) {
	n := w.node(v.node)
	for _, check := range []func() string{
		func() string { return w.machineFailure(v, n, machine) },
		func() string { return w.volumeFailure(v) },
		func() string { return cpuFailure(v, n) },
		func() string { return v.memoryFailure(n) },
	} {
		if msg = check(); msg != "" {
			return nil, msg
		}
	}
	if msg = w.deviceFailure(v); msg != "" {
		if text, broken := strings.CutSuffix(msg, " "); broken && w.version == V92 {
			lines = []string{text, ""}
		}
		return lines, msg
	}
	if bridge, device := w.missingBridge(v, n); bridge != "" {
		msg = fmt.Sprintf("bridge '%s' does not exist", bridge)
		if w.version == V92 {
			return nil, msg
		}
		script := "/usr/libexec/qemu-server/pve-bridge"
		return []string{msg, fmt.Sprintf("kvm: -netdev type=tap,id=%s,ifname=tap%di%s,script=%s,downscript=%sdown: network script %s failed with status 512",
			device, v.id, strings.TrimPrefix(device, "net"), script, script, script)}, quitEarly
	}
	if line := w.processFailure(v, n); line != "" {
		return []string{line}, quitEarly
	}
	return nil, ""
}

// machineFailure refuses a machine type of a QEMU that is newer than the host's.
func (w *World) machineFailure(v *vm, n *node, machine string) string {
	if machine == "" {
		machine = firstProperty(v.config["machine"])
	}
	wanted := machine[strings.LastIndex(machine, "-")+1:]
	wanted, _, pinned := strings.Cut(wanted, "+pve")
	if wanted == "" || wanted[0] < '0' || wanted[0] > '9' || !newer(wanted, w.qemuVersion()) {
		return ""
	}
	if !pinned {
		machine += "+pve0"
	}
	return fmt.Sprintf("Installed QEMU version '%s' is too old to run machine type '%s', please upgrade node '%s'", w.qemuVersion(), machine, n.Name)
}

// newer compares the first two numbers of two versions.
func newer(a, b string) bool {
	x, y := strings.Split(a+".0", "."), strings.Split(b+".0", ".")
	for i := range 2 {
		if m, n := atoi(x[i], 0), atoi(y[i], 0); m != n {
			return m > n
		}
	}
	return false
}

func (w *World) volumeFailure(v *vm) string {
	for _, name := range v.drives() {
		d := parseDrive(v.config[name])
		if d.storageID() != "" && !strings.HasPrefix(name, "unused") && w.volumeAt(v.node, d.volume) == nil {
			return fmt.Sprintf("volume '%s' does not exist", d.volume)
		}
	}
	return ""
}

// deviceFailure looks for the host's devices that the VM wants.
func (w *World) deviceFailure(v *vm) string {
	for _, key := range slices.Sorted(maps.Keys(v.config)) {
		msg := ""
		switch unnumbered(key) {
		case "hostpci":
			msg = w.pciFailure(v, v.config[key])
		case "usb":
			msg = w.usbFailure(v, v.config[key])
		}
		if msg != "" {
			return msg
		}
	}
	return ""
}

func cpuFailure(v *vm, n *node) string {
	if v.cpus() > n.CPUs {
		return fmt.Sprintf("MAX %d vcpus allowed per VM on this node", n.CPUs)
	}
	return ""
}

// memoryFailure checks the NUMA nodes of the config, which are looked at only when the VM is started
// (PVE::QemuServer::Memory::config).
func (v *vm) memoryFailure(n *node) string {
	if v.config["numa"] != "1" {
		if v.config["hugepages"] != "" {
			return "numa needs to be enabled to use hugepages"
		}
		return ""
	}
	total, found := 0, false
	for i, p := range v.numaNodes() {
		if p["memory"] == "" {
			return fmt.Sprintf("missing NUMA node%d memory value", i)
		}
		total, found = total+atoi(p["memory"], 0), true
		for _, host := range cpuSet(p["hostnodes"]) {
			if host >= n.NUMANodes {
				return fmt.Sprintf("host NUMA node%d doesn't exist", host)
			}
		}
		if p["hostnodes"] == "" && p["policy"] != "" {
			return fmt.Sprintf("missing host NUMA nodes for policy in numa%d", i)
		}
	}
	if found && proxmox.MiB(total).Bytes() != v.memory() {
		return "total memory for NUMA nodes must be equal to vm static memory"
	}
	return ""
}

// numaNodes are the properties of numa0, numa1 … that are set.
func (v *vm) numaNodes() map[int]map[string]string {
	format := numaFormat()
	out := map[int]map[string]string{}
	for i := range 8 {
		if value := v.config["numa"+strconv.Itoa(i)]; value != "" {
			p, _ := format.Parse(value)
			out[i] = p
		}
	}
	return out
}

// missingBridge is the first bridge that the node has not, and the network device that wants it.
func (w *World) missingBridge(v *vm, n *node) (bridge proxmox.BridgeName, device string) {
	format := netFormat()
	for i := range 32 {
		device = "net" + strconv.Itoa(i)
		p, _ := format.Parse(v.config[device])
		if bridge = proxmox.BridgeName(p["bridge"]); bridge != "" && !w.bridgeExists(n, bridge) {
			return bridge, device
		}
	}
	return "", ""
}

// processFailure is the last line of QEMU, or of what starts it, when it cannot run.
func (w *World) processFailure(v *vm, n *node) string {
	if v.memory() > n.Memory.Bytes() {
		return "kvm: cannot set up guest memory 'pc.ram': Cannot allocate memory"
	}
	if v.config["numa"] == "1" {
		numa := v.numaNodes()
		for _, i := range slices.Sorted(maps.Keys(numa)) {
			for _, cpu := range cpuSet(numa[i]["cpus"]) {
				if cpu >= v.cpus() {
					return fmt.Sprintf("kvm: -numa node,nodeid=%d,cpus=%s,memdev=ram-node%d: CPU index (%d) should be smaller than maxcpus (%d)",
						i, strings.ReplaceAll(numa[i]["cpus"], ";", ",cpus="), i, cpu, v.cpus())
				}
			}
		}
	}
	cpus := cpuSet(v.config["affinity"])
	if len(cpus) > 0 && slices.Min(cpus) >= n.CPUs {
		return fmt.Sprintf("taskset: failed to set pid %d's affinity: Invalid argument", w.nextPID+1)
	}
	return ""
}

// maxCPUs bounds the CPUs of a set; hosts have far fewer.
const maxCPUs = 4096

// cpuSet are the numbers in a set such as 0-3,8 or 0-1;4-5.
func cpuSet(set string) []int {
	var out []int
	for _, part := range strings.FieldsFunc(set, func(r rune) bool { return r == ',' || r == ';' }) {
		low, high, isRange := strings.Cut(part, "-")
		from := atoi(low, 0)
		to := from
		if isRange {
			to = atoi(high, from)
		}
		for i := from; i <= min(to, from+maxCPUs); i++ {
			out = append(out, i)
		}
	}
	return out
}

// pciFailure is why a hostpciN cannot be passed on. Devices are looked for only when a mapping names them.
func (w *World) pciFailure(v *vm, value string) string {
	name := propertyOr(value, "mapping", "")
	if name == "" {
		return ""
	}
	found := false
	format := pciMapFormat()
	if m := w.mappings[name]; m != nil {
		for _, device := range m.Map {
			p, _ := format.Parse(device)
			if p["node"] != string(v.node) {
				continue
			}
			if msg := w.node(v.node).checkDevice(p["path"]); msg != "" {
				return "PCI device mapping invalid (hardware probably changed): " + strings.TrimSuffix(msg, "\n") + " "
			}
			found = true
		}
	}
	if !found {
		return fmt.Sprintf("PCI device mapping not found for '%s'", name)
	}
	return ""
}
