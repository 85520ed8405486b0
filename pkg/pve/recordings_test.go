package pve

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded is an answer of a real server.
type recorded struct {
	Seq          int
	Method, Path string
	Status       int
	Body         struct{ Data json.RawMessage }
}

// readRecordings calls back with every successful read of the recordings.
func readRecordings(t *testing.T, each func(t *testing.T, r recorded)) {
	t.Helper()
	files, err := filepath.Glob("../../../shared/pve-recordings/*/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Skip("no recordings beside the repository")
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var line recorded
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Method == "GET" && line.Status == 200 {
				each(t, line)
			}
		}
		if err := lines.Err(); err != nil {
			t.Error(err)
		}
		_ = file.Close()
	}
}

// TestDecodeRecordings reads real answers and wants from each what the rest relies on.
func TestDecodeRecordings(t *testing.T) {
	counts := map[string]int{}
	readRecordings(t, func(t *testing.T, r recorded) {
		t.Helper()
		switch parts := strings.Split(r.Path, "/"); {
		case r.Path == "/cluster/resources":
			counts["resources"] += checkResources(t, r)
		case r.Path == "/cluster/tasks":
			counts["tasks"] += checkTasks(t, r)
		case len(parts) == 6 && parts[3] == "qemu" && parts[5] == "config":
			counts["configs"] += checkConfig(t, r)
		case strings.HasSuffix(r.Path, "/status/current") && parts[3] == "qemu":
			counts["states"] += checkStatus(t, r)
		case len(parts) == 6 && parts[3] == "tasks" && parts[5] == "status":
			counts["ends"] += checkEnd(t, r)
		}
	})
	t.Logf("read %v", counts)
	for _, kind := range []string{"resources", "tasks", "configs", "states", "ends"} {
		if counts[kind] == 0 {
			t.Errorf("no %s in the recordings", kind)
		}
	}
}

func checkResources(t *testing.T, r recorded) int {
	t.Helper()
	list, err := decodeList(r.Body.Data)
	if err != nil {
		t.Errorf("line %d: %v", r.Seq, err)
	}
	for _, object := range list {
		got := object.resource()
		guest := got.Type == VMResource || got.Type == ContainerResource
		if got.Type == "" || got.ID == "" || guest && (got.VMID == 0 || got.Node == "" || got.Status == "") {
			t.Errorf("line %d: %v became %+v", r.Seq, object, got)
		}
	}
	return len(list)
}

func checkTasks(t *testing.T, r recorded) int {
	t.Helper()
	list, err := decodeList(r.Body.Data)
	if err != nil {
		t.Errorf("line %d: %v", r.Seq, err)
	}
	for _, object := range list {
		got := object.clusterTask()
		if _, err := got.UPID.Parse(); err != nil || got.Start.IsZero() || got.State == Unknown {
			t.Errorf("line %d: %v became %+v (%v)", r.Seq, object, got, err)
		}
	}
	return len(list)
}

func checkConfig(t *testing.T, r recorded) int {
	t.Helper()
	config, err := decodeVMConfig(r.Body.Data)
	if err != nil || config.Digest == "" || len(config.Values) == 0 {
		t.Errorf("line %d: got %+v, %v", r.Seq, config, err)
	}
	return 1
}

func checkStatus(t *testing.T, r recorded) int {
	t.Helper()
	status, err := decodeVMStatus(r.Body.Data)
	running := status.Status == StatusRunning
	if err != nil || !running && status.Status != StatusStopped || running != (status.PID > 0) {
		t.Errorf("line %d: got %+v, %v", r.Seq, status, err)
	}
	return 1
}

func checkEnd(t *testing.T, r recorded) int {
	t.Helper()
	var object fields
	if err := json.Unmarshal(r.Body.Data, &object); err != nil {
		t.Errorf("line %d: %v", r.Seq, err)
	}
	got := object.taskStatus("")
	fine := object["exitstatus"] == "OK" || strings.HasPrefix(string(object["exitstatus"]), "WARNINGS")
	if got.State == Unknown || fine != (got.State == Succeeded) || (got.Err() != nil) != (got.State == Failed) {
		t.Errorf("line %d: %v became %+v", r.Seq, object, got)
	}
	return 1
}
