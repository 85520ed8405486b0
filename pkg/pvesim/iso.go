package pvesim

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"
)

// isoBlock is the sector size of a CD-ROM. An image whose length is no multiple of it hangs real guests on ejection.
const isoBlock = 2048

// The layout of ISO 9660 (ECMA-119), of Joliet and of Rock Ridge, as far as files in the root directory need it. It is read
// here and not with go-diskfs because that panics on, or never finishes, about one in a hundred damaged images.
const (
	firstDescriptor   = 16
	primaryDescriptor = 1
	jolietDescriptor  = 2
	lastDescriptor    = 255
	labelAt, labelEnd = 40, 72
	escapesAt         = 88
	rootRecordAt      = 156
	recordHead        = 33
	directoryFlag     = 2
)

var (
	errNoISO      = errors.New("no ISO 9660 image")
	errOutOfImage = errors.New("damaged image: a file lies outside")
)

// isoImage is a CD-ROM in memory.
type isoImage struct {
	raw   []byte
	label string
	// primary and joliet are the records of the two root directories; joliet is nil when there is none.
	primary, joliet []byte
}

// openISO reads the volume descriptors.
func openISO(raw []byte) (*isoImage, error) {
	image := &isoImage{raw: raw}
	for n := firstDescriptor; ; n++ {
		d, err := image.extent(uint32(n), isoBlock)
		if err != nil || string(d[1:6]) != "CD001" {
			break
		}
		switch d[0] {
		case primaryDescriptor:
			image.label = strings.Trim(string(d[labelAt:labelEnd]), " \x00")
			image.primary = d[rootRecordAt : rootRecordAt+recordHead]
		case jolietDescriptor:
			if escapes := string(d[escapesAt : escapesAt+3]); escapes == "%/@" || escapes == "%/C" || escapes == "%/E" {
				image.joliet = d[rootRecordAt : rootRecordAt+recordHead]
			}
		}
		if d[0] == lastDescriptor {
			break
		}
	}
	if image.primary == nil {
		return nil, errNoISO
	}
	return image, nil
}

// extent is a part of the image; out of its bounds is an error.
func (i *isoImage) extent(block, size uint32) ([]byte, error) {
	from := int64(block) * isoBlock
	to := from + int64(size)
	if to > int64(len(i.raw)) {
		return nil, errOutOfImage
	}
	return i.raw[from:to], nil
}

// content is what a directory record points to.
func (i *isoImage) content(record []byte) ([]byte, error) {
	return i.extent(binary.LittleEndian.Uint32(record[2:]), binary.LittleEndian.Uint32(record[10:]))
}

// files returns the files in the root directory by the names that Linux shows: those of Rock Ridge, else of Joliet.
func (i *isoImage) files() (map[string]string, error) {
	out, long, err := i.list(i.primary, rockRidgeName)
	if err == nil && !long && i.joliet != nil {
		out, _, err = i.list(i.joliet, jolietName)
	}
	return out, err
}

// list reads one directory. Its second result tells whether the names are those of an extension.
func (i *isoImage) list(root []byte, name func(record []byte) (string, bool)) (files map[string]string, extended bool, err error) {
	directory, err := i.content(root)
	if err != nil {
		return nil, false, err
	}
	files = map[string]string{}
	for at := 0; at < len(directory); {
		length := int(directory[at])
		if length <= recordHead || at+length > len(directory) {
			// The rest of a sector is empty when the next record does not fit.
			at = (at/isoBlock + 1) * isoBlock
			continue
		}
		record := directory[at : at+length]
		at += length
		if record[25]&directoryFlag != 0 || recordHead+int(record[32]) > length {
			continue
		}
		content, err := i.content(record)
		if err != nil {
			return nil, false, err
		}
		title, long := name(record)
		files[title], extended = string(content), extended || long
	}
	return files, extended, nil
}

// plainName is the short name that every file has, in lower case and without its version.
func plainName(record []byte) string {
	title, _, _ := strings.Cut(string(record[recordHead:recordHead+int(record[32])]), ";")
	return strings.ToLower(strings.TrimSuffix(title, "."))
}

func jolietName(record []byte) (string, bool) {
	raw := record[recordHead : recordHead+int(record[32])]
	units := make([]uint16, 0, len(raw)/2)
	for ; len(raw) > 1; raw = raw[2:] {
		units = append(units, binary.BigEndian.Uint16(raw))
	}
	title, _, _ := strings.Cut(string(utf16.Decode(units)), ";")
	return title, true
}

// rockRidgeName looks for NM entries in the system use area behind the name.
func rockRidgeName(record []byte) (string, bool) {
	at := recordHead + int(record[32])
	at += at % 2
	title := ""
	for at+5 <= len(record) {
		length := int(record[at+2])
		if length < 5 || at+length > len(record) {
			break
		}
		if string(record[at:at+2]) == "NM" {
			title += string(record[at+5 : at+length])
		}
		at += length
	}
	if title == "" {
		return plainName(record), false
	}
	return title, true
}
