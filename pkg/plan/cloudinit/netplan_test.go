package cloudinit_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// generator is netplan's program that writes networkd's files; without it the test is skipped.
func generator(t *testing.T) string {
	t.Helper()
	places := []string{os.Getenv("NETPLAN_GENERATE"), "/usr/libexec/netplan/generate", "/usr/lib/netplan/generate", "/lib/netplan/generate"}
	for _, place := range places {
		if _, err := os.Stat(place); err == nil {
			return place
		}
	}
	t.Skip("netplan is not installed: `apt-get install netplan.io` to have it judge the network configs")
	return ""
}

// TestNetplanUnderstandsTheNetworkConfig has the real netplan make networkd's files of what cloud-init passes on to it.
func TestNetplanUnderstandsTheNetworkConfig(t *testing.T) {
	program := generator(t)
	for _, g := range guests() {
		if g.spec.ConfigVersion == 1 {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			config, root := g.config(), t.TempDir()
			text, err := yaml.Marshal(map[string]network.Config{"network": config})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(root, "etc/netplan"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, netplanFile), text, 0o600); err != nil {
				t.Fatal(err)
			}
			output, err := exec.CommandContext(t.Context(), program, "--root-dir", root).CombinedOutput()
			if err != nil {
				t.Fatalf("netplan: %v\n%s", err, output)
			}
			for name, e := range config.Ethernets {
				lacksNone(t, read(t, root, "run/systemd/network/10-netplan-"+name+".network"), ofEthernet(name, e, config))
			}
			for name, vrf := range config.VRFs {
				lacksNone(t, read(t, root, "run/systemd/network/10-netplan-"+name+".netdev"), []section{{"VRF", []string{fmt.Sprintf("Table=%d", vrf.Table)}}})
				lacksNone(t, read(t, root, "run/systemd/network/10-netplan-"+name+".network"), append(ofRoutes(vrf.Routes), ofRules(vrf.RoutingPolicy, vrf.Table)...))
			}
		})
	}
}

func lacksNone(t *testing.T, text string, wanted []section) {
	t.Helper()
	all := sections(text)
	for _, want := range wanted {
		if !has(all, want.name, want.lines...) {
			t.Errorf("lacks %v:\n%s", want, text)
		}
	}
}

func ofEthernet(name string, e network.Ethernet, config network.Config) []section {
	acceptRA := map[bool]string{true: "IPv6AcceptRA=yes", false: "IPv6AcceptRA=no"}
	lines := []string{acceptRA[e.AcceptRA]}
	for _, address := range e.Addresses {
		lines = append(lines, "Address="+address)
	}
	if e.Gateway6 != "" {
		lines = append(lines, "Gateway="+e.Gateway6)
	}
	if e.Nameservers != nil {
		for _, server := range e.Nameservers.Addresses {
			lines = append(lines, "DNS="+server)
		}
	}
	for vrf, v := range config.VRFs {
		if slices.Contains(v.Interfaces, name) {
			lines = append(lines, "VRF="+vrf)
		}
	}
	want := append([]section{{"Network", lines}}, ofRoutes(e.Routes)...)
	if e.MTU != 0 {
		want = append(want, section{"Link", []string{fmt.Sprintf("MTUBytes=%d", e.MTU)}})
	}
	if e.Optional {
		want = append(want, section{"Link", []string{"RequiredForOnline=no"}})
	}
	return append(append(want, ofRules(e.RoutingPolicy, 0)...), ofDHCP(e)...)
}

func ofDHCP(e network.Ethernet) []section {
	var lines []string
	if e.DHCP4Overrides != nil && e.DHCP4Overrides.RouteMetric != nil {
		lines = append(lines, fmt.Sprintf("RouteMetric=%d", *e.DHCP4Overrides.RouteMetric))
	}
	if e.DHCP4Overrides != nil && e.DHCP4Overrides.UseRoutes != nil {
		lines = append(lines, fmt.Sprintf("UseRoutes=%t", *e.DHCP4Overrides.UseRoutes))
	}
	if len(lines) == 0 {
		return nil
	}
	return []section{{"DHCP", lines}}
}

func ofRoutes(routes []network.Route) []section {
	var want []section
	for _, route := range routes {
		lines := []string{"Destination=" + route.To}
		if route.Via != "" {
			lines = append(lines, "Gateway="+route.Via)
		}
		if route.Scope != "" {
			lines = append(lines, "Scope="+route.Scope)
		}
		if route.OnLink {
			lines = append(lines, "GatewayOnLink=true")
		}
		if route.Metric != nil {
			lines = append(lines, fmt.Sprintf("Metric=%d", *route.Metric))
		}
		if route.Table != 0 {
			lines = append(lines, fmt.Sprintf("Table=%d", route.Table))
		}
		want = append(want, section{"Route", lines})
	}
	return want
}

// ofRules are rules of a routing policy; those of a VRF, which has a table, are in that.
func ofRules(rules []network.RoutingPolicyRule, table int32) []section {
	var want []section
	for _, rule := range rules {
		lines := []string{fmt.Sprintf("Table=%d", max(rule.Table, table))}
		for key, value := range map[string]string{"From": rule.From, "To": rule.To} {
			if value != "" {
				lines = append(lines, key+"="+value)
			}
		}
		if rule.Priority != nil {
			lines = append(lines, fmt.Sprintf("Priority=%d", *rule.Priority))
		}
		want = append(want, section{"RoutingPolicyRule", lines})
	}
	return want
}

// TestEverySectionIsRead keeps the reader of networkd's files honest.
func TestEverySectionIsRead(t *testing.T) {
	all := sections("[A]\nx=1\n\ny=2\n[B]\n\n[A]\nx=3\n")
	for _, c := range []struct {
		want  bool
		name  string
		lines string
	}{{true, "A", "x=1 y=2"}, {false, "A", "x=1 x=3"}, {true, "A", "x=3"}, {true, "B", ""}, {false, "C", ""}, {false, "B", "x=1"}} {
		if got := has(all, c.name, strings.Fields(c.lines)...); got != c.want {
			t.Errorf("section %s has %s: %t", c.name, c.lines, got)
		}
	}
}
