package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// pack makes an archive as the Kubernetes project's are.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func goodFiles() map[string]string {
	return map[string]string{
		"controller-tools/envtest/etcd": "etcd", "controller-tools/envtest/kube-apiserver": "apiserver",
		"controller-tools/envtest/kubectl": "kubectl", "../../../../escape": "nobody asked for this",
	}
}

// release serves a list of releases and one archive; a hash of "" is the right one.
func release(t *testing.T, packed []byte, hash string) (builder Builder, requests *int) {
	t.Helper()
	if hash == "" {
		sum := sha512.Sum512(packed)
		hash = hex.EncodeToString(sum[:])
	}
	requests = new(int)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /list", func(w http.ResponseWriter, _ *http.Request) {
		*requests++
		_, _ = fmt.Fprintln(w, "releases:")
		for _, version := range []string{"v1.36.2", "v1.36.10", "v1.36.11-rc.0", "v1.37.0", "v1.35.9"} {
			_, _ = fmt.Fprintf(w, "  %[1]s:\n    envtest-%[1]s-%[2]s-%[3]s.tar.gz: {hash: %[4]q, selfLink: %[5]q}\n",
				version, runtime.GOOS, runtime.GOARCH, hash, server.URL+"/"+version)
		}
	})
	mux.HandleFunc("GET /v1.36.10", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed) })
	return Builder{Cache: t.TempDir(), Releases: server.URL + "/list"}, requests
}

func TestPrebuiltTakesTheNewestPatch(t *testing.T) {
	builder, requests := release(t, pack(t, goodFiles()), "")
	for range 2 {
		dir, err := builder.prebuilt(t.Context(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "kube-apiserver"))
		if err != nil || string(content) != "apiserver" {
			t.Errorf("got %q, %v", content, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
			t.Errorf("got %v, %v, want three programs", files, err)
		}
	}
	if *requests != 1 {
		t.Errorf("the list was asked for %d times: the cache is of no use", *requests)
	}
}

func TestPrebuiltRefuses(t *testing.T) {
	incomplete := goodFiles()
	delete(incomplete, "controller-tools/envtest/etcd")
	for want, make := range map[string]func() Builder{
		"SHA-512": func() Builder { b, _ := release(t, pack(t, goodFiles()), strings.Repeat("0", 128)); return b },
		"lacks":   func() Builder { b, _ := release(t, pack(t, incomplete), ""); return b },
		"unzip":   func() Builder { b, _ := release(t, []byte("<html>sign in first</html>"), ""); return b },
		"404":     func() Builder { b, _ := release(t, nil, ""); b.Releases += "/not-there"; return b },
		"list":    func() Builder { b, _ := release(t, nil, ""); b.Releases = "http://127.0.0.1:1/list"; return b },
		"truncated": func() Builder {
			packed := pack(t, goodFiles())
			b, _ := release(t, packed[:len(packed)/2], "")
			return b
		},
	} {
		builder := make()
		_, err := builder.prebuilt(t.Context(), func(string) {})
		if err == nil || want != "truncated" && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
		if left, err := filepath.Glob(filepath.Join(builder.Cache, "*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left in the cache: %v, %v", want, left, err)
		}
	}
}

func TestNothingForThisSeries(t *testing.T) {
	builder, _ := release(t, nil, "")
	if _, _, err := builder.newestRelease(t.Context(), "v1.12"); err == nil || !strings.Contains(err.Error(), "no prebuilt binaries of v1.12") {
		t.Errorf("got %v", err)
	}
}
