package integration_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// examples are the YAML blocks of a page.
func examples(t *testing.T, path string) []string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// TestNetworksOfTheDocument has the API server take the examples of docs/network.md, which show every field of the guest's
// network.
func TestNetworksOfTheDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	blocks := examples(t, "../../docs/network.md")
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
