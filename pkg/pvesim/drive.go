package pvesim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// drive is the value of ideN, sataN, scsiN, virtioN, efidisk0 or tpmstate0.
type drive struct {
	volume proxmox.VolumeID
	props  properties
}

// parseDrive never fails: an unusable value has no volume.
func parseDrive(value string) drive {
	format := driveFormat()
	p, msg := format.parse(value)
	if msg != "" || value == "" {
		return drive{props: properties{}}
	}
	return drive{volume: proxmox.VolumeID(p["file"]), props: p}
}

func (d drive) String() string {
	d.props["file"] = string(d.volume)
	return d.props.print("file")
}

func (d drive) cdrom() bool     { return d.props["media"] == "cdrom" }
func (d drive) cloudInit() bool { return strings.Contains(string(d.volume), "-cloudinit") }

// storageID is the storage of the volume; empty for none, cdrom and paths.
func (d drive) storageID() proxmox.StorageID {
	id, _, ok := strings.Cut(string(d.volume), ":")
	if !ok {
		return ""
	}
	return proxmox.StorageID(id)
}

func (d drive) size() proxmox.Bytes {
	return parseSize(d.props["size"])
}

// parseSize reads a size such as 10G, 512M, 3.5G or 4096; what is no size counts as 0.
func parseSize(s string) proxmox.Bytes {
	unit := 1.0
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if cut, ok := strings.CutSuffix(s, suffix); ok {
			s = cut
			unit = float64(int64(1) << (10 * (i + 1)))
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 || n*unit > 1<<62 {
		return 0
	}
	return proxmox.Bytes(n * unit)
}

// formatSize writes a size with the largest unit that divides it (PVE::JSONSchema::format_size).
func formatSize(n proxmox.Bytes) string {
	units := []string{"", "K", "M", "G", "T"}
	i := 0
	for n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return fmt.Sprintf("%d%s", n, units[i])
}

// busOrder sorts drive names as QEMU finds them: ide, sata, scsi, virtio, then by number.
func busOrder(names []string) {
	rank := []string{"ide", "sata", "scsi", "virtio", "efidisk", "tpmstate", "unused"}
	key := func(name string) (int, int) {
		bus := strings.TrimRight(name, "0123456789")
		return slices.Index(rank, bus), atoi(name[len(bus):], 0)
	}
	slices.SortFunc(names, func(a, b string) int {
		aBus, aNumber := key(a)
		bBus, bNumber := key(b)
		if aBus != bBus {
			return aBus - bBus
		}
		return aNumber - bNumber
	})
}

// isDrive tells whether a config key is a disk or CD-ROM, unused volumes included.
func isDrive(key string) bool {
	switch strings.TrimRight(key, "0123456789") {
	case "ide", "sata", "scsi", "virtio", "efidisk", "tpmstate", "unused":
		return key[len(key)-1] >= '0' && key[len(key)-1] <= '9'
	}
	return false
}

// drives returns the names of the VM's drives in bus order.
func (v *vm) drives() []string {
	var out []string
	for key := range v.config {
		if isDrive(key) {
			out = append(out, key)
		}
	}
	busOrder(out)
	return out
}

func atoi(s string, fallback int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fallback
	}
	return n
}

// firstProperty is the value before the first comma, without a key.
func firstProperty(value string) string {
	first, _, _ := strings.Cut(value, ",")
	if _, v, ok := strings.Cut(first, "="); ok {
		return v
	}
	return first
}
