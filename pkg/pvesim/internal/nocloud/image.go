package nocloud

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

const (
	// label is the volume label by which cloud-init finds a seed, in any case.
	label = "cidata"
	// sectorSize is that of a CD-ROM.
	sectorSize = 2048
	// maxReads is far above what a good image needs. Damaged ones can send the library round in circles.
	maxReads = 1 << 14
)

// Files returns the texts of the seed in an ISO 9660 image, by their names; nil if it is not labelled as a seed. The names
// are those of Rock Ridge, else of Joliet; files that do not belong to a seed are left out.
func Files(image []byte) (files map[string]string, err error) {
	// Some programs leave the last sector short; QEMU fills it up.
	if short := len(image) % sectorSize; short > 0 {
		image = slices.Concat(image, make([]byte, sectorSize-short))
	}
	// The library panics on some damaged images.
	defer func() {
		if r := recover(); r != nil {
			files, err = nil, fmt.Errorf("damaged image: %v", r)
		}
	}()
	disc := file.New(&medium{Reader: bytes.NewReader(image)}, true)
	volume, err := iso9660.Read(disc, int64(len(image)), 0, sectorSize)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(strings.Trim(volume.Label(), " \x00"), label) {
		return nil, nil
	}
	return seedFiles(volume)
}

func seedFiles(volume *iso9660.FileSystem) (map[string]string, error) {
	entries, err := volume.ReadDir(".")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !slices.Contains([]string{metaDataFile, userDataFile, networkConfigFile}, name) {
			continue
		}
		if files[name], err = readFile(volume, name); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return files, nil
}

func readFile(volume *iso9660.FileSystem, name string) (string, error) {
	f, err := volume.Open(name)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), err
}

var errTooManyReads = errors.New("damaged image: its parts refer to each other without end")

// medium is an image as the file that the library reads.
type medium struct {
	*bytes.Reader
	reads int
}

// ReadAt fails when it finds less than was asked for: the library takes the end of the image for zeros.
func (m *medium) ReadAt(p []byte, offset int64) (int, error) {
	if m.reads++; m.reads > maxReads {
		return 0, errTooManyReads
	}
	n, err := m.Reader.ReadAt(p, offset)
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// Stat is there for fs.File. The library does not ask for it.
func (m *medium) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (m *medium) Close() error { return nil }
