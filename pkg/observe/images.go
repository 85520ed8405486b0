package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// imageFinder finds the nodes that an image is on.
type imageFinder struct {
	*Observer
	pve      *pve.Cluster
	id       PVECluster
	snapshot pve.Snapshot
	image    proxmox.VolumeID
	refusals map[proxmox.NodeName]string
}

func (f *imageFinder) find(ctx context.Context) error {
	f.refusals = map[proxmox.NodeName]string{}
	for _, node := range f.snapshot.Nodes() {
		if !node.Online {
			continue // which is refused for that
		}
		refusal, err := f.look(ctx, node.Name)
		if err != nil {
			return err
		}
		f.refusals[node.Name] = refusal
	}
	return nil
}

func (f *imageFinder) on(node proxmox.NodeName) (template placement.Template, refusal string) {
	return placement.Template{}, f.refusals[node]
}

// look says why the image cannot be imported on a node; empty when it can.
func (f *imageFinder) look(ctx context.Context, node proxmox.NodeName) (string, error) {
	id, content := vmconfig.Storage(f.image), f.content()
	storage, found := f.snapshot.Storage(node, id)
	switch {
	case !found || !storage.Available:
		return fmt.Sprintf("storage %s of image %s is not there, or cannot be seen (Datastore.Audit): keep the image on a storage that each host has", id, f.image), nil
	case !storage.Holds(content):
		return fmt.Sprintf("storage %s does not have the content type %s of image %s: add it there (Datacenter, Storage), or name an image on another storage", id, content, f.image), nil
	}
	volumes, err := f.images(ctx, storage, content)
	switch {
	case err != nil && wasRefused(err):
		return fmt.Sprintf("storage %s does not tell whether image %s is on it: %v", id, f.image, err), nil
	case err != nil:
		return "", err
	case slices.ContainsFunc(volumes, f.isIn):
		return "", nil
	}
	return fmt.Sprintf("image %s is not on storage %s of %s, or the token may not use it (%s): put it there, or correct source.image.volume",
		f.image, id, node, f.privileges()), nil
}

// content is the content type that storages have images of this kind under.
func (f *imageFinder) content() string {
	if _, path, _ := strings.Cut(string(f.image), ":"); strings.HasPrefix(path, "import/") {
		return "import"
	}
	return "images"
}

// privileges are what it takes to see the image, and to import it.
func (f *imageFinder) privileges() string {
	if f.content() == "import" {
		return "Datastore.AllocateSpace or Datastore.Audit on the storage"
	}
	return "Datastore.Audit on the storage and VM.Config.Disk on its VM"
}

// isIn reports whether a volume is the image, or the archive that it is in.
func (f *imageFinder) isIn(volume proxmox.VolumeID) bool {
	return f.image == volume || strings.HasPrefix(string(f.image), string(volume)+"/")
}

// imagesTTL is how long a list of images is believed.
const imagesTTL = 30 * time.Second

// imagePlace names the images of a storage; the node is empty for a shared one.
type imagePlace struct {
	cluster PVECluster
	node    proxmox.NodeName
	storage proxmox.StorageID
	content string
}

// imageList is what was on a storage, and until when that is believed.
type imageList struct {
	until   time.Time
	volumes []proxmox.VolumeID
}

// images lists what is on a storage, once for all machines and, of a shared storage, for all nodes.
func (f *imageFinder) images(ctx context.Context, storage pve.Storage, content string) ([]proxmox.VolumeID, error) {
	at := imagePlace{f.id, storage.Node, storage.ID, content}
	if storage.Shared {
		at.node = ""
	}
	if volumes, known := f.Memory.images(at); known {
		return volumes, nil
	}
	listed, err := f.pve.StorageContent(ctx, storage.Node, storage.ID, content)
	if err != nil {
		return nil, err
	}
	volumes := make([]proxmox.VolumeID, len(listed))
	for i, volume := range listed {
		volumes[i] = volume.ID
	}
	f.Memory.keepImages(at, volumes)
	return volumes, nil
}

func (m *Memory) keepImages(at imagePlace, volumes []proxmox.VolumeID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.imageLists[at] = imageList{until: m.clock.Now().Add(imagesTTL), volumes: volumes}
}

func (m *Memory) images(at imagePlace) ([]proxmox.VolumeID, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, known := m.imageLists[at]
	if known && m.clock.Now().After(found.until) {
		delete(m.imageLists, at)
		return nil, false
	}
	return found.volumes, known
}

// forgetImages has the images be listed anew.
func (m *Memory) forgetImages() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.imageLists)
}
