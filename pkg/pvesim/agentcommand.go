package pvesim

import (
	"encoding/json"
	"net/netip"
	"time"
)

// AgentCommand is a command for the QEMU guest agent.
type AgentCommand struct {
	// Name is that of the agent's protocol without guest-, for example network-get-interfaces, exec or file-read.
	Name string
	// Path is the program of exec, or the file of file-read and file-write.
	Path string
	// Arguments are those of exec's program.
	Arguments []string
	// Input is what exec's program reads, or what file-write writes.
	Input []byte
	// PID is the process that exec-status asks for.
	PID int
	// Now is the time of day; Uptime is how long the guest has had power, on a host of speed 1.
	Now    time.Time
	Uptime time.Duration
}

// AgentAnswer is what the guest agent says.
type AgentAnswer struct {
	// Absent means that no agent runs; the rest means nothing then.
	Absent bool
	// Delay until the answer comes, on a host of speed 1. Proxmox VE waits for three seconds.
	Delay time.Duration
	// Err is the agent's error; empty if all is well.
	Err string
	// Result is what the agent's protocol returns, as encoding/json writes it. Of file-read it is the content as []byte, of exec
	// the PID as int, of exec-status an AgentProcess.
	Result any
}

// AgentProcess is what exec-status says of a process.
type AgentProcess struct {
	Exited bool
	Code   int
	Output []byte
	Errors []byte
}

// NetworkInterface is one interface as the guest agent reports it with network-get-interfaces.
type NetworkInterface struct {
	Name string
	MAC  string
	// Addresses with their prefix length.
	Addresses []netip.Prefix
}

// MarshalJSON writes the interface as the guest agent does.
func (i NetworkInterface) MarshalJSON() ([]byte, error) {
	addresses := []map[string]any{}
	for _, p := range i.Addresses {
		family := "ipv6"
		if p.Addr().Is4() {
			family = "ipv4"
		}
		addresses = append(addresses, map[string]any{"ip-address": p.Addr().String(), "ip-address-type": family, "prefix": p.Bits()})
	}
	counters := map[string]int{}
	for _, name := range []string{"bytes", "packets", "errs", "dropped"} {
		counters["rx-"+name], counters["tx-"+name] = 0, 0
	}
	return json.Marshal(map[string]any{"name": i.Name, "hardware-address": i.MAC, "ip-addresses": addresses, "statistics": counters})
}
