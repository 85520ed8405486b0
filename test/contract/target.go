package contract

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Target is a Proxmox VE that recordings are replayed against.
type Target struct {
	// Via gives the transport to the API of a node.
	Via func(node string) http.RoundTripper
	// Origin is what URLs begin with, for example https://pve1:8006.
	Origin string
	// Clock is the target's: a fake one makes waiting free.
	Clock clock.Clock
	// Think is the time between two requests.
	Think time.Duration
	// Secrets of API tokens by their ID, user!name.
	Secrets map[string]string
	// Password is that of root@pam.
	Password string
}

// send makes one request.
func (t Target) send(via string, r *http.Request) Answer {
	resp, err := t.Via(via).RoundTrip(r)
	if err != nil {
		return Answer{Reason: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{Reason: err.Error()}
	}
	_, reason, _ := strings.Cut(resp.Status, " ")
	return Answer{Status: resp.StatusCode, Reason: reason, Body: parseBody(raw)}
}

// sleep lets time pass at the target.
func (t Target) sleep(d time.Duration) { t.Clock.Sleep(d) }

// authorization is the header of an API token.
func authorization(id, secret string) string { return fmt.Sprintf("PVEAPIToken=%s=%s", id, secret) }
