package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const gib = proxmox.Bytes(1 << 30)

// host is a node of the region "home" that takes any modest VM, changed as a case needs it.
func host(node proxmox.NodeName, changes ...func(*placement.Host)) placement.Host {
	host := placement.Host{
		Region: "home", Node: node, FailureDomain: string(node), ControlPlane: true, Online: true,
		CPUs: 16, Memory: 64 * gib, Template: placement.Template{Node: node, ID: 9000},
		Storages: []placement.Storage{{ID: "local", ISO: true}, {ID: "local-lvm", Images: true}},
	}
	for _, change := range changes {
		change(&host)
	}
	return host
}

// vm is a request of 2 CPUs and 4 GiB, changed as a case needs it.
func vm(changes ...func(*placement.Request)) placement.Request {
	request := placement.Request{CPUs: 2, Memory: 4 * gib}
	for _, change := range changes {
		change(&request)
	}
	return request
}

func allocated(size proxmox.Bytes) func(*placement.Host) {
	return func(h *placement.Host) { h.Allocated = size }
}

func group(machines int) func(*placement.Host) {
	return func(h *placement.Host) { h.Group = machines }
}

func storages(storages ...placement.Storage) func(*placement.Host) {
	return func(h *placement.Host) { h.Storages = storages }
}

func TestAHostIsRefusedWithTheFirstReasonThereIs(t *testing.T) {
	cases := []struct {
		name    string
		request placement.Request
		host    placement.Host
		want    string
	}{
		{
			"it is in no zone", vm(), host("pve1", func(h *placement.Host) { h.FailureDomain = "" }),
			"in no zone of the ProxmoxCluster",
		},
		{
			"it is in another failure domain", vm(func(r *placement.Request) { r.FailureDomain = "rack2" }),
			host("pve1", func(h *placement.Host) { h.FailureDomain = "rack1" }),
			"in failure domain rack1, not rack2",
		},
		{
			"its zone is not for control planes", vm(func(r *placement.Request) { r.ControlPlane = true }),
			host("pve1", func(h *placement.Host) { h.FailureDomain, h.ControlPlane = "rack1", false }),
			"failure domain rack1 is not for control planes",
		},
		{
			"it is not among the allowed nodes", vm(func(r *placement.Request) { r.AllowedNodes = []proxmox.NodeName{"pve2", "pve3"} }),
			host("pve1"), "not in placement.allowedNodes",
		},
		{"it is offline", vm(), host("pve1", func(h *placement.Host) { h.Online = false }), "offline"},
		{
			"it has too few CPUs", vm(func(r *placement.Request) { r.CPUs = 32 }), host("pve1"),
			"has 16 CPUs, the VM asks for 32",
		},
		{
			"it has too little memory free", vm(), host("pve1", allocated(63*gib)),
			"1024 MiB of memory free of 4096 asked",
		},
		{
			"it is one byte short of memory", vm(), host("pve1", allocated(60*gib+1)),
			"4095 MiB of memory free of 4096 asked",
		},
		{
			"its guests may use more memory than it has", vm(), host("pve1", allocated(100*gib)),
			"0 MiB of memory free of 4096 asked",
		},
		{
			"no template reaches it", vm(),
			host("pve1", func(h *placement.Host) {
				h.Template, h.SourceRefusal = placement.Template{}, `no template "ubuntu" on local storage`
			}),
			`no template "ubuntu" on local storage`,
		},
		{
			"no template reaches it and nobody said why", vm(),
			host("pve1", func(h *placement.Host) { h.Template = placement.Template{} }),
			"no template",
		},
		{
			"it lacks the storage for the disks", vm(func(r *placement.Request) { r.DiskStorages = []proxmox.StorageID{"local-lvm", "ceph"} }), host("pve1"),
			"storage ceph is not there, cannot be seen (Datastore.Audit) or does not take images",
		},
		{
			"the storage for the disks takes no images", vm(func(r *placement.Request) { r.DiskStorages = []proxmox.StorageID{"local"} }), host("pve1"),
			"storage local is not there, cannot be seen (Datastore.Audit) or does not take images",
		},
		{
			"the storage for a disk has not its format", vm(func(r *placement.Request) {
				r.DiskFormats = []placement.FormatNeed{{Field: "disks.additional[scsi1].format", Storage: "local-lvm", Format: "raw"}, {Field: "disks.boot.format", Storage: "local-lvm", Format: "qcow2"}}
			}), host("pve1", func(h *placement.Host) {
				for i := range h.Storages {
					h.Storages[i].Type = map[proxmox.StorageID]string{"local-lvm": "lvmthin"}[h.Storages[i].ID]
				}
			}),
			"storage local-lvm is of type lvmthin, which keeps disks as raw alone and not as qcow2, which disks.boot.format names: leave the format out, or name another storage",
		},
		{
			"the storage for the seed takes no ISO images", vm(func(r *placement.Request) { r.SeedStorage = "local-lvm" }), host("pve1"),
			"storage local-lvm is not there, cannot be seen (Datastore.Audit) or does not take ISO images: set bootstrap.storage to one that does",
		},
		{
			"no storage takes ISO images", vm(), host("pve1", storages(placement.Storage{ID: "local-lvm", Images: true})),
			"no storage takes ISO images: add the content type iso to one, and let the token see it (Datastore.Audit)",
		},
		{
			"its size is not shown", vm(), host("pve1", func(h *placement.Host) { h.CPUs, h.Memory = 0, 0 }),
			"its size cannot be seen: grant Sys.Audit on /nodes/pve1 to the token, and to its user, of the region's credentials",
		},
		{
			"it is offline and too small", vm(func(r *placement.Request) { r.CPUs = 32 }),
			host("pve1", func(h *placement.Host) { h.Online = false }), "offline",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, refusals, found := placement.Place(c.request, []placement.Host{c.host})
			if found {
				t.Error("the host was chosen")
			}
			if diff := cmp.Diff(placement.Refusals{{Host: "pve1", Reason: c.want}}, refusals); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHostThatIsChosen(t *testing.T) {
	cases := []struct {
		name    string
		request placement.Request
		hosts   []placement.Host
		want    proxmox.NodeName
	}{
		{
			"has the fewest machines of the group", vm(),
			[]placement.Host{host("pve1", group(2)), host("pve2", group(1), allocated(50*gib)), host("pve3", group(2))},
			"pve2",
		},
		{
			"among those with equally few, has the most memory free", vm(),
			[]placement.Host{host("pve1", allocated(9*gib)), host("pve2", allocated(8*gib)), host("pve3", allocated(10*gib))},
			"pve2",
		},
		{
			"among equals, has the lowest name", vm(),
			[]placement.Host{host("pve3"), host("pve1"), host("pve2")},
			"pve1",
		},
		{
			"may be filled to the last byte", vm(),
			[]placement.Host{host("pve1", allocated(60*gib)), host("pve2", allocated(60*gib+1))},
			"pve1",
		},
		{
			"may have exactly the CPUs asked for", vm(func(r *placement.Request) { r.CPUs = 16 }),
			[]placement.Host{host("pve1")},
			"pve1",
		},
		{
			"is in the failure domain asked for, even if that is not for control planes",
			vm(func(r *placement.Request) { r.ControlPlane, r.FailureDomain = true, "pve2" }),
			[]placement.Host{host("pve1"), host("pve2", func(h *placement.Host) { h.ControlPlane = false })},
			"pve2",
		},
		{
			"is in a zone for control planes when none is asked for", vm(func(r *placement.Request) { r.ControlPlane = true }),
			[]placement.Host{host("pve1", func(h *placement.Host) { h.ControlPlane = false }), host("pve2", group(3))},
			"pve2",
		},
		{
			"is an allowed one", vm(func(r *placement.Request) { r.AllowedNodes = []proxmox.NodeName{"pve3"} }),
			[]placement.Host{host("pve1"), host("pve2"), host("pve3", group(5))},
			"pve3",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			choice, refusals, found := placement.Place(c.request, c.hosts)
			if !found {
				t.Fatalf("no host was chosen: %s", refusals)
			}
			if diff := cmp.Diff(c.want, choice.Host.Node); diff != "" {
				t.Errorf("host (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSeedGoesTo(t *testing.T) {
	local := placement.Storage{ID: "local", ISO: true}
	nfs := placement.Storage{ID: "a-nfs", Shared: true, ISO: true}
	disks := placement.Storage{ID: "a-lvm", Images: true}
	cases := []struct {
		name     string
		asked    proxmox.StorageID
		storages []placement.Storage
		want     proxmox.StorageID
	}{
		{"a local storage before a shared one", "", []placement.Storage{nfs, disks, local}, "local"},
		{"the first local storage by name", "", []placement.Storage{local, {ID: "iso2", ISO: true}, nfs}, "iso2"},
		{"a shared storage where no local one takes ISO images", "", []placement.Storage{disks, {ID: "b-nfs", Shared: true, ISO: true}, nfs}, "a-nfs"},
		{"the storage that is asked for", "a-nfs", []placement.Storage{local, nfs}, "a-nfs"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := vm(func(r *placement.Request) { r.SeedStorage = c.asked })
			choice, _, _ := placement.Place(request, []placement.Host{host("pve1", storages(c.storages...))})
			if diff := cmp.Diff(c.want, choice.SeedStorage); diff != "" {
				t.Errorf("seed storage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusalsReadAsASentence(t *testing.T) {
	offline := func(h *placement.Host) { h.Online = false }
	cases := []struct {
		name  string
		hosts []placement.Host
		want  string
	}{
		{"no host is known", nil, "no hosts known: the Proxmox VE clusters of the regions show none to these credentials"},
		{"one host is refused", []placement.Host{host("pve1", offline)}, "1 host refused: pve1: offline"},
		{
			"several hosts are refused, named in order",
			[]placement.Host{host("pve2", offline), host("pve1", allocated(64*gib))},
			"2 hosts refused: pve1: 0 MiB of memory free of 4096 asked; pve2: offline",
		},
		{
			"hosts with the same reason are named together",
			[]placement.Host{host("pve3", offline), host("pve2", allocated(64*gib)), host("pve1", offline)},
			"3 hosts refused: pve1, pve3: offline; pve2: 0 MiB of memory free of 4096 asked",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, refusals, _ := placement.Place(vm(), c.hosts)
			if diff := cmp.Diff(c.want, refusals.String()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHostsThatWerePassedOverAreNamedBesideTheChoice(t *testing.T) {
	hosts := []placement.Host{host("pve1", func(h *placement.Host) { h.Online = false }), host("pve2")}
	_, refusals, found := placement.Place(vm(), hosts)
	if !found {
		t.Fatal("no host was chosen")
	}
	if diff := cmp.Diff(placement.Refusals{{Host: "pve1", Reason: "offline"}}, refusals); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}

func TestAHostWhereACloneFailedIsTakenOnlyWhenNoOtherFits(t *testing.T) {
	trouble := func(h *placement.Host) { h.CloneFailure = "a VM could not be made here 40 s ago: no space left" }
	choice, refusals, _ := placement.Place(vm(), []placement.Host{host("pve1", trouble), host("pve2", group(5))})
	if choice.Host.Node != "pve2" || refusals.String() != "1 host refused: pve1: a VM could not be made here 40 s ago: no space left" {
		t.Errorf("chose %s, %s", choice.Host.Node, refusals)
	}
	choice, refusals, _ = placement.Place(vm(), []placement.Host{host("pve1", trouble), host("pve2", allocated(64*gib))})
	if choice.Host.Node != "pve1" || refusals.String() != "1 host refused: pve2: 0 MiB of memory free of 4096 asked" {
		t.Errorf("chose %s, %s", choice.Host.Node, refusals)
	}
}
