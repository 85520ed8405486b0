package vmconfig_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// values are what a template's keys may say, as Proxmox VE keeps it.
var values = map[string][]string{
	"name": {"tmpl", "worker-1"}, "cores": {"1", "2"}, "sockets": {"1", "2"}, "memory": {"128", "4096"},
	"description": {"base image\nsecond line", vmconfig.Description("x", other), vmconfig.Description("worker-1", uuid), "x%41\\n\ttab"},
	"smbios1":     {"uuid=215ebe3b-77b1-4d4b-a55f-1eb0b415983f", "base64=1,serial=Zg==,uuid=" + string(uuid), "manufacturer=x"},
	"tags":        {" ", "base;k8s", "a;capve-" + string(other), vmconfig.IdentityTag(uuid)},
	"net0":        {"virtio=BC:24:11:00:04:00,bridge=vmbr0,firewall=1", "e1000=BC:24:11:00:04:00,bridge=vmbr1,tag=5,queues=2"},
	"net1":        {"virtio=BC:24:11:00:04:01,bridge=vmbr0"},
	"ide0":        {"none,media=cdrom", "local:iso/debian.iso,media=cdrom,size=600M"},
	"ide2":        {"local:400/vm-400-cloudinit.qcow2,media=cdrom", "none,media=cdrom", "local:iso/capve-" + string(other) + ".iso,media=cdrom,size=40K"},
	"scsi0":       {"local:400/vm-400-disk-0.qcow2,size=1G"}, "scsi1": {"local:400/vm-400-cloudinit.raw,media=cdrom,size=4M", "local-lvm:vm-400-disk-1,size=4M"},
	"sata5": {"local-lvm:vm-400-disk-2,size=4M"}, "boot": {"order=scsi0", "cdn"}, "arch": {"aarch64"}, "machine": {"q35"}, "affinity": {"0-1"}, "lock": {"backup"},
}

func drawConfig(t *rapid.T) vmconfig.Config {
	config := vmconfig.Config{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if rapid.Bool().Draw(t, "has "+key) {
			config[key] = rapid.SampledFrom(values[key]).Draw(t, key)
		}
	}
	return config
}

func drawDesired(t *rapid.T) vmconfig.Desired {
	d := desired()
	d.Spec.CPU.Cores, d.Spec.Memory.SizeMiB = rapid.Int32Range(1, 128).Draw(t, "cores"), rapid.Int32Range(16, 8192).Draw(t, "MiB")
	d.Spec.Network.Devices = nil
	for i := range rapid.IntRange(0, 3).Draw(t, "devices") {
		d.Spec.Network.Devices = append(d.Spec.Network.Devices, v1beta1.NetworkDevice{
			Name: fmt.Sprintf("net%d", i), Bridge: rapid.SampledFrom([]string{"vmbr0", "vmbr1"}).Draw(t, "bridge"),
			Model: rapid.SampledFrom([]v1beta1.NetworkDeviceModel{"virtio", "e1000"}).Draw(t, "model"), VLAN: rapid.SampledFrom([]int32{0, 5}).Draw(t, "VLAN"),
		})
	}
	if rapid.Bool().Draw(t, "no seed") {
		d.Seed = ""
	}
	return d
}

// kept is a config as Proxmox VE keeps it after a write: tags in lower case, sorted and unique, no newline at the end of a
// description, the size of an image beside it.
func kept(config vmconfig.Config) vmconfig.Config {
	after := maps.Clone(config)
	if tags, present := after["tags"]; present {
		after["tags"] = strings.Join(slices.Compact(slices.Sorted(slices.Values(vmconfig.Tags(strings.ToLower(tags))))), ";")
	}
	if description, present := after["description"]; present {
		after["description"] = strings.TrimSuffix(description, "\n")
	}
	for key, value := range after {
		after[key] = keptDrive(key, value)
	}
	return after
}

// keptDrive is a drive as Proxmox VE keeps it: a disk that was to be made is a volume, the parts in the order of their keys,
// and the size beside it.
func keptDrive(key, value string) string {
	properties := vmconfig.ParseProperties(value)
	volume := properties.Get("")
	storage, size, _ := strings.Cut(volume, ":")
	if strings.HasSuffix(value, ".iso,media=cdrom") {
		return value + ",size=374K"
	}
	if _, err := strconv.ParseFloat(size, 64); err != nil || strings.HasPrefix(key, "net") {
		return value
	}
	format := properties.Get("format")
	if format == "" {
		format = "raw"
	}
	parts := []string{"size=" + size + "G"}
	for _, property := range properties {
		if property.Key != "" && property.Key != "format" && property.Key != "import-from" {
			parts = append(parts, property.Key+"="+property.Value)
		}
	}
	slices.Sort(parts)
	return storage + ":101/vm-101-" + key + "." + format + "," + strings.Join(parts, ",")
}

func TestAppliedOnceADiffIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, observed := drawDesired(t), drawConfig(t)
		after := kept(vmconfig.Diff(want, observed).Apply(observed))
		if again := vmconfig.Diff(want, after); !again.Empty() {
			t.Fatalf("of %v there is still to do: %+v", after, again)
		}
		if !after.BelongsTo(want.UUID) || after.SMBIOSUUID() != want.UUID || !vmconfig.HasTag(after["tags"], vmconfig.IdentityTag(want.UUID)) {
			t.Fatalf("not all marks are there: %v", after)
		}
		if want.Seed != "" && !vmconfig.HasSeed(after) {
			t.Fatalf("no drive has the seed: %v", after)
		}
	})
}

func TestADiffLeavesForeignKeysAlone(t *testing.T) {
	ours := []string{"name", "sockets", "cores", "memory", "smbios1", "tags", "description", "net0", "net1", "net2"}
	rapid.Check(t, func(t *rapid.T) {
		want, observed := drawDesired(t), drawConfig(t)
		drive, _ := want.SeedDrive(observed)
		after := vmconfig.Diff(want, observed).Apply(observed)
		for key, value := range observed {
			if slices.Contains(ours, key) || key == drive || strings.Contains(value, "cloudinit") {
				continue
			}
			if diff := cmp.Diff(value, after[key]); diff != "" {
				t.Fatalf("%s (-before +after):\n%s", key, diff)
			}
		}
		for _, tag := range vmconfig.Tags(observed["tags"]) {
			if !strings.HasPrefix(tag, vmconfig.TagPrefix) && !vmconfig.HasTag(after["tags"], tag) {
				t.Fatalf("tag %s is lost: %s", tag, after["tags"])
			}
		}
	})
}

func TestPropertyStringsReadBackAsTheyWere(t *testing.T) {
	part := rapid.StringMatching(`[a-z0-9:/. ]{0,3}(=[a-z0-9=+]{0,4})?`)
	rapid.Check(t, func(t *rapid.T) {
		parts := slices.DeleteFunc(rapid.SliceOf(part).Draw(t, "parts"), func(p string) bool { return p == "" })
		text := strings.Join(parts, ",")
		if diff := cmp.Diff(text, vmconfig.ParseProperties(text).String()); diff != "" {
			t.Fatalf("string (-want +got):\n%s", diff)
		}
	})
}

func TestOneOfSeveralPropertiesIsChanged(t *testing.T) {
	properties := vmconfig.ParseProperties("local:1/vm-1-disk-0.raw,,size=1G,serial=a=b")
	cases := map[string][2]string{
		"the default key is read":       {"local:1/vm-1-disk-0.raw", properties.Get("")},
		"a value may hold an equal":     {"a=b", properties.Get("serial")},
		"a key that is not there":       {"", properties.Get("discard")},
		"a part is replaced in place":   {"local:1/vm-1-disk-0.raw,size=2G,serial=a=b", properties.With("size", "2G").String()},
		"a part is added at the end":    {"local:1/vm-1-disk-0.raw,size=1G,serial=a=b,discard=on", properties.With("discard", "on").String()},
		"the properties stay as before": {"local:1/vm-1-disk-0.raw,size=1G,serial=a=b", properties.String()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c[0], c[1]); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

// equip asks for something in most keys that have parts.
func equip(d *vmconfig.Desired) {
	for _, field := range allFields() {
		if !strings.HasPrefix(field.name, "netboot") && field.name != "image" {
			field.set(&d.Spec)
		}
	}
	d.Spec.Tags, d.Spec.Description, d.Spec.Disks.Boot.SSD = []string{"x"}, "notes", ptr.To(true)
}

// FuzzConfig reads whatever stands in a config: nothing of it may bring the planner down or keep it from coming to an end.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"net0: =uuid=x,,,=\nsmbios1: =uuid=x,uuid\ntags: ;; ,A a\n", "ide2: ,media=cdrom\nscsi99: none,none\nboot: order=;;scsi0;\n",
		"scsi0: x,size=NaNT\nide2: a:b:cloudinit\nsata5: :iso/capve-.iso\n", "net: x\nnet00: virtio\ndescription: CAPVE-UUID:\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		config := vmconfig.Config{}
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			config[key] = value
		}
		for _, d := range []vmconfig.Desired{desired(), desired(equip)} {
			after := vmconfig.Diff(d, config).Apply(config)
			if again := vmconfig.Diff(d, after); !again.Empty() {
				t.Errorf("of %q there is still to do: %q", after, again)
			}
			d.Misfits(config)
			vmconfig.Decode(config)
		}
		if disk, found := config.BootDisk(); disk.Size < 0 || found != (disk.Key != "") {
			t.Errorf("boot disk %+v of %q", disk, config)
		}
		for range config {
			config = vmconfig.Eject(config).Apply(config)
		}
		if vmconfig.HasSeed(config) || len(config.DiskVolumes()) > len(config) || config.BelongsTo(proxmox.SMBIOSUUID("")) {
			t.Errorf("ejected everything, and have %q", config)
		}
	})
}
