package pvesim

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// upload is the file part of a multipart request.
type upload struct {
	name    string
	content []byte
}

// readUpload reads a multipart body as pveproxy's hand-written parser does: fields in a fixed order, the file last.
func (x *exchange) readUpload(body io.Reader, boundary string) *reply {
	bad := &reply{status: http.StatusBadRequest, reason: "Bad Request", bare: true}
	parts := multipart.NewReader(body, boundary)
	order := []string{"content", "checksum-algorithm", "checksum"}
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bad
		}
		raw, err := io.ReadAll(part)
		if err != nil {
			return bad
		}
		name := part.FormName()
		if part.FileName() != "" {
			if name != "filename" {
				reason := fmt.Sprintf("wrong field name '%s' for file upload, expected 'filename' at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1325.", name)
				return &reply{status: http.StatusInternalServerError, text: reason + "\n", reason: reason}
			}
			x.file = &upload{name: part.FileName(), content: raw}
			x.params["filename"] = cleanFileName(part.FileName())
			// What follows the file is not read any more.
			return nil
		}
		for len(order) > 0 && order[0] != name {
			order = order[1:]
		}
		if len(order) == 0 {
			return bad
		}
		x.params[name] = string(raw)
	}
}

// cleanFileName is PVE's normalisation of an uploaded name: the last path element, odd characters as underscores.
func cleanFileName(name string) string {
	out := strings.Builder{}
	for _, b := range []byte(path.Base(name)) {
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '-' && b != '.' && b != '_' {
			b = '_'
		}
		out.WriteByte(b)
	}
	return out.String()
}

// uploadFile is POST /nodes/{node}/storage/{storage}/upload.
func uploadFile(c *call) reply {
	if c.file == nil {
		return invalidParam("filename", "property is missing and it is not optional")
	}
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	content := c.params["content"]
	if !s.holds(content) {
		return fail("storage '%s' does not support '%s' content", s.id, content)
	}
	if !goodExtension(content, c.params["filename"]) {
		return invalidParam("filename", "wrong file extension")
	}
	// The worker runs on the node that was asked, not on the one in the path.
	k := taskKey{node: c.at.Name, typ: "imgcopy", user: c.who.name()}
	return ok(c.start(k, func(t *task) { c.copyFile(t, s) }))
}

func goodExtension(content, name string) bool {
	extensions := map[string][]string{
		"iso": {".iso", ".img", ".ISO", ".IMG"}, "vztmpl": {".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2"},
		"import": {".qcow2", ".raw", ".vmdk", ".ova"},
	}
	for _, e := range extensions[content] {
		if strings.HasSuffix(name, e) && len(name) > len(e) {
			return true
		}
	}
	return false
}

// copyFile is the worker of an upload.
func (c *call) copyFile(t *task, s *storage) {
	t.logf("starting file import from: /var/tmp/pveupload-%s", strings.ReplaceAll(c.newUUID(), "-", ""))
	if algorithm := c.params["checksum-algorithm"]; algorithm != "" {
		if got, want := checksum(algorithm, c.file.content), c.params["checksum"]; !strings.EqualFold(got, want) {
			t.logf("calculating checksum...")
			t.end(fmt.Sprintf("checksum mismatch: got '%s' != expect '%s'", got, want))
			return
		}
		t.logf("calculating checksum...OK, checksum verified")
	}
	id, name := proxmox.VolumeID(fmt.Sprintf("%s:%s/%s", s.id, c.params["content"], c.params["filename"])), c.node.Name
	t.logf("target node: %s", name)
	t.logf("file size is: %d", len(c.file.content))
	size := proxmox.Bytes(len(c.file.content))
	if size > s.free(name) {
		t.end("cp: error writing: No space left on device")
		return
	}
	t.after(c.between(150*time.Millisecond, 700*time.Millisecond), func() {
		c.removeVolume(volumeKey{s.scope(name), id})
		c.addVolume(&volume{key: volumeKey{s.scope(name), id}, storage: s, content: c.params["content"], format: path.Ext(string(id))[1:], size: size, used: size, data: c.file.content})
		t.logf("finished file import successfully")
		t.end("")
	})
}

func checksum(algorithm string, data []byte) string {
	var h hash.Hash
	switch algorithm {
	case "md5":
		h = md5.New()
	case "sha1":
		h = sha1.New()
	case "sha224":
		h = sha256.New224()
	case "sha256":
		h = sha256.New()
	case "sha384":
		h = sha512.New384()
	default:
		h = sha512.New()
	}
	_, _ = h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
