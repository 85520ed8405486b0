package pvesim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// exchangeLine is one line of a recording of a real Proxmox VE.
type exchangeLine struct {
	Setup  *recordedSetup  `json:"setup"`
	Seq    int             `json:"seq"`
	As     string          `json:"as"`
	Via    string          `json:"via"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Params json.RawMessage `json:"params"`
	Status *int            `json:"status"`
	Reason string          `json:"reason"`
	Body   json.RawMessage `json:"body"`
	TaskOf int             `json:"task_of"`
	Note   string          `json:"note"`
	Phase  bool            `json:"phase"`
	Both   bool            `json:"concurrent"`
}

type recordedSetup struct {
	Storages []struct {
		Storage string          `json:"storage"`
		Type    string          `json:"type"`
		Content string          `json:"content"`
		Shared  int             `json:"shared"`
		Nodes   string          `json:"nodes"`
		Disable json.RawMessage `json:"disable"`
	} `json:"storages"`
	Guests []struct {
		Node   proxmox.NodeName           `json:"node"`
		VMID   proxmox.VMID               `json:"vmid"`
		Config map[string]json.RawMessage `json:"config"`
		Status string                     `json:"status"`
	} `json:"guests"`
	Volumes map[string]json.RawMessage `json:"volumes"`
	Pools   []struct {
		PoolID  proxmox.PoolID `json:"poolid"`
		Comment string         `json:"comment"`
	} `json:"pools"`
	ACL []struct {
		Path, UGID, RoleID string
	} `json:"acl"`
	Roles []struct {
		RoleID, Privs string
	} `json:"roles"`
	Tokens []struct {
		User, TokenID string
		Privsep       int
	} `json:"tokens"`
}

func readRecording(t *testing.T, v Version, name string) []exchangeLine {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "pve-recordings", string(v), name+".jsonl"))
	if err != nil {
		t.Skipf("the recordings of Proxmox VE are not here: %v", err)
	}
	defer func() { _ = f.Close() }()
	var out []exchangeLine
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line exchangeLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("read recording %s: %v", name, err)
		}
		out = append(out, line)
	}
	return out
}

// replay plays one recording against a world seeded from its setup line.
type replay struct {
	t       *testing.T
	world   *World
	tokens  map[string]Token
	ticket  *ticket
	upids   map[int]string
	digests map[string]string
	same    int
	total   int
	misses  []string
}

func newReplay(t *testing.T, v Version, setup *recordedSetup) *replay {
	w := NewWorld(WithVersion(v), WithSpeed(2000), WithTemplates(), WithGuests(deaf), func(m *Model) { m.CPUs = 2 })
	t.Cleanup(w.Close)
	p := &replay{t: t, world: w, tokens: map[string]Token{}, upids: map[int]string{}, digests: map[string]string{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storages = nil
	delete(w.pools, "capi")
	for _, s := range setup.Storages {
		spec := StorageSpec{ID: proxmox.StorageID(s.Storage), Type: s.Type, Content: strings.Split(s.Content, ",")}
		for _, n := range strings.FieldsFunc(s.Nodes, func(r rune) bool { return r == ',' }) {
			spec.Nodes = append(spec.Nodes, proxmox.NodeName(n))
		}
		w.addStorage(spec)
		w.storages[len(w.storages)-1].shared = s.Shared == 1
		w.storages[len(w.storages)-1].disabled = len(s.Disable) > 0
		if s.Storage == "small" {
			w.storages[len(w.storages)-1].total = 12 << 20
		}
	}
	for _, s := range setup.Pools {
		w.addPool(s.PoolID)
		w.pools[s.PoolID].comment = s.Comment
	}
	for _, g := range setup.Guests {
		p.seedGuest(g.Node, g.VMID, g.Config, g.Status)
	}
	p.seedUsers(setup)
	return p
}

// deaf guests ignore a shutdown, as the recorded VMs without a system did.
func deaf(proxmox.VMID) Guest { return deafGuest{} }

type deafGuest struct{ inert }

func (deafGuest) Shutdown() (time.Duration, bool) { return 0, false }

func (p *replay) seedGuest(name proxmox.NodeName, id proxmox.VMID, raw map[string]json.RawMessage, status string) {
	config := map[string]string{}
	for key, value := range raw {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		config[key] = text
	}
	recorded := config["digest"]
	delete(config, "digest")
	meta := config["meta"]
	boot := config["boot"]
	if err := p.world.seedVM(VMSpec{VMID: id, Node: name, Config: config, State: status}); err != nil {
		p.t.Logf("guest %d: %v", id, err)
		return
	}
	p.world.vms[id].config["meta"], p.world.vms[id].config["boot"] = meta, boot
	p.digests[recorded] = p.world.vms[id].digest()
}

func (p *replay) seedUsers(setup *recordedSetup) {
	roles := map[string][]string{}
	for _, r := range setup.Roles {
		roles[r.RoleID] = strings.Split(r.Privs, ",")
	}
	p.tokens["root-token"] = p.world.addToken(TokenSpec{User: rootUser, Name: "ci"})
	for _, k := range setup.Tokens {
		if k.User == rootUser {
			continue
		}
		given := map[string][]string{}
		for _, a := range setup.ACL {
			if a.UGID == k.User {
				given[a.Path] = append(given[a.Path], roles[a.RoleID]...)
			}
		}
		p.tokens["limited-token"] = p.world.addToken(TokenSpec{User: k.User, Name: k.TokenID, Privileges: given})
	}
	p.ticket = &ticket{user: p.world.users[rootUser], value: "PVE:root", csrf: "csrf", issued: p.world.clock.Now()}
	p.world.tickets["PVE:root"] = p.ticket
}

var anyUPID = regexp.MustCompile(`UPID:[^/]*:`)

// send makes one recorded request.
func (p *replay) send(line exchangeLine) (int, string, []byte) {
	path := line.Path
	if line.TaskOf != 0 {
		path = anyUPID.ReplaceAllString(path, p.upids[line.TaskOf])
	}
	req := p.request(line, path)
	via := proxmox.NodeName(line.Via)
	orDefault(&via, "pve1")
	resp, err := (&http.Client{Transport: p.world.Transport(via)}).Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer func() { _ = resp.Body.Close() }()
	body := &bytes.Buffer{}
	_, _ = body.ReadFrom(resp.Body)
	_, reason, _ := strings.Cut(resp.Status, " ")
	return resp.StatusCode, reason, body.Bytes()
}

func (p *replay) request(line exchangeLine, path string) *http.Request {
	address := "https://pve/api2/json" + strings.ReplaceAll(path, " ", "%20")
	content, kind := []byte{}, "application/x-www-form-urlencoded"
	var params map[string]any
	var parts [][]any
	if json.Unmarshal(line.Params, &parts) == nil && len(parts) > 0 {
		content, kind = multipartBody(parts)
	} else if json.Unmarshal(line.Params, &params) == nil {
		values := url.Values{}
		for key, value := range params {
			text := jsonParam(value)
			if number, ok := value.(float64); ok {
				text = strings.TrimSuffix(fmt.Sprintf("%v", json.Number(fmt.Sprint(number))), ".0")
				if number == float64(int64(number)) {
					text = fmt.Sprint(int64(number))
				}
			}
			if known, ok := p.digests[text]; key == "digest" && ok {
				text = known
			}
			values.Set(key, text)
		}
		if line.Method == http.MethodGet || line.Method == http.MethodDelete {
			address += "?" + values.Encode()
		} else {
			content = []byte(values.Encode())
		}
	}
	req, err := http.NewRequestWithContext(p.t.Context(), line.Method, address, bytes.NewReader(content))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if k, ok := p.tokens[line.As]; ok {
		req.Header.Set("Authorization", k.Header())
	} else if line.As == "root-ticket" {
		req.Header.Set("Cookie", "PVEAuthCookie=PVE:root")
		req.Header.Set("CSRFPreventionToken", "csrf")
	}
	return req
}

func multipartBody(parts [][]any) ([]byte, string) {
	body := &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, part := range parts {
		name := fmt.Sprint(part[0])
		if f, ok := part[1].(map[string]any); ok {
			out, _ := w.CreateFormFile(name, fmt.Sprint(f["file"]))
			content := make([]byte, int(f["bytes"].(float64)))
			if len(content) > 32774 {
				copy(content[32769:], "CD001")
			}
			_, _ = out.Write(content)
			continue
		}
		_ = w.WriteField(name, fmt.Sprint(part[1]))
	}
	_ = w.Close()
	return body.Bytes(), w.FormDataContentType()
}

// play sends everything and compares status, reason phrase, refused parameters and the ends of tasks.
func (p *replay) play(lines []exchangeLine) {
	for _, line := range lines {
		status, reason, body := p.send(line)
		var answer struct {
			Data   any               `json:"data"`
			Errors map[string]string `json:"errors"`
		}
		_ = json.Unmarshal(body, &answer)
		if upid, ok := answer.Data.(string); ok && strings.HasPrefix(upid, "UPID:") {
			p.upids[line.Seq] = upid
			if !strings.Contains(line.Path, "clone") || !strings.Contains(string(line.Params), "bwlimit") {
				p.settle()
			}
		}
		if line.Status == nil || line.Phase || line.Both || status == http.StatusNotImplemented && *line.Status != status {
			continue
		}
		var want struct {
			Data   any               `json:"data"`
			Errors map[string]string `json:"errors"`
		}
		_ = json.Unmarshal(line.Body, &want)
		p.learnDigest(want.Data, answer.Data)
		got := fmt.Sprintf("%d %s %v", status, reason, answer.Errors)
		wanted := fmt.Sprintf("%d %s %v", *line.Status, line.Reason, want.Errors)
		if line.TaskOf != 0 && strings.HasSuffix(line.Path, "/status") {
			got, wanted = exitOf(answer.Data), exitOf(want.Data)
		}
		p.total++
		if got == wanted {
			p.same++
			continue
		}
		p.misses = append(p.misses, fmt.Sprintf("%d %s %s %.120s\n    want %s\n    got  %s", line.Seq, line.Method, line.Path, line.Params, wanted, got))
	}
}

func (p *replay) learnDigest(want, got any) {
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	if a, ok := w["digest"].(string); ok {
		if b, ok := g["digest"].(string); ok {
			p.digests[a] = b
		}
	}
}

func exitOf(data any) string {
	m, _ := data.(map[string]any)
	exit := fmt.Sprint(m["exitstatus"])
	if strings.HasPrefix(exit, "WARNINGS") {
		return "OK"
	}
	return exit
}

// settle waits until no task runs.
func (p *replay) settle() {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) && p.world.RunningTasks() > 0; {
		<-time.After(time.Millisecond)
	}
}

// TestAgreesWithRecordings replays what a real Proxmox VE was seen to do. The floor is what has been reached; it may only rise.
func TestAgreesWithRecordings(t *testing.T) {
	t.Parallel()
	floors := map[string]int{"01-cluster-read": 95, "04a-template-clone": 87, "05-config": 94, "06-resize": 95, "07-upload-iso": 86, "08-power": 88, "12-tasks": 86, "16-provider-life": 100}
	for _, v := range []Version{V84, V92} {
		for name, floor := range floors {
			t.Run(string(v)+"/"+name, func(t *testing.T) {
				t.Parallel()
				lines := readRecording(t, v, name)
				p := newReplay(t, v, lines[0].Setup)
				p.play(lines[1:])
				percent := 100 * p.same / max(1, p.total)
				t.Logf("%d of %d exchanges agree (%d %%)", p.same, p.total, percent)
				for _, miss := range p.misses {
					t.Log(miss)
				}
				if percent < floor {
					t.Errorf("%d %% agree, it was %d %%", percent, floor)
				}
			})
		}
	}
}
