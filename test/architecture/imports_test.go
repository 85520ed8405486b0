package architecture_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/capve/cluster-api-provider-proxmox"

// goPackage is what `go list -json` says of a package, as far as the laws look at it.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string // direct imports of the package without its tests
	Deps       []string // all it depends on, without its tests
}

// importLaw says what the packages it applies to must not import.
type importLaw struct {
	name       string
	appliesTo  pathSet
	exempt     pathSet
	forbidden  pathSet
	allowed    pathSet // what forbidden covers and may be imported all the same
	transitive bool    // look at all dependencies, not only at direct imports
}

// pathSet is a set of import paths. `x` is the package x alone, `x/...` is x and all below it. Paths of this module are
// given relative to it, with a leading `./`.
type pathSet []string

func (s pathSet) contains(path string) bool {
	return slices.ContainsFunc(s, func(pattern string) bool {
		if relative, ours := strings.CutPrefix(pattern, "./"); ours {
			pattern = module + "/" + relative
		}
		tree, isTree := strings.CutSuffix(pattern, "/...")
		return path == tree || isTree && strings.HasPrefix(path, tree+"/")
	})
}

// importLaws are the import rules of CONTRIBUTING.md.
var importLaws = []importLaw{
	{
		name:      "the API imports apimachinery and Cluster API types only",
		appliesTo: pathSet{"./api/..."},
		forbidden: pathSet{"k8s.io/...", "sigs.k8s.io/...", "github.com/..."},
		allowed: pathSet{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/...", "k8s.io/utils/ptr", "sigs.k8s.io/cluster-api/api/...",
			"./api/...", "./pkg/proxmox",
		},
	},
	{
		name:       "the API brings no client along",
		appliesTo:  pathSet{"./api/..."},
		forbidden:  clients,
		transitive: true,
	},
	{
		name:       "the vocabulary needs nothing but the standard library",
		appliesTo:  pathSet{"./pkg/proxmox"},
		forbidden:  pathSet{"k8s.io/...", "sigs.k8s.io/...", "github.com/...", "golang.org/..."},
		allowed:    pathSet{"./pkg/proxmox"},
		transitive: true,
	},
	{
		name:      "planners are pure",
		appliesTo: pathSet{"./pkg/plan/..."},
		forbidden: pathSet{
			"context", "net/http/...", "os/...", "math/rand/...", "log/...", "github.com/go-logr/...", "k8s.io/klog/...",
			"k8s.io/utils/clock/...",
		},
	},
	{
		name:       "planners bring no client along",
		appliesTo:  pathSet{"./pkg/plan/..."},
		forbidden:  clients,
		transitive: true,
	},
	{
		name:       "planners know the API, the vocabulary and each other",
		appliesTo:  pathSet{"./pkg/plan/..."},
		forbidden:  pathSet{"./..."},
		allowed:    pathSet{"./api/...", "./pkg/proxmox", "./pkg/plan/..."},
		transitive: true,
	},
	{
		name:      "only observe, act and the wiring talk to Proxmox VE",
		appliesTo: pathSet{"./..."},
		exempt:    pathSet{"./pkg/observe/...", "./pkg/act/...", "./pkg/pve/...", "./cmd/...", "./test/..."},
		forbidden: pathSet{"./pkg/pve/...", "github.com/luthermonson/go-proxmox/..."},
	},
	{
		name:      "only the simulator's own commands and tests import it",
		appliesTo: pathSet{"./..."},
		exempt:    pathSet{"./pkg/pvesim/...", "./cmd/pvesim/...", "./cmd/capve/...", "./test/..."},
		forbidden: pathSet{"./pkg/pvesim/..."},
	},
	{
		name:       "the manager does not contain the simulator",
		appliesTo:  pathSet{"./cmd/manager", "./cmd/karpenter"},
		forbidden:  pathSet{"./pkg/pvesim/...", "./test/..."},
		transitive: true,
	},
	{
		name:       "client and simulator share the vocabulary and nothing else",
		appliesTo:  pathSet{"./pkg/pve/...", "./pkg/pvesim/..."},
		forbidden:  pathSet{"./api/...", "./pkg/plan/...", "./pkg/observe/...", "./pkg/act/...", "./pkg/status/...", "./controllers/..."},
		transitive: true,
	},
	{
		name:       "the simulator does not know the client that it is there to test",
		appliesTo:  pathSet{"./pkg/pvesim/..."},
		forbidden:  pathSet{"./pkg/pve/...", "github.com/luthermonson/go-proxmox/..."},
		transitive: true,
	},
	{
		name:       "packages do not know the controllers",
		appliesTo:  pathSet{"./pkg/...", "./api/..."},
		forbidden:  pathSet{"./controllers/...", "./webhooks/...", "./cmd/...", "./test/..."},
		transitive: true,
	},
	{
		name:      "observe, act and status are beside each other",
		appliesTo: pathSet{"./pkg/observe/...", "./pkg/status/..."},
		forbidden: pathSet{"./pkg/act/..."},
	},
	{
		name:      "nothing goes where upstream has announced an end",
		appliesTo: pathSet{"./..."},
		forbidden: pathSet{
			"github.com/pkg/errors", "sigs.k8s.io/cluster-api/util/deprecated/...",
			"sigs.k8s.io/cluster-api/util/conditions/deprecated/...", "sigs.k8s.io/cluster-api/api/deprecated/...",
			"sigs.k8s.io/cluster-api/controllers/remote", "sigs.k8s.io/cluster-api/util/record",
			"sigs.k8s.io/cluster-api/api/core/v1beta1", "sigs.k8s.io/cluster-api/api/ipam/v1beta1",
			"sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1", "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1",
			"sigs.k8s.io/cluster-api/api/addons/v1beta1",
		},
	},
}

// clients are the packages through which a planner could reach the outside world.
var clients = pathSet{
	"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "github.com/luthermonson/go-proxmox/...",
	"./pkg/pve/...", "./pkg/pvesim/...",
}

// breaches returns one line for each package that breaks the law, naming what it imports.
func (l importLaw) breaches(packages []goPackage) []string {
	var found []string
	for _, p := range packages {
		if p.Standard || !l.appliesTo.contains(p.ImportPath) || l.exempt.contains(p.ImportPath) {
			continue
		}
		imported := p.Imports
		if l.transitive {
			imported = p.Deps
		}
		for _, path := range imported {
			if l.forbidden.contains(path) && !l.allowed.contains(path) {
				found = append(found, fmt.Sprintf("%s imports %s", p.ImportPath, path))
			}
		}
	}
	return found
}

func TestImports(t *testing.T) {
	packages := listPackages(t)
	for _, law := range importLaws {
		t.Run(law.name, func(t *testing.T) {
			for _, breach := range law.breaches(packages) {
				t.Error(breach)
			}
		})
	}
}

// listPackages returns the packages of the root module.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Standard,Imports,Deps", "./...")
	command.Dir = repositoryRoot
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, complaints.Bytes())
	}
	packages, err := decodePackages(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Fatalf("%s lists no packages", command)
	}
	return packages
}

// decodePackages reads the stream of JSON objects that `go list -json` writes.
func decodePackages(r io.Reader) ([]goPackage, error) {
	var packages []goPackage
	for decoder := json.NewDecoder(r); ; {
		var p goPackage
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("read go list: %w", err)
		}
		packages = append(packages, p)
	}
}
