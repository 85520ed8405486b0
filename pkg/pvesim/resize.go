package pvesim

import (
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// resizeDisk is PUT …/resize, whose every refusal but that of a malformed size is the task's.
func resizeDisk() func(*call) reply {
	return vmTask("resize", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			v := c.vm()
			d, msg := c.resizeRefusal(v)
			if msg != "" {
				t.end(msg)
				return
			}
			t.after(c.about(resizeDelay), func() { t.end(c.resize(t, v, d)) })
		}})
	})
}

func (c *call) resizeRefusal(v *vm) (drive, string) {
	name := c.params["disk"]
	switch {
	case v == nil:
		return drive{}, noConfig(c.node.Name, c.vmid())
	case c.has("digest") && c.params["digest"] != v.digest():
		return drive{}, wrongDigest
	case v.lock() != "" && !c.flag("skiplock"):
		return drive{}, v.lockRefusal()
	case v.config[name] == "":
		return drive{}, fmt.Sprintf("disk '%s' does not exist", name)
	}
	d := parseDrive(v.config[name])
	if d.cdrom() {
		return drive{}, "you can't resize a cdrom"
	}
	if r := c.need("/storage/"+string(d.storageID()), "Datastore.AllocateSpace"); r.failed() {
		return drive{}, r.failure()
	}
	if c.volumeAt(v.node, d.volume) == nil {
		return drive{}, fmt.Sprintf("volume '%s' does not exist", d.volume)
	}
	return d, ""
}

// resize grows a disk. That of a template cannot be written to.
func (c *call) resize(t *task, v *vm, d drive) string {
	vol := c.volumeAt(v.node, d.volume)
	size, relative := strings.CutPrefix(c.params["size"], "+")
	n := schema.ParseSize(size)
	if relative {
		n += vol.size
	}
	// A running QEMU is told whole kibibytes.
	if v.running {
		n = (n + 1023) / 1024 * 1024
	}
	switch {
	case n < vol.size:
		return "shrinking disks is not supported"
	case n == vol.size:
		return ""
	case vol.storage.fileBased() && (isBase(d.volume) || c.tooLarge(vol, n)):
		return c.version.resizeFailure(vol, n)
	case !vol.storage.fileBased() && n-vol.size > vol.storage.free(v.node):
		return fmt.Sprintf("not enough free space on storage '%s'", vol.storage.id)
	}
	vol.size = n
	if msg := c.writeRefusal(v, t.pid); msg != "" {
		return msg
	}
	d.props["size"] = schema.FormatSize(n)
	v.config[c.params["disk"]] = d.String()
	c.changed(v)
	return ""
}

// tooLarge tells whether the file system cannot hold a file of n bytes. 8.4 does not allocate anything for a qcow2 file.
func (w *World) tooLarge(vol *volume, n proxmox.Bytes) bool {
	return n > maxFile && (vol.format != "qcow2" || w.version == V92)
}
