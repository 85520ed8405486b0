package pvesim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// drive is the value of ideN, sataN, scsiN, virtioN, efidisk0 or tpmstate0.
type drive struct {
	volume proxmox.VolumeID
	props  schema.Properties
}

// parseDrive never fails: an unusable value has no volume.
func parseDrive(value string) drive {
	format := driveSyntax()
	p, msg := format.Parse(value)
	if msg != "" || value == "" {
		return drive{props: schema.Properties{}}
	}
	return drive{volume: proxmox.VolumeID(p["file"]), props: p}
}

func (d drive) String() string {
	d.props["file"] = string(d.volume)
	return d.props.Print("file")
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
	return schema.ParseSize(d.props["size"])
}

// busOrder sorts drive names as QEMU finds them: ide, sata, scsi, virtio, then by number.
func busOrder(names []string) {
	rank := []string{"ide", "sata", "scsi", "virtio", "efidisk", "tpmstate", "unused"}
	key := func(name string) (int, int) {
		bus := unnumbered(name)
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

// addUnused names a volume in the first free unusedN, unless one names it already.
func addUnused(config map[string]string, id proxmox.VolumeID) {
	free := ""
	for i := 255; i >= 0; i-- {
		switch key := "unused" + strconv.Itoa(i); config[key] {
		case string(id):
			return
		case "":
			free = key
		}
	}
	if free != "" {
		config[free] = string(id)
	}
}

// isDrive tells whether a config key is a disk or CD-ROM, unused volumes included.
func isDrive(key string) bool {
	switch unnumbered(key) {
	case "ide", "sata", "scsi", "virtio", "efidisk", "tpmstate", "unused":
		return key[len(key)-1] >= '0' && key[len(key)-1] <= '9'
	}
	return false
}

// drives returns the names of the VM's drives in bus order.
func (v *vm) drives() []string { return drivesOf(v.config) }

// drivesOf returns the names of the drives in a config in bus order.
func drivesOf(config map[string]string) []string {
	var out []string
	for key := range config {
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
