package pvesim

import (
	"fmt"
	"strings"
)

// This file writes values as qemu-server stores them.

// expected is the value that an option will have.
func (ch *change) expected(key string) string {
	if p, waiting := ch.pending[key]; waiting {
		return p.value
	}
	return ch.config[key]
}

// storedValue is how a value comes back from the config file: lines are trimmed, and an empty one is a blank. A description is
// kept as comment lines.
func storedValue(key, value string) string {
	if key == "description" {
		return strings.TrimSuffix(value, "\n")
	}
	if value = strings.TrimSpace(value); value == "" {
		return " "
	}
	return value
}

func isWindows(ostype string) bool { return strings.HasPrefix(ostype, "w") }

// pinned is the machine type with the version of QEMU, which a Windows guest keeps (check_and_pin_machine_string).
func (w *World) pinned(machine, ostype string) string {
	format := machineFormat(V92)
	p, _ := format.Parse(machine)
	prefix := map[string]string{"": "pc-i440fx-", "pc": "pc-i440fx-", "q35": "pc-q35-", "virt": "virt-"}[p["type"]]
	if !isWindows(ostype) || prefix == "" {
		return machine
	}
	version := strings.SplitN(w.qemuVersion(), ".", 3)
	p["type"] = prefix + strings.Join(version[:2], ".")
	return p.Print("type")
}

// normalNet writes a network device as PVE does, and draws a MAC address if none is given: also when one was there before.
func (w *World) normalNet(value string) string {
	format := netFormat()
	p, _ := format.Parse(value)
	if p == nil {
		return value
	}
	model, mac := p["model"], strings.ToUpper(p["macaddr"])
	if mac == "" {
		mac = w.newMAC()
	}
	delete(p, "macaddr")
	p["model"] = model + "=" + mac
	return p.Print("model")
}

// metaInfo is the meta option of a new VM.
func (w *World) metaInfo() string {
	return fmt.Sprintf("creation-qemu=%s,ctime=%d", w.qemuVersion(), w.clock.Now().Unix())
}
