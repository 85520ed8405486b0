package pvesim

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// TestNothingPanics feeds anything to what parses input of clients and guests.
func TestNothingPanics(t *testing.T) {
	t.Parallel()
	params := configParams(V92)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9=,:;/.%-]*`)).Draw(t, "text")
		for _, p := range params {
			V92.wording().Check(&p, p.Name, text)
		}
		_ = parseDrive(text).String()
		cpuSet(text)
		_ = isDrive(text)
		cleanFileName(text)
		_, _ = readSeed([]Medium{{Content: []byte(text)}, {Content: []byte(strings.Repeat(text, 2048))}})
		table := newRouteTable(V92)
		table.find("GET", text)
	})
}

// TestConfigParametersAreFound looks every parameter up by a name that clients use.
func TestConfigParametersAreFound(t *testing.T) {
	t.Parallel()
	for key, known := range map[string]bool{"net0": true, "net31": true, "net32": false, "net": false, "net00": false, "scsi30": true, "scsi31": false, "numa": true, "numa7": true, "numa8": false, "smbios1": true, "smbios": false} {
		if got := schema.Lookup(configParams(V84), key) != nil; got != known {
			t.Errorf("%s is known: %t", key, got)
		}
	}
}
