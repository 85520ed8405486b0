package integration_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// examples are the YAML blocks of a page.
func examples(page string) []string {
	var blocks []string
	for _, part := range strings.Split(page, "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// TestPartsOfTheDocument has the API server take the first examples of sections of docs/proxmoxmachine.md, which show every field of
// a part of the spec.
func TestPartsOfTheDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	page, err := os.ReadFile("../../docs/proxmoxmachine.md")
	d.Expect(err).NotTo(HaveOccurred())
	for heading, fields := range map[string][]string{
		"## The firewall": {
			"enabled", "policyIn", "policyOut", "ipFilter", "macFilter", "dhcp", "ndp", "routerAdvertisement", "logLevelIn", "logLevelOut", "securityGroups", "device",
		},
		"## High availability": {"enabled", "maxRestart", "maxRelocate", "failback", "rules", "resourceAffinity", "nodeAffinity", "priority", "strict"},
	} {
		_, section, _ := strings.Cut(string(page), heading+"\n")
		blocks := examples(section)
		d.Expect(blocks).NotTo(BeEmpty(), heading)
		machine := d.validMachine()
		if strings.Contains(blocks[0], "network:") {
			machine.Spec.Network = v1beta1.Network{}
		}
		d.Expect(yaml.UnmarshalStrict([]byte(blocks[0]), &machine.Spec)).To(Succeed(), heading)
		d.Expect(d.client.Create(t.Context(), machine, client.DryRunAll)).To(Succeed(), heading)
		for _, field := range fields {
			d.Expect(blocks[0]).To(ContainSubstring(field+":"), "the example below %q shows every field", heading)
		}
	}
}

// TestNetworksOfTheDocument has the API server take the examples of docs/network.md, which show every field of the guest's
// network.
func TestNetworksOfTheDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	page, err := os.ReadFile("../../docs/network.md")
	d.Expect(err).NotTo(HaveOccurred())
	blocks := examples(string(page))
	d.Expect(blocks).To(HaveLen(4))
	for _, block := range blocks {
		machine := &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: wholeSpec()}
		machine.Spec.Network = v1beta1.Network{}
		d.Expect(yaml.UnmarshalStrict([]byte(block), &machine.Spec)).To(Succeed(), block)
		var network map[string]any
		d.Expect(yaml.Unmarshal([]byte(block), &network)).To(Succeed())
		object := document(t, d.scheme, machine, set("spec.network", network["network"]))
		d.Expect(d.client.Create(t.Context(), object, client.DryRunAll)).To(Succeed(), block)
	}
	all := strings.Join(blocks, "")
	for _, field := range []string{
		"ipv4", "ipv6", "method", "poolRef", "additionalPoolRefs", "prefix", "gateway", "defaultRoute", "metric", "dns", "nameservers", "searchDomains",
		"routes", "to", "via", "table", "routingPolicy", "from", "priority", "vrfs", "configVersion", "mtu", "macAddress", "macPrefix",
	} {
		d.Expect(all).To(ContainSubstring(field+":"), "the examples show every field")
	}
}

// TestWholeExamplesOfTheDocuments has the API server take every example of docs/proxmoxmachine.md and docs/proxmoxcluster.md, the objects
// as they are and the parts of a spec in a machine.
func TestWholeExamplesOfTheDocuments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var kinds []string
	for _, page := range []string{"proxmoxmachine", "proxmoxcluster"} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		d.Expect(err).NotTo(HaveOccurred())
		for _, block := range examples(strings.ReplaceAll(string(text), "AB:CD:…", fingerprint("AB"))) {
			example := &unstructured.Unstructured{}
			d.Expect(yaml.Unmarshal([]byte(block), &example.Object)).To(Succeed(), block)
			switch _, ofKubeadm := example.Object["nodeRegistration"]; {
			case ofKubeadm || strings.HasPrefix(example.GetAPIVersion(), "cluster.x-k8s.io/"):
				continue // other providers'
			case example.GetKind() == "":
				example = d.withParts(example.Object)
			}
			example.SetNamespace(d.namespace)
			d.Expect(d.client.Create(t.Context(), example, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed(), block)
			kinds = append(kinds, example.GetKind())
		}
	}
	d.Expect(kinds).To(ContainElements("ProxmoxMachineTemplate", "ProxmoxMachine", "ProxmoxCluster"))
}

// withParts is a machine with parts of a spec in place of its own.
func (d *desk) withParts(parts anything) *unstructured.Unstructured {
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: machineSpec()}
	var edits []edit
	for field, part := range parts {
		edits = append(edits, set("spec."+field, part))
	}
	return document(d.t, d.scheme, machine, edits...)
}
