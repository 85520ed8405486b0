package webhooks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// eachDisk calls with the boot disk, whose name is empty where the spec does not say it, and with each additional disk.
func (s machineSubject) eachDisk(look func(path *field.Path, name string, options v1beta1.DiskOptions)) {
	disks := s.path.Child("disks")
	look(disks.Child("boot"), s.bootDisk(), s.spec.Disks.Boot.DiskOptions)
	for i, disk := range s.spec.Disks.Additional {
		look(disks.Child("additional").Index(i), disk.Name, disk.DiskOptions)
	}
}

// bootDisk is the name of the boot disk, where that is not the template's.
func (s machineSubject) bootDisk() string {
	switch {
	case s.spec.Source.UsesTemplate():
		return ""
	case s.spec.Disks.Boot.Name != "":
		return s.spec.Disks.Boot.Name
	}
	return "scsi0"
}

func checkDisks(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	serials := map[string]bool{}
	s.eachDisk(func(path *field.Path, name string, options v1beta1.DiskOptions) {
		if options.Serial != "" && serials[options.Serial] {
			errs = append(errs, field.Invalid(path.Child("serial"), options.Serial, "two disks have the same serial, by which the guest finds them: give each its own"))
		}
		serials[options.Serial] = true
		controller := s.spec.Hardware.SCSIController
		if isTrue(options.IOThread) && strings.HasPrefix(name, "scsi") && controller != "" && controller != "virtio-scsi-single" {
			errs = append(errs, field.Invalid(path.Child("ioThread"), true, fmt.Sprintf(
				"ioThread of a scsi disk needs hardware.scsiController virtio-scsi-single, which is %s: set it, or leave ioThread out", controller)))
		}
		errs = append(errs, checkLimits(path.Child("limits"), options.Limits)...)
	})
	return errs
}

func checkLimits(path *field.Path, limits v1beta1.DiskLimits) field.ErrorList {
	var errs field.ErrorList
	for _, row := range []struct {
		burst, base        string
		burstValue, atBase int32
	}{
		{"readBurstMiBps", "readMiBps", limits.ReadBurstMiBps, limits.ReadMiBps},
		{"writeBurstMiBps", "writeMiBps", limits.WriteBurstMiBps, limits.WriteMiBps},
		{"readBurstIOPS", "readIOPS", limits.ReadBurstIOPS, limits.ReadIOPS},
		{"writeBurstIOPS", "writeIOPS", limits.WriteBurstIOPS, limits.WriteIOPS},
	} {
		if row.burstValue != 0 && (row.atBase == 0 || row.burstValue < row.atBase) {
			errs = append(errs, field.Invalid(path.Child(row.burst), row.burstValue,
				fmt.Sprintf("%s needs %s, and is not below it: set %s, or leave %s out", row.burst, row.base, row.base, row.burst)))
		}
	}
	return errs
}

// checkDiskBuses refuses disks on slots that the machine type does not have.
func checkDiskBuses(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	kind := s.spec.Hardware.MachineType
	isARM := strings.HasPrefix(kind, "virt") || s.spec.RawConfig["arch"] == "aarch64"
	s.eachDisk(func(disk *field.Path, name string, _ v1beta1.DiskOptions) {
		path := disk.Child("name")
		switch {
		case isARM && strings.HasPrefix(name, "ide"):
			errs = append(errs, field.Invalid(path, name, "aarch64 has no ide: name the disks scsi…, virtio… or sata…"))
		case strings.Contains(kind, "q35") && (name == "ide1" || name == "ide3"):
			errs = append(errs, field.Invalid(path, name, "the machineType q35 has ide0 and ide2 alone: name the disks otherwise"))
		}
	})
	return errs
}

// checkSeedDrive refuses a spec whose own disks leave no drive to the seed. What a template has besides only shows before the
// clone.
func checkSeedDrive(s machineSubject) field.ErrorList {
	if _, found := (vmconfig.Desired{Spec: s.spec}).SeedDrive(nil); found {
		return nil
	}
	bus := string(s.spec.Bootstrap.Bus)
	return field.ErrorList{field.Invalid(s.path.Child("bootstrap", "bus"), bus,
		"no drive on the bus is free for the seed ISO: choose another bus, or name a disk of disks.additional otherwise")}
}
