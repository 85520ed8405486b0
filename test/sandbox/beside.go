package sandbox

import "context"

// Beside starts another management cluster for the same Proxmox VE, with the same providers and without any cluster: where
// `clusterctl move` can take the clusters of this one. It stops no later than this sandbox does.
func (s *Sandbox) Beside(ctx context.Context) (*Sandbox, error) {
	options := s.options
	options.Dir = "" // each has its own
	other := newSandbox(options)
	share := func(context.Context) error {
		other.builder, other.programs = s.builder, s.programs
		other.pve, other.world, other.initial, other.guests = s.pve, s.world, s.initial, s.guests
		return nil
	}
	other, err := other.start(ctx,
		other.makeDirectory, share, other.startControlPlane, other.installProviders, other.startControllers,
		other.startIPAM, other.startManager,
	)
	if err != nil {
		return nil, err
	}
	s.onStop(other.Stop)
	return other, nil
}
