package vmconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// seedDrive is the drive that the seed goes into; "none" when there is none.
func seedDrive(config vmconfig.Config, bus v1beta1.SeedBus, names ...string) string {
	d := desired()
	d.Spec.Bootstrap.Bus = bus
	for _, name := range names {
		d.Spec.Disks.Additional = append(d.Spec.Disks.Additional, v1beta1.AdditionalDisk{Name: name, Storage: "local-lvm", SizeGiB: 1})
	}
	if drive, found := d.SeedDrive(config); found {
		return drive
	}
	return "none"
}

func TestTheBusOfTheSeed(t *testing.T) {
	cloudInit := vmconfig.Config{"ide2": "local-lvm:vm-101-cloudinit,media=cdrom,size=4M"}
	cases := []struct {
		name   string
		config vmconfig.Config
		bus    v1beta1.SeedBus
		disks  []string
		want   string
	}{
		{"ide", nil, "ide", nil, "ide2"},
		{"ide on q35 has two drives", vmconfig.Config{"machine": "pc-q35-9.0"}, "ide", []string{"ide2"}, "ide0"},
		{"ide on q35 is full", vmconfig.Config{"machine": "q35"}, "ide", []string{"ide0", "ide2"}, "none"},
		{"ide on pc has four drives", nil, "ide", []string{"ide0", "ide2"}, "ide3"},
		{"ide on aarch64 is not there", vmconfig.Config{"arch": "aarch64"}, "ide", nil, "none"},
		{"ide on virt is not there", vmconfig.Config{"machine": "virt"}, "ide", nil, "none"},
		{"sata", nil, "sata", nil, "sata5"},
		{"sata beside a disk", nil, "sata", []string{"sata5"}, "sata4"},
		{"sata is full", nil, "sata", []string{"sata0", "sata1", "sata2", "sata3", "sata4", "sata5"}, "none"},
		{"scsi", nil, "scsi", nil, "scsi30"},
		{"scsi leaves a cloud-init drive on ide, which goes", cloudInit, "scsi", nil, "scsi30"},
		{"any takes the cloud-init drive", cloudInit, "", nil, "ide2"},
		{"any leaves a drive that a disk is to have", cloudInit, "", []string{"ide2"}, "ide0"},
		{"a seed that is in a drive stays there", vmconfig.Config{"sata5": string(vmconfig.SeedVolume("local", uuid)) + ",media=cdrom"}, "scsi", nil, "sata5"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, seedDrive(c.config, c.bus, c.disks...)); diff != "" {
				t.Errorf("drive (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACloudInitDriveOnAnotherBusGoes(t *testing.T) {
	d := desired(func(d *vmconfig.Desired) { d.Spec.Bootstrap.Bus = "scsi" })
	change := vmconfig.Diff(d, clone())
	if diff := cmp.Diff([]string{"delete", string(d.Seed) + ",media=cdrom"}, []string{fate(change, "ide2"), fate(change, "scsi30")}); diff != "" {
		t.Errorf("ide2 and scsi30 (-want +got):\n%s", diff)
	}
}
