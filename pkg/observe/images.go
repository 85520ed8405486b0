package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	refusal, err := f.lookAt(ctx, storage)
	if err != nil && wasRefused(err) {
		return fmt.Sprintf("it cannot be seen whether image %s is on storage %s of %s: %v", f.image, id, node, err), nil
	}
	return refusal, err
}

// lookAt looks for the image on a storage of its kind.
func (f *imageFinder) lookAt(ctx context.Context, storage pve.Storage) (string, error) {
	if owner := vmconfig.Owner(f.image); owner != 0 {
		return f.lookInto(ctx, owner, storage)
	}
	volumes, err := f.images(ctx, storage, f.content())
	if err != nil || slices.Contains(volumes, f.image) {
		return "", err
	}
	return fmt.Sprintf("image %s is not on storage %s of %s, or the token may not use it (Datastore.AllocateSpace or Datastore.Audit on the storage): put it there, or correct source.image.volume",
		f.image, storage.ID, storage.Node), nil
}

// lookInto looks for the image among the disks of its VM, whose rights are what it takes to import it.
func (f *imageFinder) lookInto(ctx context.Context, owner proxmox.VMID, storage pve.Storage) (string, error) {
	vm, listed := f.snapshot.VM(owner)
	switch {
	case !listed:
		return fmt.Sprintf("there is no VM %d, which image %s is a disk of, or the token may not see it (VM.Audit and VM.Clone): correct source.image.volume", owner, f.image), nil
	case vm.Node != storage.Node && !storage.Shared:
		return fmt.Sprintf("image %s is a disk of VM %d on %s, and storage %s is not shared: it can be imported there alone", f.image, owner, vm.Node, storage.ID), nil
	}
	config, err := f.template(ctx, f.pve, place{cluster: f.id, ref: vm.Ref()})
	if err != nil || config.Names(f.image) {
		return "", err
	}
	return fmt.Sprintf("VM %d of %s has no disk %s: correct source.image.volume", owner, vm.Node, f.image), nil
}

// content is the content type that storages have images of this kind under.
func (f *imageFinder) content() string {
	if _, path, _ := strings.Cut(string(f.image), ":"); strings.HasPrefix(path, "import/") {
		return "import"
	}
	return "images"
}

// imagePlace names the images of a storage; the node is empty for a shared one.
type imagePlace struct {
	cluster PVECluster
	node    proxmox.NodeName
	storage proxmox.StorageID
	content string
}

// images lists what is on a storage, once for all machines and, of a shared storage, for all nodes.
func (f *imageFinder) images(ctx context.Context, storage pve.Storage, content string) ([]proxmox.VolumeID, error) {
	at := imagePlace{f.id, storage.Node, storage.ID, content}
	if storage.Shared {
		at.node = ""
	}
	return f.Memory.images.get(ctx, at, func() ([]proxmox.VolumeID, error) {
		listed, err := f.pve.StorageContent(ctx, storage.Node, storage.ID, content)
		volumes := make([]proxmox.VolumeID, len(listed))
		for i, volume := range listed {
			volumes[i] = volume.ID
		}
		return volumes, err
	})
}
