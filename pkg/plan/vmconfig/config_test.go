package vmconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	uuid  = proxmox.SMBIOSUUID("8d1ab5f6-59f1-4a3e-9a0b-0d6f2a5b7c11")
	other = proxmox.SMBIOSUUID("11111111-2222-3333-4444-555555555555")
	gib   = proxmox.Bytes(1 << 30)
)

func TestAVMIsOursByAnyOfItsMarks(t *testing.T) {
	cases := []struct {
		name   string
		config vmconfig.Config
		uuid   proxmox.SMBIOSUUID
		want   bool
	}{
		{"by its description, as we write it", vmconfig.Config{"description": vmconfig.Description("worker-1", uuid)}, uuid, true},
		{"by its description, as Proxmox VE keeps it, without the last newline", vmconfig.Config{"description": "Cluster API machine worker-1, managed by CAPVE.\n\nCAPVE-UUID: " + string(uuid)}, uuid, true},
		{"by a line among what people wrote", vmconfig.Config{"description": "my VM\r\n  CAPVE-UUID: " + string(uuid) + "\r\nthanks"}, uuid, true},
		{"by its SMBIOS UUID alone", vmconfig.Config{"smbios1": "uuid=" + string(uuid)}, uuid, true},
		{"by its SMBIOS UUID among other fields, in upper case", vmconfig.Config{"smbios1": "base64=1,manufacturer=UVVNVQ==,uuid=8D1AB5F6-59F1-4A3E-9A0B-0D6F2A5B7C11"}, uuid, true},
		{"by its tag alone", vmconfig.Config{"tags": "base;capve-" + string(uuid) + ";k8s"}, uuid, true},
		{"not with the marks of another", vmconfig.Config{"description": vmconfig.Description("worker-1", other), "smbios1": "uuid=" + string(other), "tags": vmconfig.IdentityTag(other)}, uuid, false},
		{"not when its description only mentions the identity", vmconfig.Config{"description": "not CAPVE-UUID: " + string(uuid)}, uuid, false},
		{"not by a longer tag", vmconfig.Config{"tags": "capve-" + string(uuid) + "x"}, uuid, false},
		{"not by its name or VMID", vmconfig.Config{"name": "worker-1"}, uuid, false},
		{"not without an identity to look for", vmconfig.Config{"smbios1": "", "description": "CAPVE-UUID: ", "tags": "capve-"}, "", false},
		{"not while it is being cloned", vmconfig.Config{"lock": "clone", "description": " qmclone temporary file"}, uuid, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.config.BelongsTo(c.uuid)); diff != "" {
				t.Errorf("is ours (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDiskThatAVMBootsFrom(t *testing.T) {
	none := vmconfig.Disk{}
	cases := []struct {
		name   string
		config vmconfig.Config
		want   vmconfig.Disk
	}{
		{"is the first of the boot order", vmconfig.Config{"boot": "order=scsi1;scsi0", "scsi0": "local:100/vm-100-disk-0.qcow2,size=1G", "scsi1": "local:100/vm-100-disk-1.qcow2,size=2G"}, vmconfig.Disk{Key: "scsi1", Size: 2 * gib}},
		{"is the first disk of the boot order, behind CD-ROM drives and network", vmconfig.Config{"boot": "order=ide2;net0;virtio0", "ide2": "local:iso/debian.iso,media=cdrom,size=600M", "net0": "virtio=BC:24:11:00:05:00", "virtio0": "local-lvm:vm-100-disk-0,size=32G"}, vmconfig.Disk{Key: "virtio0", Size: 32 * gib}},
		{"is the one that a config of Proxmox VE 5 names", vmconfig.Config{"boot": "cdn", "bootdisk": "sata0", "sata0": "local-lvm:vm-100-disk-1,size=4G", "scsi0": "local-lvm:vm-100-disk-0,size=8G"}, vmconfig.Disk{Key: "sata0", Size: 4 * gib}},
		{"is the first on the first bus when nothing names one", vmconfig.Config{"boot": "cdn", "virtio0": "local-lvm:vm-100-disk-1,size=4G", "scsi0": "local-lvm:vm-100-disk-0,size=8G"}, vmconfig.Disk{Key: "scsi0", Size: 8 * gib}},
		{"is the first on the first bus when the order names only what is gone", vmconfig.Config{"boot": "order=scsi7", "scsi0": "local-lvm:vm-100-disk-0,size=8G"}, vmconfig.Disk{Key: "scsi0", Size: 8 * gib}},
		{"is a linked clone's", vmconfig.Config{"boot": "order=scsi0", "scsi0": "local:400/base-400-disk-0.qcow2/410/vm-410-disk-0.qcow2,size=1G"}, vmconfig.Disk{Key: "scsi0", Size: gib}},
		{"has no size when the config gives none", vmconfig.Config{"scsi0": "/dev/sdb"}, vmconfig.Disk{Key: "scsi0"}},
		{"is none of a VM without disks", vmconfig.Config{"ide2": "none,media=cdrom", "scsi0": "none", "efidisk0": "local:1/vm-1-disk-0.raw,size=4M", "unused0": "local:1/vm-1-disk-1.raw"}, none},
		{"is not PVE's cloud-init drive", vmconfig.Config{"boot": "order=ide2", "ide2": "local:400/vm-400-cloudinit.qcow2,media=cdrom"}, none},
		{"is none of an empty config", nil, none},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			disk, found := c.config.BootDisk()
			if diff := cmp.Diff(c.want, disk); diff != "" {
				t.Errorf("disk (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want.Key != "", found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSizesAreReadAsProxmoxWritesThem(t *testing.T) {
	cases := map[string]proxmox.Bytes{
		"1G": gib, "40M": 40 << 20, "528K": 528 << 10, "2T": 2 << 40, "4096": 4096, "3.5G": 7 << 29, "0": 0,
		"": 0, "G": 0, "1g": 0, "1GG": 0, "1GiB": 0, "-1G": 0, "NaN": 0, "NaNG": 0, "Inf": 0, "99999999999T": 0, "1 G": 0, "ten": 0,
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			if diff := cmp.Diff(want, vmconfig.ParseSize(text)); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTagsAreReadAsProxmoxAcceptsThem(t *testing.T) {
	cases := map[string][]string{"alpha;beta;zed": {"alpha", "beta", "zed"}, "a,b c": {"a", "b", "c"}, " ": {}, "": {}, ";;a;": {"a"}}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			if diff := cmp.Diff(want, vmconfig.Tags(text)); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheVolumesThatACloneCopies(t *testing.T) {
	config := vmconfig.Config{
		"scsi0": "local-lvm:base-9000-disk-0,size=3G", "scsi1": "file=ceph:vm-9000-disk-1,serial=data", "ide2": "local:9000/vm-9000-cloudinit.qcow2,media=cdrom",
		"ide0": "local:iso/debian.iso,media=cdrom", "sata0": "none,media=cdrom", "efidisk0": "local-lvm:vm-9000-disk-2,size=4M", "tpmstate0": "local-lvm:vm-9000-disk-3,size=4M",
		"unused0": "local-lvm:vm-9000-disk-4", "virtio0": "/dev/sdb", "net0": "virtio=BC:24:11:00:05:00,bridge=vmbr0",
	}
	want := map[string]proxmox.VolumeID{
		"scsi0": "local-lvm:base-9000-disk-0", "scsi1": "ceph:vm-9000-disk-1", "ide2": "local:9000/vm-9000-cloudinit.qcow2",
		"efidisk0": "local-lvm:vm-9000-disk-2", "tpmstate0": "local-lvm:vm-9000-disk-3",
	}
	if diff := cmp.Diff(want, config.DiskVolumes()); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(proxmox.StorageID("local-lvm"), vmconfig.Storage(want["scsi0"])); diff != "" {
		t.Errorf("storage (-want +got):\n%s", diff)
	}
}

func TestTheDriveOfTheSeed(t *testing.T) {
	const disk = "local-lvm:vm-101-disk-0,size=3G"
	seed := string(vmconfig.SeedVolume("local", uuid)) + ",media=cdrom,size=374K"
	cases := []struct {
		name   string
		config vmconfig.Config
		want   string
	}{
		{"is ide2 where it is free", vmconfig.Config{"scsi0": disk}, "ide2"},
		{"is the one that has the seed", vmconfig.Config{"ide2": "none,media=cdrom", "sata5": seed}, "sata5"},
		{"is that of PVE's cloud-init, which it replaces", vmconfig.Config{"scsi0": disk, "scsi1": "local-lvm:vm-101-cloudinit,media=cdrom,size=4M"}, "scsi1"},
		{"is an empty CD-ROM drive", vmconfig.Config{"ide2": "none,media=cdrom"}, "ide2"},
		{"is ide0 where ide2 is taken", vmconfig.Config{"ide2": "local:iso/debian.iso,media=cdrom"}, "ide0"},
		{"is sata5 where both are taken", vmconfig.Config{"ide2": disk, "ide0": disk}, "sata5"},
		{"is ide2 on q35, which has it", vmconfig.Config{"machine": "q35", "scsi0": disk}, "ide2"},
		{"is a SCSI drive on aarch64, which has no IDE", vmconfig.Config{"arch": "aarch64", "scsi0": disk}, "scsi30"},
		{"is a SCSI drive where all else is taken", vmconfig.Config{"ide2": disk, "ide0": disk, "sata5": disk}, "scsi30"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, seedDrive(c.config, "")); diff != "" {
				t.Errorf("drive (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEjectingTheSeedLeavesAnEmptyDrive(t *testing.T) {
	config := vmconfig.Config{
		"scsi0": "local:900/vm-900-disk-0.qcow2,size=2G", "ide3": "local:iso/debian.iso,media=cdrom,size=600M",
		"ide2": string(vmconfig.SeedVolume("local", uuid)) + ",media=cdrom,size=40K", "boot": "order=scsi0;ide2",
	}
	change := vmconfig.Eject(config)
	if diff := cmp.Diff(vmconfig.Change{Set: map[string]string{"ide2": "none,media=cdrom"}}, change); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	after := change.Apply(config)
	if diff := cmp.Diff([]bool{true, false}, []bool{vmconfig.HasSeed(config), vmconfig.HasSeed(after)}); diff != "" {
		t.Errorf("has a seed before and after (-want +got):\n%s", diff)
	}
	if !vmconfig.Eject(after).Empty() {
		t.Error("there is something to eject from an empty drive")
	}
}

func TestOnlyASeedOfOursIsASeed(t *testing.T) {
	for _, drive := range []string{"local:iso/debian.iso,media=cdrom", "local:iso/w1-seed.iso,media=cdrom", "local:900/vm-900-cloudinit.qcow2,media=cdrom", "none,media=cdrom", ""} {
		t.Run(drive, func(t *testing.T) {
			if vmconfig.HasSeed(vmconfig.Config{"ide2": drive}) {
				t.Errorf("took %q for a seed", drive)
			}
		})
	}
}

func TestWhoseDiskAnImageIs(t *testing.T) {
	for volume, want := range map[proxmox.VolumeID]proxmox.VMID{
		"local-lvm:vm-101-disk-0": 101, "lvm:base-9000-disk-1": 9000, "nfs:9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2": 101, "rbd:base-9000-disk-0/vm-102-disk-0": 102,
		"local:import/debian.qcow2": 0, "local:import/vm.qcow2": 0, "lvm:vm-x-disk-0": 0, "lvm:subvol-101-disk-0": 0, "": 0, "lvm:vm-99999999999-disk-0": 0,
	} {
		if got := vmconfig.Owner(volume); got != want {
			t.Errorf("%s: %d, want %d", volume, got, want)
		}
	}
	config := vmconfig.Config{"scsi0": "lvm:vm-101-disk-0,size=3G", "unused3": "lvm:vm-101-disk-1", "description": "lvm:vm-101-disk-2", "ide2": "none,media=cdrom"}
	for volume, want := range map[proxmox.VolumeID]bool{"lvm:vm-101-disk-0": true, "lvm:vm-101-disk-1": true, "lvm:vm-101-disk-2": false} {
		if got := config.Names(volume); got != want {
			t.Errorf("names %s: %t", volume, got)
		}
	}
}
