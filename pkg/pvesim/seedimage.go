package pvesim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

// seedLabel is the volume label by which cloud-init's NoCloud datasource finds its seed.
const seedLabel = "cidata"

// isoBlock is the sector size of a CD-ROM. An image whose length is no multiple of it hangs real guests on ejection.
const isoBlock = 2048

// errNoSeed is why a guest without any seed does not come up.
var errNoSeed = errors.New("no CD-ROM with the volume label cidata")

// readSeed finds the seed that cloud-init would take. When several media carry the label, it is the last in bus order:
// cloud-init sorts the devices in reverse (DataSourceNoCloud._get_devices).
func readSeed(media []Medium) (*seed, error) {
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
		s, seedErr := newSeed(files)
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
	if len(m.Content)%isoBlock != 0 {
		return nil, fmt.Errorf("the image is %d bytes long, no multiple of %d", len(m.Content), isoBlock)
	}
	size := int64(len(m.Content))
	image, err := iso9660.Read(file.New(&memoryFile{Reader: bytes.NewReader(m.Content), size: size}, true), size, 0, isoBlock)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(strings.TrimSpace(strings.Trim(image.Label(), "\x00")), seedLabel) {
		return nil, nil
	}
	out := map[string]string{}
	for _, name := range []string{"meta-data", "user-data", "network-config", "vendor-data"} {
		content, err := image.ReadFile(name)
		if err == nil {
			out[name] = string(content)
		}
	}
	return out, nil
}

// memoryFile lets go-diskfs read an image that is in memory.
type memoryFile struct {
	*bytes.Reader
	size int64
}

// Stat describes the image.
func (f *memoryFile) Stat() (fs.FileInfo, error) { return memoryInfo{f.size}, nil }

// Close does nothing.
func (f *memoryFile) Close() error { return nil }

type memoryInfo struct{ size int64 }

func (memoryInfo) Name() string       { return "image.iso" }
func (i memoryInfo) Size() int64      { return i.size }
func (memoryInfo) Mode() fs.FileMode  { return 0o444 }
func (memoryInfo) ModTime() time.Time { return time.Time{} }
func (memoryInfo) IsDir() bool        { return false }
func (memoryInfo) Sys() any           { return nil }
