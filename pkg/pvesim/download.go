package pvesim

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// AddDownload puts a file on the simulated network, for download-url and query-url-metadata. A server of which no file is known
// refuses connections; one that is known answers 404 for other files.
func (w *World) AddDownload(s DownloadSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addDownload(s)
}

func (w *World) addDownload(s DownloadSpec) {
	s.Data = slices.Clone(s.Data)
	orDefault(&s.Type, map[string]string{"iso": "application/x-iso9660-image", "gz": "application/gzip"}[extension(s.URL)])
	orDefault(&s.Type, "application/octet-stream")
	w.downloads[s.URL] = &s
}

// hostOf is the server of a URL with its port.
func hostOf(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return address
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

// knownHost tells whether the server has any file.
func (w *World) knownHost(address string) bool {
	for known := range w.downloads {
		if hostOf(known) == hostOf(address) {
			return true
		}
	}
	return false
}

// queryURL is GET /nodes/{node}/query-url-metadata.
func queryURL(c *call) reply {
	address := c.params["url"]
	d := c.downloads[address]
	switch {
	case d == nil && c.knownHost(address):
		return fail("invalid server response: '404 File not found'")
	case d == nil:
		return fail("invalid server response: '500 Can't connect to %s (Connection refused)'", hostOf(address))
	}
	out := map[string]any{"mimetype": d.Type}
	u, err := url.Parse(address)
	if err == nil && path.Base(u.Path) != "/" {
		out["filename"] = path.Base(u.Path)
	}
	if len(d.Data) > 0 {
		out["size"] = len(d.Data)
	}
	return ok(out)
}

// downloadURL is POST /nodes/{node}/storage/{storage}/download-url.
func downloadURL(c *call) reply {
	s := c.storageByID(proxmox.StorageID(c.params["storage"]))
	content := c.params["content"]
	switch {
	case s == nil:
		return fail("storage '%s' does not exist", c.params["storage"])
	case !s.fileBased():
		return fail("can't upload to storage type '%s', not a file based storage!", s.typ)
	case !s.holds(content):
		return fail("storage '%s' is not configured for content-type '%s'", s.id, content)
	}
	c.params["filename"] = cleanFileName(c.params["filename"])
	if msg := refusedName(content, c.params["filename"]); msg != "" {
		return invalidParam("filename", "%s", msg)
	}
	if _, refused := c.storageHere(); refused.failed() {
		return refused
	}
	return c.task("download", c.params["filename"], func(t *task) { c.download(t, s) })
}

// download is the worker: what PVE::Tools::download_file_from_url does with wget.
func (c *call) download(t *task, s *storage) {
	name, address := c.params["content"]+"/"+c.params["filename"], c.params["url"]
	dest := s.pathOf(name)
	t.logf("downloading %s to %s", address, dest)
	if old := c.volumeAt(c.node.Name, proxmox.VolumeID(string(s.id)+":"+name)); old != nil {
		if done, msg := c.existing(t, old, dest); done {
			t.end(msg)
			return
		}
	}
	if c.params["compression"] != "" && c.params["content"] != "iso" {
		t.end("decompression not supported for " + c.params["content"])
		return
	}
	now := c.clock.Now().UTC().Format(time.DateTime)
	t.logf("--%s--  %s", now, address)
	d := c.downloads[address]
	if d == nil {
		t.end(c.notFetched(t, now))
		return
	}
	t.after(c.about(downloadDelay), func() { t.end(c.fetched(t, s, d)) })
}

// existing decides about a file that is there already: it is kept if it has the wanted checksum.
func (c *call) existing(t *task, old *volume, dest string) (done bool, msg string) {
	algorithm := c.params["checksum-algorithm"]
	if algorithm == "" {
		return true, fmt.Sprintf("refusing to override existing file '%s'", dest)
	}
	if strings.EqualFold(checksum(algorithm, old.data), c.params["checksum"]) {
		t.logf("calculating checksum of existing file...OK, got correct file already, no need to download")
		return true, ""
	}
	t.logf("calculating checksum of existing file...mismatch, re-download")
	return false, ""
}

// notFetched is how wget fails.
func (c *call) notFetched(t *task, now string) string {
	host := hostOf(c.params["url"])
	if !c.knownHost(c.params["url"]) {
		return fmt.Sprintf("download failed: Connecting to %s... failed: Connection refused.", host)
	}
	t.logf("Connecting to %s... connected.", host)
	t.logf("HTTP request sent, awaiting response... 404 File not found")
	t.logf("%s ERROR 404: File not found.", now)
	return "download failed: exit code 8"
}

// fetched stores what was loaded, if it is what it should be.
func (c *call) fetched(t *task, s *storage, d *DownloadSpec) string {
	name := c.params["content"] + "/" + c.params["filename"]
	dest, size := s.pathOf(name), len(d.Data)
	temporary := fmt.Sprintf("%s.tmp_dwnl.%d", dest, t.pid)
	t.logf("Connecting to %s... connected.", hostOf(d.URL))
	t.logf("HTTP request sent, awaiting response... 200 OK")
	t.logf("Length: %d (%s) [%s]", size, wgetSize(size), d.Type)
	t.logf("Saving to: '%s'", temporary)
	t.logf("     0K                                    100%%  850M=0s")
	t.logf("%s (850 MB/s) - '%s' saved [%d/%d]", c.clock.Now().UTC().Format(time.DateTime), temporary, size, size)
	if msg := c.checkSum(t, d.Data); msg != "" {
		return msg
	}
	if msg := c.checkImage(t, d.Data, temporary); msg != "" {
		return "failed to verify file: " + msg
	}
	if proxmox.Bytes(size) > s.free(c.node.Name) {
		return "download failed: exit code 3"
	}
	c.storeFile(s, name, d.Data)
	t.logf("download of '%s' to '%s' finished", d.URL, dest)
	return ""
}

// wgetSize is a size as wget writes it.
func wgetSize(n int) string {
	for _, unit := range []string{"", "K", "M", "G"} {
		if n < 1024 || unit == "G" {
			return fmt.Sprintf("%d%s", n, unit)
		}
		n = (n + 512) / 1024
	}
	return ""
}
