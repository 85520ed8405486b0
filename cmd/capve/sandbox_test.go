package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindRepository(t *testing.T) {
	clone := t.TempDir()
	module := filepath.Join(clone, "test", "sandbox")
	deep := filepath.Join(clone, "docs", "adr")
	for _, dir := range []string{module, deep} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	content := "module github.com/capve/cluster-api-provider-proxmox/test/sandbox\n\ngo 1.26.0\n"
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{clone, deep, module} {
		found, err := findRepository(from)
		if err != nil || found != clone {
			t.Errorf("from %s: got %q, %v, want %q", from, found, err, clone)
		}
	}
}

func TestFindRepositoryOutsideOfAClone(t *testing.T) {
	_, err := findRepository(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "run this in a clone") {
		t.Errorf("got %v, want what to do about it", err)
	}
}

func TestFindRepositoryOfSomebodyElse(t *testing.T) {
	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(other, "test", "sandbox"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "test", "sandbox", "go.mod"), []byte("module example.com/other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := findRepository(other); err == nil {
		t.Error("took another module's test/sandbox for ours")
	}
}

func TestBuildSandboxSaysWhatIsWrong(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := buildSandbox(t.Context(), t.TempDir(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "build the sandbox") || !strings.Contains(err.Error(), "test/sandbox") {
		t.Errorf("got %v, want the go command's complaint", err)
	}
}

func TestReportReturnsTheResult(t *testing.T) {
	want := errors.New("exit status 1")
	done := make(chan error, 1)
	done <- want
	if err := report(&bytes.Buffer{}, done); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestCloneIDTellsClonesApart(t *testing.T) {
	if first := cloneID("/a"); first == cloneID("/b") || first != cloneID("/a") {
		t.Error("a clone's id is not its own")
	}
}

func TestSandboxPassesItsFlagsOn(t *testing.T) {
	command := newSandbox()
	if !command.DisableFlagParsing {
		t.Error("capve parses the sandbox's flags")
	}
}
