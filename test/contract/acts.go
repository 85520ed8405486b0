package contract

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// act is something that the recorder did and that is no exchange: it is told in a note or in the setup's text.
type act struct {
	scenario string
	// version for which it counts; empty for all.
	version string
	// before is the Seq of the exchange that comes next; zero means that the act comes before all.
	before int
	// wait lets time pass before anything else.
	wait time.Duration
	// do is done at the host. A target that is not simulated cannot have it.
	do func(*stage)
	// calls are requests that were not recorded. Their tasks are waited for.
	calls []Exchange
}

// stage is what acts work on.
type stage struct {
	*pvesim.World
	// upids are those of the target, by the Seq of the call that started the task.
	upids map[int]proxmox.UPID
	// undo takes back what lasts from one act to another.
	undo func()
}

func put(path, params string) Exchange {
	return Exchange{As: "root-token", Method: "PUT", Path: path, Params: []byte(params)}
}

// asRoot is for what no token may.
func asRoot(path, params string) Exchange {
	return Exchange{As: "root-ticket", Method: "PUT", Path: path, Params: []byte(params)}
}

func post(path, params string) Exchange {
	return Exchange{As: "root-token", Method: "POST", Path: path, Params: []byte(params)}
}

// quiet is longer than corosync and pvestatd need to tell what has become of a node.
const quiet = 60 * time.Second

var acts = []act{
	// «outside the range», «range exhausted (VMs 500..503 were created meanwhile)», «default range again»
	{scenario: "01-cluster-read", before: 62, calls: []Exchange{put("/cluster/options", `{"next-id":"lower=500,upper=503"}`)}},
	{scenario: "01-cluster-read", before: 63, calls: []Exchange{
		post("/nodes/pve1/qemu", `{"vmid":500}`), post("/nodes/pve1/qemu", `{"vmid":501}`),
		post("/nodes/pve1/qemu", `{"vmid":502}`), post("/nodes/pve1/qemu", `{"vmid":503}`),
	}},
	{scenario: "01-cluster-read", before: 64, calls: []Exchange{put("/cluster/options", `{"delete":"next-id"}`)}},
	// «after root set lock=backup on 111», which could be deleted later
	{scenario: "01b-resources-life", before: 33, calls: []Exchange{asRoot("/nodes/pve1/qemu/111/config", `{"lock":"backup"}`)}},
	{scenario: "01b-resources-life", before: 35, calls: []Exchange{asRoot("/nodes/pve1/qemu/111/config", `{"delete":"lock","skiplock":1}`)}},
	// «the disk file of VM 409 was removed by hand»; 811's as well: the setup of 8.4 lists all volumes but it
	{scenario: "04a-template-clone", do: func(s *stage) { s.RemoveFile("pve1", "local:409/vm-409-disk-0.qcow2") }},
	{scenario: "04b-clone-phases", do: func(s *stage) { s.RemoveFile("pve1", "local:409/vm-409-disk-0.qcow2") }},
	{scenario: "08-power", do: func(s *stage) { s.RemoveFile("pve1", "local:811/vm-811-disk-0.qcow2") }},
	// «waits for the file lock 10 s», «the start request had waited for the clone»: 15 s lie between the UPIDs of 23 and 28
	{scenario: "04b-clone-phases", before: 23, wait: 10 * time.Second},
	{scenario: "04b-clone-phases", before: 27, wait: 15 * time.Second},
	// «abort the clone», which had gone half its way
	{scenario: "04b-clone-phases", before: 32, wait: 8 * time.Second},
	// «the worker process was killed (like a reboot of the node in the middle of a clone)»
	{scenario: "04b-clone-phases", before: 39, wait: 3 * time.Second},
	{scenario: "04b-clone-phases", before: 39, do: func(s *stage) { s.KillWorker(s.upids[38]) }},
	// «another process holds the VM file lock», «free again»
	{scenario: "05-config", before: 323, do: func(s *stage) { s.undo = s.HoldLock(502) }},
	{scenario: "05-config", before: 327, do: func(s *stage) { s.undo(); s.undo = nil }},
	// «HA migrate request of a stopped VM», which the request of 77 had stopped meanwhile
	{scenario: "11-pools-ha-mapping", before: 83, wait: quiet},
	// 811 could be deleted at the end, and so was not running: its start had failed, as the setup's list lacks its disk
	{scenario: "08-power", before: 1, do: func(s *stage) { s.RemoveFile("pve1", "local:811/vm-811-disk-0.qcow2") }},
	// the recorder waited until the guest agent answered
	{scenario: "09-agent", before: 45, wait: 2 * time.Minute},
	{scenario: "09-agent", before: 64, wait: 10 * time.Second},
	// pve2's and pve3's VMs run though the setup says that they are stopped: what started them was not recorded
	{scenario: "13-trouble", before: 18, calls: []Exchange{post("/nodes/pve2/qemu/1301/status/start", "")}, wait: 35 * time.Second},
	{scenario: "13-trouble", before: 18, calls: []Exchange{post("/nodes/pve3/qemu/1302/status/start", "")}},
	{scenario: "13-trouble", version: "9.2", before: 18, wait: settling},
	// «pve3 offline», «no quorum», «all back», «pvedaemon workers of pve3 frozen», «after thawing»
	{scenario: "13-trouble", before: 18, do: func(s *stage) { s.CutLink("pve3") }, wait: quiet},
	{scenario: "13-trouble", before: 42, do: func(s *stage) { s.CutLink("pve1") }, wait: quiet},
	{scenario: "13-trouble", before: 71, do: func(s *stage) { s.MendLink("pve1"); s.MendLink("pve3") }, wait: quiet},
	{scenario: "13-trouble", before: 79, do: func(s *stage) { s.FreezeDaemon("pve3", pvesim.PVEDaemon) }},
	{scenario: "13-trouble", before: 80, do: func(s *stage) { s.ThawDaemon("pve3", pvesim.PVEDaemon) }},
	// «pveproxy stopped on pve3», «pvedaemon stopped on pve2»
	{scenario: "13b-daemons-down", before: 1, do: func(s *stage) { s.StopDaemon("pve3", pvesim.PVEProxy) }},
	{scenario: "13b-daemons-down", before: 21, do: func(s *stage) { s.StartDaemon("pve3", pvesim.PVEProxy) }},
	{scenario: "13b-daemons-down", before: 22, do: func(s *stage) { s.StopDaemon("pve2", pvesim.PVEDaemon) }},
	{scenario: "13b-daemons-down", before: 36, do: func(s *stage) { s.StartDaemon("pve2", pvesim.PVEDaemon) }},
	// «before this call VM 1400 was migrated back from pve2 to pve1 (that call is not recorded)»
	{scenario: "14-migration", before: 15, calls: []Exchange{post("/nodes/pve2/qemu/1400/migrate", `{"target":"pve1"}`)}},
	// «bridge vnet1 made by hand on pve1»
	{scenario: "15-sdn", before: 42, do: func(s *stage) { s.AddBridge("pve1", "vnet1") }},
	// the recorded hosts have an UUID module for Perl that is too old for PVE 9: no lock could be taken
	{scenario: "15-sdn", version: "9.2", before: 74, do: func(s *stage) { s.undo = missingUUID(s.World) }},
}

// missingUUID lets requests for the lock of the network fail as they do when Perl's module UUID has no generate_v7.
func missingUUID(w *pvesim.World) (undo func()) {
	const reason = "could not acquire lock for SDN config: Undefined subroutine &UUID::generate_v7 called at /usr/share/perl5/PVE/Network/SDN.pm line 262."
	if err := w.AddFault(pvesim.Fault{Method: "POST", Path: "/cluster/sdn/lock", Status: 500, Reason: reason}); err != nil {
		return func() {}
	}
	return w.ClearFaults
}
