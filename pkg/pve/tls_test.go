package pve_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func fingerprintOf(server *httptest.Server) string {
	sum := sha256.Sum256(server.Certificate().Raw)
	return hex.EncodeToString(sum[:])
}

// withColons writes a fingerprint as PVE and openssl do.
func withColons(sum string) string {
	var pairs []string
	for i := 0; i < len(sum); i += 2 {
		pairs = append(pairs, strings.ToUpper(sum[i:i+2]))
	}
	return strings.Join(pairs, ":")
}

func TestTrust(t *testing.T) {
	server, config := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, `{}`) })
	sum, other, ca := fingerprintOf(server), strings.Repeat("ab", 32), certificate(server)
	cases := []struct {
		name  string
		tls   pve.TLSConfig
		class pve.Class
	}{
		{"system roots", pve.TLSConfig{}, pve.Untrusted},
		{"CA", pve.TLSConfig{CABundle: ca}, pve.None},
		{"fingerprint", pve.TLSConfig{Fingerprints: []string{sum}}, pve.None},
		{"one of several", pve.TLSConfig{Fingerprints: []string{other, withColons(sum)}}, pve.None},
		{"another fingerprint", pve.TLSConfig{Fingerprints: []string{other}}, pve.Untrusted},
		{"CA and fingerprint", pve.TLSConfig{CABundle: ca, Fingerprints: []string{" " + sum + "\n"}}, pve.None},
		{"CA and another fingerprint", pve.TLSConfig{CABundle: ca, Fingerprints: []string{other}}, pve.Untrusted},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config.TLS = c.tls
			client := newClient(t, config)
			if _, err := client.Version(t.Context()); pve.ClassOf(err) != c.class {
				t.Errorf("got %v of class %v", err, pve.ClassOf(err))
			}
			if err := client.UpdateConfig(t.Context(), pve.ConfigUpdate{VM: vm101, Set: map[string]string{"cores": "1"}}); pve.ClassOf(err) != c.class {
				t.Errorf("got %v of class %v", err, pve.ClassOf(err))
			}
		})
	}
}

// TestTrustIsOfOneName: with a CA, the certificate must be for the name that was asked for.
func TestTrustIsOfOneName(t *testing.T) {
	_, config := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, `{}`) })
	config.Endpoints[0] = strings.Replace(config.Endpoints[0], "127.0.0.1", "localhost", 1)
	if _, err := newClient(t, config).Version(t.Context()); pve.ClassOf(err) != pve.Untrusted {
		t.Errorf("got %v of class %v", err, pve.ClassOf(err))
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	server.StartTLS()
	defer server.Close()
	config := pve.Config{Endpoints: []string{server.URL}, Credentials: token, TLS: pve.TLSConfig{CABundle: certificate(server)}}
	config.Options.Clock = &jumpClock{}
	if _, err := newClient(t, config).Version(t.Context()); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("got %v", err)
	}
}
