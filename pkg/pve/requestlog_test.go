package pve_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func TestRequestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.jsonl")
	log, err := pve.OpenRequestLog(path)
	if err != nil {
		t.Fatal(err)
	}
	var seen journal
	server, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if seen.note(r); r.Method == http.MethodGet {
			refuse(t, w, 500, "VM is locked (clone)", "")
			return
		}
		answer(w, `"`+upid+`"`)
	})
	config.Options.RequestLog = log
	client := newClient(t, config)
	if _, err := client.VMConfig(t.Context(), vm101); err == nil {
		t.Error("no error")
	}
	sendSecrets(t, client)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{string(token.Secret), "hunter22", "AAAAKEY", "kubeadm join", "Authorization"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the log shows %q:\n%s", secret, text)
		}
	}
	host := strings.TrimPrefix(server.URL, "https://")
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("kubeadm join")))
	want := []pve.RequestRecord{
		{Region: "test", Endpoint: host, Method: "GET", Path: "/nodes/pve1/qemu/101/config", Status: 500, Class: "locked"},
		{
			Region: "test", Endpoint: host, Method: "PUT", Path: "/nodes/pve1/qemu/101/config", Status: 200,
			Params: map[string]string{"cipassword": "***", "sshkeys": "***", "cores": "2"},
		},
		{
			Region: "test", Endpoint: host, Method: "POST", Path: "/nodes/pve1/storage/local/upload", Status: 200,
			Params: map[string]string{
				"content": "iso", "filename": "seed.iso", "checksum-algorithm": "sha256", "checksum": sum,
			},
			File: &pve.FileRecord{Name: "seed.iso", Size: 12, SHA256: sum},
		},
		{Region: "test", Endpoint: host, Method: "DELETE", Path: "/nodes/pve1/storage/local/content/local:iso/seed.iso", Status: 200},
	}
	got := parseLog(t, string(text))
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(pve.RequestRecord{}, "Time", "Seconds")); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if got[0].Time.IsZero() || got[0].Seconds <= 0 {
		t.Errorf("got %+v", got[0])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
}

// sendSecrets makes the requests that carry some.
func sendSecrets(t *testing.T, client *pve.Client) {
	t.Helper()
	err := client.UpdateConfig(t.Context(), pve.ConfigUpdate{VM: vm101, Set: map[string]string{
		"cipassword": "hunter22", "sshkeys": "ssh-ed25519%20AAAAKEY", "cores": "2",
	}})
	if err != nil {
		t.Error(err)
	}
	upload := pve.UploadRequest{Node: "pve1", Storage: "local", Filename: "seed.iso", Content: []byte("kubeadm join")}
	if _, err := client.UploadISO(t.Context(), upload); err != nil {
		t.Error(err)
	}
	if _, err := client.DeleteVolume(t.Context(), "pve1", "local:iso/seed.iso"); err != nil {
		t.Error(err)
	}
}

func TestRequestLogThatCannotBeOpened(t *testing.T) {
	if _, err := pve.OpenRequestLog(filepath.Join(t.TempDir(), "none", "log")); err == nil {
		t.Error("no error")
	}
	var none *pve.RequestLog
	if err := none.Close(); err != nil {
		t.Error(err)
	}
	if err := pve.NewRequestLog(&strings.Builder{}).Close(); err != nil {
		t.Error(err)
	}
}

// TestRequestLogHasEveryAttempt: repeated reads and each endpoint are lines of their own.
func TestRequestLogHasEveryAttempt(t *testing.T) {
	_, config := serve(t, func(w http.ResponseWriter, _ *http.Request) { hangUp(t, w, "") })
	out := &syncBuffer{}
	config.Options.RequestLog = pve.NewRequestLog(out)
	config.Endpoints = append(config.Endpoints, closedServer(t))
	if _, err := newClient(t, config).Version(t.Context()); err == nil {
		t.Error("no error")
	}
	records := parseLog(t, out.String())
	if len(records) != 6 || records[5].Class != "unreachable" || records[0].Endpoint == records[1].Endpoint {
		t.Errorf("got %+v", records)
	}
}

// TestErrorsHideSecrets: PVE repeats values in what it says of them.
func TestErrorsHideSecrets(t *testing.T) {
	body := `{"message":"bad hunter22\n","errors":{"cipassword":"got 'hunter22'","sshkeys":"invalid urlencoded string: ssh-ed25519 AAAAKEY"}}`
	client := connect(t, func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, 400, "bad hunter22", body) })
	err := client.UpdateConfig(t.Context(), pve.ConfigUpdate{VM: vm101, Set: map[string]string{
		"cipassword": "hunter22", "sshkeys": "ssh-ed25519 AAAAKEY",
	}})
	if text := err.Error(); strings.Contains(text, "hunter22") || strings.Contains(text, "AAAAKEY") || !strings.Contains(text, "***") {
		t.Error(text)
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			refuse(t, w, 500, "VM is locked (clone)", "")
			return
		}
		answer(w, `"`+upid+`"`)
	})
	config.Options.Registerer = registry
	clients := []*pve.Client{newClient(t, config), newClient(t, config)}
	for _, client := range clients {
		_, _ = client.VMConfig(t.Context(), vm101)
		_, _ = client.StartVM(t.Context(), vm101)
	}
	want := `
# HELP capve_pve_requests_total Requests sent to Proxmox VE, by class of their error.
# TYPE capve_pve_requests_total counter
capve_pve_requests_total{class="locked",method="GET",region="test",route="/nodes/{node}/qemu/{vmid}/config"} 2
capve_pve_requests_total{class="none",method="POST",region="test",route="/nodes/{node}/qemu/{vmid}/status/start"} 2
# HELP capve_pve_requests_in_flight Requests under way, by PVE node; none for those of the whole cluster.
# TYPE capve_pve_requests_in_flight gauge
capve_pve_requests_in_flight{node="pve1",region="test"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "capve_pve_requests_total", "capve_pve_requests_in_flight"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	count := prometheus.NewCounter(prometheus.CounterOpts{Name: "capve_pve_requests_total", Help: "another"})
	taken := prometheus.NewRegistry()
	taken.MustRegister(count)
	config.Options.Registerer = taken
	if _, err := pve.NewClient(config); err == nil {
		t.Error("a name that is taken is no error")
	}
}
