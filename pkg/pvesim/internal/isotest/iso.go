// Package isotest makes ISO images for tests.
package isotest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

// Image makes an image with those files.
func Image(t *testing.T, files map[string]string, options iso9660.FinalizeOptions) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.iso")
	store, err := file.CreateFromPath(path, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	image, err := iso9660.Create(store, 4<<20, 0, 2048, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(image.Workspace(), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := image.Finalize(options); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
