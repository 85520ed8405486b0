package schema_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func TestSizesSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := proxmox.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "bytes"))
		if got := schema.ParseSize(schema.FormatSize(n)); got != n {
			t.Fatalf("%d became %s became %d", n, schema.FormatSize(n), got)
		}
	})
}

func TestNormalTagsAreNormal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		once := schema.NormalTags(rapid.StringMatching(`[a-zA-Z0-9,; _-]*`).Draw(t, "tags"))
		if twice := schema.NormalTags(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}

func TestPropertiesSurviveTheirText(t *testing.T) {
	t.Parallel()
	format := netFormat()
	rapid.Check(t, func(t *rapid.T) {
		want := schema.Properties(rapid.MapOf(rapid.StringMatching(`[a-z]{2,5}`), rapid.StringMatching(`[a-z0-9:]{1,9}`)).Draw(t, "properties"))
		want["model"] = "virtio"
		delete(want, "virtio")
		delete(want, "e1000")
		delete(want, "mac")
		got, msg := format.Parse(want.Print("model"))
		if msg != "" || len(got) != len(want) {
			t.Fatalf("%v became %s became %v %s", want, want.Print("model"), got, msg)
		}
		for key, value := range want {
			if got[key] != value {
				t.Fatalf("%s: %q became %q", key, value, got[key])
			}
		}
	})
}

// TestNothingPanics feeds anything to every kind of check.
func TestNothingPanics(t *testing.T) {
	t.Parallel()
	params := []schema.Param{
		schema.Integer("x").Min(1).Max(5), schema.Number("x").Min(0), schema.Boolean("x"), schema.Choice("x", "a", "b"),
		schema.Text("x").MaxLength(3).Pattern(`[`), schema.Text("x").Of(netFormat()), schema.VMID("x"),
	}
	for name := range formats() {
		params = append(params, schema.Text("x").Format(name))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9=,:;/.%-]*`)).Draw(t, "text")
		for _, p := range params {
			if found, check := schema.Wording9.Verify([]schema.Param{p}, map[string]string{"x": text})["x"], schema.Wording9.Check(&p, "x", text); found != check {
				t.Fatalf("%q is %q and %q", text, found, check)
			}
		}
		schema.ParseSize(text)
		schema.ValidSSHKeys(text)
	})
}
