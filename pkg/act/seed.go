package act

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
)

// volumeLabel is the label by which cloud-init knows a NoCloud seed.
const volumeLabel = "cidata"

// sectorSize is an ISO's. QEMU hung on ejecting an image whose length was no multiple of it.
const sectorSize = 2048

// seedImage makes the ISO image of a seed, with Rock Ridge names: those of plain ISO 9660 have no room for `user-data`.
// The image is made in a private directory that is gone when the function returns.
func seedImage(seed cloudinit.Seed) (image []byte, err error) {
	dir, err := os.MkdirTemp("", "capve-seed-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	path := filepath.Join(dir, "seed.iso")
	if err := writeImage(path, filepath.Join(dir, "work"), seed); err != nil {
		return nil, err
	}
	if image, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	if rest := len(image) % sectorSize; rest != 0 {
		image = append(image, make([]byte, sectorSize-rest)...)
	}
	return image, nil
}

func writeImage(path, workspace string, seed cloudinit.Seed) error {
	files := map[string]string{
		"user-data": string(seed.UserData), "meta-data": seed.MetaData, "network-config": seed.NetworkConfig,
	}
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return err
	}
	image, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = image.Close() }()
	filesystem, err := iso9660.Create(file.New(image, false), 0, 0, sectorSize, workspace)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(filesystem.Workspace(), name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
	}
	return filesystem.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: volumeLabel})
}
