package sandbox_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// secondNetwork is what the guest of the second machine is told of its networks, in the form that cloud-init had first.
const secondNetwork = `
version: 1
config:
  - type: physical
    name: eth0
    mac_address: MAC0
    accept-ra: true
    subnets:
      - {type: static, address: NODE4/24, gateway: 10.20.7.1}
      - {type: ipv6_slaac}
  - type: physical
    name: eth1
    mac_address: MAC1
    accept-ra: true
    subnets:
      - {type: dhcp6}
`

// checkOthers checks the machines that have what the one with everything cannot have.
func checkOthers(first everything) {
	first.t.Helper()
	second := everything{t: first.t, scenario: first.scenario, deployment: "second"}
	second.becomesReady()
	second.checkKeys(wantedOfSecond())
	second.isTold(secondNetwork)

	third := everything{t: first.t, scenario: first.scenario, deployment: "third"}
	third.becomesReady()
	third.checkKeys(wantedOfThird())
}

// isTold compares what the guest was told of its networks.
func (m *everything) isTold(text string) {
	m.t.Helper()
	node := m.addresses("10.20.7.")
	if len(node) != 1 {
		m.t.Fatalf("%s has the addresses %v", m.machine.Name, node)
	}
	words := []string{"NODE4", node[0]}
	for _, device := range []string{"0", "1"} {
		_, value, _ := strings.Cut(m.vm().Config["net"+device], "=")
		mac, _, _ := strings.Cut(value, ",")
		words = append(words, "MAC"+device, strings.ToLower(mac))
	}
	var got, want map[string]any
	must(m.t, yaml.Unmarshal([]byte(m.scenario.Sandbox.NetworkConfig(m.machine.VMID)), &got))
	must(m.t, yaml.Unmarshal([]byte(strings.NewReplacer(words...).Replace(text)), &want))
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("the guest of %s is not told of its networks what is asked (-want +got):\n%s", m.machine.Name, diff)
	}
}
