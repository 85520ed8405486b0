package integration_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// drives are additional disks on all drives of a bus.
func drives(bus string, count int) edit {
	return set("spec.disks.additional", many(count, func(i int) any {
		return anything{"name": fmt.Sprintf("%s%d", bus, i), "storage": "local-lvm", "sizeGiB": int64(1)}
	}))
}

// noName is what is said of a vmName that makes such a name.
func noName(template, made string) string {
	return fmt.Sprintf("vmName %q makes %q, which is no DNS name: it may have letters, digits, - and ., with 63 characters between dots and 253 in all, and - neither first nor last: correct it", template, made)
}

func nameContradictions() []contradiction {
	const clusterLabel = "metadata.labels"
	long := strings.Repeat("a", 60)
	name := func(text, made string) contradiction {
		return contradiction{"the name " + text, one("spec.vmName", text), "spec.vmName", fmt.Sprintf("%q", text), noName(text, made)}
	}
	raw := func(key, value string) []edit { return one("spec.rawConfig", anything{key: value}) }
	return []contradiction{
		name("-a", "-a"), name("a-", "a-"), name("a..b", "a..b"), name(".a", ".a"), name("-{{ .Machine }}", "-machine"), name("{{.Machine}}.", "machine."),
		name(long+"aaaa", long+"aaaa"), name(strings.Repeat("a.", 125)+"b-", strings.Repeat("a.", 125)+"b-"), name("{{ .Machine }}"+long, "machine"+long),
		{
			"the name with a long cluster", edits(set("spec.vmName", "{{ .Cluster }}-{{ .Machine }}"), set(clusterLabel, anything{clusterv1.ClusterNameLabel: long})),
			"spec.vmName", `"{{ .Cluster }}-{{ .Machine }}"`, noName("{{ .Cluster }}-{{ .Machine }}", long+"-machine"),
		},
		{
			"a machine with a long name", one("metadata.name", long+"aaaa"), "metadata.name", fmt.Sprintf("%q", long+"aaaa"),
			fmt.Sprintf("the machine's name, %q, is no DNS name with at most 63 characters between dots, as Proxmox VE wants for a VM: set vmName, or make a machine with another name", long+"aaaa"),
		},
		{"a raw disk that is not used", raw("unused0", "local-lvm:vm-1-disk-0"), "spec.rawConfig[unused0]", forbidden, "rawConfig has the key unused0, which the field disks is for: set it there, and leave it out here"},
		{"a raw network device", raw("net31", "virtio"), "spec.rawConfig[net31]", forbidden, "rawConfig has the key net31, which the field network.devices is for: set it there, and leave it out here"},
		{"a raw password", raw("cipassword", "secret"), "spec.rawConfig[cipassword]", forbidden, "rawConfig has the key cipassword, which is the provider's, or Proxmox VE's own: leave it out"},
		{"a raw identity", raw("smbios1", "uuid=1"), "spec.rawConfig[smbios1]", forbidden, "rawConfig has the key smbios1, which is the provider's, or Proxmox VE's own: leave it out"},
		{"a raw key without a value", raw("kvm", ""), "spec.rawConfig[kvm]", missing, "give the key a value, or leave it out"},
		{"a raw key in capitals", raw("KVM", "0"), "spec.rawConfig[KVM]", `"KVM"`, "a key of a VM's config is of lower-case letters, digits, - and _: correct it"},
		{"a raw key that is a second parameter", raw("kvm=0&cores", "0"), "spec.rawConfig[kvm=0&cores]", `"kvm=0&cores"`, "a key of a VM's config is of lower-case letters, digits, - and _: correct it"},
		{"a raw value of two lines", raw("args", "-a\nlock: x"), "spec.rawConfig[args]", "", "the value has a line break or another control character: a value is one line"},
		{"a long raw value", raw("args", strings.Repeat("a", 4097)), "spec.rawConfig[args]", "Too long", "may not be more than 4096 bytes"},
	}
}

func placeContradictions() []contradiction {
	const net0, net1 = "spec.network.devices.0.", "spec.network.devices.1."
	const seed = "no drive on the bus is free for the seed ISO: choose another bus, or name a disk of disks.additional otherwise"
	arch, routed := set("spec.rawConfig.arch", "aarch64"), anything{"method": "DHCP", "defaultRoute": true}
	rules := func(list ...any) edit { return set("spec.highAvailability", anything{"enabled": true, "rules": list}) }
	near := func(name string, strict bool, nodes ...any) any {
		return anything{"name": name, "nodeAffinity": anything{"strict": strict, "nodes": nodes}}
	}
	node := func(name string, priority int64) any { return anything{"name": name, "priority": priority} }
	return []contradiction{
		{"aarch64 with seabios", edits(arch, set("spec.hardware.bios", "seabios")), "spec.hardware.bios", `"seabios"`, "rawConfig has arch aarch64, which has no seabios: set bios to ovmf"},
		{"aarch64 with an ISA watchdog", edits(arch, set("spec.hardware.watchdog.model", "ib700")), "spec.hardware.watchdog.model", `"ib700"`, "rawConfig has arch aarch64, which has no ISA bus, as the watchdog ib700 needs: use i6300esb"},
		{"a seed on a full ide bus", edits(set("spec.bootstrap.bus", "ide"), drives("ide", 4)), "spec.bootstrap.bus", `"ide"`, seed},
		{"a seed on a full sata bus", edits(set("spec.bootstrap.bus", "sata"), drives("sata", 6)), "spec.bootstrap.bus", `"sata"`, seed},
		{"a seed on a full scsi bus", edits(arch, drives("scsi", 31)), "spec.bootstrap.bus", `""`, seed},
		{
			"two default routes beside a VRF", edits(set(net0+"ipv4", routed), set(net1+"ipv4", routed), set("spec.network.devices.2", anything{"name": "net2", "bridge": "vmbr2"}), set("spec.network.vrfs", []any{vrf("blue", 10, "net2")})),
			"spec.network.devices[1].ipv4.defaultRoute", "true", "two IPv4 default routes of the same metric are in the main routing table, the other is spec.network.devices[0].ipv4.defaultRoute: keep one of them, or give them different metrics",
		},
		{
			"two default routes in a VRF", edits(set(net0+"ipv4", routed), set(net1+"ipv4", routed), set("spec.network.vrfs", []any{vrf("blue", 10, "net0", "net1")})),
			"spec.network.devices[1].ipv4.defaultRoute", "true", "two IPv4 default routes of the same metric are in the VRF blue, the other is spec.network.devices[0].ipv4.defaultRoute: keep one of them, or give them different metrics",
		},
		{
			"a default route and one that is written out", edits(set(net0+"ipv4", routed), set(net0+"routes", []any{route("0.0.0.0/0", "10.0.0.1")})),
			"spec.network.devices[0].routes[0].to", `"0.0.0.0/0"`, "two IPv4 default routes of the same metric are in the main routing table, the other is spec.network.devices[0].ipv4.defaultRoute: keep one of them, or give them different metrics",
		},
		{
			"a default route in another's VRF", edits(set(net0+"routes", []any{anything{"to": "0.0.0.0/0", "via": "10.0.0.1", "table": int64(10)}}), set(net1+"ipv4", routed), set("spec.network.vrfs", []any{vrf("blue", 10, "net1")})),
			"spec.network.devices[1].ipv4.defaultRoute", "true", "two IPv4 default routes of the same metric are in the VRF blue, the other is spec.network.devices[0].routes[0].to: keep one of them, or give them different metrics",
		},
		{
			"the main table by its number", edits(set(net0+"ipv4", routed), set(net0+"routes", []any{anything{"to": "0.0.0.0/0", "via": "10.0.0.1", "table": int64(254)}})),
			"spec.network.devices[0].routes[0].to", `"0.0.0.0/0"`, "two IPv4 default routes of the same metric are in the main routing table, the other is spec.network.devices[0].ipv4.defaultRoute: keep one of them, or give them different metrics",
		},
		{
			"two default routes in a table", edits(set(net0+"routes", []any{anything{"to": "::/0", "via": "fe80::1", "table": int64(100)}, anything{"to": "::/0", "via": "fe80::2", "table": int64(100)}})),
			"spec.network.devices[0].routes[1].to", `"::/0"`, "two IPv6 default routes of the same metric are in the routing table 100, the other is spec.network.devices[0].routes[0].to: keep one of them, or give them different metrics",
		},
		{
			"strict affinity to hosts that are not allowed", edits(set("spec.placement.allowedNodes", []any{"pve1", "pve2"}), rules(near("near", true, anything{"name": "pve3"}))),
			"spec.highAvailability.rules[0].nodeAffinity.nodes", `"pve3"`, "none of them is in placement.allowedNodes, pve1, pve2, and strict keeps the VM off all others: name one of those, or leave strict out",
		},
		{
			"affinity to nodes twice", edits(rules(near("near", false, anything{"name": "pve1"}), near("far", false, anything{"name": "pve2"}))),
			"spec.highAvailability.rules[1].nodeAffinity", `"far"`, "a VM is in one rule with nodeAffinity at most, which near is: leave one of them out",
		},
		{
			"priorities beside other VMs", edits(rules(anything{"name": "apart", "resourceAffinity": "negative"}, near("near", false, node("pve1", 2), node("pve2", 1)))),
			"spec.highAvailability.rules[1].nodeAffinity.nodes", `"pve1 (priority 2), pve2 (priority 1)"`, "beside a rule with resourceAffinity all nodes have one priority: leave priority out of them, or leave that rule out",
		},
		{"VMIDs backwards", one("spec.vmIDRange", anything{"start": int64(200), "end": int64(199)}), "spec.vmIDRange.start", "200", "start must not be above end: exchange them"},
		{"a device in no VM", one("spec.network.vrfs", []any{vrf("blue", 10, "net7")}), "spec.network.vrfs[0].devices[0]", `"net7"`, "the devices of a VRF are devices of the VM, and each is in one VRF at most: correct the names in devices"},
		{"two devices with an address", edits(set(net0+"macAddress", "BC:24:11:00:00:0A"), set(net1+"macAddress", "bc:24:11:00:00:0a")), "spec.network.devices[1].macAddress", `"bc:24:11:00:00:0a"`, "two devices have the same macAddress, the other is net0: give one of them another, or leave it out"},
	}
}

// TestPlacesThatAreFreeAreTaken has neighbours of what is refused.
func TestPlacesThatAreFreeAreTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	routed := anything{"method": "DHCP", "defaultRoute": true}
	const net0, net1 = "spec.network.devices.0.", "spec.network.devices.1."
	for name, edits := range map[string][]edit{
		"one drive for the seed":             edits(set("spec.bootstrap.bus", "ide"), drives("ide", 3)),
		"another bus for the seed":           edits(drives("ide", 4)),
		"default routes of two VRFs":         edits(set(net0+"ipv4", routed), set(net1+"ipv4", routed), set("spec.network.vrfs", []any{vrf("blue", 10, "net1")})),
		"a default route of another table":   edits(set(net0+"ipv4", routed), set(net0+"routes", []any{anything{"to": "0.0.0.0/0", "via": "10.0.0.1", "table": int64(100)}})),
		"a default route beside a VRF's":     edits(set(net0+"ipv4", routed), set(net0+"routes", []any{anything{"to": "0.0.0.0/0", "via": "10.0.0.1", "table": int64(100)}}), set("spec.network.vrfs", []any{vrf("blue", 10, "net0")})),
		"affinity to a host that is allowed": edits(set("spec.placement.allowedNodes", []any{"pve1"}), set("spec.highAvailability", anything{"enabled": true, "rules": []any{anything{"name": "near", "nodeAffinity": anything{"strict": true, "nodes": []any{anything{"name": "pve1"}, anything{"name": "pve9"}}}}}})),
		"a name with placeholders":           one("spec.vmName", "{{ .Cluster }}-{{ .Machine }}.example"),
		"a raw key with a value":             one("spec.rawConfig", anything{"args": "-device x,y=z -no-reboot", "kvm": "0"}),
	} {
		t.Run(name, func(t *testing.T) {
			if err := d.client.Create(t.Context(), document(t, d.scheme, d.plain(), edits...), client.DryRunAll); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// TestATemplateIsCheckedAsAMachineIs has what only a webhook refuses.
func TestATemplateIsCheckedAsAMachineIs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const spec = "spec.template.spec."
	d.refuses(func() client.Object { return d.validMachineTemplate() }, []refusal{
		{"more vcpus than CPUs", one(spec+"cpu.vcpus", int64(17)), spec + "cpu.vcpus: Invalid value: 17: vcpus must not be more than sockets times cores"},
		{"a raw identity", one(spec+"rawConfig", anything{"smbios1": "uuid=1"}), spec + "rawConfig[smbios1]: Forbidden"},
		{"a name that cannot be", one(spec+"vmName", "{{ .Machine }}-"), noName("{{ .Machine }}-", "x-")},
	})
	d.Expect(d.client.Create(t.Context(), document(t, d.scheme, d.validMachineTemplate(), set(spec+"vmName", "{{ .Cluster }}-{{ .Machine }}")), client.DryRunAll)).To(Succeed())
}

// TestBundlesThatHoldNoCertificatesAreRefused checks, too, that no answer repeats the bundle.
func TestBundlesThatHoldNoCertificatesAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const path = "spec.regions[0].tls.caBundle: Invalid value: "
	const remedy = ": give certificates in PEM form, as /etc/pve/pve-root-ca.pem of a Proxmox VE node has them"
	for name, row := range map[string]struct{ bundle, want string }{
		"text":                        {"SECRET", path + "the 6 bytes hold no PEM block" + remedy},
		"a key":                       {"-----BEGIN PRIVATE KEY-----\nU0VDUkVU\n-----END PRIVATE KEY-----\n", path + "PEM block 1 is a PRIVATE KEY, which is no certificate" + remedy},
		"a certificate of bytes":      {"-----BEGIN CERTIFICATE-----\nU0VDUkVU\n-----END CERTIFICATE-----\n", path + "PEM block 1 is no certificate (x509: malformed certificate)" + remedy},
		"a certificate, then another": {string(caBundle) + "-----BEGIN CERTIFICATE-----\nU0VDUkVU\n-----END CERTIFICATE-----\n", path + "PEM block 2 is no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := d.validCluster()
			cluster.Spec.Regions[0].TLS = v1beta1.RegionTLS{CABundle: []byte(row.bundle)}
			err := d.client.Create(t.Context(), cluster, client.DryRunAll)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(row.want), Not(ContainSubstring("U0VDUkVU")), Not(ContainSubstring("SECRET")))))
		})
	}
}

// TestEverythingIsTaken has the machines that have every field between them, which the sandbox brings to life.
func TestEverythingIsTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file, err := os.ReadFile("../sandbox/testdata/everything.yaml")
	d.Expect(err).NotTo(HaveOccurred())
	taken := 0
	for _, text := range strings.Split(string(file), "\n---\n") {
		object := &unstructured.Unstructured{}
		d.Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
		if object.GetKind() == "ProxmoxMachineTemplate" {
			object.SetNamespace(d.namespace)
			d.Expect(d.client.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
			taken++
		}
	}
	d.Expect(taken).To(Equal(3))
}
