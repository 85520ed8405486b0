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
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
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
				reason := fmt.Sprintf("wrong field name '%s' for file upload, expected 'filename' at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line %d.", name, uploadLine(x.version))
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

// uploadLine is where the release's pveproxy dies of a wrong field name.
func uploadLine(v Version) int {
	if v == V84 {
		return 1281
	}
	return 1325
}

// cleanFileName is PVE's normalisation of an uploaded name: the last path element, each odd character as an underscore.
func cleanFileName(name string) string {
	out := strings.Builder{}
	for _, r := range path.Base(name) {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_' {
			r = '_'
		}
		out.WriteRune(r)
	}
	return out.String()
}

func uploadRoutes() []Route {
	const path = "/nodes/{node}/storage/{storage}"
	content := schema.Text("content").Format("pve-storage-content").OneOf("iso", "vztmpl", "import").Required()
	file := []schema.Param{
		content, schema.Text("filename").MaxLength(255).Required(), schema.Text("checksum").Requires("checksum-algorithm"),
		schema.Choice("checksum-algorithm", "md5", "sha1", "sha224", "sha256", "sha384", "sha512").Requires("checksum"),
	}
	address := []schema.Param{schema.Text("url").Pattern(`https?://.*`).Required(), schema.Boolean("verify-certificates")}
	allocate := on("/storage/{storage}", "Datastore.AllocateTemplate")
	network := anyOf{allOn("/", "Sys.Audit", "Sys.Modify"), on("/nodes/{node}", "Sys.AccessNetwork")}
	return []Route{
		{
			Method: "POST", Path: path + "/upload", handle: uploadFile, permission: allocate,
			params: slices.Concat(file, []schema.Param{schema.Text("tmpfilename").Pattern(`/var/tmp/pveupload-[0-9a-f]+`)}),
		},
		{
			Method: "POST", Path: path + "/download-url", handle: downloadURL, permission: allOf{allocate, network},
			params: slices.Concat(file, address, []schema.Param{schema.Text("compression")}),
		},
		{Method: "GET", Path: "/nodes/{node}/query-url-metadata", handle: queryURL, permission: network, params: address},
	}
}

// uploadFile is POST /nodes/{node}/storage/{storage}/upload.
func uploadFile(c *call) reply {
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	switch {
	case !s.fileBased():
		return fail("can't upload to storage type '%s', not a file based storage!", s.typ)
	case c.file == nil:
		return fail("missing temporary file name")
	}
	if msg := refusedName(c.params["content"], c.params["filename"]); msg != "" {
		return invalidParam("filename", "%s", msg)
	}
	if content := c.params["content"]; !s.holds(content) {
		return fail("storage '%s' does not support '%s' content", s.id, content)
	}
	if !c.at.sees(c.node) {
		return fail("can't activate storage '%s' on node '%s': command '/usr/bin/ssh %s %s -- /usr/sbin/pvesm status --storage %s' failed: exit code 255",
			s.id, c.node.Name, c.node.sshOptions(), c.node.Address, s.id)
	}
	// The worker runs on the node that was asked, not on the one in the path.
	k := taskKey{node: c.at.Name, typ: "imgcopy", user: c.who.name()}
	return ok(c.start(k, func(t *task) { c.copyFile(t, s) }))
}

// refusedName says why a file of that content cannot have the name, or "".
func refusedName(content, name string) string {
	switch {
	case content == "iso" && !matchesName(isoName, name), content == "vztmpl" && !matchesName(templateName, name):
		return "wrong file extension"
	case content == "import" && (!matchesName(importName, name) || extension(name) == "ovf"):
		return "invalid filename or wrong extension"
	}
	return ""
}

func (n *node) sshOptions() string {
	return fmt.Sprintf("-o BatchMode=yes -o HostKeyAlias=%s -o UserKnownHostsFile=/etc/pve/nodes/%s/ssh_known_hosts -o GlobalKnownHostsFile=none", n.Name, n.Name)
}

// copyFile is the worker of an upload.
func (c *call) copyFile(t *task, s *storage) {
	temporary := "/var/tmp/pveupload-" + strings.ReplaceAll(c.newUUID(), "-", "")
	t.logf("starting file import from: %s", temporary)
	if msg := c.checkSum(t, c.file.content); msg != "" {
		t.end(msg)
		return
	}
	if msg := c.checkImage(t, c.file.content, temporary); msg != "" {
		t.end(msg)
		return
	}
	name := c.params["content"] + "/" + c.params["filename"]
	dest, size := s.pathOf(name), proxmox.Bytes(len(c.file.content))
	t.logf("target node: %s", c.node.Name)
	t.logf("target file: %s", dest)
	t.logf("file size is: %d", size)
	if c.node == c.at {
		t.logf("command: cp -- %s %s", temporary, dest)
	} else {
		t.logf("command: /usr/bin/scp %s -p -- %s [%s]:%s", c.node.sshOptions(), temporary, c.node.Address, dest)
	}
	if size > s.free(c.node.Name) {
		t.logf("cp: error writing '%s': No space left on device", dest)
		t.end("import failed: exit code 1")
		return
	}
	t.after(c.about(fileCopyDelay), func() {
		c.storeFile(s, name, c.file.content)
		t.logf("finished file import successfully")
		t.end("")
	})
}

// storeFile writes a file of the storage on the path's node, over one that is there.
func (c *call) storeFile(s *storage, name string, data []byte) {
	key := volumeKey{s.scope(c.node.Name), proxmox.VolumeID(string(s.id) + ":" + name)}
	parts, _ := s.parseVolume(name)
	c.removeVolume(key)
	c.addVolume(&volume{
		key: key, storage: s, content: parts.content, format: parts.listedFormat(), size: proxmox.Bytes(len(data)), used: proxmox.Bytes(len(data)), data: data,
	})
}

// checkSum compares the file with the checksum of the request, if there is one.
func (c *call) checkSum(t *task, data []byte) string {
	algorithm, want := c.params["checksum-algorithm"], c.params["checksum"]
	if algorithm == "" {
		return ""
	}
	if got := checksum(algorithm, data); !strings.EqualFold(got, want) {
		t.logf("calculating checksum...")
		return fmt.Sprintf("checksum mismatch: got '%s' != expect '%s'", got, want)
	}
	t.logf("calculating checksum...OK, checksum verified")
	return ""
}

// checkImage looks into a disk image to be imported, as qemu-img does by the format that its name tells.
func (c *call) checkImage(t *task, data []byte, file string) string {
	format := extension(c.params["filename"])
	if c.params["content"] != "import" || format == "raw" {
		return ""
	}
	if format == "ova" {
		if len(data) > 262 && string(data[257:262]) == "ustar" {
			return ""
		}
		return fmt.Sprintf("command 'tar -tf %s' failed: exit code 2", file)
	}
	magic := map[string]string{"qcow2": "QFI\xfb", "vmdk": "KDMV"}[format]
	if strings.HasPrefix(string(data), magic) || (format == "vmdk" && strings.HasPrefix(string(data), "# Disk DescriptorFile")) {
		return ""
	}
	t.logf("command '/usr/bin/qemu-img info '--output=json' %s -f %s' failed: exit code 1", file, format)
	return fmt.Sprintf("qemu-img: Could not open '%s': Image is not in %s format", file, format)
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
