package webhooks

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

func checkCPU(s machineSubject) field.ErrorList {
	path, cpu := s.path.Child("cpu"), s.spec.CPU
	var errs field.ErrorList
	if cpu.VCPUs > cpu.Sockets*cpu.Cores {
		errs = append(errs, field.Invalid(path.Child("vcpus"), cpu.VCPUs, "vcpus must not be more than sockets times cores: lower it, or raise one of these"))
	}
	for i, flag := range cpu.Flags {
		if name, taken := strings.CutPrefix(flag, "-"); taken && slices.Contains(cpu.Flags, "+"+name) {
			errs = append(errs, field.Invalid(path.Child("flags").Index(i), flag, "a flag is added with + and taken away with -: name it once"))
		}
	}
	return errs
}

func checkMemory(s machineSubject) field.ErrorList {
	memory, size, minimum := s.spec.Memory, s.path.Child("memory", "sizeMiB"), s.path.Child("memory", "minimumMiB")
	var errs field.ErrorList
	if page := pageMiB(memory.Hugepages); memory.SizeMiB%page != 0 {
		errs = append(errs, field.Invalid(size, memory.SizeMiB, "sizeMiB is a multiple of the size of the hugepages: of 1024 with 1GiB, of 2 with 2MiB"))
	}
	if hotplug := s.spec.Options.Hotplug; hotplug != nil && slices.Contains(*hotplug, "memory") && memory.SizeMiB < leastPlugged {
		errs = append(errs, field.Invalid(size, memory.SizeMiB, "plugging in memory needs a VM with 1024 MiB at least: raise memory.sizeMiB, or take memory out of options.hotplug"))
	}
	if memory.MinimumMiB == nil {
		return errs
	}
	if *memory.MinimumMiB > memory.SizeMiB {
		errs = append(errs, field.Invalid(minimum, *memory.MinimumMiB, "minimumMiB must not be above sizeMiB: lower it, or leave it out"))
	}
	balloons := *memory.MinimumMiB != 0 && *memory.MinimumMiB != memory.SizeMiB
	if balloons && memory.Hugepages != "" {
		errs = append(errs, field.Invalid(minimum, *memory.MinimumMiB, "no balloon takes hugepages back from the guest: set minimumMiB to 0 or to sizeMiB, or leave hugepages out"))
	}
	if balloons && len(s.spec.Hardware.PCIDevices) > 0 {
		errs = append(errs, field.Invalid(minimum, *memory.MinimumMiB,
			"with hardware.pciDevices all memory is pinned, and no balloon takes any back: set memory.minimumMiB to 0 or to memory.sizeMiB, or leave it out"))
	}
	return errs
}

// leastPlugged is how many MiB a VM starts with when memory can be plugged in (PVE::QemuServer::Memory, static memory).
const leastPlugged = 1024

// pageMiB is what memory of such hugepages is a multiple of.
func pageMiB(hugepages v1beta1.Hugepages) int32 {
	switch hugepages {
	case "1GiB":
		return 1024
	case "2MiB":
		return 2
	}
	return 1
}
