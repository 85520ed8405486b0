package pvesim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// PowerOffCause is why a guest lost its power.
type PowerOffCause string

// The causes of a power-off.
const (
	CauseStop     PowerOffCause = "stop"
	CauseShutdown PowerOffCause = "shutdown"
	CauseReset    PowerOffCause = "reset"
	CauseDestroy  PowerOffCause = "destroy"
	CauseHostLost PowerOffCause = "host lost"
)

// Guest is what runs inside one VM. PowerOn and PowerOff are called one after another, in order, in a goroutine of the VM's
// own: they may block and may call the world. Shutdown and Agent are called while the world is locked: they must answer at
// once and must not call it.
type Guest interface {
	// PowerOn tells that the VM was started or reset.
	PowerOn(Machine)
	// PowerOff tells that the power is gone. A destroyed VM is told so once more, with CauseDestroy.
	PowerOff(PowerOffCause)
	// Shutdown asks the guest to power off, by agent or ACPI: after says when (on a host of speed 1), obeys whether at all.
	Shutdown() (after time.Duration, obeys bool)
	// Agent answers a command for the guest agent.
	Agent(AgentCommand) AgentAnswer
}

// GuestFactory makes the guest of a VM when it is first powered on.
type GuestFactory func(proxmox.VMID) Guest

// Medium is a CD-ROM in a drive of a VM.
type Medium struct {
	// Drive is the config key, for example ide3.
	Drive string
	// Volume is the volume in the drive.
	Volume proxmox.VolumeID
	// Content is the image; nil for Proxmox VE's own cloud-init drive.
	Content []byte
	// Generated are the files on Proxmox VE's own cloud-init drive, made from the VM's config; nil for images.
	Generated map[string]string
}

// Machine is what a guest finds when it is powered on.
type Machine struct {
	VMID proxmox.VMID
	Node proxmox.NodeName
	Name string
	UUID proxmox.SMBIOSUUID
	// MACs of net0, net1 … in upper case.
	MACs []string
	// Config is a copy of the VM's config.
	Config map[string]string
	// Lease asks the DHCP server in the network of a device, by its MAC address. Without a server there is no address. It locks
	// the world.
	Lease func(mac string) (netip.Prefix, bool)
	// Media reads the CD-ROMs that are in the drives now, in bus order. It locks the world.
	Media func() []Medium
	// After calls f when a real host's time d, divided by the world's speed, has passed; in the VM's goroutine, and never once
	// the power has gone.
	After func(d time.Duration, f func())
}

// Inert makes a guest that does nothing but obey a shutdown. It is the default.
func Inert(proxmox.VMID) Guest { return inert{} }

type inert struct{}

func (inert) PowerOn(Machine)                 {}
func (inert) PowerOff(PowerOffCause)          {}
func (inert) Shutdown() (time.Duration, bool) { return 2 * time.Second, true }
func (inert) Agent(AgentCommand) AgentAnswer  { return AgentAnswer{Absent: true} }

// Deaf makes a guest that does nothing and takes no notice of a shutdown, as a VM with an empty disk.
func Deaf(proxmox.VMID) Guest { return deaf{} }

type deaf struct{ inert }

func (deaf) Shutdown() (time.Duration, bool) { return 0, false }

func (w *World) guestOn(v *vm) {
	if v.guest == nil {
		v.guest = w.guests(v.id)
	}
	v.power++
	guest, m := v.guest, w.machine(v)
	v.queue.do(func() { guest.PowerOn(m) })
}

func (w *World) guestOff(v *vm, cause PowerOffCause) {
	v.power++
	if guest := v.guest; guest != nil {
		v.queue.do(func() { guest.PowerOff(cause) })
	}
}

func (w *World) guestDestroyed(v *vm) {
	w.releaseLeases(v.id)
	w.guestOff(v, CauseDestroy)
}

func (w *World) machine(v *vm) Machine {
	config := make(map[string]string, len(v.config))
	for key, value := range v.config {
		config[key] = value
	}
	power := v.power
	return Machine{
		VMID: v.id, Node: v.node, Name: v.name(), UUID: v.uuid(), MACs: v.macs(), Config: config,
		Lease: func(mac string) (netip.Prefix, bool) { w.mu.Lock(); defer w.mu.Unlock(); return w.lease(v, mac) },
		Media: func() []Medium { w.mu.Lock(); defer w.mu.Unlock(); return w.media(v) },
		After: func(d time.Duration, f func()) { w.mu.Lock(); defer w.mu.Unlock(); w.guestAfter(v, power, d, f) },
	}
}

func (w *World) guestAfter(v *vm, power int, d time.Duration, f func()) {
	w.after(d, func() {
		if v.power != power || !v.running {
			return
		}
		v.queue.do(func() {
			w.mu.Lock()
			same := v.power == power
			w.mu.Unlock()
			if same {
				f()
			}
		})
	})
}

// uuid is the SMBIOS UUID, in lower case.
func (v *vm) uuid() proxmox.SMBIOSUUID {
	format := smbiosFormat()
	p, _ := format.Parse(v.config["smbios1"])
	return proxmox.SMBIOSUUID(strings.ToLower(p["uuid"]))
}

func (v *vm) macs() []string {
	var out []string
	format := netFormat()
	for i := range 32 {
		if p, _ := format.Parse(v.config[fmt.Sprintf("net%d", i)]); p["macaddr"] != "" {
			out = append(out, strings.ToUpper(p["macaddr"]))
		}
	}
	return out
}

// media are the CD-ROMs in the drives, in bus order.
func (w *World) media(v *vm) []Medium {
	var out []Medium
	for _, name := range v.drives() {
		d := parseDrive(v.config[name])
		vol := w.volumeAt(v.node, d.volume)
		if !d.cdrom() || vol == nil {
			continue
		}
		m := Medium{Drive: name, Volume: d.volume, Content: slices.Clone(vol.data)}
		if d.cloudInit() {
			m.Generated = v.cloudInitFiles()
		}
		out = append(out, m)
	}
	return out
}
