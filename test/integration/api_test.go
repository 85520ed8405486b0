package integration_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// refusal is an object that the API does not take.
type refusal struct {
	name  string
	edits []edit
	// want is part of the API server's message.
	want string
}

// desk is a namespace of the API server, for tests that need no controllers.
type desk struct {
	*WithT
	t *testing.T
	*environment
	namespace string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{WithT: NewWithT(t), t: t, environment: apiServer(t)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	d.Expect(d.client.Create(t.Context(), namespace)).To(Succeed())
	d.namespace = namespace.Name
	return d
}

func (d *desk) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: d.namespace}
}

// validCluster uses every field there is.
func (d *desk) validCluster() *v1beta1.ProxmoxCluster {
	return &v1beta1.ProxmoxCluster{ObjectMeta: d.meta("cluster"), Spec: clusterSpec()}
}

func clusterSpec() v1beta1.ProxmoxClusterSpec {
	return v1beta1.ProxmoxClusterSpec{
		ControlPlaneEndpoint: v1beta1.APIEndpoint{Host: "10.1.255.254", Port: 6443},
		Regions: []v1beta1.Region{{
			Name: "home", Endpoints: []string{"https://pve1.example.com:8006", "https://[2001:db8::1]:8006/"},
			CredentialsRef: v1beta1.SecretReference{Name: "credentials"},
			TLS:            v1beta1.RegionTLS{CABundle: caBundle, Fingerprints: []string{fingerprint("A1")}},
			Zones: []v1beta1.Zone{
				{Name: "a", Nodes: []string{"pve1", "pve2"}, ControlPlane: ptr.To(false)}, {Name: "b", Nodes: []string{"pve3"}, ControlPlane: ptr.To(true)},
			},
			VMIDRange: v1beta1.VMIDRange{Start: 100, End: 999999999},
		}},
	}
}

//go:embed testdata/ca.pem
var caBundle []byte

func fingerprint(octet string) string { return strings.Repeat(octet+":", 31) + octet }

// validMachine uses every field there is.
func (d *desk) validMachine() *v1beta1.ProxmoxMachine {
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: wholeSpec()}
	machine.Spec.ProviderID = "proxmox://" + exampleUUID
	machine.Spec.Reservation = v1beta1.Reservation{
		UUID: exampleUUID, Region: "home", Node: "pve1", VMID: 100, SourceNode: "pve2", SourceVMID: 9000, SeedStorage: "local",
	}
	return machine
}

const exampleUUID = "01234567-89ab-cdef-0123-456789abcdef"

func wholeSpec() v1beta1.ProxmoxMachineSpec {
	return v1beta1.ProxmoxMachineSpec{
		Source: v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{
			Tags: []string{"ubuntu", "k8s_1.36"}, CloneMode: v1beta1.CloneModeFull, Storage: "local-lvm",
		}},
		CPU: v1beta1.CPU{Sockets: 2, Cores: 8}, Memory: v1beta1.Memory{SizeMiB: 8192},
		Disks: v1beta1.Disks{Boot: v1beta1.BootDisk{SizeGiB: 40}},
		Network: v1beta1.Network{
			Devices: []v1beta1.NetworkDevice{{
				Name: "net31", Bridge: "vmbr0.100", Model: "e1000", VLAN: 4094,
				IPv4: v1beta1.IPv4Addressing{AddressSource: v1beta1.AddressSource{PoolRef: v1beta1.IPPoolReference{APIGroup: "ipam.example.com", Kind: "Pool", Name: "v4"}}},
				IPv6: v1beta1.IPv6Addressing{AddressSource: v1beta1.AddressSource{PoolRef: v1beta1.IPPoolReference{APIGroup: "ipam.example.com", Kind: "Pool", Name: "v6.pool"}}},
			}},
			DNS: v1beta1.DNS{Nameservers: []string{"10.1.0.2", "2001:db8::2"}, SearchDomains: []string{"example.com"}},
		},
		Placement: v1beta1.Placement{AllowedNodes: []string{"pve1"}},
		Pool:      "prod/kubernetes", Bootstrap: v1beta1.Bootstrap{Storage: "iso.store"},
	}
}

// refuses checks that each edit of a valid object makes the API server refuse it, with its message.
func (d *desk) refuses(valid func() client.Object, refusals []refusal) {
	d.t.Helper()
	d.Expect(d.client.Create(d.t.Context(), valid(), client.DryRunAll)).To(Succeed(), "the object is not valid to begin with")
	for _, row := range refusals {
		d.t.Run(row.name, func(t *testing.T) {
			err := d.client.Create(t.Context(), document(t, d.scheme, valid(), row.edits...), client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the answer is %q, want an Invalid with %q", fmt.Sprint(err), row.want)
			}
		})
	}
}

func one(path string, value any) []edit { return []edit{set(path, value)} }

func TestProxmoxClusterRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refuses(func() client.Object { return d.validCluster() }, regionRefusals("spec."))
}

func TestProxmoxClusterTemplateRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refuses(func() client.Object {
		return &v1beta1.ProxmoxClusterTemplate{ObjectMeta: d.meta("template"), Spec: v1beta1.ProxmoxClusterTemplateSpec{
			Template: v1beta1.ProxmoxClusterTemplateResource{Spec: clusterSpec()},
		}}
	}, append(regionRefusals("spec.template.spec."), refusal{"no template", []edit{without("spec.template")}, "spec.template: Required value"}))
}

const endpointMessage = "an endpoint is https://host or https://host:port, without a path, query or user; for Proxmox VE itself the port is 8006"

// regionRefusals are those of a ProxmoxCluster's spec, which is below the prefix.
func regionRefusals(spec string) []refusal {
	region := spec + "regions.0."
	rows := []refusal{
		{"no regions", []edit{without(spec + "regions")}, spec + "regions: Required value"},
		{"empty regions", one(spec+"regions", []any{}), "regions in body should have at least 1 items"},
		{"a region twice", one(spec+"regions.1", minimalRegion("home")), `regions[1]: Duplicate value`},
		{"17 regions", one(spec+"regions", many(17, func(i int) any { return minimalRegion(fmt.Sprintf("r%d", i)) })), "must have at most 16 items"},
		{"empty endpoint of the control plane", one(spec+"controlPlaneEndpoint", map[string]any{}), "controlPlaneEndpoint in body should have at least 1 properties"},
		{"control plane without host", []edit{without(spec + "controlPlaneEndpoint.host")}, "controlPlaneEndpoint.host: Required value"},
		{"control plane with an empty host", one(spec+"controlPlaneEndpoint.host", ""), "host in body should be at least 1 chars long"},
		{"control plane without port", []edit{without(spec + "controlPlaneEndpoint.port")}, "controlPlaneEndpoint.port: Required value"},
		{"control plane at port 0", one(spec+"controlPlaneEndpoint.port", int64(0)), "port in body should be greater than or equal to 1"},
		{"control plane at port 65536", one(spec+"controlPlaneEndpoint.port", int64(65536)), "port in body should be less than or equal to 65535"},
		{"region with a long name", one(region+"name", strings.Repeat("x", 64)), "regions[0].name: Too long: may not be more than 63"},
		{"zone with a long name", one(region+"zones.0.name", strings.Repeat("x", 64)), "zones[0].name: Too long: may not be more than 63"},
		{"region without a name", []edit{without(region + "name")}, "regions[0].name: Required value"},
		{"no endpoints", []edit{without(region + "endpoints")}, "endpoints: Required value"},
		{"empty endpoints", one(region+"endpoints", []any{}), "endpoints in body should have at least 1 items"},
		{"17 endpoints", one(region+"endpoints", many(17, func(i int) any { return fmt.Sprintf("https://pve%d:8006", i) })), "must have at most 16 items"},
		{"an endpoint twice", one(region+"endpoints", []any{"https://a:8006", "https://a:8006"}), "endpoints[1]: Duplicate value"},
		{"no credentials", []edit{without(region + "credentialsRef")}, "credentialsRef: Required value"},
		{"credentials without a name", one(region+"credentialsRef", map[string]any{}), "credentialsRef.name: Required value"},
		{"credentials with a long name", one(region+"credentialsRef.name", strings.Repeat("x", 254)), "may not be more than 253"},
		{"empty tls", one(region+"tls", map[string]any{}), "tls in body should have at least 1 properties"},
		{"empty CA bundle", one(region+"tls.caBundle", ""), "caBundle in body should be at least 1 chars long"},
		{"CA bundle that is no base64", one(region+"tls.caBundle", "-----"), "must be of type byte"},
		{"empty fingerprints", one(region+"tls.fingerprints", []any{}), "fingerprints in body should have at least 1 items"},
		{"fingerprint of SHA-1", one(region+"tls.fingerprints", []any{fingerprint("A1")[:59]}), "should be at least 95 chars long"},
		{"fingerprint without colons", one(region+"tls.fingerprints", []any{strings.Repeat("A", 95)}), "should match '^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}$'"},
		{"empty zones", one(region+"zones", []any{}), "zones in body should have at least 1 items"},
		{"a zone twice", one(region+"zones.1.name", "a"), "zones[1]: Duplicate value"},
		{"17 zones", one(region+"zones", many(17, func(i int) any { return zone(fmt.Sprintf("z%d", i), fmt.Sprintf("n%d", i)) })), "must have at most 16 items"},
		{"zone without nodes", []edit{without(region + "zones.0.nodes")}, "zones[0].nodes: Required value"},
		{"zone with empty nodes", one(region+"zones.0.nodes", []any{}), "nodes in body should have at least 1 items"},
		{"zone with an empty node", one(region+"zones.0.nodes", []any{""}), "should be at least 1 chars long"},
		{"zone with 33 nodes", one(region+"zones.0.nodes", many(33, func(i int) any { return fmt.Sprintf("n%d", i) })), "must have at most 32 items"},
		{"a node in two zones", one(region+"zones.1.nodes", []any{"pve2"}), `zones[1].nodes[0]: Invalid value: "pve2": a node may belong to one zone only, and it is in a: name each node once over all zones of the region`},
		{"VMIDs from nowhere", []edit{without(region + "vmIDRange.start")}, "vmIDRange.start: Required value"},
		{"VMIDs to nowhere", []edit{without(region + "vmIDRange.end")}, "vmIDRange.end: Required value"},
		{"VMIDs from 99", one(region+"vmIDRange.start", int64(99)), "start in body should be greater than or equal to 100"},
		{"VMIDs to a milliard", one(region+"vmIDRange.end", int64(1_000_000_000)), "end in body should be less than or equal to 999999999"},
		{"VMIDs backwards", one(region+"vmIDRange", map[string]any{"start": int64(200), "end": int64(199)}), "start must not be above end"},
	}
	for _, endpoint := range []string{
		"http://pve1:8006", "https://pve1:8006/api2/json", "https://root@pve1:8006", "https://pve1:8006?x=1", "https://pve1:8006#x", "pve1:8006",
		"https://", "https://:8006", "ftp://pve1", "https://pve1:8006\n", "https://pve 1", "javascript:alert(1)", "https:pve1",
	} {
		rows = append(rows, refusal{"endpoint " + endpoint, one(region+"endpoints", []any{endpoint}), endpointMessage})
	}
	for _, name := range append(hostile, "Home", "-home", "home-", "a.b") {
		rows = append(rows, refusal{"region " + name, one(region+"name", name), "name in body should"},
			refusal{"zone " + name, one(region+"zones.0.name", name), "name in body should"})
	}
	return rows
}

// hostile are values that would mean something else than they say, to a shell, a form, a path or a property string.
var hostile = []string{"a b", "a\n", "\n", "a,b=c", "a;b", "../a", "a&b=c", "a%2e", "$(a)", "a\x00", "ä", "a\u202eb", "'", `"`, ""}

func minimalRegion(name string) map[string]any {
	return map[string]any{"name": name, "endpoints": []any{"https://pve1:8006"}, "credentialsRef": map[string]any{"name": "credentials"}}
}

func zone(name string, nodes ...any) map[string]any {
	return map[string]any{"name": name, "nodes": nodes}
}

func TestProxmoxMachineRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	rows := append(machineRefusals("spec."), []refusal{
		{"empty providerID", one("spec.providerID", ""), "providerID in body should be at least 1 chars long"},
		{"long providerID", one("spec.providerID", strings.Repeat("x", 513)), "may not be more than 512"},
		{"empty reservation", one("spec.reservation", map[string]any{}), "reservation in body should have at least 1 properties"},
		{"no UUID", one("spec.reservation.uuid", strings.Repeat("z", 36)), "reservation.uuid in body should match"},
		{"UUID in capitals", one("spec.reservation.uuid", strings.ToUpper(exampleUUID)), "reservation.uuid in body should match"},
		{"VMID 99", one("spec.reservation.vmID", int64(99)), "vmID in body should be greater than or equal to 100"},
		{"source VMID 0", one("spec.reservation.sourceVMID", int64(0)), "sourceVMID in body should be greater than or equal to 100"},
	}...)
	for _, field := range []string{"uuid", "region", "node", "vmID", "seedStorage"} {
		rows = append(rows, refusal{"reservation without " + field, []edit{without("spec.reservation." + field)}, "reservation." + field + ": Required value"})
	}
	d.refuses(func() client.Object { return d.validMachine() }, rows)
}

func (d *desk) validMachineTemplate() *v1beta1.ProxmoxMachineTemplate {
	return &v1beta1.ProxmoxMachineTemplate{ObjectMeta: d.meta("template"), Spec: v1beta1.ProxmoxMachineTemplateSpec{
		Template: v1beta1.ProxmoxMachineTemplateResource{Spec: wholeSpec()},
	}}
}

func TestProxmoxMachineTemplateRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const message = "providerID and reservation belong to one machine: leave them out of a template"
	rows := append(machineRefusals("spec.template.spec."), []refusal{
		{"no template", []edit{without("spec.template")}, "spec.template: Required value"},
		{"with a providerID", one("spec.template.spec.providerID", "proxmox://"+exampleUUID), message},
		{"with a reservation", one("spec.template.spec.reservation", map[string]any{
			"uuid": exampleUUID, "region": "home", "node": "pve1", "vmID": int64(100), "sourceNode": "pve1", "sourceVMID": int64(100), "seedStorage": "local",
		}), message},
	}...)
	d.refuses(func() client.Object { return d.validMachineTemplate() }, rows)
}

// machineRefusals are those of a ProxmoxMachine's spec, which is below the prefix.
func machineRefusals(spec string) []refusal {
	template, device := spec+"source.template.", spec+"network.devices.0."
	rows := []refusal{
		{"no source", []edit{without(spec + "source")}, spec + "source: Required value"},
		{"empty source", one(spec+"source", map[string]any{}), "name one source: template, image or netboot"},
		{"empty template", one(spec+"source.template", map[string]any{}), "find the template by one of name, tags and vmID"},
		{"template by name and tags", one(template+"name", "ubuntu"), "find the template by one of name, tags and vmID"},
		{"template by neither", []edit{without(template + "tags")}, "find the template by one of name, tags and vmID"},
		{"template with an empty name", []edit{without(template + "tags"), set(template+"name", "")}, "name in body should be at least 1 chars long"},
		{"template with a long name", []edit{without(template + "tags"), set(template+"name", strings.Repeat("x", 254))}, "may not be more than 253"},
		{"empty tags", one(template+"tags", []any{}), "tags in body should have at least 1 items"},
		{"a tag twice", one(template+"tags", []any{"a", "a"}), "tags[1]: Duplicate value"},
		{"17 tags", one(template+"tags", many(17, func(i int) any { return fmt.Sprintf("t%d", i) })), "must have at most 16 items"},
		{"linked clone elsewhere", one(template+"cloneMode", "Linked"), "storage needs cloneMode Full: a linked clone stays on the template's storage"},
		{"unknown clone mode", one(template+"cloneMode", "full"), `Unsupported value: "full"`},
		{"empty cpu", one(spec+"cpu.sockets", int64(0)), "sockets in body should be greater than or equal to 1"},
		{"5 sockets", one(spec+"cpu.sockets", int64(5)), "sockets in body should be less than or equal to 4"},
		{"no cores", one(spec+"cpu.cores", int64(0)), "cores in body should be greater than or equal to 1"},
		{"129 cores", one(spec+"cpu.cores", int64(129)), "cores in body should be less than or equal to 128"},
		{"15 MiB", one(spec+"memory.sizeMiB", int64(15)), "sizeMiB in body should be greater than or equal to 16"},
		{"above 8 TiB", one(spec+"memory.sizeMiB", int64(8388609)), "sizeMiB in body should be less than or equal to 8388608"},
		{"memory as a text", one(spec+"memory.sizeMiB", "8Gi"), "must be of type integer"},
		{"no disks", one(spec+"disks", map[string]any{}), "disks in body should have at least 1 properties"},
		{"empty boot disk", one(spec+"disks.boot", map[string]any{}), "boot in body should have at least 1 properties"},
		{"boot disk of 0 GiB", one(spec+"disks.boot.sizeGiB", int64(0)), "sizeGiB in body should be greater than or equal to 1"},
		{"boot disk above 128 TiB", one(spec+"disks.boot.sizeGiB", int64(131073)), "sizeGiB in body should be less than or equal to 131072"},
		{"no network", []edit{without(spec + "network")}, spec + "network: Required value"},
		{"no devices", []edit{without(spec + "network.devices")}, "network.devices: Required value"},
		{"empty devices", one(spec+"network.devices", []any{}), "devices in body should have at least 1 items"},
		{"a device twice", one(spec+"network.devices.1", minimalDevice("net31")), "devices[1]: Duplicate value"},
		{"33 devices", one(spec+"network.devices", many(33, func(i int) any { return minimalDevice(fmt.Sprintf("net%d", i)) })), "must have at most 32 items"},
		{"device without a bridge", []edit{without(device + "bridge")}, "bridge: Required value"},
		{"bridge with a long name", one(device+"bridge", strings.Repeat("v", 16)), "may not be more than 15"},
		{"unknown model", one(device+"model", "ne2k_pci"), `Unsupported value: "ne2k_pci"`},
		{"VLAN 0", one(device+"vlan", int64(0)), "vlan in body should be greater than or equal to 1"},
		{"VLAN 4095", one(device+"vlan", int64(4095)), "vlan in body should be less than or equal to 4094"},
		{"pool without a name", []edit{without(device + "ipv4.poolRef.name")}, "poolRef.name: Required value"},
		{"empty dns", one(spec+"network.dns", map[string]any{}), "dns in body should have at least 1 properties"},
		{"nameserver by name", one(spec+"network.dns.nameservers", []any{"dns.example.com"}), "a nameserver is an IP address"},
		{"nameserver with a port", one(spec+"network.dns.nameservers", []any{"10.1.0.2:53"}), "a nameserver is an IP address"},
		{"nameserver with a prefix", one(spec+"network.dns.nameservers", []any{"10.1.0.2/24"}), "a nameserver is an IP address"},
		{"9 nameservers", one(spec+"network.dns.nameservers", many(9, func(i int) any { return fmt.Sprintf("10.1.0.%d", i) })), "must have at most 8 items"},
		{"empty placement", one(spec+"placement", map[string]any{}), "placement in body should have at least 1 properties"},
		{"no allowed nodes", one(spec+"placement.allowedNodes", []any{}), "allowedNodes in body should have at least 1 items"},
		{"an empty allowed node", one(spec+"placement.allowedNodes", []any{""}), "should be at least 1 chars long"},
		{"pool four deep", one(spec+"pool", "a/b/c/d"), "pool in body should match"},
		{"empty bootstrap", one(spec+"bootstrap", map[string]any{}), "bootstrap in body should have at least 1 properties"},
	}
	for _, name := range append(hostile, "net32", "net", "net01", "eth0", "NET0") {
		rows = append(rows, refusal{"device " + name, one(device+"name", name), "name in body should"})
	}
	for _, value := range hostile {
		for _, path := range []string{
			"source.template.tags.0", "source.template.storage", "network.devices.0.bridge", "network.devices.0.ipv4.poolRef.name",
			"network.devices.0.ipv6.poolRef.kind", "network.devices.0.ipv6.poolRef.apiGroup", "network.dns.searchDomains.0", "pool", "bootstrap.storage",
		} {
			if path == "pool" && value == "../a" {
				continue // Proxmox VE has such names; a pool goes into forms, never into a path
			}
			rows = append(rows, refusal{path + " " + value, one(spec+path, value), "in body should"})
		}
	}
	return rows
}

func minimalDevice(name string) map[string]any {
	return map[string]any{"name": name, "bridge": "vmbr0", "ipv4": map[string]any{"poolRef": map[string]any{"name": "pool"}}}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: v1beta1.ProxmoxMachineSpec{
		Source: v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "ubuntu"}},
		Network: v1beta1.Network{Devices: []v1beta1.NetworkDevice{{
			Name: "net0", Bridge: "vmbr0", IPv4: v1beta1.IPv4Addressing{AddressSource: v1beta1.AddressSource{PoolRef: v1beta1.IPPoolReference{Name: "pool"}}},
		}}},
	}}
	want := machine.DeepCopy()
	want.Spec.PowerState = "Running"
	want.Spec.Source.Template.CloneMode = v1beta1.CloneModeFull
	want.Spec.CPU, want.Spec.Memory = v1beta1.CPU{Sockets: 1, Cores: 2}, v1beta1.Memory{SizeMiB: 4096}
	want.Spec.DriftPolicy = v1beta1.DriftPolicyReport
	want.Spec.Network.ConfigVersion = 2
	want.Spec.Network.Devices[0].Model = "virtio"
	want.Spec.Network.Devices[0].IPv4.Method = v1beta1.IPv4MethodPool
	want.Spec.Network.Devices[0].IPv4.PoolRef = v1beta1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: "pool"}
	d.Expect(d.client.Create(t.Context(), machine, client.DryRunAll)).To(Succeed())
	d.Expect(cmp.Diff(want.Spec, machine.Spec)).To(BeEmpty(), "-want +got")

	half := want.DeepCopy()
	half.Spec.CPU = v1beta1.CPU{Cores: 16}
	d.Expect(d.client.Create(t.Context(), half, client.DryRunAll)).To(Succeed())
	d.Expect(half.Spec.CPU).To(Equal(v1beta1.CPU{Sockets: 1, Cores: 16}))

	cluster := d.validCluster()
	cluster.Spec.Regions[0].Zones[0].ControlPlane = nil
	d.Expect(d.client.Create(t.Context(), cluster, client.DryRunAll)).To(Succeed())
	d.Expect(cluster.Spec.Regions[0].Zones[0].ControlPlane).To(HaveValue(BeTrue()))
}

// TestWhatNeedsAnotherVMIsRefused has the whole text of each refusal: it names the field, and what to do.
func TestWhatNeedsAnotherVMIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	machine := d.validMachine()
	d.Expect(d.client.Create(t.Context(), machine)).To(Succeed())
	const remedy = ": make a new ProxmoxMachineTemplate and have the machines rolled, or delete the Machine to have it made anew"
	const plain, once = "a VM cannot change it" + remedy, "a VM cannot change it, the guest is told at its first start" + remedy
	for _, row := range []refusal{
		{"providerID", one("spec.providerID", "proxmox://other"), "providerID is immutable once set: the Node of the machine has the same"},
		{"providerID away", []edit{without("spec.providerID")}, "providerID is immutable once set"},
		{"identity", one("spec.reservation.uuid", strings.Replace(exampleUUID, "0", "1", 1)), "reservation.uuid is immutable once set: it is the identity of the VM"},
		{"reservation away", []edit{without("spec.reservation")}, "reservation.uuid is immutable once set"},
		{"source", one("spec.source.template.tags", []any{"other"}), "spec.source: Forbidden: " + plain},
		{"a smaller disk", one("spec.disks.boot.sizeGiB", int64(39)), "spec.disks.boot.sizeGiB: Forbidden: a disk grows, but never shrinks, as from 40 GiB to 39 GiB" + remedy},
		{"a MAC address", one("spec.network.devices.0.macAddress", "BC:24:11:00:00:77"), "spec.network.devices[net31].macAddress: Forbidden: a VM cannot change it, the guest's network config finds the device by it" + remedy},
		{"addresses", []edit{without("spec.network.devices.0.ipv4")}, "spec.network.devices[net31].ipv4: Forbidden: " + once},
		{"DNS", one("spec.network.dns.nameservers", []any{"192.0.2.99"}), "spec.network.dns: Forbidden: " + once},
		{"firmware", one("spec.hardware", map[string]any{"bios": "ovmf", "efiDisk": map[string]any{"storage": "local"}}), "spec.hardware.efiDisk.storage: Forbidden: " + plain},
		{"placement", one("spec.placement.allowedNodes.0", "pve2"), "spec.placement: Forbidden: " + plain},
		{"placement away", []edit{without("spec.placement")}, "spec.placement: Forbidden: " + plain},
		{"bootstrap", one("spec.bootstrap.storage", "other"), "spec.bootstrap: Forbidden: " + once},
		{"bootstrap away", []edit{without("spec.bootstrap")}, "spec.bootstrap: Forbidden: " + once},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := d.client.Update(t.Context(), document(t, d.scheme, machine, row.edits...), client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the answer is %v, want an Invalid with %q", err, row.want)
			}
		})
	}
}

func TestWhatAVMCanFollowIsAccepted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	machine := d.validMachine()
	d.Expect(d.client.Create(t.Context(), machine)).To(Succeed())
	for _, change := range []edit{
		set("spec.reservation.vmID", int64(101)), set("spec.reservation.node", "pve2"), set("metadata.labels.a", "b"),
		set("spec.cpu.cores", int64(4)), set("spec.cpu.units", int64(50)), set("spec.memory.sizeMiB", int64(16384)), set("spec.disks.boot.sizeGiB", int64(41)),
		without("spec.disks"), set("spec.network.devices.0.bridge", "vmbr1"), set("spec.network.devices.0.linkDown", true), set("spec.tags", []any{"a"}),
		set("spec.description", "for team A"), set("spec.vmName", "pet"), set("spec.options", map[string]any{"onBoot": true, "protection": true}),
		set("spec.driftPolicy", "Repair"), set("spec.powerState", "Stopped"), set("spec.firewall", map[string]any{"enabled": true}),
	} {
		d.Expect(d.client.Update(t.Context(), document(t, d.scheme, machine, change), client.DryRunAll)).To(Succeed(), "%s", change.path)
	}
}

func TestAMachineGetsItsProviderIDAndReservationLater(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: wholeSpec()}
	d.Expect(d.client.Create(t.Context(), machine)).To(Succeed())
	whole := d.validMachine().Spec
	machine.Spec.Reservation = whole.Reservation
	d.Expect(d.client.Update(t.Context(), machine)).To(Succeed())
	machine.Spec.ProviderID = whole.ProviderID
	d.Expect(d.client.Update(t.Context(), machine)).To(Succeed())
}

func TestControlPlaneEndpointIsSetOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cluster := d.validCluster()
	cluster.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{}
	d.Expect(d.client.Create(t.Context(), cluster)).To(Succeed())
	cluster.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{Host: "10.1.0.1", Port: 6443}
	d.Expect(d.client.Update(t.Context(), cluster)).To(Succeed())
	const message = "controlPlaneEndpoint is immutable once set: clients and certificates of the cluster already use it"
	for _, change := range []edit{set("spec.controlPlaneEndpoint.port", int64(443)), without("spec.controlPlaneEndpoint")} {
		err := d.client.Update(t.Context(), document(t, d.scheme, cluster, change), client.DryRunAll)
		d.Expect(err).To(MatchError(ContainSubstring(message)))
	}
	cluster.Spec.Regions[0].Endpoints = []string{"https://elsewhere:8006"}
	d.Expect(d.client.Update(t.Context(), cluster)).To(Succeed(), "regions may change: hosts come and go")
}
