package pvesim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
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
		got, err := pvesim.FilesOf(makeISO(t, seedFiles(), options))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(seedFiles(), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got, err := pvesim.FilesOf(makeISO(t, seedFiles(), iso9660.FinalizeOptions{VolumeIdentifier: "cidata"}))
	if _, ok := got["meta-data"]; ok || err != nil {
		t.Errorf("image without long names: %v, %v", got, err)
	}
}

// TestDamagedImages must neither panic nor hang, whatever they read.
func TestDamagedImages(t *testing.T) {
	t.Parallel()
	whole := makeISO(t, seedFiles(), iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: "cidata"})[:128*1024]
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		image := append([]byte{}, whole...)
		for range 1 + random.IntN(40) {
			image[32*1024+random.IntN(len(image)-32*1024)] = byte(random.IntN(256))
		}
		_, _ = pvesim.FilesOf(image[:random.IntN(len(image)/2048+1)*2048])
	}
	if _, err := pvesim.FilesOf(whole[:100]); err == nil {
		t.Error("an image that is no multiple of 2048 bytes long is read")
	}
}
