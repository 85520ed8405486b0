package pve

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// VMConfig is the configuration of a VM as PVE stores it: every value as text.
type VMConfig struct {
	// Values holds all options, lock among them, but not digest: numbers as written, booleans as 1 and 0.
	Values map[string]string
	// Digest is the checksum of the config, to be sent with an update that relies on what was read.
	Digest proxmox.Digest
	// Lock names the operation that has locked the config: clone, backup and so on; empty if none.
	Lock string
}

// Get returns an option and whether it is set.
func (c VMConfig) Get(key string) (string, bool) {
	value, ok := c.Values[key]
	return value, ok
}

// Int returns an option that is a whole number.
func (c VMConfig) Int(key string) (int64, bool) {
	value, err := strconv.ParseInt(c.Values[key], 10, 64)
	return value, err == nil
}

// Flag returns an option that is a boolean; an absent one is false.
func (c VMConfig) Flag(key string) bool { return scalar(c.Values[key]).flag() }

// Template says that the VM is a template.
func (c VMConfig) Template() bool { return c.Flag("template") }

// Name returns the VM's name.
func (c VMConfig) Name() string { return c.Values["name"] }

// Description returns the notes of the VM.
func (c VMConfig) Description() string { return c.Values["description"] }

// Tags returns the tags.
func (c VMConfig) Tags() []string { return scalar(c.Values["tags"]).list() }

// decodeVMConfig reads a config; it fails only if the data is no object.
func decodeVMConfig(data []byte) (VMConfig, error) {
	var object fields
	if err := json.Unmarshal(data, &object); err != nil {
		return VMConfig{}, err
	}
	return VMConfig{Values: object.without("digest"), Digest: proxmox.Digest(object["digest"]), Lock: string(object["lock"])}, nil
}

// PendingVMConfig is a config with what waits for the next start.
type PendingVMConfig struct {
	// VMConfig is as it will be then.
	VMConfig
	// Waiting are the keys that are not so yet, by name.
	Waiting []string
}

// decodePending reads the list of keys, each with its value, and with one to come, or none.
func decodePending(list []fields) PendingVMConfig {
	config := PendingVMConfig{VMConfig: VMConfig{Values: map[string]string{}}}
	for _, entry := range list {
		key := string(entry["key"])
		value, is := entry["value"]
		next, comes := entry["pending"]
		switch {
		case key == "":
		case key == "digest":
			config.Digest = proxmox.Digest(value)
		case entry["delete"].flag() || entry["delete"].integer() > 0:
			config.Waiting = append(config.Waiting, key)
		case comes:
			config.Values[key], config.Waiting = string(next), append(config.Waiting, key)
		case is:
			config.Values[key] = string(value)
		}
	}
	slices.Sort(config.Waiting)
	config.Lock = config.Values["lock"]
	return config
}
