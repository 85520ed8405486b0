package pveschema_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
)

// shared is where schema and recordings lie, beside the repository.
const shared = "../../../shared"

func load(t *testing.T, version string) *pveschema.Schema {
	t.Helper()
	schema, err := pveschema.LoadSchema(filepath.Join(shared, "pve-api"), version)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no API schema beside the repository: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestValidate(t *testing.T) {
	const config = "/nodes/pve1/qemu/101/config"
	cases := []struct {
		name, method, path string
		params             map[string]string
		wrong              string
	}{
		{name: "plain read", method: "GET", path: "/version"},
		{name: "unknown path", method: "GET", path: "/versions", wrong: "no such path"},
		{name: "unknown method", method: "POST", path: "/version", wrong: "no such method"},
		{name: "required", method: "POST", path: "/nodes/pve1/qemu/100/clone", wrong: "newid: property is missing"},
		{name: "good clone", method: "POST", path: "/nodes/pve1/qemu/100/clone", params: map[string]string{"newid": "101", "full": "1"}},
		{name: "boolean", method: "POST", path: "/nodes/pve1/qemu/100/clone", params: map[string]string{"newid": "101", "full": "true"}, wrong: "boolean"},
		{name: "undefined", method: "POST", path: "/nodes/pve1/qemu/100/clone", params: map[string]string{"newid": "101", "tags": "a"}, wrong: "tags: property is not defined"},
		{name: "VMID in path", method: "GET", path: "/nodes/pve1/qemu/1/config", wrong: "vmid"},
		{name: "node in path", method: "GET", path: "/nodes/pve_1/qemu/101/config", wrong: "node"},
		{name: "integer", method: "PUT", path: config, params: map[string]string{"cores": "2.0"}, wrong: "integer"},
		{name: "minimum", method: "PUT", path: config, params: map[string]string{"cores": "0"}, wrong: "minimum"},
		{name: "maximum", method: "PUT", path: config, params: map[string]string{"cpulimit": "129"}, wrong: "maximum"},
		{name: "enum", method: "PUT", path: config, params: map[string]string{"bios": "efi"}, wrong: "none of"},
		{name: "length", method: "PUT", path: config, params: map[string]string{"description": strings.Repeat("x", 8193)}, wrong: "characters long"},
		{name: "name", method: "PUT", path: config, params: map[string]string{"name": "a_b"}, wrong: "dns-name"},
		{name: "tags", method: "PUT", path: config, params: map[string]string{"tags": "a;b:c"}, wrong: "pve-tag"},
		{name: "sshkeys unencoded", method: "PUT", path: config, params: map[string]string{"sshkeys": "ssh-ed25519 A"}, wrong: "urlencoded"},
		{name: "sshkeys", method: "PUT", path: config, params: map[string]string{"sshkeys": "ssh-ed25519%20A"}},
		{name: "masked", method: "PUT", path: config, params: map[string]string{"sshkeys": "***"}},
		{name: "net", method: "PUT", path: config, params: map[string]string{"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1"}},
		{name: "net key", method: "PUT", path: config, params: map[string]string{"net0": "virtio,bridg=vmbr0"}, wrong: "bridg: property is not defined"},
		{name: "net index", method: "PUT", path: config, params: map[string]string{"net32": "virtio"}, wrong: "net32: property is not defined"},
		{name: "numa", method: "PUT", path: config, params: map[string]string{"numa0": "cpus=0-1,hostnodes=0,memory=1024,policy=bind"}},
		{name: "numa policy", method: "PUT", path: config, params: map[string]string{"numa0": "cpus=0-1,policy=hard"}, wrong: "policy"},
		{name: "gateway needs address", method: "PUT", path: config, params: map[string]string{"ipconfig0": "gw=10.0.0.1"}, wrong: "requires ip"},
		{name: "address", method: "PUT", path: config, params: map[string]string{"ipconfig0": "ip=10.0.0.7/24,gw=10.0.0.1,ip6=auto"}},
		{name: "resize", method: "PUT", path: "/nodes/pve1/qemu/101/resize", params: map[string]string{"disk": "scsi0", "size": "32G"}},
		{name: "resize unit", method: "PUT", path: "/nodes/pve1/qemu/101/resize", params: map[string]string{"disk": "scsi0", "size": "32Gi"}, wrong: "pattern"},
		{name: "resize disk", method: "PUT", path: "/nodes/pve1/qemu/101/resize", params: map[string]string{"disk": "net0", "size": "1G"}, wrong: "none of"},
		{name: "volume with slashes", method: "DELETE", path: "/nodes/pve1/storage/local/content/local:iso/a.iso"},
		{name: "volume escaped", method: "DELETE", path: "/nodes/pve1/storage/local/content/local:iso%2Fa.iso"},
		{
			name: "checksum without algorithm", method: "POST", path: "/nodes/pve1/storage/local/upload",
			params: map[string]string{"content": "iso", "filename": "a.iso", "checksum": "00"}, wrong: "requires checksum-algorithm",
		},
	}
	for _, version := range []string{"8.4", "9.2"} {
		schema := load(t, version)
		for _, c := range cases {
			t.Run(version+" "+c.name, func(t *testing.T) {
				err := schema.Validate(c.method, c.path, c.params)
				if c.wrong == "" && err != nil {
					t.Errorf("refused: %v", err)
				}
				if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
					t.Errorf("got %v, want an error with %q", err, c.wrong)
				}
			})
		}
	}
}

// exchange is a line of a recording.
type exchange struct {
	Seq       int             `json:"seq"`
	Method    string          `json:"method"`
	Path      string          `json:"path"`
	Params    json.RawMessage `json:"params"`
	Status    int             `json:"status"`
	Reason    string          `json:"reason"`
	HeldOut   bool            `json:"held_out"`
	Multipart bool            `json:"multipart"`
}

// TestRecordings holds the validator against a real server: what PVE accepted must be valid, and most of what it refused
// as malformed must not be.
func TestRecordings(t *testing.T) {
	for _, version := range []string{"8.4", "9.2"} {
		t.Run(version, func(t *testing.T) {
			schema := load(t, version)
			refused, seen := 0, 0
			for _, e := range recorded(t, version) {
				err := schema.Validate(e.Method, e.Path, e.params())
				switch {
				case e.Status >= 200 && e.Status < 300 && err != nil:
					t.Errorf("line %d: PVE accepts what the schema refuses: %v", e.Seq, err)
				case e.Status == 400 && e.Reason == "Parameter verification failed.":
					seen++
					if err != nil {
						refused++
					}
				}
			}
			t.Logf("refused %d of the %d requests that PVE calls malformed", refused, seen)
			if refused*10 < seen*6 {
				t.Errorf("refused only %d of %d malformed requests", refused, seen)
			}
		})
	}
}

func recorded(t *testing.T, version string) []exchange {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shared, "pve-recordings", version, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("no recordings beside the repository")
	}
	var all []exchange
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var e exchange
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e.Method != "" && e.Path != "/" && !e.HeldOut && !e.Multipart {
				all = append(all, e)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
	return all
}

func (e exchange) params() map[string]string {
	var values map[string]any
	_ = json.Unmarshal(e.Params, &values)
	params := map[string]string{}
	for key, value := range maps.All(values) {
		if word, ok := value.(string); ok && len(word) > 2 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			value = "***" // TOKEN, PASSWORD, PEM: removed by the recorder
		}
		params[key] = text(value)
	}
	return params
}

// text is a form's text for the values of JSON bodies.
func text(value any) string {
	switch value := value.(type) {
	case bool:
		if value {
			return "1"
		}
		return "0"
	case float64:
		return fmt.Sprintf("%.10g", value)
	case []any:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = text(item)
		}
		return strings.Join(items, ",")
	default:
		return fmt.Sprint(value)
	}
}
