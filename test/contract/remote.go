package contract

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"k8s.io/utils/clock"
)

// Remote describes a Proxmox VE that is reached over HTTPS. It must be there for tests: see the README.
type Remote struct {
	// URL of the API of node pve1, for example https://10.0.0.1:8006.
	URL string
	// Token is root@pam!ci=secret, a token with all rights of root@pam.
	Token string
	// Password of root@pam.
	Password string
	// CAPEM is the certificate of the authority; nil means those that the machine trusts.
	CAPEM []byte
}

// RemoteFromEnvironment reads PVE_TEST_URL, PVE_TEST_TOKEN, PVE_TEST_PASSWORD and PVE_TEST_CA, a file. The second result is
// false if PVE_TEST_URL is not set.
func RemoteFromEnvironment() (Remote, bool, error) {
	r := Remote{URL: strings.TrimSuffix(os.Getenv("PVE_TEST_URL"), "/"), Token: os.Getenv("PVE_TEST_TOKEN"), Password: os.Getenv("PVE_TEST_PASSWORD")}
	if r.URL == "" {
		return r, false, nil
	}
	if !strings.HasPrefix(r.Token, rootUser+"!ci=") || r.Password == "" {
		return r, true, errors.New("PVE_TEST_TOKEN must be root@pam!ci=secret, as in the recordings, and PVE_TEST_PASSWORD that of root@pam")
	}
	if file := os.Getenv("PVE_TEST_CA"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return r, true, fmt.Errorf("read PVE_TEST_CA: %w", err)
		}
		r.CAPEM = pem
	}
	return r, true, nil
}

// Target is the remote Proxmox VE as a target. All requests go to the one node that the URL names.
func (r Remote) Target() Target {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CAPEM != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(r.CAPEM)
	}
	transport := &http.Transport{TLSClientConfig: config}
	_, secret, _ := strings.Cut(r.Token, "=")
	return Target{
		Origin: r.URL, Via: func(string) http.RoundTripper { return transport }, Clock: clock.RealClock{}, Password: r.Password,
		Secrets: map[string]string{rootUser + "!ci": secret},
	}
}

// Version is the release that the remote Proxmox VE is of, for example 9.2.
func (r Remote) Version(ctx context.Context) (string, error) {
	p := newReplay(&Recording{Setup: Setup{Tokens: []SetupToken{{User: rootUser, Name: "ci"}}}}, r.Target(), nil)
	answer, err := p.send(ctx, Exchange{As: "root-token", Method: "GET", Path: "/version"})
	if err != nil {
		return "", err
	}
	body, _ := answer.Body.(map[string]any)
	data, _ := body["data"].(map[string]any)
	if release, ok := data["release"].(string); ok {
		return release, nil
	}
	return "", fmt.Errorf("ask %s for its version: %d %s", r.URL, answer.Status, answer.Reason)
}
