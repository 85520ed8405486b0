package contract_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/capve/cluster-api-provider-proxmox/test/contract"
)

// recordings is the folder of the recordings.
func recordings(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PVE_RECORDINGS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "pve-recordings")
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recordings of Proxmox VE: set PVE_RECORDINGS to their folder (%v)", err)
	}
	return dir
}

// board collects scores.
type board struct {
	mu     sync.Mutex
	scores []contract.Score
}

func (b *board) add(s contract.Score) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scores = append(b.scores, s)
}

func (b *board) sorted() []contract.Score {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortFunc(b.scores, func(x, y contract.Score) int { return strings.Compare(x.Name(), y.Name()) })
	return b.scores
}

// TestContract replays all recordings against pvesim.
func TestContract(t *testing.T) {
	dir := recordings(t)
	known, err := contract.ReadKnown()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := contract.Versions(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, there := &board{}, 0
	for _, version := range versions {
		scenarios, err := contract.Scenarios(dir, version)
		if err != nil {
			t.Fatal(err)
		}
		there += len(scenarios)
		t.Run(version, func(t *testing.T) {
			for _, scenario := range scenarios {
				t.Run(scenario, func(t *testing.T) {
					t.Parallel()
					score := replay(t, dir, version, scenario)
					all.add(score)
					misses := &strings.Builder{}
					contract.WriteMisses(misses, score, known)
					if floor := floors[score.Name()]; score.Percent() < floor {
						t.Errorf("%.1f %% agree, want %.0f %% as before", score.Percent(), floor)
					}
					t.Logf("%d of %d agree, %.1f %%\n%s", score.Agree(), len(score.Results), score.Percent(), misses)
				})
			}
		})
	}
	table := &strings.Builder{}
	contract.WriteTable(table, all.sorted())
	t.Logf("agreement with the recordings of Proxmox VE\n%s", table)
	writeReports(t, all.sorted(), known)
	if scores := all.sorted(); len(scores) == there {
		judge(t, scores, known)
	}
}

const (
	// least is how many percent of all answers must agree.
	least = 99.0
	// explained is from how many percent on every miss must have a reason in known-misses.yaml.
	explained = 95.0
)

// judge looks at all recordings together.
func judge(t *testing.T, scores []contract.Score, known contract.Known) {
	t.Helper()
	agree, compared := contract.Total(scores)
	percent := 100 * float64(agree) / float64(max(1, compared))
	if percent < least {
		t.Errorf("%.1f %% of all answers agree, want %.0f %%", percent, least)
	}
	if percent < explained {
		return
	}
	for _, s := range scores {
		for _, r := range s.Misses() {
			if known.Reason(s.Name(), r.Exchange.Seq) == "" {
				t.Errorf("%s: exchange %d differs, and known-misses.yaml does not say why", s.Name(), r.Exchange.Seq)
			}
		}
	}
}

// writeReports writes report.md and a file with the misses of each recording into the folder $CONTRACT_REPORT, if that is set.
func writeReports(t *testing.T, scores []contract.Score, known contract.Known) {
	t.Helper()
	dir := os.Getenv("CONTRACT_REPORT")
	if dir == "" {
		return
	}
	page := &strings.Builder{}
	contract.WriteMarkdown(page, scores, known)
	files := map[string]string{"report.md": page.String()}
	for _, s := range scores {
		misses := &strings.Builder{}
		contract.WriteMisses(misses, s, known)
		files[s.Version+"-"+s.Scenario+".txt"] = misses.String()
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// replay plays a recording against a simulated world in virtual time.
func replay(t *testing.T, dir, version, scenario string) contract.Score {
	t.Helper()
	recording, err := contract.ReadRecording(dir, version, scenario)
	if err != nil {
		t.Fatal(err)
	}
	score := contract.Score{Version: version, Scenario: scenario}
	synctest.Test(t, func(t *testing.T) {
		target, world, failed := contract.Simulated(recording)
		if failed != nil {
			score.Results = recording.AllMissed(failed.Error())
			return
		}
		defer world.Close()
		score.Results, err = contract.Replay(t.Context(), recording, target, world)
	})
	if err != nil {
		t.Fatal(err)
	}
	return score
}
