package sandbox_test

// wantedConfig is the config of the VM that has everything: a regular expression for each part of a key's value, in which VMID,
// IDENTITY and MACHINE are the machine's. The order of parts means nothing. There are no other keys.
func wantedConfig() map[string]string {
	const disk, mac = `shared:VMID/vm-VMID-disk-\d+`, `(:[0-9A-F]{2})`
	return map[string]string{
		// Identity.
		"name":        `everything-vm-MACHINE`,
		"description": `Cluster API machine MACHINE, managed by CAPVE\.\n\nCAPVE-UUID: IDENTITY\n\nMade \*\*for\*\* team A\.`,
		"tags":        `capve-IDENTITY;k8s\.1;kubernetes;prod;ubuntu`,
		"smbios1":     `uuid=IDENTITY`,
		"vmgenid":     `[0-9a-f-]{36}`,
		"meta":        `creation-qemu=[0-9.]+,ctime=\d+`,
		// Processor and memory.
		"sockets": `2`, "cores": `2`, "vcpus": `3`, "cpu": `x86-64-v3,flags=\+aes;-pcid`, "cpuunits": `200`, "cpulimit": `2\.5`,
		"memory": `4096`, "balloon": `4096`, "numa": `0`,
		// Hardware.
		"machine": `q35`, "bios": `ovmf`, "scsihw": `virtio-scsi-single`, "vga": `virtio,memory=64`, "serial0": `socket`, "serial1": `socket`,
		"efidisk0":  disk + `\.raw,efitype=4m,pre-enrolled-keys=1,size=528K`,
		"tpmstate0": disk + `\.raw,size=4M,version=v2\.0`,
		"rng0":      `/dev/urandom,max_bytes=2048,period=500`,
		"watchdog":  `i6300esb,action=reset`,
		"hostpci0":  `mapping=gpu,pcie=1,rombar=0`,
		"usb0":      `mapping=stick,usb3=1`,
		// Options.
		"ostype": `l26`, "onboot": `1`, "startup": `3,up=10,down=60`, "protection": `1`, "tablet": `0`, "hotplug": `network,disk,usb,cpu`,
		"agent": `1,fstrim_cloned_disks=1,freeze-fs-on-backup=0`, // virtio is the default
		// Disks.
		"boot": `order=scsi0;scsi30`, // Proxmox VE adds each CD-ROM drive at the end
		"scsi0": disk + `\.qcow2,size=25G,cache=directsync,aio=native,discard=on,ssd=1,iothread=1,backup=0,replicate=0,serial=root,` +
			`mbps_rd=200,mbps_rd_max=400,mbps_wr=100,mbps_wr_max=200,iops_rd=2000,iops_rd_max=4000,iops_wr=1000,iops_wr_max=2000`,
		"scsi1": disk + `\.qcow2,size=10G,cache=directsync,aio=threads,discard=on,ssd=1,iothread=1,backup=0,replicate=0,serial=etcd,` +
			`mbps_rd=100,mbps_rd_max=150,mbps_wr=50,mbps_wr_max=75,iops_rd=1000,iops_rd_max=1500,iops_wr=500,iops_wr_max=750`,
		"virtio0": disk + `\.raw,size=5G,ro=1,serial=data`,
		"sata1":   disk + `\.raw,size=1G,cache=writeback,serial=scratch`,
		"scsi30":  `none,media=cdrom`,
		// Networks.
		"net0": `virtio=BC:24:11` + mac + `{3},bridge=vmbr0,tag=20,mtu=1450,rate=11\.92\d*,queues=3,firewall=1`,
		"net1": `virtio=[0-9A-F]{2}` + mac + `{5},bridge=vmbr1,mtu=1,queues=2,firewall=0`,
		"net2": `virtio=BC:24:12:AB` + mac + `{2},bridge=vmbr0,trunks=5;7-9,firewall=1`,
		"net3": `e1000=[0-9A-F]{2}` + mac + `{5},bridge=vmbr1,firewall=0,link_down=1`,
		// Words of Proxmox VE's own.
		"keyboard": `de`, "localtime": `1`,
	}
}

// wantedOfSecond are the keys of the VM made from a snapshot that the others do not have: as in wantedConfig.
func wantedOfSecond() map[string]string {
	return map[string]string{
		"scsi0": `shared:VMID/vm-VMID-disk-\d+\.qcow2,size=10G`, "hostpci0": `mapping=vgpu,mdev=nvidia-63,x-vga=1`, "vga": `none`,
		"net0": `virtio=BC:24:11:0E:0E:01,bridge=vmbr0`, "smbios1": `uuid=IDENTITY`, "balloon": `2048`,
	}
}

// wantedOfThird are those of the VM made from an image.
func wantedOfThird() map[string]string {
	return map[string]string{
		"virtio0": `shared:VMID/vm-VMID-disk-\d+\.raw,size=10G,ro=0`, "boot": `order=virtio0.*`, "smbios1": `uuid=IDENTITY`, "agent": `1`,
	}
}
