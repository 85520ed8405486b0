package interop

import (
	"testing"
	"time"

	"github.com/luthermonson/go-proxmox"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// newServer serves a world whose guests boot and that has a template on shared storage.
func newServer(t *testing.T, version pvesim.Version) *pvesim.Server {
	t.Helper()
	return pvesim.Run(t, pvesim.WithVersion(version), pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{OnBootFailed: func(g pvesim.BootedGuest) { t.Errorf("VM %d does not boot: %v", g.VMID, g.Err) }})),
		pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu", Tags: []string{"ubuntu", "kubernetes", "shared"}, Storage: "shared"}))
}

// options connect a client by go-proxmox to the server.
func options(server *pvesim.Server) []proxmox.Option {
	return []proxmox.Option{proxmox.WithHTTPClient(server.Client()), proxmox.WithAPIToken(server.Token.ID, string(server.Token.Secret))}
}

func wait(t *testing.T, task *proxmox.Task) {
	t.Helper()
	if task == nil {
		return
	}
	if err := task.Wait(t.Context(), 10*time.Millisecond, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if task.IsFailed {
		t.Fatalf("task %s failed: %s", task.UPID, task.ExitStatus)
	}
}

func hasAddress(interfaces []*proxmox.AgentNetworkIface, address string) bool {
	for _, i := range interfaces {
		for _, a := range i.IPAddresses {
			if a.IPAddress == address {
				return true
			}
		}
	}
	return false
}
