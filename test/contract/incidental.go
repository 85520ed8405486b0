package contract

import (
	"regexp"
	"strings"
)

// leniency says how a value is compared. Flags can be combined.
type leniency int

const (
	// anyValue compares the JSON type alone.
	anyValue leniency = 1 << iota
	// anyNumber is anyValue for numbers; texts must be equal.
	anyNumber
	// optional values may be missing on one side.
	optional
	// ignored values are not compared.
	ignored
	// commaSet texts are lists with commas in any order.
	commaSet
	// anyOrder lists may be in any order though their elements have no ID.
	anyOrder
	// sample lists are of the test machine: elements need only have the same shape.
	sample
)

// incidental is a value that another good Proxmox VE has differently, or that the recordings' README says not to compare.
type incidental struct {
	// on is the route, for example GET /nodes/{node}/status, with * at the end for all that begin so; empty for all.
	on string
	// field is the last key, or with dots the whole path, [] standing for elements of lists; * at the end for all that
	// begin so.
	field string
	how   leniency
	why   string
}

const (
	counters    = "README: uptime and counters of cpu, memory, network and disk"
	times       = "README: timestamps"
	processes   = "README: pids, pstart"
	space       = "README: free and used space"
	testMachine = "README: kernel and CPU texts are of the test machine"
	noRRD       = "README: rrd data empty"
	listOrder   = "README: order of unsorted lists"
	debianQEMU  = "README: QEMU is Debian's 7.2"
	haHistory   = "who was the first to take the manager's lock, and what local managers did in earlier scenarios, is in no setup"
	takenOut    = "README: certificates, fingerprints and removed values"
)

var incidentals = []incidental{
	{"", "uptime", anyNumber, counters},
	{"", "cpu", anyNumber, counters},
	{"", "mem", anyNumber, counters},
	{"", "memhost", anyNumber, counters},
	{"", "netin", anyNumber, counters},
	{"", "netout", anyNumber, counters},
	{"", "disk", anyNumber, counters},
	{"", "diskread", anyNumber, counters},
	{"", "diskwrite", anyNumber, counters},
	{"", "pressure*", anyNumber, counters},
	{"GET /nodes/{node}/status", "data.wait", anyValue, counters},
	{"GET /nodes/{node}/status", "data.idle", anyValue, counters},
	{"GET /nodes/{node}/status", "data.loadavg[]", anyValue, counters},
	{"GET /nodes/{node}/status", "data.ksm.shared", anyValue, counters},
	{"", "starttime", anyNumber, times},
	{"GET /nodes/{node}/time", "data.time", anyNumber, times},
	{"GET /nodes/{node}/time", "data.localtime", anyNumber, times},
	{"GET /nodes/{node}/services/*", "data", ignored, "the test machine runs no systemd: all units are unknown there"},
	{"", "endtime", anyNumber, times},
	{"", "ctime", anyNumber, times},
	{"", "snaptime", anyNumber, times},
	{"", "timestamp", anyNumber, times},
	{"GET /nodes/{node}/qemu/{vmid}/agent/get-time", "data.result", anyValue, times},
	{"", "pid", anyNumber, processes},
	{"", "pstart", anyNumber, processes},
	{"", "avail", anyNumber, space},
	{"", "used", anyNumber, space},
	{"", "used_fraction", anyNumber, space},
	{"", "free", anyNumber, space},
	{"GET /nodes/{node}/qemu/{vmid}/agent/get-fsinfo", "used-bytes", anyNumber, space},
	{"GET /nodes/{node}/qemu/{vmid}/agent/get-fsinfo", "total-bytes", anyNumber, space + "; of the guest's image"},
	{"POST /nodes/{node}/qemu/{vmid}/agent/fstrim", "trimmed", anyNumber, space},
	{"", "available", anyNumber, space},
	{"GET /nodes/{node}/status", "data.memory.total", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.rootfs.total", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.swap.total", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.cpuinfo.flags", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.cpuinfo.model", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.cpuinfo.mhz", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.cpuinfo.vendor", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.cpuinfo.family", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.cpuinfo.hvm", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.kversion", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.current-kernel.*", anyValue, testMachine},
	{"GET /nodes/{node}/status", "data.boot-info.mode", anyValue, testMachine},
	{"GET /nodes/{node}/hardware/pci", "data", sample, testMachine},
	{"GET /nodes/{node}/dns", "data.dns1", anyValue, testMachine},
	{"GET /nodes/{node}/capabilities/qemu/machines", "data", sample, debianQEMU},
	{"GET /nodes/{node}/qemu/{vmid}/agent/get-fsinfo", "total-bytes", anyValue, space},
	{"GET /nodes/{node}/qemu/{vmid}/agent/get-fsinfo", "used-bytes", anyValue, space},
	{"POST /nodes/{node}/qemu/{vmid}/agent/fstrim", "trimmed", anyValue, space},
	{"GET /cluster/ha/groups*", "nodes", commaSet, listOrder},
	{"", "running-qemu", anyValue, debianQEMU},
	{"POST /nodes/{node}/qemu/{vmid}/monitor", "data", anyValue, debianQEMU},
	{"", "running-machine", anyValue, debianQEMU},
	{"GET /cluster/ha/status/manager_status", "data.manager_status.master_node", anyValue, haHistory},
	{"GET /cluster/ha/status/manager_status", "data.lrm_status.*", ignored, haHistory},
	{"", "repoid", anyValue, "README: repoid"},
	{"", "pveversion", anyValue, "README: repoid, which it ends in"},
	{"", "ssl_fingerprint", anyValue, takenOut},
	{"", "pve_fp", anyValue, takenOut},
	{"", "ticket", anyValue, takenOut},
	{"", "CSRFPreventionToken", anyValue, takenOut},
	{"", "content", commaSet, listOrder + ": storage.cfg's content is a hash"},
	{"GET /cluster/ha/groups*", "nodes", commaSet, listOrder + ": a group's nodes are a hash"},
	{"POST /nodes/{node}/qemu/{vmid}/monitor", "data", anyValue, debianQEMU},
	{"GET /nodes/{node}/qemu/{vmid}/migrate", "data.allowed_nodes", anyOrder, listOrder},
}

// matches tells whether the rule is for a field of an answer on a route.
func (x incidental) matches(route, field string) bool {
	if !glob(x.on, route) {
		return x.on == "" && glob(x.field, lastKey(field))
	}
	if strings.Contains(x.field, ".") || x.field == "data" {
		return glob(x.field, field)
	}
	return glob(x.field, lastKey(field))
}

func glob(pattern, s string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, begin)
	}
	return pattern == s
}

func lastKey(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

func leniencyOf(route, field string) leniency {
	var out leniency
	for _, x := range incidentals {
		if x.matches(route, field) {
			out |= x.how
		}
	}
	return out
}

// noise are lines of task logs that are not compared.
var noise = []struct {
	line *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`^transferred `), "README: «transferred …» lines"},
	{regexp.MustCompile(`^(Formatting|Image resized|qemu-img:) ?`), "README: task log texts of qemu-img"},
	{regexp.MustCompile(`^\s+0K .*100%`), "README: counters: wget's progress"},
	{regexp.MustCompile(`^(qemu-system-x86_64|kvm): `), "README: QEMU is Debian's, without KVM"},
	{regexp.MustCompile(`^ *\d+K[ .]+\d+% .*=`), "README: «transferred …» lines; this is how wget says it"},
	{regexp.MustCompile(`^(\d{4}-\S+ [0-9:]+ )?(\d+\+\d+ records (in|out)|\d+ bytes .* copied)`), "README: «transferred …» lines; this is how dd says it"},
	{regexp.MustCompile(`^Can't exec "udevadm": `), "the test machine has no udev"},
	{regexp.MustCompile(`is experimental at /usr/share/perl5/`), "a warning of the test machine's Perl, which is older than that of Proxmox VE 9"},
}

func isNoise(line string) bool {
	for _, n := range noise {
		if n.line.MatchString(line) {
			return true
		}
	}
	return false
}

// removed values stand for what the recorder took out: anything goes but nothing.
var removed = regexp.MustCompile(`\b(TOKEN|PASSWORD|TICKET|CSRF|PEM|KERNEL)\b`)

// orderedBy are keys of lists whose order matters; other lists of objects may come in any order.
var orderedBy = map[string]bool{"n": true, "pos": true, "upid": true}

// ids are the keys by which elements of lists are told apart, several of them joined by +: the first that all elements have.
var ids = []string{
	"n", "pos", "upid", "volid", "vmid", "id", "storage", "node", "userid", "tokenid", "poolid", "iface", "subdir", "key", "cidr", "vnet", "subnet", "zone",
	"group", "sid", "rule", "macro", "name", "path+ugid+roleid", "path", "logical-id", "roleid",
}
