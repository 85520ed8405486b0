package architecture_test

import (
	"testing"
)

// TestImportLawsCatch shows each law a package that breaks it and one that does not.
func TestImportLawsCatch(t *testing.T) {
	const ours = module + "/"
	tests := []struct {
		law    string
		guilty goPackage
		decent goPackage
	}{
		{
			law:    "the API imports apimachinery and Cluster API types only",
			guilty: direct(ours+"api/v1beta1", "sigs.k8s.io/controller-runtime/pkg/scheme"),
			decent: direct(ours+"api/v1beta1", "fmt", "k8s.io/apimachinery/pkg/runtime", "sigs.k8s.io/cluster-api/api/core/v1beta2"),
		},
		{
			law:    "the API brings no client along",
			guilty: through(ours+"api/v1beta1", "k8s.io/client-go/rest"),
			decent: through(ours+"api/v1beta1", "net/http", "k8s.io/klog/v2"),
		},
		{
			law:    "the vocabulary needs nothing but the standard library",
			guilty: through(ours+"pkg/proxmox", ours+"pkg/plan"),
			decent: through(ours+"pkg/proxmox", "strconv"),
		},
		{
			law:    "planners are pure",
			guilty: direct(ours+"pkg/plan/placement", "os"),
			decent: direct(ours+"pkg/plan/placement", "slices", "osmosis"),
		},
		{
			law:    "planners bring no client along",
			guilty: through(ours+"pkg/plan", "k8s.io/client-go/kubernetes"),
			decent: through(ours+"pkg/plan", "os", "context", ours+"api/v1beta1"),
		},
		{
			law:    "planners know the API, the vocabulary and each other",
			guilty: through(ours+"pkg/plan/numa", ours+"pkg/status"),
			decent: through(ours+"pkg/plan", ours+"pkg/plan/numa", ours+"pkg/proxmox"),
		},
		{
			law:    "only observe, act and the wiring talk to Proxmox VE",
			guilty: direct(ours+"controllers", ours+"pkg/pve"),
			decent: direct(ours+"pkg/observe", ours+"pkg/pve"),
		},
		{
			law:    "only the simulator's own commands and tests import it",
			guilty: direct(ours+"cmd/manager", ours+"pkg/pvesim"),
			decent: direct(ours+"cmd/pvesim", ours+"pkg/pvesim"),
		},
		{
			law:    "the manager does not contain the simulator",
			guilty: through(ours+"cmd/manager", ours+"pkg/pvesim/disk"),
			decent: through(ours+"cmd/manager", ours+"pkg/pve"),
		},
		{
			law:    "client and simulator share the vocabulary and nothing else",
			guilty: through(ours+"pkg/pve", ours+"api/v1beta1"),
			decent: through(ours+"pkg/pve", ours+"pkg/proxmox"),
		},
		{
			law:    "the simulator does not know the client that it is there to test",
			guilty: through(ours+"pkg/pvesim", "github.com/luthermonson/go-proxmox"),
			decent: through(ours+"pkg/pvesim", ours+"pkg/proxmox"),
		},
		{
			law:    "packages do not know the controllers",
			guilty: through(ours+"pkg/status", ours+"controllers"),
			decent: through(ours+"controllers", ours+"pkg/status"),
		},
		{
			law:    "observe, act and status are beside each other",
			guilty: direct(ours+"pkg/observe", ours+"pkg/act"),
			decent: direct(ours+"controllers", ours+"pkg/act"),
		},
		{
			law:    "nothing goes where upstream has announced an end",
			guilty: direct(ours+"controllers", "sigs.k8s.io/cluster-api/util/deprecated/v1beta1/patch"),
			decent: direct(ours+"controllers", "sigs.k8s.io/cluster-api/util/patch"),
		},
	}
	proven := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.law, func(t *testing.T) {
			law := lawNamed(t, tt.law)
			proven[tt.law] = true
			if got := law.breaches([]goPackage{tt.guilty, tt.decent}); len(got) != 1 {
				t.Errorf("want the breach of %s alone, got %q", tt.guilty.ImportPath, got)
			}
		})
	}
	for _, law := range importLaws {
		if !proven[law.name] {
			t.Errorf("nothing proves that %q can fail", law.name)
		}
	}
}

func direct(path string, imports ...string) goPackage {
	return goPackage{ImportPath: path, Imports: imports, Deps: imports}
}

func through(path string, deps ...string) goPackage {
	return goPackage{ImportPath: path, Deps: deps}
}

func lawNamed(t *testing.T, name string) importLaw {
	t.Helper()
	for _, law := range importLaws {
		if law.name == name {
			return law
		}
	}
	t.Fatalf("no law is named %q", name)
	return importLaw{}
}
