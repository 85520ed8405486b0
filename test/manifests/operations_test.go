package manifests_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestEveryReasonIsExplained checks that the pages for users name every reason that a condition of a machine can have.
func TestEveryReasonIsExplained(t *testing.T) {
	pages := string(read(t, "docs/operations.md")) + string(read(t, "docs/proxmoxmachine.md"))
	reasons := regexp.MustCompile(`(?m)^\t\w+\s+= "(\w+)"`).FindAllStringSubmatch(string(read(t, "pkg/plan/reasons.go")), -1)
	if len(reasons) < 30 {
		t.Fatalf("pkg/plan/reasons.go has %d reasons that this test understands", len(reasons))
	}
	untold := map[string]bool{"Running": true, "Deleted": true, "ReleasingAddresses": true} // they say all there is
	for _, reason := range reasons {
		if !untold[reason[1]] && !strings.Contains(pages, "`"+reason[1]+"`") {
			t.Errorf("neither docs/operations.md nor docs/proxmoxmachine.md explains the reason %s", reason[1])
		}
	}
}
