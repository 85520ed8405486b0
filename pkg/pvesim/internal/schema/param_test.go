package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func netFormat() schema.PropertyString {
	return schema.PropertyString{
		DefaultKey: "model", Aliases: []schema.Alias{
			{Key: "virtio", Of: "macaddr", KeyOf: "model"}, {Key: "e1000", Of: "macaddr", KeyOf: "model"}, {Key: "mac", Of: "macaddr"},
		},
		Params: []schema.Param{
			schema.Choice("model", "virtio", "e1000").Required(), schema.Text("macaddr").Format("mac-addr"), schema.Text("bridge"),
			schema.Integer("tag").Min(1).Max(4094).Requires("bridge"),
		},
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		param schema.Param
		value string
		want  string
	}{
		{schema.Text("x"), "", ""},
		{schema.Integer("x"), "-12", ""},
		{schema.Integer("x"), "1.5", "type check ('integer') failed - got '1.5'"},
		{schema.Number("x"), "1.5e3", ""},
		{schema.Number("x"), "one", "type check ('number') failed - got 'one'"},
		{schema.Boolean("x"), "1", ""},
		{schema.Boolean("x"), "yes", "type check ('boolean') failed - got 'yes'"},
		{schema.Choice("x", "a", "b"), "c", "value 'c' does not have a value in the enumeration 'a, b'"},
		{schema.Integer("x").Min(1), "0", "value must have a minimum value of 1"},
		{schema.Number("x").Max(0.5), "0.6", "value must have a maximum value of 0.5"},
		{schema.Text("x").MaxLength(2), "äöü", "value may only be 2 characters long"},
		{schema.Text("x").MaxLength(3), "äöü", ""},
		{schema.Text("x").Pattern(`a+`), "aab", "value does not match the regex pattern"},
		{schema.VMID("x"), "99", "invalid format - value does not look like a valid VM ID\n"},
		{schema.VMID("x"), "100", ""},
		{schema.Text("net0").Of(netFormat()), "virtio,tag=0,bridge=b", "invalid format - format error\nnet0.tag: value must have a minimum value of 1\n"},
		{schema.Text("net0").Of(netFormat()), "virtio,tag=1", "invalid format - format error\nnet0.bridge: missing property required by 'net0.tag'\n"},
	} {
		if got := schema.Wording9.Check(&c.param, c.param.Name, c.value); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.param.Kind, c.value, got, c.want)
		}
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	params := []schema.Param{
		schema.VMID("vmid").Required(), schema.Boolean("force").Requires("delete"), schema.Text("delete"), schema.Text("net").Times(2).Required(),
	}
	for _, c := range []struct {
		given map[string]string
		want  map[string]string
	}{
		{map[string]string{"vmid": "100", "net1": "x"}, map[string]string{}},
		{map[string]string{}, map[string]string{"vmid": "property is missing and it is not optional"}},
		{map[string]string{"vmid": "100", "force": "1"}, map[string]string{"delete": "missing property required by 'force'"}},
		{
			map[string]string{"vmid": "100", "net2": "x"},
			map[string]string{"net2": "property is not defined in schema and the schema does not allow additional properties"},
		},
	} {
		if diff := cmp.Diff(c.want, schema.Wording9.Verify(params, c.given)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.given, diff)
		}
	}
}

func TestBuildersLeaveTheirOriginalAlone(t *testing.T) {
	t.Parallel()
	plain := schema.Text("x")
	if plain.Required().MaxLength(3).Optional || !plain.Optional || plain.Longest != 0 {
		t.Errorf("changed: %+v", plain)
	}
}

func TestPropertyStrings(t *testing.T) {
	t.Parallel()
	format := netFormat()
	for value, want := range map[string]schema.Properties{
		"":                                  {},
		"virtio":                            {"model": "virtio"},
		"virtio=BC:24:11:00:00:01,bridge=b": {"model": "virtio", "macaddr": "BC:24:11:00:00:01", "bridge": "b"},
		"model=e1000,,bridge=b=c":           {"model": "e1000", "bridge": "b=c"},
		"bridge=b,virtio":                   {"model": "virtio", "bridge": "b"},
	} {
		got, msg := format.Parse(value)
		if diff := cmp.Diff(want, got); diff != "" || msg != "" {
			t.Errorf("%q: %s (-want +got):\n%s", value, msg, diff)
		}
	}
}

func TestMalformedPropertyStrings(t *testing.T) {
	t.Parallel()
	format := netFormat()
	for value, want := range map[string]string{
		"virtio,bare": "duplicate key in comma-separated list property: model", "bridge=": "missing key in comma-separated list property",
		"bridge=a,bridge=b": "duplicate key in comma-separated list property: bridge", "virtio=x,e1000=y": "key alias 'model' is already defined",
	} {
		if _, msg := format.Parse(value); msg != want {
			t.Errorf("%q: got %q, want %q", value, msg, want)
		}
	}
	keys := schema.PropertyString{Params: []schema.Param{schema.Text("a")}}
	if _, msg := keys.Parse("bare"); msg != "value without key, but schema does not define a default key" {
		t.Errorf("a bare word without a default key: %q", msg)
	}
}

func TestOpenFormatsTakeUnknownProperties(t *testing.T) {
	t.Parallel()
	open := schema.PropertyString{Open: true, Params: []schema.Param{schema.Boolean("a")}}
	for value, want := range map[string]string{"a=1,b=2": "", "a=x,b=2": "format error\nx.a: type check ('boolean') failed - got 'x'\n"} {
		if got := schema.Wording9.CheckProperties(open, "x", value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func TestAliasesAndBooleansOfPropertyStrings(t *testing.T) {
	t.Parallel()
	format := netFormat()
	format.Params = append(format.Params, schema.Boolean("firewall"))
	got, _ := format.Parse("virtio,mac=BC:24:11:00:00:01,firewall=yes")
	if diff := cmp.Diff(schema.Properties{"model": "virtio", "macaddr": "BC:24:11:00:00:01", "firewall": "1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWholeIsCheckedLast(t *testing.T) {
	t.Parallel()
	format := netFormat()
	format.Whole = func(schema.Properties) string { return "not together" }
	for value, want := range map[string]string{"virtio": "not together\n", "virtio,bridge=b,tag=0": "format error\nnet0.tag: value must have a minimum value of 1\n"} {
		if got := schema.Wording9.CheckProperties(format, "net0", value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func TestWordings(t *testing.T) {
	t.Parallel()
	params := []schema.Param{schema.Text("a").Requires("b"), schema.Text("b")}
	for wording, want := range map[schema.Wording]string{
		schema.Wording8: "missing property - 'a' requires this property", schema.Wording9: "missing property required by 'a'",
	} {
		if got := wording.Verify(params, map[string]string{"a": "1"})["b"]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]proxmox.Bytes{
		"": 0, "x": 0, "-1": 0, "4096": 4096, "1K": 1024, "512M": 512 << 20, "3.5G": 7 << 29, "2T": 2 << 40, "9e99T": 0,
	} {
		if got := schema.ParseSize(text); got != want {
			t.Errorf("%q is %d bytes, want %d", text, got, want)
		}
	}
	for n, want := range map[proxmox.Bytes]string{1023: "1023", 1024: "1K", 7 << 29: "3584M", 10 << 30: "10G", 2048 << 40: "2048T"} {
		if got := schema.FormatSize(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}
