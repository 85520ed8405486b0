package contract

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// started is how long the recorded cluster had run before a scenario.
const started = time.Minute

// Simulated builds the world of a recording's setup and makes it a target. In a bubble of testing/synctest time costs
// nothing; the bubble's clock is set to the day of the recording first. Close the world after use.
func Simulated(r *Recording) (Target, *pvesim.World, error) {
	now := clock.RealClock{}
	now.Sleep(r.began().Add(-started).Sub(now.Now()))
	w, err := pvesim.NewWorld(
		pvesim.FromState(StateOf(r)), pvesim.WithVersion(pvesim.Version(r.Version)), pvesim.WithSpeed(1), pvesim.WithGuests(Guests), pvesim.WithClock(now))
	if err != nil {
		return Target{}, nil, fmt.Errorf("build the world of %s: %w", r.Scenario, err)
	}
	now.Sleep(started)
	secrets := map[string]string{}
	for _, t := range r.Setup.Tokens {
		secrets[t.id()] = t.secret()
	}
	return Target{
		Origin: "https://pve",
		Via:    func(node string) http.RoundTripper { return w.Transport(proxmox.NodeName(node)) },
		Clock:  now, Think: think, Secrets: secrets, Password: password,
	}, w, nil
}

// began is when the first task of a recording was started.
func (r *Recording) began() time.Time {
	for _, e := range r.Exchanges {
		for _, x := range pieces(e.Path + upidOf(e.Body)) {
			if x.kind != "upid" {
				continue
			}
			if seconds, err := strconv.ParseInt(strings.Split(x.text, ":")[4], 16, 64); err == nil {
				return time.Unix(seconds, 0)
			}
		}
	}
	return time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
}

// think is the recorder's time between two requests.
const think = 20 * time.Millisecond

// debian is the VM of 09-agent that has a system with a guest agent. All others have empty disks and ignore a shutdown.
const debian = 1592

// Guests makes what ran inside the recorded VMs.
func Guests(id proxmox.VMID) pvesim.Guest {
	if id == debian {
		return pvesim.Booting(pvesim.BootHooks{})(id)
	}
	return pvesim.Deaf(id)
}
