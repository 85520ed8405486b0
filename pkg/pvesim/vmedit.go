package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// edit is an update of a VM's config: what PUT and POST …/config ask for.
type edit struct {
	set    map[string]string
	remove []string
	revert []string
	digest string
	force  bool
}

// newEdit takes the parameters apart and refuses what needs no look at the VM; nil with the refusal then.
func (c *call) newEdit() (*edit, reply) {
	e := &edit{
		set: map[string]string{}, digest: c.params["digest"], force: c.flag("force"),
		remove: schema.SplitList(c.params["delete"]), revert: schema.SplitList(c.params["revert"]),
	}
	known := configParams(c.version)
	for key, value := range c.params {
		if schema.Lookup(known, key) != nil {
			e.set[key] = value
		}
	}
	if len(e.set)+len(e.remove)+len(e.revert) == 0 {
		return nil, fail("no options specified")
	}
	for _, key := range e.remove {
		if _, ok := e.set[key]; ok {
			return nil, invalidParam("delete", "you can't use '-%s' and -delete %s' at the same time", key, key)
		}
		if schema.Lookup(known, key) == nil {
			return nil, invalidParam("delete", "unknown option '%s'", key)
		}
	}
	if r := c.mayEdit(e); r.failed() {
		return nil, r
	}
	if !schema.ValidSSHKeys(e.set["sshkeys"]) {
		return nil, fail("SSH public key validation error")
	}
	if name := e.set["hookscript"]; name != "" {
		return nil, invalidParam("hookscript", "script '%s' does not exist\n", name)
	}
	return e, reply{}
}

// mayEdit is check_vm_modify_config_perm of qemu-server: a privilege per option, and options for root's ticket only.
func (c *call) mayEdit(e *edit) reply {
	keys := append(slices.Sorted(maps.Keys(e.set)), e.remove...)
	path := "/vms/" + c.params["vmid"]
	for _, key := range keys {
		for _, privilege := range optionPrivileges(key, e.set[key]) {
			if !c.mayAny(c.who, path, privilege) && !c.mayInPool(privilege) {
				return denied(path, privilege)
			}
		}
		if rootOnly(key, e.set[key]) && !c.who.isRoot() {
			return fail("only root can set '%s' config", key)
		}
		if r := c.mayUseBridge(key, e.set[key]); r.failed() {
			return r
		}
	}
	if _, ok := e.set["startup"]; ok && !c.mayAny(c.who, "/", "Sys.Modify") {
		return denied("/", "Sys.Modify")
	}
	return reply{}
}

// mayInPool is for a VM that is just being made in a pool.
func (c *call) mayInPool(privilege string) bool {
	return c.has("pool") && c.mayAny(c.who, "/pool/"+c.params["pool"], privilege)
}

func (c *call) mayUseBridge(key, value string) reply {
	format := netFormat()
	if p, _ := format.Parse(value); strings.TrimRight(key, "0123456789") == "net" && p["bridge"] != "" {
		if path := "/sdn/zones/localnetwork/" + p["bridge"]; !c.mayAny(c.who, path, "SDN.Use") {
			return denied(path, "SDN.Use")
		}
	}
	return reply{}
}

func rootOnly(key, value string) bool {
	switch strings.TrimRight(key, "0123456789") {
	case "affinity", "args", "hugepages", "keephugepages", "lock", "amd-sev", "arch", "ivshmem", "parallel", "spice_enhancements", "vmgenid", "intel-tdx":
		return true
	case "serial":
		return value != "" && value != "socket"
	case "hostpci", "usb":
		return value != "" && !strings.Contains(value, "mapping=") && !strings.Contains(value, "spice")
	}
	return false
}

// optionPrivileges are the privileges on the VM that setting the option takes.
func optionPrivileges(key, value string) []string {
	switch strings.TrimRight(key, "0123456789") {
	case "cores", "sockets", "cpu", "cpulimit", "cpuunits", "numa", "vcpus", "smp", "affinity":
		return []string{"VM.Config.CPU"}
	case "memory", "balloon", "shares", "allow-ksm":
		return []string{"VM.Config.Memory"}
	case "net":
		return []string{"VM.Config.Network"}
	case "ipconfig", "ciuser", "cipassword", "citype", "ciupgrade", "cicustom", "nameserver", "searchdomain", "sshkeys":
		return []string{"VM.Config.Cloudinit"}
	case "scsi", "virtio", "ide", "sata", "efidisk", "tpmstate", "unused", "cdrom":
		return drivePrivileges(value)
	case "boot", "bootdisk":
		return []string{"VM.Config.Disk"}
	case "machine", "scsihw", "vga", "serial", "smbios", "rng", "kvm", "hotplug", "watchdog", "hostpci", "usb", "vmgenid", "hugepages", "audio", "acpi", "localtime":
		return []string{"VM.Config.HWType"}
	}
	return []string{"VM.Config.Options"}
}

func drivePrivileges(value string) []string {
	switch {
	case strings.HasSuffix(firstProperty(value), ":cloudinit"):
		return []string{"VM.Config.Cloudinit", "VM.Config.CDROM"}
	case value == "" || strings.Contains(value, "media=cdrom") || firstProperty(value) == "none":
		return []string{"VM.Config.CDROM"}
	}
	return []string{"VM.Config.Disk"}
}

// checkEdit refuses an edit of a VM that is missing, locked or changed meanwhile.
func (c *call) checkEdit(e *edit) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case v.lock() != "" && !c.flag("skiplock"):
		return fail("VM is locked (%s)", v.lock())
	case e.digest != "" && e.digest != v.digest():
		return fail("checksum mismatch (file change by other user?)")
	}
	return reply{}
}

// underLock runs do when the VM's lock file is free; a PUT waits for it.
func (c *call) underLock(id proxmox.VMID, do func() reply) reply {
	done := make(chan reply, 1)
	c.acquire(lockRequest{
		id: id, timeout: flockTimeout,
		granted: func() { defer c.release(id); done <- do() },
		refused: func(reason string) { done <- fail("%s", reason) },
	})
	select {
	case r := <-done:
		return r
	default:
		return reply{later: done}
	}
}

// refuseEarly checks before the lock file is taken. Only 9.x looks at the config lock that early: 8.4 waits for the file.
func (c *call) refuseEarly(e *edit) reply {
	if v := c.vm(); v != nil && c.version == V84 && v.lock() == "clone" {
		return reply{}
	}
	return c.checkEdit(e)
}

// putConfig changes the config before it answers.
func putConfig(c *call) reply {
	e, refused := c.newEdit()
	if e == nil {
		return refused
	}
	if r := c.refuseEarly(e); r.failed() {
		return r
	}
	return c.underLock(c.vmid(), func() reply {
		if r := c.checkEdit(e); r.failed() {
			return r
		}
		if r := c.apply(e, c.vm()); r.failed() {
			return r
		}
		return ok(nil)
	})
}

// postConfig answers with a task that changes the config.
func postConfig(c *call) reply {
	e, refused := c.newEdit()
	if e == nil {
		return refused
	}
	if r := c.refuseEarly(e); r.failed() {
		return r
	}
	return vmTask("qmconfig", func(c *call, t *task) {
		t.logf("update VM %d:%s", c.vmid(), e.describe())
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			t.after(c.between(100*time.Millisecond, 500*time.Millisecond), func() {
				if r := c.checkEdit(e); r.failed() {
					t.end(r.reason)
					return
				}
				t.end(c.apply(e, c.vm()).failure())
			})
		}})
	})(c)
}

// failure is the text of a failed reply, for tasks; empty if it did not fail.
func (r reply) failure() string {
	if !r.failed() {
		return ""
	}
	for name, text := range r.errors {
		return fmt.Sprintf("%s: %s", name, strings.TrimSpace(text))
	}
	return r.reason
}

func (e *edit) describe() string {
	out := ""
	for _, key := range slices.Sorted(maps.Keys(e.set)) {
		value := e.set[key]
		if key == "cipassword" {
			value = "<hidden>"
		}
		out += fmt.Sprintf(" -%s %s", key, value)
	}
	if len(e.remove) > 0 {
		out += " -delete " + strings.Join(e.remove, ",")
	}
	return out
}
