package vmconfig_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

var update = flag.Bool("update", false, "write docs/fields.md anew")

const page = "../../../docs/fields.md"

const intro = `# The fields of a ProxmoxMachine

This page is made by ` + "`make generate`" + ` from the tables that the provider works with (pkg/plan/vmconfig). It says which key of the
VM's config a field is, and how a change of it takes effect:

* **Live**: at once, while the VM runs.
* **Hotplug (feature)**: at once where ` + "`options.hotplug`" + ` has the feature and the guest plays along; else as Reboot.
* **Reboot**: when the VM is stopped and started, or rebooted by Proxmox VE. A reboot from inside the guest is not enough.
* **Replace**: with another VM. What was made, or was told the guest at its first start, cannot be changed.

A field that is not set leaves what the template has, but for ` + "`cpu.vcpus` and `network.devices[].vlan`" + `, without which there is none.

| field | config | takes effect | |
|---|---|---|---|
`

const examples = `
## One example each

Each line is a part of a ` + "`spec`" + `, and what the VM's config says then.

` + "```yaml\n"

func TestThePageOfTheFields(t *testing.T) {
	var b strings.Builder
	b.WriteString(intro)
	for _, field := range vmconfig.Fields() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", field.Path, keyOf(field), field.Effect, field.Note)
	}
	b.WriteString(examples)
	for _, field := range allFields() {
		config := maps.Clone(field.want)
		if !strings.HasPrefix(field.name, "netboot") {
			delete(config, "scsi0") // the template's
		}
		fmt.Fprintf(&b, "%s # %s\n", example(t, field), configText(config))
	}
	b.WriteString("```\n")
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(page)
	if diff := cmp.Diff(b.String(), string(is)); err != nil || diff != "" {
		t.Errorf("docs/fields.md is out of date, run `make generate` (%v, -want +is):\n%s", err, diff)
	}
}

func keyOf(field vmconfig.Field) string {
	switch {
	case field.Key == "":
		return ""
	case field.Part == "":
		return "`" + field.Key + "`"
	}
	return "`" + field.Key + "`: " + field.Part
}

func configText(config vmconfig.Config) string {
	lines := make([]string, 0, len(config))
	for _, key := range slices.Sorted(maps.Keys(config)) {
		lines = append(lines, key+": "+config[key])
	}
	return strings.Join(lines, "; ")
}

// example is the field as a part of a spec, on one line.
func example(t *testing.T, field field) string {
	t.Helper()
	var asked spec
	field.set(&asked)
	data, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if text := flow(values[key]); text != "{}" {
			parts = append(parts, key+": "+text)
		}
	}
	return strings.Join(parts, "\n")
}

// plain is a text that YAML takes for one without quotes.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9/._-]*$`)

// flow writes a value as YAML does on one line. Empty objects are left out.
func flow(value any) string {
	switch value := value.(type) {
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if text := flow(value[key]); text != "{}" {
				parts = append(parts, key+": "+text)
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(value))
		for i, item := range value {
			parts[i] = flow(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		if plain.MatchString(value) {
			return value
		}
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprint(value)
}
