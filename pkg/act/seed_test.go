package act

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
)

func seedWith(userData string) cloudinit.Seed {
	return cloudinit.Seed{UserData: cloudinit.UserData(userData), MetaData: "instance-id: x\n", NetworkConfig: "version: 2\n"}
}

func seeds() map[string]cloudinit.Seed {
	return map[string]cloudinit.Seed{
		"a small seed":                seedWith("#cloud-config\n"),
		"a seed without user-data":    seedWith(""),
		"user-data of 1 MiB":          seedWith("#cloud-config\n" + strings.Repeat("# 0123456789abcdef\n", (1<<20)/19)),
		"user-data of just a sector":  seedWith(strings.Repeat("x", sectorSize)),
		"user-data that is not ASCII": seedWith("#cloud-config\n# Grüße 你好 🚀\n\x00\xff\r\n"),
	}
}

// open reads an image as a guest does and returns its label and its files.
func open(t *testing.T, image []byte) (string, map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.iso")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	disk, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	filesystem, err := iso9660.Read(file.New(disk, true), int64(len(image)), 0, sectorSize)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := filesystem.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := filesystem.OpenFile(entry.Name(), os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return strings.TrimRight(filesystem.Label(), " \x00"), files
}

func TestASeedImageHoldsTheSeed(t *testing.T) {
	for name, seed := range seeds() {
		t.Run(name, func(t *testing.T) {
			image, err := seedImage(seed)
			if err != nil {
				t.Fatal(err)
			}
			label, files := open(t, image)
			if diff := cmp.Diff("cidata", label); diff != "" {
				t.Errorf("label (-want +got):\n%s", diff)
			}
			want := map[string]string{"user-data": string(seed.UserData), "meta-data": seed.MetaData, "network-config": seed.NetworkConfig}
			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(0, len(image)%sectorSize); diff != "" {
				t.Errorf("bytes beyond the last whole sector (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASeedImageIsReadByOthers(t *testing.T) {
	program, err := exec.LookPath("isoinfo")
	if err != nil {
		t.Skip("isoinfo is not installed: `apt-get install genisoimage` to have it read the image")
	}
	image, err := seedImage(seedWith("#cloud-config\n"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "seed.iso")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	var output []byte
	for _, what := range []string{"-d", "-f"} { // some versions take but one of them at a time
		part, err := exec.CommandContext(t.Context(), program, "-R", what, "-i", path).CombinedOutput()
		if err != nil {
			t.Fatalf("isoinfo: %v\n%s", err, part)
		}
		output = append(output, part...)
	}
	for _, want := range []string{"Volume id: cidata", "Rock Ridge signatures version 1 found", "/user-data\n", "/meta-data\n", "/network-config\n"} {
		if !bytes.Contains(output, []byte(want)) {
			t.Errorf("isoinfo does not say %q:\n%s", want, output)
		}
	}
}

// TestMakingASeedImageLeavesNothingBehind, since it holds secrets.
func TestMakingASeedImageLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if _, err := seedImage(seedWith("secret")); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(0, len(left)); diff != "" {
		t.Errorf("files left, %v (-want +got):\n%s", left, diff)
	}
}

func TestASeedImageThatCannotBeMadeIsAnErrorWithoutTheSecret(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "absent"))
	image, err := seedImage(seedWith("secret"))
	if err == nil || image != nil || strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("image of %d bytes, error %v", len(image), err)
	}
}
