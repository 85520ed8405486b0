// Package build makes the programs that a sandbox runs from Go modules: the Kubernetes control plane, the in-cluster
// IPAM provider and our own manager. What does not change with our code is built once and kept in the user's cache.
package build

import (
	"bufio"
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
	"runtime"
	"strings"
)

const (
	// KubernetesVersion is the version of the control plane. The module test/sandbox/kubernetes pins it.
	KubernetesVersion = "v1.36.3"
	// ipamModule is the in-cluster IPAM provider, which the module test/sandbox/ipam pins.
	ipamModule = "sigs.k8s.io/cluster-api-ipam-provider-in-cluster"
	// rootModule is how the root of the repository is told from other directories.
	rootModule = "module github.com/capve/cluster-api-provider-proxmox\n"
	// assetsVariable is the variable by which envtest is told where prebuilt binaries are.
	assetsVariable = "KUBEBUILDER_ASSETS"
)

// Builder builds programs.
type Builder struct {
	// Root is the repository's root directory.
	Root string
	// Cache is where programs that do not change with our code are kept.
	Cache string
	// Releases is the URL of the list of prebuilt binaries; empty means the Kubernetes project's.
	Releases string
}

// New makes a builder for the repository that the working directory is in, with the user's cache.
func New() (Builder, error) {
	root, err := findRoot()
	if err != nil {
		return Builder{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Builder{}, fmt.Errorf("find the user's cache directory: %w", err)
	}
	return Builder{Root: root, Cache: filepath.Join(cache, "capve", "sandbox")}, nil
}

// findRoot walks up from the working directory.
func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte(rootModule)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: %s is not in a clone of cluster-api-provider-proxmox", start)
		}
	}
}

// APIServer returns a directory with etcd and kube-apiserver, and with kubectl if nobody has taken it out: the one that
// KUBEBUILDER_ASSETS names; one built here before; prebuilt ones, if they can be downloaded; or ones that are built now,
// which takes about 6 minutes on two idle cores, once.
func (b Builder) APIServer(ctx context.Context, note func(string)) (string, error) {
	if assets := os.Getenv(assetsVariable); has(assets, requiredPrograms()) {
		note("prebuilt, from " + assets)
		return assets, nil
	}
	target, err := b.target(b.kubernetes())
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(target); err != nil {
		prebuilt, err := b.prebuilt(ctx, note)
		if err == nil {
			return prebuilt, nil
		}
		if ctx.Err() != nil {
			return "", err
		}
		note("no prebuilt binaries: " + err.Error())
	}
	if target, err = b.cached(ctx, b.kubernetes(), note); err != nil {
		return "", err
	}
	return filepath.Dir(target), link(filepath.Dir(target), target, append(serverPrograms(), controllerManager)...)
}

// ControlPlane returns a directory with what APIServer has and either kube-controller-manager or our collector, which
// stands in for it where prebuilt binaries come without.
func (b Builder) ControlPlane(ctx context.Context, note func(string)) (string, error) {
	servers, err := b.APIServer(ctx, note)
	if err != nil || has(servers, []string{controllerManager}) {
		return servers, err
	}
	collector, err := b.cached(ctx, program{
		name: Collector, module: b.kubernetes().module, pkg: "./collector", ldflags: "-s -w",
	}, note)
	if err != nil {
		return "", err
	}
	// The collector's directory becomes the one with everything, for these servers.
	dir := filepath.Join(filepath.Dir(collector), hashOf(servers))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	for _, name := range serverPrograms() {
		if err := link(dir, filepath.Join(servers, name), name); err != nil {
			return "", err
		}
	}
	return dir, link(dir, collector, Collector)
}

// kubernetes is etcd, kube-apiserver, kube-controller-manager and kubectl in one binary.
func (b Builder) kubernetes() program {
	return program{
		name: "kubernetes", module: filepath.Join(b.Root, "test", "sandbox", "kubernetes"), pkg: ".",
		// Without the version the server reports one that clients cannot parse.
		ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=" + KubernetesVersion +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
	}
}

const (
	controllerManager = "kube-controller-manager"
	// Collector is the name of our stand-in for kube-controller-manager.
	Collector = "collector"
)

func requiredPrograms() []string { return []string{"etcd", "kube-apiserver"} }

func serverPrograms() []string { return append(requiredPrograms(), "kubectl") }

// has reports whether the directory has programs of all these names.
func has(dir string, names []string) bool {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil || dir == "" {
			return false
		}
	}
	return true
}

// link makes symbolic links to the target in dir. What a link of that name leads to already stays.
func link(dir, target string, names ...string) error {
	for _, name := range names {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// IPAM returns the in-cluster IPAM provider's manager.
func (b Builder) IPAM(ctx context.Context, note func(string)) (string, error) {
	return b.cached(ctx, program{name: "ipam", module: b.ipamDir(), pkg: ipamModule, ldflags: "-s -w"}, note)
}

// IPAMConfig returns the in-cluster IPAM provider's config folder, with its CRDs.
func (b Builder) IPAMConfig(ctx context.Context) (string, error) {
	dir, err := moduleDir(ctx, b.ipamDir(), ipamModule)
	return filepath.Join(dir, "config"), err
}

func (b Builder) ipamDir() string { return filepath.Join(b.Root, "test", "sandbox", "ipam") }

// ClusterAPI returns the directory of Cluster API's module, with the manifests of its providers.
func (b Builder) ClusterAPI(ctx context.Context) (string, error) {
	return moduleDir(ctx, filepath.Join(b.Root, "test", "sandbox"), "sigs.k8s.io/cluster-api")
}

// Config is our own config folder.
func (b Builder) Config() string { return filepath.Join(b.Root, "config") }

// Manager builds our manager into dir and returns its path. It is always built anew: the Go build cache knows what
// changed.
func (b Builder) Manager(ctx context.Context, dir string, note func(string)) (string, error) {
	target := filepath.Join(dir, "manager")
	return target, build(ctx, program{name: "manager", module: b.Root, pkg: "./cmd/manager"}, target, note)
}

// program is something to build.
type program struct {
	name, module, pkg, ldflags string
}

// target is where the cache has, or would have, the program.
func (b Builder) target(p program) (string, error) {
	version, err := p.version()
	return filepath.Join(b.Cache, p.name+"-"+version, p.name), err
}

// cached builds the program unless the cache has it, and returns its path.
func (b Builder) cached(ctx context.Context, p program, note func(string)) (string, error) {
	target, err := b.target(p)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(target); err == nil {
		note("cached")
		return target, nil
	}
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	// Another sandbox may be building the same: whoever ends last replaces the other's equal result.
	scratch, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", fmt.Errorf("make build directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	built := filepath.Join(scratch, p.name)
	if err := build(ctx, p, built, note); err != nil {
		return "", err
	}
	if err := os.Rename(built, target); err != nil {
		return "", fmt.Errorf("keep %s: %w", p.name, err)
	}
	return target, nil
}

// version is a short hash of everything that decides what the program is: the module's requirements, the program's own
// sources, flags, compiler and platform.
func (p program) version() (string, error) {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, p.pkg, p.ldflags, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	files := []string{filepath.Join(p.module, "go.mod"), filepath.Join(p.module, "go.sum")}
	if strings.HasPrefix(p.pkg, ".") {
		sources, err := filepath.Glob(filepath.Join(p.module, p.pkg, "*.go"))
		if err != nil {
			return "", fmt.Errorf("list the sources of %s: %w", p.name, err)
		}
		files = append(files, sources...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("read the sources of %s: %w", p.name, err)
		}
		_, _ = fmt.Fprintln(hash, filepath.Base(file), len(content))
		_, _ = hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// build runs go build. The flags are those of the Makefile, so that both share the Go build cache.
func build(ctx context.Context, p program, target string, note func(string)) error {
	command := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", p.ldflags, "-o", target, p.pkg)
	command.Dir = p.module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	output, err := command.StderrPipe()
	if err != nil {
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	complaints := follow(output, note)
	if err := command.Wait(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.name, err, complaints)
	}
	note("")
	return nil
}

// maxComplaints bounds how much of the compiler's complaints is kept.
const maxComplaints = 40

// follow notes the packages that go build -v names as it compiles them, and returns the rest of what it prints.
func follow(output io.Reader, note func(string)) string {
	var complaints []string
	compiled := 0
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			note(strings.TrimPrefix(line, "go: "))
		case strings.ContainsAny(line, " :"):
			complaints = append(complaints, line)
		default:
			compiled++
			note(fmt.Sprintf("%d packages compiled, now %s", compiled, line))
		}
	}
	if len(complaints) > maxComplaints {
		complaints = complaints[len(complaints)-maxComplaints:]
	}
	return strings.Join(complaints, "\n")
}

// moduleDir is where the Go module cache holds the version of the module that the main module in dir uses.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	if err := run(ctx, dir, "mod", "download", module); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	found := strings.TrimSpace(string(output))
	if found == "" {
		return "", fmt.Errorf("find module %s: not downloaded", module)
	}
	return found, nil
}

func run(ctx context.Context, dir string, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}
