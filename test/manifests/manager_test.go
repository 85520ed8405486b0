package manifests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// refused is how the flag packages complain.
var refused = regexp.MustCompile(`(unknown|not defined|unknown shorthand)[^\n]*flag[^\n]*|flag provided but not defined[^\n]*|invalid (argument|value)[^\n]*`)

// TestManagerTakesItsArguments parses the Deployment's arguments with the manager itself: a flag that it does not know
// would be found by whoever installs the release.
func TestManagerTakesItsArguments(t *testing.T) {
	if _, err := os.Stat(filepath.Join(repositoryRoot, "cmd/manager/main.go")); err != nil {
		t.Skip("there is no cmd/manager")
	}
	manager := filepath.Join(t.TempDir(), "manager")
	run(t, "go", "build", "-o", manager, "./cmd/manager")

	deployment := components(t).only(t, "Deployment")
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	arguments, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if complaint := parsedBy(t, manager, arguments...); complaint != "" {
		t.Errorf("the manager refuses %q: %s", arguments, complaint)
	}
	if parsedBy(t, manager, "--no-such-flag") == "" {
		t.Error("this test cannot tell that the manager refuses a flag")
	}
}

// parsedBy returns what the manager has against the arguments. It asks for help as well, so that nothing is started.
func parsedBy(t *testing.T, manager string, arguments ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), manager, append(arguments, "--help")...).CombinedOutput()
	if len(output) == 0 {
		t.Fatalf("%s --help prints nothing: %v", manager, err)
	}
	return refused.FindString(string(output))
}

// TestManagerCanWriteSeeds checks that there is a place to make seed ISOs in, as the root file system is read-only, and
// that it is in memory: they hold join tokens.
func TestManagerCanWriteSeeds(t *testing.T) {
	deployment := components(t).only(t, "Deployment")
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	mounts, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "volumeMounts")
	volumes, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "volumes")
	for _, mount := range mounts {
		if mount.(map[string]any)["mountPath"] != os.TempDir() {
			continue
		}
		for _, volume := range volumes {
			medium, _, _ := unstructured.NestedString(volume.(map[string]any), "emptyDir", "medium")
			if volume.(map[string]any)["name"] == mount.(map[string]any)["name"] && medium == "Memory" {
				return
			}
		}
	}
	t.Errorf("no emptyDir in memory is mounted at %s", os.TempDir())
}
