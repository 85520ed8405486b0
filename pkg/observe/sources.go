package observe

import (
	"context"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// sourceFinder tells what a VM on a node would be made from.
type sourceFinder interface {
	// on returns the template for a node; none where the VM is made without one. The refusal says why the VM cannot be made
	// there.
	on(node proxmox.NodeName) (template placement.Template, refusal string)
}

// sources finds what the machine's VM is made from.
func (s *regionSight) sources(ctx context.Context) (sourceFinder, error) {
	source := s.subject.ProxmoxMachine.Spec.Source
	switch {
	case source.UsesTemplate():
		finder := &templateFinder{regionSight: s, source: source.Template}
		return finder, finder.find(ctx)
	case source.Image.Volume != "":
		finder := &imageFinder{Observer: s.Observer, pve: s.pve, id: s.id, snapshot: s.snapshot, image: proxmox.VolumeID(source.Image.Volume)}
		return finder, finder.find(ctx)
	}
	return fromNothing{}, nil
}

// fromNothing is for VMs that boot from the network.
type fromNothing struct{}

func (fromNothing) on(proxmox.NodeName) (template placement.Template, refusal string) { return }

// wasRefused reports whether an error is one node's own, so that others may serve: what is asked for is not there, may not
// be seen, or the node does not answer.
func wasRefused(err error) bool {
	if pve.IsCanceled(err) {
		return false
	}
	switch pve.ClassOf(err) { //nolint:exhaustive // the others are of the region
	case pve.NotFound, pve.Missing, pve.Forbidden, pve.Unreachable, pve.Ambiguous, pve.Unfit, pve.Other:
		return true
	}
	return false
}
