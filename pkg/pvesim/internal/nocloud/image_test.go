package nocloud_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/isotest"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/nocloud"
)

func seedFiles() map[string]string {
	return map[string]string{"meta-data": "instance-id: i", "user-data": "#cloud-config\n", "network-config": "version: 2\n"}
}

// TestSeedsOfAllKinds reads images with long names of both sorts; without them the names are not those of a seed.
func TestSeedsOfAllKinds(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]iso9660.FinalizeOptions{
		"Rock Ridge": {RockRidge: true, VolumeIdentifier: "cidata"},
		"Joliet":     {Joliet: true, VolumeIdentifier: "cidata"},
		"both":       {RockRidge: true, Joliet: true, VolumeIdentifier: "CIDATA"},
	} {
		got, err := nocloud.Files(isotest.Image(t, seedFiles(), options))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(seedFiles(), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got, err := nocloud.Files(isotest.Image(t, seedFiles(), iso9660.FinalizeOptions{VolumeIdentifier: "cidata"}))
	if _, ok := got["meta-data"]; ok || err != nil {
		t.Errorf("image without long names: %v, %v", got, err)
	}
}

// TestDamagedImages must neither panic nor hang, whatever they read.
func TestDamagedImages(t *testing.T) {
	t.Parallel()
	whole := isotest.Image(t, seedFiles(), iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: "cidata"})[:128*1024]
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		image := append([]byte{}, whole...)
		for range 1 + random.IntN(40) {
			image[32*1024+random.IntN(len(image)-32*1024)] = byte(random.IntN(256))
		}
		_, _ = nocloud.Files(image[:random.IntN(len(image)/2048+1)*2048])
	}
	if _, err := nocloud.Files(whole[:100]); err == nil {
		t.Error("100 bytes are read as an image")
	}
}

// TestAShortLastSectorIsFilledUp is how go-proxmox writes its images.
func TestAShortLastSectorIsFilledUp(t *testing.T) {
	t.Parallel()
	whole := isotest.Image(t, seedFiles(), iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "cidata"})
	want, err := nocloud.Files(whole)
	if err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	end := len(bytes.TrimRight(whole, "\x00"))
	if got, err := nocloud.Files(whole[:end]); err != nil || !maps.Equal(got, want) {
		t.Errorf("cut to %d bytes it has %v: %v", end, got, err)
	}
}

// TestOtherImagesAreNoSeeds are images that cloud-init passes by, and files that are no images.
func TestOtherImagesAreNoSeeds(t *testing.T) {
	t.Parallel()
	files, err := nocloud.Files(isotest.Image(t, seedFiles(), iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "debian"}))
	if files != nil || err != nil {
		t.Errorf("an image with another label is read as %v, %v", files, err)
	}
	for _, size := range []int{0, 2048, 1 << 20} {
		if _, err := nocloud.Files(make([]byte, size)); err == nil {
			t.Errorf("%d empty bytes are an image", size)
		}
	}
}

// TestOnlyFilesOfTheSeedAreRead leaves out what else is on the medium, and reads long files whole.
func TestOnlyFilesOfTheSeedAreRead(t *testing.T) {
	t.Parallel()
	want := seedFiles()
	want["user-data"] = string(bytes.Repeat([]byte("0123456789abcdef"), 1<<15))
	on := map[string]string{"README.txt": "x", "vendor-data": ""}
	for name, text := range want {
		on[name] = text
	}
	got, err := nocloud.Files(isotest.Image(t, on, iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "cidata"}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
