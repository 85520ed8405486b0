package pvesim

import (
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// makeTemplate is POST …/template. With a disk it only makes a base volume of that one, also of a template.
func makeTemplate(c *call) reply {
	if r := c.templateRefusal(); r.failed() {
		return r
	}
	return vmTask("qmtemplate", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			if r := c.templateRefusal(); r.failed() {
				t.end(r.failure())
				return
			}
			v := c.vm()
			if t.cannotWrite(v) {
				return
			}
			v.config["template"] = "1"
			c.changed(v)
			t.after(c.about(templateDelay), func() { t.end(c.makeBases(v)) })
		}})
	})(c)
}

func (c *call) templateRefusal() reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case v.lock() != "":
		return fail("%s", v.lockRefusal())
	case len(v.snapshots) > 0:
		return fail("unable to create template, because VM contains snapshots")
	case v.isTemplate() && !c.has("disk"):
		return fail("you can't convert a template to a template")
	case v.running:
		return fail("you can't convert a VM to template if VM is running")
	}
	return reply{}
}

// makeBases renames the VM's disks, or the one of the request, to base volumes. The text says why it could not.
func (c *call) makeBases(v *vm) string {
	defer c.changed(v)
	for _, name := range clonedDrives(v.config, withData) {
		d := parseDrive(v.config[name])
		s := c.storageByID(d.storageID())
		if d.cdrom() || s == nil || !s.offers(templateFeature, d.volume, false) || (c.has("disk") && c.params["disk"] != name) {
			continue
		}
		vol := c.volumeAt(v.node, d.volume)
		if vol == nil {
			return fmt.Sprintf("file_size_info on '%s' failed", s.diskPath(d.volume))
		}
		d.volume = c.makeBase(vol)
		v.config[name] = d.String()
	}
	return ""
}

// makeBase renames a volume: vm-100-disk-0 becomes base-100-disk-0 (PVE::Storage::vdisk_create_base).
func (w *World) makeBase(v *volume) proxmox.VolumeID {
	w.removeVolume(v.key)
	file := fileName(v.key.id)
	v.key.id = proxmox.VolumeID(strings.TrimSuffix(string(v.key.id), file) + strings.Replace(file, "vm-", "base-", 1))
	w.addVolume(v)
	return v.key.id
}
