package build

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

const (
	// releasesURL lists the prebuilt binaries of etcd, kube-apiserver and kubectl that the Kubernetes project makes for
	// tests (envtest).
	releasesURL = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// listTimeout bounds how long the list may take: whoever cannot reach it shall not have to wait.
	listTimeout = 5 * time.Second
	// downloadTimeout bounds the download of some 60 MB: building takes longer than that.
	downloadTimeout = 3 * time.Minute
	// maxArchive and maxList bound what is read.
	maxArchive = 1 << 30
	maxList    = 16 << 20
)

// archive is a file of a release.
type archive struct {
	// Hash is the SHA-512 of the file, hexadecimal.
	Hash string `json:"hash"`
	URL  string `json:"selfLink"`
}

// prebuilt returns the directory with prebuilt binaries of the newest patch of our Kubernetes version, downloaded now or
// before. It fails when they cannot be had quickly.
func (b Builder) prebuilt(ctx context.Context, note func(string)) (string, error) {
	series := KubernetesVersion[:strings.LastIndex(KubernetesVersion, ".")]
	dir := filepath.Join(b.Cache, "envtest-"+series+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	if has(dir, serverPrograms()) {
		note("prebuilt, cached")
		return dir, nil
	}
	note("looking for prebuilt binaries")
	newest, file, err := b.newestRelease(ctx, series)
	if err != nil {
		return "", err
	}
	note("downloading " + newest)
	if err := os.MkdirAll(b.Cache, 0o700); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	scratch, err := os.MkdirTemp(b.Cache, "download-")
	if err != nil {
		return "", fmt.Errorf("make download directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := b.download(ctx, file, scratch); err != nil {
		return "", fmt.Errorf("download %s: %w", file.URL, err)
	}
	if !has(scratch, serverPrograms()) {
		return "", fmt.Errorf("%s lacks one of %s", file.URL, strings.Join(serverPrograms(), ", "))
	}
	if err := os.Rename(scratch, dir); err != nil && !has(dir, serverPrograms()) {
		return "", fmt.Errorf("keep prebuilt binaries: %w", err)
	}
	return dir, nil
}

// newestRelease finds the newest patch of the series, v1.36 for example, for this platform.
func (b Builder) newestRelease(ctx context.Context, series string) (name string, file archive, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	content, err := b.get(ctx, b.releases())
	if err != nil {
		return "", archive{}, fmt.Errorf("list prebuilt binaries: %w", err)
	}
	defer func() { _ = content.Close() }()
	text, err := io.ReadAll(io.LimitReader(content, maxList))
	if err != nil {
		return "", archive{}, fmt.Errorf("list prebuilt binaries: %w", err)
	}
	var list struct {
		Releases map[string]map[string]archive `json:"releases"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return "", archive{}, fmt.Errorf("parse the list of prebuilt binaries: %w", err)
	}
	var newest *version.Version
	for release, files := range list.Releases {
		parsed, err := version.ParseSemantic(release)
		candidate, ours := files["envtest-"+release+"-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz"]
		if err != nil || !ours || parsed.PreRelease() != "" || !strings.HasPrefix(release, series+".") {
			continue
		}
		if newest == nil || newest.LessThan(parsed) {
			newest, name, file = parsed, release, candidate
		}
	}
	if newest == nil {
		return "", archive{}, fmt.Errorf("no prebuilt binaries of %s for %s/%s", series, runtime.GOOS, runtime.GOARCH)
	}
	return name, file, nil
}

func (b Builder) releases() string {
	if b.Releases != "" {
		return b.Releases
	}
	return releasesURL
}

// download unpacks the archive's programs into dir, and fails unless the archive has the hash that the list says.
func (b Builder) download(ctx context.Context, file archive, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	content, err := b.get(ctx, file.URL)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	hash := sha512.New()
	packed := io.TeeReader(io.LimitReader(content, maxArchive), hash)
	if err := unpack(packed, dir); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, packed); err != nil { // what comes after the end of the tar counts for the hash
		return fmt.Errorf("read archive: %w", err)
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); sum != file.Hash {
		return fmt.Errorf("the archive has SHA-512 %.12s…, not %.12s… as listed", sum, file.Hash)
	}
	return nil
}

// unpack writes the programs that we want, and nothing else, into dir.
func unpack(packed io.Reader, dir string) error {
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unzip archive: %w", err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		name := filepath.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains(serverPrograms(), name) {
			continue
		}
		if err := writeProgram(filepath.Join(dir, name), io.LimitReader(files, maxArchive)); err != nil {
			return err
		}
	}
}

func writeProgram(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700) //nolint:gosec // a program is to be run
	if err != nil {
		return fmt.Errorf("write program: %w", err)
	}
	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func (b Builder) get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("get %s: %s", url, response.Status)
	}
	return response.Body, nil
}
