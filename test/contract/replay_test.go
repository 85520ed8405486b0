package contract_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/capve/cluster-api-provider-proxmox/test/contract"
)

// TestReplayOwnRecording replays a recording of our own: it uses learned values, held back answers, waits and tasks, and its
// last line is made to differ.
func TestReplayOwnRecording(t *testing.T) {
	t.Parallel()
	score := replay(t, filepath.Join("testdata", "recordings"), "9.2", "life")
	if len(score.Results) != 11 {
		t.Errorf("%d exchanges were compared, want 11: all but the one that was held back", len(score.Results))
	}
	misses := &strings.Builder{}
	contract.WriteMisses(misses, score, nil)
	want := "14 GET /nodes/pve1/qemu/100/config \n    status: want 200 OK, got 500 Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist\n"
	if misses.String() != want {
		t.Errorf("misses\n%s\nwant\n%s", misses, want)
	}
	if got := score.Percent(); got < 90 || got > 91 {
		t.Errorf("%.1f %% agree, want 10 of 11", got)
	}
}

func TestReplayIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	dir := recordings(t)
	first, second := replay(t, dir, "9.2", "12-tasks"), replay(t, dir, "9.2", "12-tasks")
	for i := range first.Results {
		if a, b := first.Results[i].Diffs, second.Results[i].Diffs; !slices.Equal(a, b) {
			t.Errorf("exchange %d differs by\n%s\nand then by\n%s", first.Results[i].Exchange.Seq, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
}

// tampering is a transport that changes answers.
type tampering struct {
	next   http.RoundTripper
	change func(*http.Response, string) string
}

func (x tampering) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := x.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(strings.NewReader(x.change(resp, string(raw))))
	return resp, err
}

// TestReplaySeesTampering changes all answers of pvesim in one way: next to none may agree.
func TestReplaySeesTampering(t *testing.T) {
	t.Parallel()
	dir := recordings(t)
	for name, change := range map[string]func(*http.Response, string) string{
		"a key more":   func(_ *http.Response, body string) string { return strings.Replace(body, `{`, `{"more":1,`, 1) },
		"a key less":   func(_ *http.Response, body string) string { return strings.Replace(body, `"data":`, `"date":`, 1) },
		"other reason": func(r *http.Response, body string) string { r.Status += "."; return body },
		"other status": func(r *http.Response, body string) string { r.StatusCode++; return body },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recording, err := contract.ReadRecording(dir, "9.2", "10-firewall")
			if err != nil {
				t.Fatal(err)
			}
			score := contract.Score{}
			synctest.Test(t, func(t *testing.T) {
				target, world, err := contract.Simulated(recording)
				if err != nil {
					t.Fatal(err)
				}
				defer world.Close()
				via := target.Via
				target.Via = func(node string) http.RoundTripper { return tampering{via(node), change} }
				if score.Results, err = contract.Replay(t.Context(), recording, target, world); err != nil {
					t.Error(err)
				}
			})
			if score.Percent() > 1 {
				t.Errorf("%.1f %% of the changed answers agree, want none", score.Percent())
			}
		})
	}
}

// TestRecordingForgetsFalseWarnings reads a task that ended with a warning that its log does not have, and one that has it.
func TestRecordingForgetsFalseWarnings(t *testing.T) {
	t.Parallel()
	const forged, true1 = "UPID:pve1:00000001:00000002:6B000000:imgdel::root@pam:", "UPID:pve1:00000003:00000004:6B000000:qmcreate:1:root@pam:"
	lines := []string{`{"setup":{}}`}
	for i, x := range []struct{ upid, warning string }{{forged, ""}, {true1, `{"n":1,"t":"WARN: no"},`}} {
		path := "/nodes/pve1/tasks/" + x.upid
		lines = append(lines,
			fmt.Sprintf(`{"seq":%d,"method":"GET","path":%q,"body":{"data":{"exitstatus":"WARNINGS: 1"}}}`, 10*i+1, path+"/status"),
			fmt.Sprintf(`{"seq":%d,"method":"GET","path":%q,"body":{"data":[%s{"n":2,"t":"TASK WARNINGS: 1"}]}}`, 10*i+2, path+"/log", x.warning))
	}
	lines = append(lines, fmt.Sprintf(`{"seq":30,"method":"GET","path":"/cluster/tasks","body":{"data":[{"upid":%q,"status":"WARNINGS: 1"},{"upid":%q,"status":"WARNINGS: 1"}]}}`, forged, true1))
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "9.2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "9.2", "w.jsonl"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	recording, err := contract.ReadRecording(dir, "9.2", "w")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, e := range recording.Exchanges {
		got = append(got, strings.Count(fmt.Sprint(e.Body), "WARNINGS: 1"))
	}
	if want := []int{0, 0, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("warnings left in the answers: %v, want %v", got, want)
	}
}

func TestReportTellsReasons(t *testing.T) {
	t.Parallel()
	score := contract.Score{Version: "9.2", Scenario: "life", Results: []contract.Result{
		{Exchange: contract.Exchange{Seq: 1, Method: "GET", Path: "/a"}},
		{Exchange: contract.Exchange{Seq: 2, Method: "GET", Path: "/b"}, Diffs: []string{"status: want 1, got 2"}},
	}}
	known := contract.Known{{Reason: "because", Misses: map[string][]int{"9.2/life": {1, 2}}}}
	page := &strings.Builder{}
	contract.WriteMarkdown(page, []contract.Score{score}, known)
	for _, want := range []string{"| 9.2/life | 1 | 2 | 50.0 |", "| **total** | **1** | **2** | **50.0** |", "2 GET /b \n    status: want 1, got 2\n    known: because\n"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if stale := known.Stale(score); !slices.Equal(stale, []int{1}) {
		t.Errorf("stale known misses %v, want 1, which agrees", stale)
	}
}
