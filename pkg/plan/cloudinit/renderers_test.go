package cloudinit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// converter runs cloud-init's own `devel net-convert` for each list of arguments that it reads. It loads it once, which takes
// long; a process of its own for each keeps one from changing the settings of the next.
const converter = `
import json, os, sys
from cloudinit.cmd.devel import net_convert
failed = 0
for args in json.load(sys.stdin):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            net_convert.handle_args("net-convert", net_convert.get_parser().parse_args(args))
            status = 0
        finally:
            sys.stdout.flush()
            if status:
                import traceback
                traceback.print_exc()
                print("failed:", args)
                sys.stdout.flush()
            os._exit(status)
    failed |= os.waitpid(pid, 0)[1]
sys.exit(1 if failed else 0)
`

// convert has the real cloud-init render the network configs of guests, and returns the directory of each.
func convert(t *testing.T, renderer string, guests []guest) map[string]string {
	t.Helper()
	python := interpreter(t)
	directories, calls := map[string]string{}, [][]string{}
	for _, g := range guests {
		source := write(t, "network-config", []byte(seedOf(t, g).NetworkConfig))
		directories[g.name] = t.TempDir()
		calls = append(calls, []string{"--network-data", source, "--kind", "yaml", "--directory", directories[g.name], "--distro", "debian", "--output-kind", renderer})
	}
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "-c", converter)
	command.Stdin = bytes.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("cloud-init devel net-convert: %v\n%s", err, output)
	}
	for _, complaint := range []string{"Skipping invalid command", "Error", "Traceback"} {
		if strings.Contains(string(output), complaint) {
			t.Errorf("cloud-init says: %s", output)
		}
	}
	return directories
}

// interpreter is the Python that cloud-init runs with; without cloud-init the test is skipped.
func interpreter(t *testing.T) string {
	t.Helper()
	run(t, "--version")
	program, err := exec.LookPath("cloud-init")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	line, _ := bufio.NewReader(file).ReadString('\n')
	python, isScript := strings.CutPrefix(strings.TrimSpace(line), "#!")
	if !isScript {
		t.Skipf("%s starts with %q: which Python does it use?", program, line)
	}
	return strings.Fields(python)[0]
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

const netplanFile = "etc/netplan/50-cloud-init.yaml"

func TestCloudInitRendersTheNetworkConfigForNetplan(t *testing.T) {
	directories := convert(t, "netplan", guests())
	for _, g := range guests() {
		t.Run(g.name, func(t *testing.T) {
			want, text := g.config(), read(t, directories[g.name], netplanFile)
			if g.spec.ConfigVersion == 1 {
				if diff := cmp.Diff(asNetplanOfVersion1(want), readNetplanOfVersion1(t, text)); diff != "" {
					t.Errorf("network config (-want +got):\n%s", diff)
				}
				return
			}
			var got struct{ Network network.Config }
			if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Network); diff != "" {
				t.Errorf("network config (-want +got):\n%s", diff)
			}
		})
	}
}

// readNetplanOfVersion1 reads what cloud-init makes of version 1 for netplan, which has a key that we do without.
func readNetplanOfVersion1(t *testing.T, text string) network.Config {
	t.Helper()
	var got struct {
		Network struct {
			Version   int
			Ethernets map[string]struct {
				network.Ethernet
				Gateway4 string
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	config := network.Config{Ethernets: map[string]network.Ethernet{}}
	for name, e := range got.Network.Ethernets {
		if e.Gateway4 != "" {
			e.Routes = append(e.Routes, network.Route{To: "0.0.0.0/0", Via: e.Gateway4})
		}
		config.Ethernets[name] = e.Ethernet
	}
	return comparable1(config)
}

// asNetplanOfVersion1 is what is left of a config on the way through version 1 and netplan's renderer of cloud-init 22.4.
func asNetplanOfVersion1(config network.Config) network.Config {
	config = comparable1(config)
	for name, e := range config.Ethernets {
		isStatic := len(e.Addresses) > 0
		e.Optional = false     // no word for it
		e.DHCP4Overrides = nil // the metric of DHCP gets lost
		e.DHCP6 = e.AcceptRA   // SLAAC and DHCP are the same to it
		if !isStatic {
			e.Routes, e.Nameservers = nil, nil // it looks for them at static addresses only
		}
		config.Ethernets[name] = e
	}
	return config
}

// comparable1 brings routes into one form and order, which version 1 and netplan's renderer do not keep.
func comparable1(config network.Config) network.Config {
	config.Version = 2
	ethernets := map[string]network.Ethernet{}
	for name, e := range config.Ethernets {
		var routes []network.Route
		for _, route := range e.Routes {
			if route.To == "::/0" && route.Metric == nil {
				e.Gateway6 = route.Via
				continue
			}
			routes = append(routes, network.Route{To: route.To, Via: route.Via, Metric: route.Metric})
		}
		slices.SortFunc(routes, func(a, b network.Route) int { return strings.Compare(a.To+a.Via, b.To+b.Via) })
		e.Routes = routes
		ethernets[name] = e
	}
	config.Ethernets = ethernets
	return config
}

// section is a section of one of networkd's files.
type section struct {
	name  string
	lines []string
}

func sections(text string) []section {
	var all []section
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "["):
			all = append(all, section{name: strings.Trim(line, "[]")})
		default:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
	return all
}

// has reports whether there is a section of the name with all the lines.
func has(all []section, name string, lines ...string) bool {
	return slices.ContainsFunc(all, func(s section) bool {
		return s.name == name && !slices.ContainsFunc(lines, func(line string) bool { return !slices.Contains(s.lines, line) })
	})
}

func TestCloudInitRendersTheNetworkConfigForNetworkd(t *testing.T) {
	known := slices.DeleteFunc(guests(), func(g guest) bool { return len(g.spec.VRFs) > 0 })
	directories := convert(t, "networkd", known)
	for _, g := range known {
		t.Run(g.name, func(t *testing.T) {
			config := g.config()
			for name, e := range config.Ethernets {
				text := read(t, directories[g.name], "etc/systemd/network/10-cloud-init-"+name+".network")
				all := sections(text)
				for _, want := range networkdOf(e, config.Version) {
					if !has(all, want.name, want.lines...) {
						t.Errorf("%s lacks %v:\n%s", name, want, text)
					}
				}
				if wanted := len(e.Addresses); countOf(all, "Address") != wanted {
					t.Errorf("%s has not %d addresses:\n%s", name, wanted, text)
				}
			}
		})
	}
}

func countOf(all []section, name string) int {
	count := 0
	for _, s := range all {
		if s.name == name {
			count += len(s.lines)
		}
	}
	return count
}

// networkdOf is what cloud-init 22.4 tells networkd of a device. Of version 2 it drops metrics and tables of routes and
// policies, makes ::/64 of ::/0, and fails on VRFs; docs/network.md says so.
func networkdOf(e network.Ethernet, version int) []section {
	dhcp := map[[2]bool]string{{false, false}: "no", {true, false}: "ipv4", {false, true}: "ipv6", {true, true}: "yes"}
	want := []section{
		{"Match", []string{"MACAddress=" + e.Match.MACAddress, "Name=" + e.SetName}},
		{"Network", []string{"DHCP=" + dhcp[[2]bool{e.DHCP4, e.DHCP6}]}},
	}
	for _, address := range e.Addresses {
		want = append(want, section{"Address", []string{"Address=" + address}})
	}
	if e.Gateway6 != "" {
		want = append(want, section{"Route", []string{"Gateway=" + e.Gateway6}})
	}
	if e.MTU != 0 {
		want = append(want, section{"Link", []string{fmt.Sprintf("MTUBytes=%d", e.MTU)}})
	}
	if e.DHCP6 {
		want = append(want, section{"Network", []string{"IPv6AcceptRA=True"}})
	}
	return append(append(want, networkdRoutes(e, version)...), networkdNames(e)...)
}

func networkdRoutes(e network.Ethernet, version int) []section {
	var want []section
	for _, route := range e.Routes {
		hasSubnet := len(e.Addresses) > 0 || e.DHCP4 || e.DHCP6
		if !hasSubnet || version == 2 && route.To == "::/0" {
			continue
		}
		isDefault := strings.HasSuffix(route.To, "/0")
		var lines []string
		if version == 2 || !isDefault || route.Metric != nil {
			lines = append(lines, "Destination="+route.To)
		}
		if route.Via != "" {
			lines = append(lines, "Gateway="+route.Via)
		}
		if version == 1 && route.Metric != nil {
			lines = append(lines, fmt.Sprintf("Metric=%d", *route.Metric))
		}
		want = append(want, section{"Route", lines})
	}
	return want
}

func networkdNames(e network.Ethernet) []section {
	if e.Nameservers == nil {
		return nil
	}
	var want []section
	if len(e.Nameservers.Addresses) > 0 {
		want = append(want, section{"Network", []string{"DNS=" + strings.Join(e.Nameservers.Addresses, " ")}})
	}
	if len(e.Nameservers.Search) > 0 {
		want = append(want, section{"Network", []string{"Domains=" + strings.Join(e.Nameservers.Search, " ")}})
	}
	return want
}
