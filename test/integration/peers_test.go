package integration_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// updatePeers writes docs/peers.md anew: go test ./test/integration -run TestPeersPage -update-peers
var updatePeers = flag.Bool("update-peers", false, "write docs/peers.md anew")

// peer is a project that makes Kubernetes nodes on Proxmox VE, as it was when it was studied, or a contract that such
// projects have to keep.
type peer struct {
	name string
	// studied says which version, and where it is.
	studied string
	defects []defect
}

// defect is something that went wrong elsewhere. Exactly one of run, by and lacks says why it does not happen here.
type defect struct {
	name string
	// there is what went wrong, here what happens instead.
	there, here string
	// run provokes the circumstances of the defect.
	run func(*testing.T)
	// by are tests that stood before, as `directory TestName/case`.
	by []string
	// lacks is the feature that the defect belongs to, and that CAPVE does not have.
	lacks feature
}

// feature is something that CAPVE does not have, or leaves to others.
type feature string

// The features whose defects have no test here.
const (
	autoscaling  feature = "scaling from the load of pods: cluster-autoscaler or Karpenter do it, and nothing is published for them yet"
	instances    feature = "instance types and offerings for Karpenter"
	images       feature = "templates that the provider makes"
	numa         feature = "CPU pinning and NUMA"
	userTemplate feature = "templates of user data: user data comes from the bootstrap provider and is passed on to the byte"
	rollout      feature = "rolling machines when what they are made from changes: the owner of the machines does it"
	nodeLabels   feature = "labels of Nodes: the bootstrap provider gives them to the kubelet"
	draining     feature = "draining: Cluster API's core cordons and drains a Node before its machine is deleted"
	zoneNetwork  feature = "network settings by zone"
	queues       feature = "message queues and configuration files: all state is in Kubernetes"
)

func peers() []peer {
	return []peer{capmox(), karpenterProxmox(), kproximate(), kubeNodeSmith(), autoscalerContract()}
}

// TestPeers provokes what went wrong elsewhere.
func TestPeers(t *testing.T) {
	t.Parallel()
	for _, peer := range peers() {
		t.Run(peer.name, func(t *testing.T) {
			t.Parallel()
			for _, defect := range peer.defects {
				if defect.run == nil {
					continue
				}
				t.Run(defect.name, func(t *testing.T) {
					t.Parallel()
					defect.run(t)
				})
			}
		})
	}
}

// TestPeersAreKeptBySomething checks that each defect has a test, or a reason to have none, and that the tests exist.
func TestPeersAreKeptBySomething(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, peer := range peers() {
		for _, defect := range peer.defects {
			name := peer.name + "/" + defect.name
			if seen[name] {
				t.Errorf("%s is listed twice", name)
			}
			seen[name] = true
			if kinds := defect.kinds(); kinds != 1 {
				t.Errorf("%s has %d of run, by and lacks: want one", name, kinds)
			}
			if defect.there == "" || defect.here == "" && defect.lacks == "" {
				t.Errorf("%s: say what went wrong there and what happens here", name)
			}
			for _, test := range defect.by {
				if err := exists(test); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

func (d defect) kinds() (kinds int) {
	for _, given := range []bool{d.run != nil, len(d.by) > 0, d.lacks != ""} {
		if given {
			kinds++
		}
	}
	return kinds
}

// exists returns an error unless the files of a directory have a test function, and the name of its case.
func exists(test string) error {
	dir, name, _ := strings.Cut(test, " ")
	function, row, _ := strings.Cut(name, "/")
	row = row[strings.LastIndex(row, "/")+1:]
	hasFunction, hasRow := false, row == ""
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		hasFunction = hasFunction || bytes.Contains(source, []byte("\nfunc "+function+"("))
		hasRow = hasRow || bytes.Contains(source, fmt.Appendf(nil, "%q", row))
	}
	if !hasFunction || !hasRow {
		return fmt.Errorf("%s has no test %s, or it has no case %q", dir, function, row)
	}
	return nil
}

// TestPeersPage compares docs/peers.md with the table.
func TestPeersPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/peers.md"
	page := []byte(peersPage())
	if *updatePeers {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if written, err := os.ReadFile(path); err != nil || !bytes.Equal(written, page) {
		t.Errorf("docs/peers.md does not say what the table says (%v): run go test ./test/integration -run TestPeersPage -update-peers", err)
	}
}

const peersIntroduction = `# What went wrong elsewhere

Others were here before, and this project learned from them. This page lists what was seen to go wrong in their code or was
reported by their users, and the test that keeps it from happening here. Each was studied at one version: much of it may be mended
by now. Some of it is not wrong but a choice, for example where no test goes with it.

The page is made from the table in ` + "`test/integration/peers_*_test.go`" + ` (` + "`go test ./test/integration -run TestPeersPage -update-peers`" + `),
and a test compares the two. Names without a directory are tests of ` + "`test/integration`" + `.
`

func peersPage() string {
	var page strings.Builder
	page.WriteString(peersIntroduction)
	for _, peer := range peers() {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| there | here | test |\n|---|---|---|\n", peer.name, peer.studied)
		lacking := map[feature][]string{}
		var order []feature
		for _, defect := range peer.defects {
			if defect.lacks != "" {
				if lacking[defect.lacks] == nil {
					order = append(order, defect.lacks)
				}
				lacking[defect.lacks] = append(lacking[defect.lacks], defect.there)
				continue
			}
			fmt.Fprintf(&page, "| %s | %s | %s |\n", defect.there, defect.here, strings.Join(defect.testNames(peer.name), ", "))
		}
		if len(order) > 0 {
			page.WriteString("\nOf what CAPVE does not have, or leaves to others:\n\n")
		}
		for _, lacked := range order {
			fmt.Fprintf(&page, "* %s. There: %s.\n", lacked, strings.Join(lacking[lacked], "; "))
		}
	}
	return page.String()
}

func (d defect) testNames(peer string) []string {
	if d.run != nil {
		return []string{"`TestPeers/" + strings.ReplaceAll(peer+"/"+d.name, " ", "_") + "`"}
	}
	names := make([]string, len(d.by))
	for i, test := range d.by {
		dir, name, _ := strings.Cut(test, " ")
		if dir = strings.TrimPrefix(dir, "test/integration"); dir != "" {
			dir += ": "
		}
		names[i] = "`" + dir + strings.ReplaceAll(name, " ", "_") + "`"
	}
	return names
}
