package vmconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// Misfits says why the VM cannot be made as it is desired from the config that it has, and what to do: each names the field.
// It is for what only shows in the template's config; without a config it says what shows in the spec alone.
func (d Desired) Misfits(observed Config) []string {
	var all []string
	for _, check := range []func(Config) []string{d.nameMisfits, d.balloonMisfits, d.diskMisfits, d.pciMisfits, d.seedMisfits, d.rawMisfits} {
		all = append(all, check(observed)...)
	}
	return all
}

func (d Desired) nameMisfits(Config) []string {
	if _, err := d.Name(); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func (d Desired) balloonMisfits(observed Config) []string {
	balloon, err := strconv.Atoi(observed["balloon"])
	if err != nil || d.Spec.Memory.MinimumMiB != nil || balloon <= int(d.Spec.Memory.SizeMiB) {
		return nil
	}
	return []string{fmt.Sprintf("the template's minimum memory, %d MiB, is above memory.sizeMiB, %d: set memory.minimumMiB to %d at most",
		balloon, d.Spec.Memory.SizeMiB, d.Spec.Memory.SizeMiB)}
}

func (d Desired) diskMisfits(observed Config) []string {
	boot, found := d.bootKey(observed)
	var all []string
	if found {
		all = optionMisfits("disks.boot", boot, d.Spec.Disks.Boot.DiskOptions)
	}
	for _, disk := range d.Spec.Disks.Additional {
		field := "disks.additional[" + disk.Name + "]"
		all = append(all, optionMisfits(field, disk.Name, disk.DiskOptions)...)
		if found && disk.Name == boot {
			all = append(all, fmt.Sprintf("%s: the VM boots from %s: give the additional disk another name", field, boot))
		}
		if strings.HasPrefix(disk.Name, "ide") && d.machine(observed) == "aarch64" {
			all = append(all, fmt.Sprintf("%s: aarch64 has no ide: name the disk scsi…, virtio… or sata…", field))
		}
	}
	return all
}

// optionMisfits are the options that the bus of a disk does not have.
func optionMisfits(field, key string, options v1beta1.DiskOptions) []string {
	bus := strings.TrimRight(key, "0123456789")
	unfit := func(set bool, option, buses string) string {
		if !set || slices.Contains(strings.Split(buses, " "), bus) {
			return ""
		}
		return fmt.Sprintf("%s.%s: disk %s has no such option, which is for %s disks: leave it out", field, option, key, strings.ReplaceAll(buses, " ", ", "))
	}
	all := []string{
		unfit(options.SSD != nil, "ssd", "scsi sata ide"), unfit(options.IOThread != nil, "ioThread", "scsi virtio"), unfit(options.ReadOnly != nil, "readOnly", "scsi virtio"),
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

func (d Desired) pciMisfits(observed Config) []string {
	if observed == nil && d.Spec.Hardware.MachineType == "" {
		return nil // the template may be a q35
	}
	var all []string
	for _, device := range d.Spec.Hardware.PCIDevices {
		if device.PCIe != nil && *device.PCIe && d.machine(observed) == "pc" {
			all = append(all, fmt.Sprintf("hardware.pciDevices[%s].pcie needs the machine type q35, and the VM has %s: set hardware.machineType to q35", device.Name, or(observed["machine"], "pc")))
		}
	}
	return all
}

func (d Desired) seedMisfits(observed Config) []string {
	if _, found := d.SeedDrive(observed); found || d.Seed == "" {
		return nil
	}
	bus := or(string(d.Spec.Bootstrap.Bus), "any bus")
	return []string{fmt.Sprintf("bootstrap.bus: no drive on %s is free for the seed ISO on a machine of type %s: choose another bus, or name the disks otherwise", bus, d.machine(observed))}
}

func (d Desired) rawMisfits(Config) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(d.Spec.RawConfig)) {
		switch field, refused := RefusedKey(key); {
		case field != "":
			all = append(all, fmt.Sprintf("rawConfig: set %s in the field %s", key, field))
		case refused:
			all = append(all, fmt.Sprintf("rawConfig: %s is the provider's: leave it out", key))
		case d.Spec.RawConfig[key] == "":
			all = append(all, fmt.Sprintf("rawConfig: %s has no value: give it one, or leave it out", key))
		}
	}
	return all
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
