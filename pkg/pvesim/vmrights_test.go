package pvesim_test

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const anyConfigRight = "VM.Config.Disk|VM.Config.CDROM|VM.Config.CPU|VM.Config.Memory|VM.Config.Network|VM.Config.HWType|VM.Config.Options|VM.Config.Cloudinit"

// TestWhatAnOptionTakes grants what each refusal names, until the change is made.
func TestWhatAnOptionTakes(t *testing.T) {
	t.Parallel()
	for change, tt := range map[string]struct {
		key, value string
		// rights are privilege@path, beyond one that opens the endpoint.
		rights []string
		then   string
	}{
		"cores":          {"cores", "2", []string{"VM.Config.CPU@/vms/9001"}, "OK"},
		"numa0":          {"numa0", "cpus=0,memory=512", []string{"VM.Config.CPU@/vms/9001"}, "OK"},
		"memory":         {"memory", "512", []string{"VM.Config.Memory@/vms/9001"}, "OK"},
		"tablet":         {"tablet", "0", []string{"VM.Config.HWType@/vms/9001"}, "OK"},
		"serial":         {"serial1", "socket", []string{"VM.Config.HWType@/vms/9001"}, "OK"},
		"real serial":    {"serial1", "/dev/ttyS0", nil, "500 only root can set 'serial1' config for real devices"},
		"startup":        {"startup", "order=1", []string{"VM.Config.Options@/vms/9001", "Sys.Modify@/"}, "OK"},
		"tags":           {"tags", "x", []string{"VM.Config.Options@/vms/9001"}, "OK"},
		"boot":           {"boot", "order=scsi0", []string{"VM.Config.Disk@/vms/9001"}, "OK"},
		"freeze":         {"freeze", "1", []string{"VM.PowerMgmt@/vms/9001"}, "OK"},
		"ipconfig":       {"ipconfig0", "ip=dhcp", nil, "403 Permission check failed (/vms/9001, VM.Config.Cloudinit|VM.Config.Network)"},
		"no media":       {"ide3", "none,media=cdrom", []string{"VM.Config.CDROM@/vms/9001"}, "OK"},
		"new disk":       {"scsi1", "local-lvm:1", []string{"Datastore.AllocateSpace@/storage/local-lvm", "VM.Config.Disk@/vms/9001"}, "OK"},
		"others' disk":   {"scsi1", "local-lvm:vm-999-disk-0", []string{"Datastore.Audit@/storage/local-lvm", "VM.Config.Disk@/vms/999", "VM.Config.Disk@/vms/9001"}, "500 volume 'local-lvm:vm-999-disk-0' does not exist"},
		"bridge":         {"net1", "virtio,bridge=vmbr0", []string{"VM.Config.Network@/vms/9001", "SDN.Use@/sdn/zones/localnetwork/vmbr0"}, "OK"},
		"VLANs":          {"net1", "virtio,bridge=vmbr0,tag=5,trunks=7", []string{"VM.Config.Network@/vms/9001", "SDN.Use@/sdn/zones/localnetwork/vmbr0/5", "SDN.Use@/sdn/zones/localnetwork/vmbr0/7", "SDN.Use@/sdn/zones/localnetwork/vmbr0"}, "OK"},
		"mapped PCI":     {"hostpci0", "mapping=gpu", []string{"Mapping.Use@/mapping/pci/gpu", "VM.Config.HWType@/vms/9001"}, "OK"},
		"raw PCI":        {"hostpci0", "0000:01:00.0", nil, "500 only root can set 'hostpci0' config for non-mapped devices"},
		"raw USB":        {"usb0", "host=1234:5678", nil, "500 only root can set 'usb0' config for real devices"},
		"SPICE":          {"usb0", "host=spice", []string{"VM.Config.HWType@/vms/9001"}, "OK"},
		"root's own":     {"affinity", "0", nil, "500 only root can set 'affinity' config"},
		"delete root's":  {"delete", "hugepages", nil, "500 only root can set 'hugepages' config"},
		"delete a disk":  {"delete", "scsi0", []string{"VM.Config.Disk@/vms/9001"}, "OK"},
		"delete nothing": {"delete", "scsi7", nil, "OK"},
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			c, a := withUser(t)
			c.root.wants("OK", "POST", "/nodes/pve2/qemu", "vmid", "999")
			try := func(want string) { t.Helper(); a.wants(want, "PUT", "/nodes/pve1/qemu/9001/config", tt.key, tt.value) }
			try("403 Permission check failed (/vms/9001, " + anyConfigRight + ")")
			// A right that no case is about opens the endpoint.
			c.grants("VM.Config.CDROM@/vms/9001")
			if change == "no media" {
				try("OK")
				return
			}
			for i, right := range tt.rights {
				privilege, path := splitRight(right)
				if i == 0 || tt.rights[i-1] != right {
					try("403 Permission check failed (" + path + ", " + privilege + ")")
				}
				c.grants(right)
			}
			try(tt.then)
		})
	}
}

// grants adds a privilege on a path to those that a@pve has there; the right is privilege@path.
func (c callers) grants(right string) {
	c.tb.Helper()
	privilege, path := splitRight(right)
	role := "G" + sanitized(right)
	c.root.wants("OK", "POST", "/access/roles", "roleid", role, "privs", privilege)
	c.root.wants("OK", "PUT", "/access/acl", "path", path, "roles", role, "users", "a@pve", "propagate", "0")
}

func splitRight(right string) (privilege, path string) {
	for i := range right {
		if right[i] == '@' {
			return right[:i], right[i+1:]
		}
	}
	return right, "/"
}

func TestWhatANewVMTakes(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	spec := []string{"vmid", "200", "pool", "capi", "scsi0", "local-lvm:1", "ide2", "local-lvm:cloudinit", "net0", "virtio,bridge=vmbr0", "hostpci0", "mapping=gpu"}
	create := func(want string, more ...string) {
		t.Helper()
		a.wants(want, "POST", "/nodes/pve1/qemu", append(more, spec...)...)
	}
	create("403 Permission check failed")
	create("403 Permission check failed (/storage/local, Datastore.AllocateSpace)", "storage", "local")
	a.wants("403 Permission check failed (pool 'zz' does not exist)", "POST", "/nodes/pve1/qemu", "vmid", "200", "pool", "zz")
	for _, step := range [][2]string{
		{"VM.Allocate@/pool/capi", ""},
		{"Datastore.AllocateSpace@/storage/local-lvm", "(/storage/local-lvm, Datastore.AllocateSpace)"},
		{"VM.Config.Network@/pool/capi", "(/vms/200, VM.Config.Network)"},
		{"SDN.Use@/sdn/zones/localnetwork/vmbr0", "(/sdn/zones/localnetwork/vmbr0, SDN.Use)"},
		{"Mapping.Use@/mapping/pci/gpu", "(/mapping/pci/gpu, Mapping.Use)"},
		{"VM.Config.HWType@/pool/capi", "(/vms/200, VM.Config.HWType)"},
	} {
		if step[1] != "" {
			create("403 Permission check failed " + step[1])
		}
		c.grants(step[0])
	}
	create("OK")
}

func TestWhatACloneTakes(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	clone := func(want string, more ...string) {
		t.Helper()
		a.wants(want, "POST", "/nodes/pve1/qemu/9001/clone", append([]string{"newid", "200", "full", "1"}, more...)...)
	}
	clone("403 Permission check failed (/vms/9001, VM.Clone)")
	c.grants("VM.Clone@/vms/9001")
	clone("403 Permission check failed")
	clone("403 Permission check failed", "pool", "capi")
	c.grants("VM.Allocate@/pool/capi")
	clone("403 Permission check failed (/storage/shared, Datastore.AllocateSpace)", "pool", "capi", "storage", "shared")
	c.grants("Datastore.AllocateSpace@/storage/shared")
	clone("403 Permission check failed (/sdn/zones/localnetwork/vmbr0, SDN.Use)", "pool", "capi", "storage", "shared")
	c.grants("SDN.Use@/sdn/zones/localnetwork/vmbr0")
	clone("OK", "pool", "capi", "storage", "shared")
}

func TestWhichVolumesAreSeenAndDeleted(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	must(t, c.world.AddVolume(pvesim.VolumeSpec{ID: "local:iso/a.iso", Node: "pve1", Size: 1}))
	must(t, c.world.AddVolume(pvesim.VolumeSpec{ID: "local:backup/vzdump-qemu-9001-2026_01_01-00_00_00.vma.zst", Node: "pve1", Size: 1, VMID: 9001}))
	must(t, c.world.AddVolume(pvesim.VolumeSpec{ID: "local:snippets/x.yaml", Node: "pve1", Size: 1}))
	count := func(storage string) int {
		got, _ := a.wants("OK", "GET", "/nodes/pve1/storage/"+storage+"/content").data.([]any)
		return len(got)
	}
	c.grants("Datastore.Audit@/storage/local")
	c.grants("Datastore.Audit@/storage/local-lvm")
	if iso, disks := count("local"), count("local-lvm"); iso != 1 || disks != 0 {
		t.Errorf("%d volumes of local and %d disks are seen, want the ISO image alone", iso, disks)
	}
	c.grants("VM.Config.Disk@/vms/9001")
	if count("local-lvm") == 0 {
		t.Error("the disks of a VM whose disks may be configured are not seen")
	}
	a.wants("403 Permission check failed (/storage/local, Datastore.Allocate)", "DELETE", "/nodes/pve1/storage/local/content/local:iso/a.iso")
	a.wants("OK", "GET", "/nodes/pve1/storage/local/content/local:iso/a.iso")
	a.wants("500 missing privileges to access local:snippets/x.yaml", "GET", "/nodes/pve1/storage/local/content/local:snippets/x.yaml")
	c.grants("Datastore.Allocate@/storage/local")
	a.wants("OK", "GET", "/nodes/pve1/storage/local/content/local:snippets/x.yaml")
	a.wants("OK", "DELETE", "/nodes/pve1/storage/local/content/local:iso/a.iso")
}

func TestAResizeTakesSpaceOfTheStorage(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	k := a.server.World.AddToken(pvesim.TokenSpec{User: "a@pve", Name: "t1", Privileges: map[string][]string{"/vms/9001": {"VM.Config.Disk"}}})
	a.server.Token = k
	a.client = a.server.Client()
	if exit := a.exit("PUT", "/nodes/pve1/qemu/9001/resize", "disk", "scsi0", "size", "20G"); exit != "403 Permission check failed (/storage/local-lvm, Datastore.AllocateSpace)" {
		t.Errorf("resize: %s", exit)
	}
}
