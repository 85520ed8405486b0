package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// module writes a module with a program that prints a word.
func module(t *testing.T, word string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/hello\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { print(\""+word+"\") }\n")
	return dir
}

func TestCachedBuildsOnce(t *testing.T) {
	builder := Builder{Cache: t.TempDir()}
	hello := program{name: "hello", module: module(t, "hello"), pkg: "."}
	var notes []string
	note := func(text string) { notes = append(notes, text) }
	first, err := builder.cached(t.Context(), hello, note)
	if err != nil {
		t.Fatal(err)
	}
	second, err := builder.cached(t.Context(), hello, note)
	if err != nil {
		t.Fatal(err)
	}
	if first != second || notes[len(notes)-1] != "cached" {
		t.Errorf("built twice: %s, %s, %q", first, second, notes)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(first), "build-*")); err != nil || len(left) > 0 {
		t.Errorf("scratch directories are left: %v, %v", left, err)
	}
}

func TestCachedFollowsItsSources(t *testing.T) {
	builder := Builder{Cache: t.TempDir()}
	hello := program{name: "hello", module: module(t, "hello"), pkg: "."}
	first, err := builder.cached(t.Context(), hello, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(hello.module, "main.go"), "package main\n\nfunc main() { print(\"bye\") }\n")
	second, err := builder.cached(t.Context(), hello, func(string) {})
	if err != nil || first == second {
		t.Errorf("got %s again, %v", second, err)
	}
}

func TestBuildSaysWhatTheCompilerSays(t *testing.T) {
	broken := program{name: "hello", module: module(t, "hello"), pkg: "."}
	write(t, filepath.Join(broken.module, "main.go"), "package main\n\nfunc main() { undefined() }\n")
	err := build(t.Context(), broken, filepath.Join(t.TempDir(), "hello"), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("got %v", err)
	}
}

func TestFollow(t *testing.T) {
	var notes []string
	complaints := follow(strings.NewReader(strings.Join([]string{
		"go: downloading k8s.io/api v0.36.3", "k8s.io/api/core/v1", "example.com/hello", "# example.com/hello", "./main.go:3:5: undefined: x",
	}, "\n")), func(text string) { notes = append(notes, text) })
	want := []string{"downloading k8s.io/api v0.36.3", "1 packages compiled, now k8s.io/api/core/v1", "2 packages compiled, now example.com/hello"}
	if strings.Join(notes, "|") != strings.Join(want, "|") {
		t.Errorf("got notes %q, want %q", notes, want)
	}
	if complaints != "# example.com/hello\n./main.go:3:5: undefined: x" {
		t.Errorf("got complaints %q", complaints)
	}
}

func TestAssetsOfTheUser(t *testing.T) {
	assets := t.TempDir()
	t.Setenv(assetsVariable, assets)
	if has(assets, requiredPrograms()) || has("", requiredPrograms()) {
		t.Error("nothing is taken for a control plane")
	}
	for _, name := range append(serverPrograms(), controllerManager) {
		write(t, filepath.Join(assets, name), "#!/bin/sh\n")
	}
	for name, find := range map[string]func(Builder) (string, error){
		"API server":    func(b Builder) (string, error) { return b.APIServer(t.Context(), func(string) {}) },
		"control plane": func(b Builder) (string, error) { return b.ControlPlane(t.Context(), func(string) {}) },
	} {
		if got, err := find(Builder{}); err != nil || got != assets {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// Prebuilt binaries come without kube-controller-manager: our collector stands in for it.
func TestCollectorStandsIn(t *testing.T) {
	assets, root := t.TempDir(), t.TempDir()
	t.Setenv(assetsVariable, assets)
	for _, name := range serverPrograms() {
		write(t, filepath.Join(assets, name), "#!/bin/sh\n")
	}
	kubernetes := filepath.Join(root, "test", "sandbox", "kubernetes")
	write(t, filepath.Join(kubernetes, "go.mod"), "module example.com/kubernetes\n\ngo 1.26\n")
	write(t, filepath.Join(kubernetes, "collector", "main.go"), "package main\n\nfunc main() {}\n")
	builder := Builder{Root: root, Cache: t.TempDir()}
	for range 2 {
		dir, err := builder.ControlPlane(t.Context(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if !has(dir, append(serverPrograms(), Collector)) || has(dir, []string{controllerManager}) {
			t.Errorf("%s has not what it should", dir)
		}
	}
}

func TestFindRoot(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), rootModule+"\ngo 1.26.0\n")
	write(t, filepath.Join(root, "test", "sandbox", "go.mod"), "module github.com/capve/cluster-api-provider-proxmox/test/sandbox\n")
	t.Chdir(filepath.Join(root, "test", "sandbox"))
	found, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	want, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	if found != want && found != root {
		t.Errorf("got %s, want %s", found, root)
	}
	t.Chdir(t.TempDir())
	if _, err := findRoot(); err == nil || !strings.Contains(err.Error(), "not in a clone") {
		t.Errorf("outside: got %v", err)
	}
}
