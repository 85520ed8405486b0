package pvesim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// debian is a booted Debian 12, as far as its guest agent can see it.
type debian struct {
	hostname   string
	interfaces []NetworkInterface
	config     map[string]string
	files      map[string]string
	frozen     bool
	processes  map[int]process
	nextPID    int
}

func newDebian(m Machine, hostname string, interfaces []NetworkInterface) *debian {
	return &debian{
		hostname: hostname, interfaces: interfaces, config: m.Config, processes: map[int]process{}, nextPID: 450,
		files: map[string]string{
			"/etc/hostname": hostname + "\n", "/etc/debian_version": "12.12\n", "/etc/timezone": "Etc/UTC\n",
			"/etc/os-release": "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\nID=debian\n",
		},
	}
}

// answer is what the agent says to a command.
func (g *debian) answer(cmd AgentCommand) AgentAnswer {
	switch cmd.Name {
	case "exec":
		return g.exec(cmd)
	case "exec-status":
		return g.execStatus(cmd)
	case "file-read":
		content, ok := g.files[cmd.Path]
		if !ok {
			return AgentAnswer{Err: fmt.Sprintf("failed to open file '%s' (mode: 'r'): No such file or directory", cmd.Path)}
		}
		return AgentAnswer{Result: []byte(content)}
	case "file-write":
		return g.write(cmd)
	case "fsfreeze-freeze", "fsfreeze-thaw":
		return g.freeze(cmd.Name == "fsfreeze-freeze")
	}
	if g.frozen && !slices.Contains([]string{"fsfreeze-status", "info", "ping"}, cmd.Name) {
		return AgentAnswer{Err: fmt.Sprintf("Command guest-%s has been disabled: the command is not allowed", cmd.Name)}
	}
	return AgentAnswer{Result: g.look(cmd)}
}

// look is the result of a command that only looks.
func (g *debian) look(cmd AgentCommand) any {
	switch cmd.Name {
	case "get-osinfo":
		return map[string]string{
			"id": "debian", "name": "Debian GNU/Linux", "pretty-name": "Debian GNU/Linux 12 (bookworm)", "version": "12 (bookworm)", "version-id": "12",
			"machine": "x86_64", "kernel-release": debianKernel, "kernel-version": debianKernelVersion,
		}
	case "get-host-name":
		return map[string]string{"host-name": g.hostname}
	case "network-get-interfaces":
		return g.interfaces
	case "get-fsinfo":
		return g.filesystems()
	case "get-time":
		return cmd.Now.UnixNano()
	case "get-timezone":
		return map[string]any{"zone": "UTC", "offset": 0}
	case "get-users":
		return []string{}
	case "get-vcpus":
		return g.vcpus()
	case "get-memory-blocks":
		return g.memoryBlocks()
	case "get-memory-block-info":
		return map[string]int{"size": memoryBlock}
	case "fsfreeze-status":
		if g.frozen {
			return "frozen"
		}
		return "thawed"
	case "fstrim":
		return map[string]any{"paths": []map[string]any{{"path": "/", "minimum": 0, "trimmed": g.rootSize() * 7 / 10}}}
	case "info":
		return g.info()
	}
	return map[string]any{}
}

const (
	debianKernel        = "6.1.0-56-cloud-amd64"
	debianKernelVersion = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)"
	// memoryBlock is the unit of memory that Linux can take on- and offline, in bytes.
	memoryBlock = 128 << 20
)

// info lists the commands that the agent knows.
func (g *debian) info() map[string]any {
	names := []string{"exec", "exec-status", "file-open", "file-read", "file-write", "file-close", "set-user-password"}
	for _, e := range agentEndpoints() {
		if e.name != "fsfreeze-status" {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	commands := []map[string]any{}
	for _, name := range names {
		silent := name == "shutdown" || strings.HasPrefix(name, "suspend-")
		commands = append(commands, map[string]any{"name": "guest-" + name, "enabled": true, "success-response": !silent})
	}
	return map[string]any{"version": "7.2.22", "supported_commands": commands}
}

func (g *debian) vcpus() []map[string]any {
	count := atoi(g.config["vcpus"], atoi(g.config["sockets"], 1)*atoi(g.config["cores"], 1))
	out := []map[string]any{}
	for i := range count {
		out = append(out, map[string]any{"logical-id": i, "online": true, "can-offline": i > 0})
	}
	return out
}

func (g *debian) memoryBlocks() []map[string]any {
	size := proxmox.MiB(atoi(firstProperty(g.config["memory"]), 512)).Bytes()
	out := []map[string]any{}
	for i := range int(size / memoryBlock) {
		out = append(out, map[string]any{"phys-index": i, "online": true, "can-offline": true})
	}
	return out
}

// rootDisk is the VM's first disk, and how Linux calls it.
func (g *debian) rootDisk() (name, device string, d drive) {
	v := &vm{config: g.config}
	for _, name = range v.drives() {
		if d = parseDrive(g.config[name]); d.cdrom() || d.volume == "" || strings.HasPrefix(name, "unused") {
			continue
		}
		if device = "sda"; strings.HasPrefix(name, "virtio") {
			device = "vda"
		}
		return name, device, d
	}
	return "scsi0", "sda", drive{}
}

// rootSize is the size of the root file system: the disk but for partitions and the file system's own data.
func (g *debian) rootSize() int64 {
	_, _, d := g.rootDisk()
	return int64(d.size()) / 32 * 29
}

func (g *debian) filesystems() []map[string]any {
	name, device, _ := g.rootDisk()
	bus := "scsi"
	if device == "vda" {
		bus = "virtio"
	}
	return []map[string]any{{
		"name": device, "mountpoint": "/", "type": "ext4", "total-bytes": g.rootSize(), "used-bytes": g.rootSize() * 3 / 10,
		"disk": []map[string]any{{
			"dev": "/dev/" + device, "bus-type": bus, "bus": 0, "target": 0, "unit": 0, "serial": "0QEMU_QEMU_HARDDISK_drive-" + name,
			"pci-controller": map[string]int{"domain": 0, "bus": 0, "slot": 5, "function": 0},
		}},
	}}
}

func (g *debian) freeze(freeze bool) AgentAnswer {
	count := 0
	if g.frozen != freeze {
		count = 1
	}
	g.frozen = freeze
	return AgentAnswer{Result: count}
}

func (g *debian) write(cmd AgentCommand) AgentAnswer {
	if dir, _, ok := strings.Cut(strings.TrimPrefix(cmd.Path, "/"), "/"); !ok || !slices.Contains([]string{"tmp", "etc", "root", "run", "var"}, dir) {
		return AgentAnswer{Err: fmt.Sprintf("failed to open file '%s' (mode: 'w'): No such file or directory", cmd.Path)}
	}
	g.files[cmd.Path] = string(cmd.Input)
	return AgentAnswer{}
}

// process is a program that the agent has started.
type process struct {
	AgentProcess
	// ends is the uptime at which it ends.
	ends time.Duration
}

func (g *debian) exec(cmd AgentCommand) AgentAnswer {
	p, known := g.program(cmd)
	if !known {
		return AgentAnswer{Err: fmt.Sprintf("Guest agent command failed, error was 'Failed to execute child process “%s” (No such file or directory)'", cmd.Path)}
	}
	p.ends += cmd.Uptime
	g.nextPID += 2
	g.processes[g.nextPID] = p
	return AgentAnswer{Result: g.nextPID}
}

// execStatus tells of a process that has ended only once.
func (g *debian) execStatus(cmd AgentCommand) AgentAnswer {
	p, known := g.processes[cmd.PID]
	switch {
	case !known:
		return AgentAnswer{Err: "Invalid parameter 'pid'"}
	case cmd.Uptime < p.ends:
		return AgentAnswer{Result: AgentProcess{}}
	}
	delete(g.processes, cmd.PID)
	p.Exited = true
	return AgentAnswer{Result: p.AgentProcess}
}
