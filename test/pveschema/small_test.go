package pveschema_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
)

// small is a schema in PVE's form, so that the validator is tested also where PVE's own is not at hand.
const small = `[{"path":"/things","children":[{"path":"/things/{node}","info":{
	"GET":{"parameters":{"additionalProperties":0,"properties":{"node":{"type":"string","format":"pve-node"}}}},
	"PUT":{"parameters":{"additionalProperties":0,"properties":{
		"node":{"type":"string"},
		"count":{"type":"integer","minimum":"1","maximum":9},
		"share":{"type":"number","optional":1,"maximum":1},
		"on":{"type":"boolean","optional":"1"},
		"kind":{"enum":["a","b"],"optional":1},
		"word":{"type":"string","pattern":"(?^i:[a-z]+)","minLength":2,"maxLength":4,"optional":1,"requires":"kind"},
		"perl":{"type":"string","pattern":"(?!x).*","optional":1},
		"addr":{"type":"string","format":"ipv4","optional":1},
		"prefix":{"type":"string","format":"CIDR","optional":1},
		"list":{"type":"string","format":"pve-vmid-list","optional":1},
		"odd":{"type":"string","format":"unheard-of","optional":1},
		"disk[n]":{"type":"string","optional":1,"format":{
			"file":{"type":"string","default_key":1},"size":{"type":"integer","optional":1},"ro":{"type":"boolean","optional":1},
			"volume":{"alias":"file"}}},
		"net[n]":{"type":"string","optional":1,"format":{
			"model":{"enum":["virtio","e1000"],"default_key":1},"macaddr":{"type":"string","format":"mac-addr","optional":1},
			"virtio":{"alias":"macaddr","keyAlias":"model"}}}
	}}},
	"POST":{"parameters":{"additionalProperties":1,"properties":{"node":{"type":"string"}}}}
}}]}]`

func loadSmall(t *testing.T) *pveschema.Schema {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1.0.json"), []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, err := pveschema.LoadSchema(dir, "1.0")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSmallSchema(t *testing.T) {
	schema := loadSmall(t)
	cases := []struct{ key, value, wrong string }{
		{"count", "1", ""},
		{"count", "0", "minimum"},
		{"count", "10", "maximum"},
		{"count", "", "integer"},
		{"count", "1e0", "integer"},
		{"share", "0.5", ""},
		{"share", "1.5", "maximum"},
		{"share", "half", "number"},
		{"on", "1", ""},
		{"on", "yes", "boolean"},
		{"kind", "a", ""},
		{"kind", "c", "none of"},
		{"word", "abc", "requires kind"},
		{"perl", "y", ""},
		{"addr", "10.0.0.1", ""},
		{"addr", "10.0.0.256", "ipv4"},
		{"addr", "::1", "ipv4"},
		{"prefix", "10.0.0.0/8", ""},
		{"prefix", "10.0.0.0", "CIDR"},
		{"list", "100,101;102", ""},
		{"list", "100 1", "pve-vmid"},
		{"odd", "anything", ""},
		{"count", "***", ""},
		{"disk0", "local:1,size=2,ro=on", ""},
		{"disk0", "volume=local:1", ""},
		{"disk0", "file=local:1,ro=2", "boolean"},
		{"disk0", "size=2", "file: property is missing"},
		{"disk0", "a,b", "duplicate key"},
		{"disk0", "a,colour=red", "not defined"},
		{"disk", "a", "not defined"},
		{"disk01", "a", "not defined"},
		{"disk256", "a", "not defined"},
		{"net0", "virtio", ""},
		{"net0", "virtio=BC:24:11:00:00:01", ""},
		{"net0", "virtio=x", "mac-addr"},
		{"net0", "model=rtl", "none of"},
		{"net32", "virtio", "not defined"},
		{"colour", "red", "not defined"},
	}
	for _, c := range cases {
		params := map[string]string{"count": "1"}
		params[c.key] = c.value
		err := schema.Validate("PUT", "/things/pve1", params)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s=%s: got %v, want %q", c.key, c.value, err, c.wrong)
		}
	}
}

func TestSmallSchemaPaths(t *testing.T) {
	schema := loadSmall(t)
	cases := []struct{ method, path, wrong string }{
		{"GET", "/things/pve1", ""},
		{"GET", "things/pve1/", ""},
		{"GET", "/things/pve_1", "pve-node"},
		{"GET", "/things/pve%2D1", ""},
		{"GET", "/other", "no such path"},
		{"DELETE", "/things/pve1", "no such method"},
		{"PUT", "/things/pve1", "count: property is missing"},
		{"GET", "/things", "no such method"},
	}
	for _, c := range cases {
		err := schema.Validate(c.method, c.path, nil)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s %s: got %v, want %q", c.method, c.path, err, c.wrong)
		}
	}
	if err := schema.Validate("POST", "/things/pve1", map[string]string{"more": "x"}); err != nil {
		t.Errorf("additional properties: %v", err)
	}
	if err := schema.Validate("PUT", "/things/pve1", map[string]string{"count": "1", "word": "abcde", "kind": "a"}); err == nil {
		t.Error("a long word is valid")
	}
}

func TestSchemaThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := pveschema.LoadSchema(dir, "1.0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1.0.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pveschema.LoadSchema(dir, "1.0"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
