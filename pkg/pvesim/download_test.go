package pvesim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// log is the log of the task that a request starts, once it has ended.
func (a *api) log(request string) string {
	a.t.Helper()
	words := strings.Fields(request)
	var params []string
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		params = append(params, key, value)
	}
	upid := fmt.Sprint(a.must(words[0], words[1], params...))
	a.wait(upid)
	return strings.Join(pick(a.must("GET", fmt.Sprintf("/nodes/%s/tasks/%s/log", strings.Split(upid, ":")[1], upid)), "t"), "\n")
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	a.server.World.AddDownload(pvesim.DownloadSpec{URL: "http://files:8080/a.iso", Data: make([]byte, 3000)})
	a.server.World.AddDownload(pvesim.DownloadSpec{URL: "https://files/d.qcow2", Data: []byte("QFI\xfb..."), Type: "application/x-qemu-disk"})
	const (
		from = "POST /nodes/pve1/storage/local/download-url "
		sum  = "d8a83bdd7d6c38a9eb4a1a3d5f3a0cd5"
	)
	for request, want := range map[string]string{
		from + "content=iso filename=b.iso url=http://files:8080/a.iso":                                               "download of 'http://files:8080/a.iso' to '/var/lib/vz/template/iso/b.iso' finished",
		from + "content=iso filename=c.iso url=http://files:8080/none.iso":                                            "TASK ERROR: download failed: exit code 8",
		from + "content=iso filename=c.iso url=http://nobody/a.iso":                                                   "TASK ERROR: download failed: Connecting to nobody:80... failed: Connection refused.",
		from + "content=iso filename=c.iso url=http://files:8080/a.iso checksum-algorithm=md5 checksum=" + sum:        "' != expect '" + sum + "'",
		from + "content=import filename=d.qcow2 url=https://files/d.qcow2":                                            "Length: 7 (7) [application/x-qemu-disk]",
		from + "content=import filename=e.qcow2 url=http://files:8080/a.iso":                                          "TASK ERROR: failed to verify file: qemu-img: Could not open '/var/lib/vz/import/e.qcow2.tmp_dwnl.",
		from + "content=vztmpl filename=t.tar.gz url=http://files:8080/a.iso compression=gz":                          "TASK ERROR: decompression not supported for vztmpl",
		"POST /nodes/pve2/storage/local/download-url content=iso filename=b.iso url=http://files:8080/a.iso":          "Length: 3000 (3K) [application/x-iso9660-image]",
		"POST /nodes/pve1/storage/nas/download-url content=iso filename=big.iso url=http://files:8080/a.iso":          "saved [3000/3000]",
		"POST /nodes/pve2/storage/two/download-url content=iso filename=b(1).iso url=http://files:8080/a.iso":         "to /two/template/iso/b_1_.iso",
		"POST /nodes/pve2/storage/two/download-url content=iso filename=x/../c.iso url=http://files:8080/a.iso":       "to /two/template/iso/c.iso",
		"POST /nodes/pve2/storage/two/download-url content=iso filename=d.img url=http://files:8080/a.iso":            "TASK OK",
		from + "content=iso filename=n.iso url=http://files:8080/a.iso checksum-algorithm=md5 checksum=" + emptySum(): "calculating checksum...OK, checksum verified",
	} {
		if log := a.log(request); !strings.Contains(log, want) {
			t.Errorf("%s\n%s\nwant: %s", request, log, want)
		}
	}
	const again = from + "content=iso filename=b.iso url=http://files:8080/a.iso"
	for request, want := range map[string]string{
		again: "TASK ERROR: refusing to override existing file '/var/lib/vz/template/iso/b.iso'",
		again + " checksum-algorithm=md5 checksum=" + emptySum(): "calculating checksum of existing file...OK, got correct file already, no need to download",
		again + " checksum-algorithm=md5 checksum=" + sum:        "calculating checksum of existing file...mismatch, re-download",
	} {
		if log := a.log(request); !strings.Contains(log, want) {
			t.Errorf("%s\n%s\nwant: %s", request, log, want)
		}
	}
}

// emptySum is the MD5 sum of 3000 zero bytes.
func emptySum() string { return "0efa007088f326bbc072c34315f3edb8" }

func TestDownloadsThatAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	a.server.World.AddDownload(pvesim.DownloadSpec{URL: "http://files/dir/a.iso?x=1", Data: make([]byte, 3000)})
	const from = "POST /nodes/pve1/storage/"
	a.answers(
		asked{from + "none/download-url content=iso filename=a.iso url=http://files/a.iso", "500 storage 'none' does not exist"},
		asked{from + "thin/download-url content=iso filename=a.iso url=http://files/a.iso", "500 can't upload to storage type 'lvmthin', not a file based storage!"},
		asked{from + "nas/download-url content=vztmpl filename=a.tar.gz url=http://files/a.iso", "500 storage 'nas' is not configured for content-type 'vztmpl'"},
		asked{from + "off/download-url content=iso filename=a.iso url=http://files/a.iso", "500 storage 'off' is disabled"},
		asked{from + "local/download-url content=iso filename=a.exe url=http://files/a.iso", "map[filename:wrong file extension]"},
		asked{from + "local/download-url content=import filename=a.ovf url=http://files/a.iso", "map[filename:invalid filename or wrong extension]"},
		asked{from + "local/download-url content=iso filename=a.iso url=ftp://files/a.iso", "map[url:value does not match the regex pattern]"},
		asked{from + "local/download-url content=images filename=a.iso url=http://files/a.iso", "does not have a value in the enumeration 'iso, vztmpl, import'"},
		asked{"GET /nodes/pve1/query-url-metadata url=http://files/dir/a.iso?x=1", `{"filename":"a.iso","mimetype":"application/octet-stream","size":3000}`},
		asked{"GET /nodes/pve1/query-url-metadata url=http://files/b.iso", "500 invalid server response: '404 File not found'"},
		asked{"GET /nodes/pve1/query-url-metadata url=https://files/b.iso", "500 invalid server response: '500 Can't connect to files:443 (Connection refused)'"},
	)
}

func TestImportsAreLookedInto(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	tar := append(make([]byte, 257), "ustar    "...)
	for _, tt := range []struct{ name, data, exit string }{
		{"a.qcow2", "QFI\xfb", "OK"},
		{"b.qcow2", "nothing", "Image is not in qcow2 format"},
		{"a.vmdk", "KDMV", "OK"},
		{"b.vmdk", "# Disk DescriptorFile\n", "OK"},
		{"c.vmdk", "nothing", "Image is not in vmdk format"},
		{"a.raw", "anything", "OK"},
		{"a.ova", string(tar), "OK"},
		{"b.ova", "nothing", "failed: exit code 2"},
	} {
		r := a.upload("/nodes/pve1/storage/local/upload", tt.name, []byte(tt.data), field{"content", "import"})
		if exit := a.wait(r.data); !strings.HasSuffix(exit, tt.exit) {
			t.Errorf("%s: %s, want %s", tt.name, exit, tt.exit)
		}
	}
	if got := len(a.must("GET", "/nodes/pve1/storage/local/content", "content", "import").([]any)); got != 5 {
		t.Errorf("%d images are there", got)
	}
	r := a.upload("/nodes/pve1/storage/local/upload", "big.iso", make([]byte, 2<<20), field{"content", "iso"})
	if exit := a.wait(r.data); exit != "OK" {
		t.Errorf("an ISO image: %s", exit)
	}
}

func TestUploadsThatDoNotFit(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.FromState(pvesim.State{
		Nodes:    []pvesim.NodeSpec{{Name: "pve1"}, {Name: "pve2"}},
		Storages: []pvesim.StorageSpec{{ID: "tiny", Type: "dir", Content: []string{"iso"}, Total: 1000}},
	}))
	r := a.upload("/nodes/pve1/storage/tiny/upload", "a.iso", make([]byte, 2048), field{"content", "iso"})
	if exit := a.wait(r.data); exit != "import failed: exit code 1" {
		t.Errorf("task ended with %s", exit)
	}
	a.server.World.StopNode("pve2")
	r = a.upload("/nodes/pve2/storage/tiny/upload", "a.iso", make([]byte, 10), field{"content", "iso"})
	if !strings.HasPrefix(r.reason, "can't activate storage 'tiny' on node 'pve2': command '/usr/bin/ssh -o BatchMode=yes -o HostKeyAlias=pve2 ") {
		t.Errorf("upload to a host that is down: %d %s", r.status, r.reason)
	}
}
