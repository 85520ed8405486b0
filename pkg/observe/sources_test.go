package observe

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// answers are what a Proxmox VE of three hosts says, by path and query; what is not there is a 500.
type answers map[string]any

// opened is a Proxmox VE that gives the answers, besides its resources, and counts what else it is asked.
func opened(t *testing.T, resources []map[string]any, given answers) (*pve.Cluster, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		data, found := any(resources), true
		if path := strings.TrimPrefix(in.URL.RequestURI(), "/api2/json"); !strings.HasPrefix(path, "/cluster/resources") {
			asked.Add(1)
			data, found = given[path]
		}
		if !found {
			http.Error(out, `{"data":null,"message":"it does not exist\n"}`, http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	cluster, err := pve.Open(pve.Config{
		Region: "home", Endpoints: []string{server.URL}, Credentials: pve.TokenCredentials{ID: "a@pam!b", Secret: "c"},
		TLS: pve.TLSConfig{Fingerprints: []string{fmt.Sprintf("%x", sha256.Sum256(server.Certificate().Raw))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Inventory.Refresh(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	return cluster, asked
}

// sight looks at a Proxmox VE that is opened.
func sight(t *testing.T, resources []map[string]any, given answers) (*regionSight, *atomic.Int32) {
	t.Helper()
	cluster, asked := opened(t, resources, given)
	memory, clock := newTestMemory()
	return &regionSight{
		Observer: &Observer{Memory: memory, Clock: clock}, id: "pve", pve: cluster, snapshot: cluster.Inventory.Snapshot(),
		subject: MachineSubject{ProxmoxMachine: &v1beta1.ProxmoxMachine{}},
		entries: map[types.NamespacedName]Entry{{Name: "m1"}: {PVE: "pve", VMID: 105}, {Name: "elsewhere"}: {PVE: "other", VMID: 9001}},
	}, asked
}

// hosts are pve1, pve2 and pve3, each with local storages and a shared one, which pve3 lacks.
func hosts(guests ...map[string]any) []map[string]any {
	entries := guests
	for _, node := range []string{"pve1", "pve2", "pve3"} {
		entries = append(entries,
			map[string]any{"type": "node", "node": node, "status": "online"},
			map[string]any{"type": "storage", "node": node, "storage": "lvm", "status": "available", "content": "images"},
			map[string]any{"type": "storage", "node": node, "storage": "local", "status": "available", "content": "iso,import"},
			map[string]any{"type": "storage", "node": node, "storage": "isos", "status": "available", "content": "iso", "shared": 1})
		if node != "pve3" {
			entries = append(entries, map[string]any{"type": "storage", "node": node, "storage": "nfs", "status": "available", "content": "images,import", "shared": 1})
		}
	}
	return entries
}

func guest(id int, node, name, tags string, template int) map[string]any {
	return map[string]any{"type": "qemu", "node": node, "vmid": id, "name": name, "tags": tags, "template": template}
}

// choices are what a machine would be made from on each host: a template, or why not.
func choices(t *testing.T, s *regionSight, source v1beta1.VirtualMachineSource) map[proxmox.NodeName]string {
	t.Helper()
	s.subject.ProxmoxMachine.Spec.Source = source
	finder, err := s.sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[proxmox.NodeName]string{}
	for _, node := range []proxmox.NodeName{"pve1", "pve2", "pve3"} {
		template, refusal := finder.on(node)
		if found[node] = refusal; template != (placement.Template{}) {
			found[node] += fmt.Sprintf("%d on %s", template.ID, template.Node)
		}
	}
	return found
}

func TestWhichTemplateIsCloned(t *testing.T) {
	guests := []map[string]any{
		guest(9001, "pve1", "ubuntu", "k8s;ubuntu", 1), guest(9002, "pve1", "old", "k8s;ubuntu;old", 1),
		guest(9101, "pve2", "ubuntu", "k8s;one", 1), guest(9102, "pve2", "ubuntu", "k8s;two", 1),
		guest(9200, "pve2", "shared", "common", 1), guest(300, "pve3", "golden", "k8s;workshop", 0),
		guest(105, "pve1", "golden", "workshop", 0), guest(106, "pve1", "golden", "workshop;capve-1", 0),
		{"type": "lxc", "node": "pve1", "vmid": 200, "name": "ubuntu", "tags": "k8s"},
	}
	given := answers{
		"/nodes/pve2/qemu/9200/config": map[string]any{"scsi0": "nfs:9200/base-9200-disk-0.qcow2,size=3G", "ide2": "nfs:9200/vm-9200-cloudinit.qcow2,media=cdrom"},
		"/nodes/pve1/qemu/9001/config": map[string]any{"scsi0": "lvm:base-9001-disk-0"}, "/nodes/pve1/qemu/9002/config": map[string]any{"scsi0": "lvm:base-9002-disk-0"},
		"/nodes/pve2/qemu/9101/config": map[string]any{"scsi0": "lvm:base-9101-disk-0"}, "/nodes/pve2/qemu/9102/config": map[string]any{"scsi0": "lvm:base-9102-disk-0"},
		"/nodes/pve3/qemu/300/config?snapshot=v1": map[string]any{"scsi0": "lvm:vm-300-disk-0"},
	}
	const grant = ": make one, or grant the token VM.Audit and VM.Clone on it"
	cases := []struct {
		name             string
		source           v1beta1.TemplateSource
		pve1, pve2, pve3 string
	}{
		{
			"by name",
			v1beta1.TemplateSource{Name: "ubuntu"},
			"9001 on pve1",
			`templates 9101 and 9102 on the node all have the name "ubuntu": rename all but one`,
			`no template that has the name "ubuntu" is here or on shared storage (9001 of pve1 has local disks)` + grant,
		},
		{
			"by tags, the most specific one",
			v1beta1.TemplateSource{Tags: []string{"k8s"}},
			"9001 on pve1",
			"templates 9101 and 9102 on the node all have the tags k8s, and equally few others: give all but one of them another tag, or ask for a tag that only one has in source.template.tags",
			"no template that has the tags k8s is here or on shared storage (9001 of pve1 has local disks)" + grant,
		},
		{"by all tags", v1beta1.TemplateSource{Tags: []string{"k8s", "two"}}, "no template that has the tags k8s, two is here or on shared storage (9102 of pve2 has local disks)" + grant, "9102 on pve2", "no template that has the tags k8s, two is here or on shared storage (9102 of pve2 has local disks)" + grant},
		{"on shared storage, where that is", v1beta1.TemplateSource{Name: "shared"}, "9200 on pve2", "9200 on pve2", `no template that has the name "shared" is here or on shared storage` + grant},
		{"by VMID", v1beta1.TemplateSource{VMID: 9200}, "9200 on pve2", "9200 on pve2", "no template that has the VMID 9200 is here or on shared storage" + grant},
		{
			"by VMID of an ordinary VM",
			v1beta1.TemplateSource{VMID: 300},
			"guest 300 of pve3 is no template: make it one (`qm template 300`), name another one, or a snapshot of it in source.template.snapshot",
			"same", "same",
		},
		{
			"a snapshot", v1beta1.TemplateSource{Tags: []string{"workshop"}, Snapshot: "v1"}, "no VM that has the tags workshop is here or on shared storage (300 of pve3 has local disks)" + grant, "same", "300 on pve3",
		},
		{"a snapshot of a template", v1beta1.TemplateSource{VMID: 9001, Snapshot: "v1"}, "VM 9001 of pve1 is a template, which has no snapshots: leave out source.template.snapshot", "same", "same"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, _ := sight(t, hosts(guests...), given)
			want := map[proxmox.NodeName]string{"pve1": c.pve1, "pve2": c.pve2, "pve3": c.pve3}
			for node, is := range choices(t, s, v1beta1.VirtualMachineSource{Template: c.source}) {
				if want[node] == "same" {
					want[node] = c.pve1
				}
				if is != want[node] {
					t.Errorf("%s: %q, want %q", node, is, want[node])
				}
			}
		})
	}
}

func TestASnapshotThatIsMissingIsTold(t *testing.T) {
	s, _ := sight(t, hosts(guest(300, "pve3", "golden", "", 0)), nil)
	found := choices(t, s, v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "golden", Snapshot: "v2"}})
	if is := found["pve3"]; !strings.HasPrefix(is, "snapshot v2 of VM 300 cannot be cloned: ") || !strings.HasSuffix(is, ": make it, or correct source.template.snapshot") {
		t.Errorf("pve3: %q", is)
	}
}

func TestOnlyTemplatesOfTheNodesAreNotRead(t *testing.T) {
	s, asked := sight(t, hosts(guest(9001, "pve1", "a", "", 1), guest(9002, "pve2", "a", "", 1), guest(9003, "pve3", "a", "", 1)), nil)
	found := choices(t, s, v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "a"}})
	if found["pve3"] != "9003 on pve3" || asked.Load() != 0 {
		t.Errorf("found %v with %d requests", found, asked.Load())
	}
}

func TestWhereAnImageIs(t *testing.T) {
	given := answers{
		"/nodes/pve1/storage/nfs/content?content=import":   []map[string]any{{"volid": "nfs:import/debian.qcow2"}},
		"/nodes/pve1/storage/local/content?content=import": []map[string]any{{"volid": "local:import/a.raw"}},
		"/nodes/pve2/storage/local/content?content=import": []map[string]any{},
		"/nodes/pve1/qemu/9001/config":                     map[string]any{"scsi0": "lvm:base-9001-disk-0,size=3G", "unused0": "nfs:9001/vm-9001-disk-1.qcow2"},
	}
	const (
		far      = "storage nfs of image nfs:import/debian.qcow2 is not there, or cannot be seen (Datastore.Audit): keep the image on a storage that each host has"
		absent   = "image %s is not on storage %s of %s, or the token may not use it (Datastore.AllocateSpace or Datastore.Audit on the storage): put it there, or correct source.image.volume"
		noImport = "storage isos does not have the content type import of image isos:import/a.qcow2: add it there (Datacenter, Storage), or name an image on another storage"
		only     = "image lvm:base-9001-disk-0 is a disk of VM 9001 on pve1, and storage lvm is not shared: it can be imported there alone"
		none     = "VM 9001 of pve1 has no disk nfs:9001/vm-9001-disk-2.qcow2: correct source.image.volume"
		noVM     = "there is no VM 77, which image lvm:vm-77-disk-0 is a disk of, or the token may not see it (VM.Audit and VM.Clone): correct source.image.volume"
	)
	cases := []struct{ image, pve1, pve2, pve3 string }{
		{"nfs:import/debian.qcow2", "", "", far},
		{"nfs:import/none.qcow2", fmt.Sprintf(absent, "nfs:import/none.qcow2", "nfs", "pve1"), fmt.Sprintf(absent, "nfs:import/none.qcow2", "nfs", "pve2"), strings.ReplaceAll(far, "debian", "none")},
		{"local:import/a.raw", "", fmt.Sprintf(absent, "local:import/a.raw", "local", "pve2"), "it cannot be seen whether image local:import/a.raw is on storage local of pve3: "},
		{"lvm:base-9001-disk-0", "", only, only},
		{"nfs:9001/vm-9001-disk-1.qcow2", "", "", strings.ReplaceAll(far, "import/debian.qcow2", "9001/vm-9001-disk-1.qcow2")},
		{"nfs:9001/vm-9001-disk-2.qcow2", none, none, strings.ReplaceAll(far, "import/debian.qcow2", "9001/vm-9001-disk-2.qcow2")},
		{"lvm:vm-77-disk-0", noVM, noVM, noVM},
		{"isos:import/a.qcow2", noImport, noImport, noImport},
	}
	for _, c := range cases {
		t.Run(c.image, func(t *testing.T) {
			s, asked := sight(t, hosts(guest(9001, "pve1", "a", "", 1)), given)
			source := v1beta1.VirtualMachineSource{Image: v1beta1.ImageSource{Volume: c.image}}
			want := map[proxmox.NodeName]string{"pve1": c.pve1, "pve2": c.pve2, "pve3": c.pve3}
			for node, is := range choices(t, s, source) {
				if is != want[node] && (want[node] == "" || !strings.HasPrefix(is, want[node])) {
					t.Errorf("%s: %q, want %q", node, is, want[node])
				}
			}
			before := asked.Load()
			if choices(t, s, source); strings.HasPrefix(c.image, "nfs:import") && (before != 1 || asked.Load() != 1) {
				t.Errorf("a shared storage was listed %d times, and %d times more", before, asked.Load()-before)
			}
		})
	}
}

func TestListsOfImagesAreNotBelievedAfterAVMCouldNotBeMade(t *testing.T) {
	memory, _ := newTestMemory()
	at := imagePlace{cluster: "pve", storage: "nfs", content: "import"}
	none := func() ([]proxmox.VolumeID, error) { return nil, nil }
	if _, err := memory.images.get(t.Context(), at, none); err != nil {
		t.Fatal(err)
	}
	memory.CloneFailed(someVM, CloneFailure{Task: "UPID:x", Err: errDenied})
	if _, known := memory.images.peek(at, time.Time{}); known {
		t.Error("believed after a VM could not be made")
	}
}

func TestAVMThatBootsFromTheNetworkIsMadeAnywhere(t *testing.T) {
	s, asked := sight(t, hosts(), nil)
	for node, is := range choices(t, s, v1beta1.VirtualMachineSource{Netboot: v1beta1.NetbootSource{Device: "net0"}}) {
		if is != "" {
			t.Errorf("%s: %q", node, is)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests", asked.Load())
	}
}
