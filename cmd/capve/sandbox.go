package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// sandboxModule is the folder of the sandbox's Go module in a clone of the repository.
const sandboxModule = "test/sandbox"

// progressEvery is how often the build says how long it has been running.
const progressEvery = 5 * time.Second

// newSandbox hands over to the sandbox's own binary, so that this one does not link Kubernetes.
func newSandbox() *cobra.Command {
	return &cobra.Command{
		Use:   "sandbox {up|down|status|kubeconfig}",
		Short: "A Cluster API management cluster with a simulated Proxmox VE, on this machine",
		// The flags are the sandbox's: it knows what --help has to say.
		DisableFlagParsing: true,
		RunE: func(command *cobra.Command, args []string) error {
			directory, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("find the repository: %w", err)
			}
			root, err := findRepository(directory)
			if err != nil {
				return err
			}
			binary, err := buildSandbox(command.Context(), root, command.ErrOrStderr())
			if err != nil {
				return err
			}
			// The sandbox takes this process over, so that Ctrl-C and exit codes are its own.
			if err := syscall.Exec(binary, append([]string{"capve sandbox"}, args...), os.Environ()); err != nil {
				return fmt.Errorf("run %s: %w", binary, err)
			}
			return nil
		},
	}
}

// findRepository walks up to the clone that holds the sandbox: it is built from source.
func findRepository(directory string) (string, error) {
	for dir := directory; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(sandboxModule), "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte("module github.com/capve/cluster-api-provider-proxmox/"+sandboxModule+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the sandbox is built from source: run this in a clone of cluster-api-provider-proxmox, not in %s", directory)
		}
	}
}

// buildSandbox builds the sandbox's binary into the user's cache, and says on out how long that takes.
func buildSandbox(ctx context.Context, root string, out io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	binary := filepath.Join(cache, "capve", "bin", cloneID(root), "sandbox")
	// The flags are those of the Makefile, so that both share the Go build cache.
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, filepath.FromSlash(sandboxModule)),
		"-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "./cmd/sandbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var complaints bytes.Buffer
	build.Stdout, build.Stderr = &complaints, &complaints
	if err := build.Start(); err != nil {
		return "", fmt.Errorf("build the sandbox: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- build.Wait() }()
	if err := report(out, done); err != nil {
		return "", errors.Join(fmt.Errorf("build the sandbox: %w", err), errors.New(complaints.String()))
	}
	return binary, nil
}

// report says now and then how long the build has been running, and returns its result.
func report(out io.Writer, done <-chan error) error {
	start := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			_, _ = fmt.Fprintf(out, "… build the sandbox (%s)\n", time.Since(start).Truncate(time.Second))
		}
	}
}

// cloneID tells clones of the repository apart, so that each keeps the binary of its own sources.
func cloneID(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:6])
}
