package pvesim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/nocloud"
)

// errNoSeed is why a guest without any seed does not come up.
var errNoSeed = errors.New("no CD-ROM with the volume label cidata")

// readSeed finds the seed that cloud-init would take. When several media carry the label, it is the last in bus order:
// cloud-init sorts the devices in reverse (DataSourceNoCloud._get_devices).
func readSeed(media []Medium) (*nocloud.Seed, error) {
	err := errNoSeed
	for _, m := range slices.Backward(media) {
		files, readErr := m.read()
		if readErr != nil {
			err = fmt.Errorf("read %s in %s: %w", m.Volume, m.Drive, readErr)
			continue
		}
		if files == nil {
			continue
		}
		s, seedErr := nocloud.New(files)
		if seedErr != nil {
			return nil, fmt.Errorf("seed on %s in %s: %w", m.Volume, m.Drive, seedErr)
		}
		return s, nil
	}
	return nil, err
}

// read returns the seed files on the medium; nil if it is not a seed.
func (m Medium) read() (map[string]string, error) {
	if m.Generated != nil {
		return m.Generated, nil
	}
	return nocloud.Files(m.Content)
}
