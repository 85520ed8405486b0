package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkHardware(s machineSubject) field.ErrorList {
	path, hardware := s.path.Child("hardware"), s.spec.Hardware
	var errs field.ErrorList
	if kind := hardware.Display.Type; hardware.Display.MemoryMiB != 0 && (kind == "none" || strings.HasPrefix(kind, "serial")) {
		errs = append(errs, field.Invalid(path.Child("display", "memoryMiB"), hardware.Display.MemoryMiB,
			"memoryMiB is for a graphics card: leave it out with type none and with a serial port"))
	}
	if rng := hardware.RNG; rng.PeriodMilliseconds != 0 && rng.MaxBytes != nil && *rng.MaxBytes == 0 {
		errs = append(errs, field.Invalid(path.Child("rng", "periodMilliseconds"), rng.PeriodMilliseconds,
			"periodMilliseconds is the period of maxBytes, and maxBytes 0 has none: leave it out, or set maxBytes above 0"))
	}
	return append(errs, append(checkPCI(s), checkUSB(s)...)...)
}

func checkPCI(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	primary, kind := "", s.spec.Hardware.MachineType
	for i, device := range s.spec.Hardware.PCIDevices {
		path := s.path.Child("hardware", "pciDevices").Index(i)
		if isTrue(device.PrimaryGPU) && primary != "" {
			errs = append(errs, field.Invalid(path.Child("primaryGPU"), true, fmt.Sprintf("only one device is the primaryGPU, which %s is: leave it out of the others", primary)))
		}
		if isTrue(device.PrimaryGPU) {
			primary = device.Name
		}
		if isTrue(device.PCIe) && strings.HasPrefix(kind, "pc") && !strings.Contains(kind, "q35") {
			errs = append(errs, field.Invalid(path.Child("pcie"), true, fmt.Sprintf("pcie needs the machineType q35, which is %s: set machineType to it, or leave pcie out", kind)))
		}
	}
	return errs
}

func checkUSB(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	if s.spec.Options.OSType == "" || slices.Contains([]string{"l26", "win8", "win10", "win11"}, s.spec.Options.OSType) {
		return nil
	}
	for i, device := range s.spec.Hardware.USBDevices {
		if len(device.Name) > len("usb0") || device.Name > "usb4" {
			errs = append(errs, field.Invalid(s.path.Child("hardware", "usbDevices").Index(i).Child("name"), device.Name,
				"usb5 to usb13 need an options.osType of l26, win8, win10 or win11: use usb0 to usb4, or set it"))
		}
	}
	return errs
}
