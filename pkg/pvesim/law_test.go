package pvesim

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func TestSizesSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := proxmox.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "bytes"))
		if got := parseSize(formatSize(n)); got != n {
			t.Fatalf("%d became %s became %d", n, formatSize(n), got)
		}
	})
}

func TestNormalTagsAreNormal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		once := normalTags(rapid.StringMatching(`[a-zA-Z0-9,; _-]*`).Draw(t, "tags"))
		if twice := normalTags(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}

// TestNothingPanics feeds anything to what parses input of clients and guests.
func TestNothingPanics(t *testing.T) {
	t.Parallel()
	params := configParams(V92)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9=,:;/.%-]*`)).Draw(t, "text")
		for _, p := range params {
			p.check(p.name, text)
		}
		_ = parseDrive(text).String()
		parseSize(text)
		validCPUSet(text)
		lastCPU(text)
		_ = isDrive(text)
		cleanFileName(text)
		_, _ = newSeed(map[string]string{"meta-data": text, "user-data": "## template: jinja\n" + text, "network-config": text})
		_, _ = readSeed([]Medium{{Content: []byte(text)}, {Content: []byte(strings.Repeat(text, isoBlock))}})
		table := newRouteTable(V92)
		table.find("GET", text)
	})
}

// TestConfigParametersAreFound looks every parameter up by a name that clients use.
func TestConfigParametersAreFound(t *testing.T) {
	t.Parallel()
	for key, known := range map[string]bool{"net0": true, "net31": true, "net32": false, "net": false, "net00": false, "scsi30": true, "scsi31": false, "numa": true, "numa7": true, "numa8": false, "smbios1": true, "smbios": false} {
		if got := lookup(configParams(V84), key) != nil; got != known {
			t.Errorf("%s is known: %t", key, got)
		}
	}
}
