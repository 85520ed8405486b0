package contract

import (
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// fact is something about the start of a scenario that the setup tells only in its text.
type fact struct {
	scenario string
	apply    func(*pvesim.State)
}

var facts = []fact{
	// «106 on pve2 in pool capi»
	{"01-cluster-read", inPool("capi", 106)},
	{"01b-resources-life", inPool("capi", 106)},
	// «pool pa holds 201»
	{"02-auth", inPool("pa", 201)},
	// «shared:import/small.qcow2 is an empty qcow2 of 64 MiB»
	{"03-create", func(s *pvesim.State) {
		addVolume(s, pvesim.VolumeSpec{ID: "shared:import/small.qcow2", Content: "import", Format: "qcow2", Size: 64 << 20})
	}},
	// status says so
	{"13-trouble", haWasUsed},
	{"13b-daemons-down", haWasUsed},
	{"11-pools-ha-mapping", func(s *pvesim.State) { s.HA.Master = "pve2" }},
	// what earlier uploads left: answers show it
	{"02b-privileges", file("local:iso/seed.iso", 40960)},
	{"02b-privileges", file("local:vztmpl/c.tar.gz", 40960)},
	{"07-upload-iso", file("local:vztmpl/c.tar.gz", 36774)},
	// «storage small is a 12 MiB file system on pve1 only»
	{"04a-template-clone", smallStorage},
	{"04b-clone-phases", smallStorage},
	// «target storage full: 40 MB into a 12 MiB file system», and 15.6 s for a clone at 2500 KiB/s: the disk is full of data
	{"04a-template-clone", filled("local:403/vm-403-disk-0.qcow2", 403)},
	{"04b-clone-phases", filled("local:403/vm-403-disk-0.qcow2", 403)},
	{"12-tasks", filled("local:1200/vm-1200-disk-0.qcow2", 1200)},
	// the recorder's web server had one file, of 40,000 zero bytes by its sha256
	{"07-upload-iso", func(s *pvesim.State) {
		s.Downloads = []pvesim.DownloadSpec{{URL: "http://127.0.0.1:8099/q.iso", Data: make([]byte, 40000)}}
	}},
	// what 04a left: its clone of template 400 into the pool
	{"04b-clone-phases", inPool("capi", 413)},
	// what an earlier recording left: the firewall file of a VM that is gone
	{"10-firewall", func(s *pvesim.State) {
		s.StrayFirewalls = map[proxmox.VMID]pvesim.FirewallSpec{1099: {Options: map[string]string{"enable": "1"}}}
	}},
	// «each node says it needs ifupdown2»; the network had been put in force before
	{"15-sdn", func(s *pvesim.State) {
		s.SDN.Version = 5
		for i := range s.Nodes {
			s.Nodes[i].NoIfupdown2 = true
		}
	}},
}

// haWasUsed tells that the HA manager had been at work in an earlier recording: it knows the hosts.
func haWasUsed(s *pvesim.State) { s.HA.Master = "pve2" }

func inPool(pool proxmox.PoolID, vmid proxmox.VMID) func(*pvesim.State) {
	return func(s *pvesim.State) {
		for i := range s.VMs {
			if s.VMs[i].VMID == vmid {
				s.VMs[i].Pool = pool
			}
		}
	}
}

// filled gives a VM of pve1 a volume of 40 MiB that takes all of them.
func filled(id proxmox.VolumeID, vmid proxmox.VMID) func(*pvesim.State) {
	return func(s *pvesim.State) {
		addVolume(s, pvesim.VolumeSpec{ID: id, Node: "pve1", Content: "images", Format: "qcow2", VMID: vmid, Size: 40 << 20, Used: 40 << 20})
	}
}

// file is a file on a storage of pve1.
func file(id proxmox.VolumeID, size proxmox.Bytes) func(*pvesim.State) {
	return func(s *pvesim.State) {
		addVolume(s, pvesim.VolumeSpec{ID: id, Node: "pve1", Size: size})
	}
}

// addVolume adds a volume, or changes the one that the setup names.
func addVolume(s *pvesim.State, v pvesim.VolumeSpec) {
	for i := range s.Volumes {
		if s.Volumes[i].ID == v.ID && s.Volumes[i].Node == v.Node {
			s.Volumes[i] = v
			return
		}
	}
	s.Volumes = append(s.Volumes, v)
}

func smallStorage(s *pvesim.State) {
	for i := range s.Storages {
		if s.Storages[i].ID == "small" {
			s.Storages[i].Total = 12 << 20
		}
	}
}

// StateOf is the start of a recording as a world of pvesim.
func StateOf(r *Recording) pvesim.State {
	state := r.Setup.State()
	for _, f := range facts {
		if f.scenario == r.Scenario {
			f.apply(&state)
		}
	}
	return state
}
