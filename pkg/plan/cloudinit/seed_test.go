package cloudinit_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

var update = flag.Bool("update", false, "write the golden files anew")

const uuid = proxmox.SMBIOSUUID("8d1ab5f6-59f1-4a3e-9a0b-0d6f2a5b7c11")

func seedOf(t *testing.T, g guest) cloudinit.Seed {
	t.Helper()
	seed, err := cloudinit.NewSeed("worker-1", uuid, g.config(), "#cloud-config\n")
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

func TestSeedsAreAsInTheGoldenFiles(t *testing.T) {
	for _, g := range guests() {
		t.Run(g.name, func(t *testing.T) {
			seed := seedOf(t, g)
			golden(t, g.name+".network-config.yaml", seed.NetworkConfig)
			golden(t, "meta-data.yaml", seed.MetaData)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: make it with `go test -update`", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestTheNetworkConfigReadsBackAsItWas(t *testing.T) {
	for _, g := range guests() {
		if g.spec.ConfigVersion == 1 {
			continue // nothing reads version 1 but cloud-init
		}
		t.Run(g.name, func(t *testing.T) {
			var got network.Config
			if err := yaml.UnmarshalStrict([]byte(seedOf(t, g).NetworkConfig), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(g.config(), got); diff != "" {
				t.Errorf("network config (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNamesThatLookLikeOtherThingsStayNames holds words that YAML reads as something else than text, unless they are quoted.
func TestNamesThatLookLikeOtherThingsStayNames(t *testing.T) {
	for _, name := range []string{"yes", "no", "on", "null", "1e5", "0x12", "017", "12:30", "1_000", "2026-01-01", "~", "3.0", ".inf", "a: b", "- a", "#a", "{{ x }}", "é", "a\nb", ""} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(name, hostnameIn(t, name)); diff != "" {
				t.Errorf("local-hostname (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnyNameReadsBackAsItWas or is refused, as one with control characters is, for which YAML has no reading.
func TestAnyNameReadsBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-0-9a-z.:_{}\[\]#&*!|>'"%@ \n]{0,20}`)).Draw(t, "name")
		if strings.ContainsFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || unicode.IsControl(r) && r != '\n' }) {
			t.Skip("no text")
		}
		if diff := cmp.Diff(name, hostnameIn(t, name)); diff != "" {
			t.Fatalf("local-hostname (-want +got):\n%s", diff)
		}
	})
}

func TestANameWithControlCharactersIsRefused(t *testing.T) {
	_, err := cloudinit.NewSeed("worker\x7f", uuid, network.Config{}, "")
	if err == nil || !strings.HasPrefix(err.Error(), "render meta-data of worker\x7f: ") {
		t.Errorf("error is %v", err)
	}
}

// fatal is the part of a test that may end it.
type fatal interface {
	Helper()
	Fatal(args ...any)
}

// hostnameIn makes the seed of a machine of that name and returns the host name that a reader finds in it.
func hostnameIn(t fatal, name string) string {
	t.Helper()
	seed, err := cloudinit.NewSeed(name, uuid, network.Config{}, "")
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]string
	if err := yaml.UnmarshalStrict([]byte(seed.MetaData), &meta); err != nil {
		t.Fatal(err)
	}
	if meta["instance-id"] != string(uuid) || len(meta) != 2 {
		t.Fatal("meta-data holds something else than the identity and the name: ", seed.MetaData)
	}
	return meta["local-hostname"]
}

// TestADecimalMACAddressIsNotANumber: YAML 1.1, which cloud-init reads, takes 12:34 for 754.
func TestADecimalMACAddressIsNotANumber(t *testing.T) {
	config := network.Config{Version: 2, Ethernets: map[string]network.Ethernet{"net0": {Match: network.Match{MACAddress: "12:34:56:12:34:56"}}}}
	seed, err := cloudinit.NewSeed("worker-1", uuid, config, "")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(seed.NetworkConfig, `macaddress: "12:34:56:12:34:56"`) {
		t.Errorf("the MAC address is not quoted:\n%s", seed.NetworkConfig)
	}
}

func TestUserDataIsKeptToTheByte(t *testing.T) {
	data := cloudinit.UserData("## template: jinja\r\n#cloud-config\n\x00ü\xff")
	seed, err := cloudinit.NewSeed("worker-1", uuid, network.Config{}, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte(data), []byte(seed.UserData)); diff != "" {
		t.Errorf("user-data (-want +got):\n%s", diff)
	}
}

func TestUserDataNeverPrints(t *testing.T) {
	const token = "abcdef.0123456789abcdef"
	seed := cloudinit.Seed{UserData: token}
	texts := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T"} {
		texts[verb] = fmt.Sprintf(verb, seed.UserData)
		texts["a seed with "+verb] = fmt.Sprintf(verb, seed)
		texts["a pointer with "+verb] = fmt.Sprintf(verb, &seed)
	}
	texts["an error"] = fmt.Errorf("upload %v: %w", seed, os.ErrNotExist).Error()
	asJSON, err := json.Marshal(seed)
	texts["JSON"] = fmt.Sprint(string(asJSON), err)
	asYAML, err := yaml.Marshal(seed)
	texts["YAML"] = fmt.Sprint(string(asYAML), err)
	for how, text := range texts {
		if strings.Contains(text, token) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", token)) {
			t.Errorf("%s shows the data: %s", how, text)
		}
	}
}
