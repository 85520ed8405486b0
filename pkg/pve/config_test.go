package pve_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func TestConfigIsChecked(t *testing.T) {
	good := func() pve.Config {
		return pve.Config{Region: "r1", Endpoints: []string{"https://pve1:8006", "https://[2001:db8::1]:8006/"}, Credentials: token}
	}
	if _, err := pve.NewClient(good()); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, want string
		spoil      func(*pve.Config)
	}{
		{"no endpoint", "no endpoint", func(c *pve.Config) { c.Endpoints = nil }},
		{"http", "want https://", func(c *pve.Config) { c.Endpoints = []string{"http://pve1:8006"} }},
		{"no scheme", "endpoint", func(c *pve.Config) { c.Endpoints = []string{"pve1:8006"} }},
		{"no host", "want https://", func(c *pve.Config) { c.Endpoints = []string{"https://"} }},
		{"no URL", "endpoint is no URL", func(c *pve.Config) { c.Endpoints = []string{"https://pve1:80 06"} }},
		{"path", "no path", func(c *pve.Config) { c.Endpoints = []string{"https://pve1:8006/api2/json"} }},
		{"password in URL", "credentials do not belong", func(c *pve.Config) { c.Endpoints = []string{"https://root:hunter22@pve1:8006"} }},
		{"no credentials", "no credentials", func(c *pve.Config) { c.Credentials = nil }},
		{"token without name", "want user@realm!name", func(c *pve.Config) { c.Credentials = pve.TokenCredentials{ID: "root@pam", Secret: "x"} }},
		{"token without realm", "want user@realm!name", func(c *pve.Config) { c.Credentials = pve.TokenCredentials{ID: "root!x", Secret: "x"} }},
		{"token without secret", "secret is empty", func(c *pve.Config) { c.Credentials = pve.TokenCredentials{ID: "root@pam!x"} }},
		{"token with newline", "white space", func(c *pve.Config) { c.Credentials = pve.TokenCredentials{ID: "root@pam!x", Secret: "hunter22\n"} }},
		{"user without realm", "want user@realm", func(c *pve.Config) { c.Credentials = pve.PasswordCredentials{Username: "root", Password: "x"} }},
		{"no password", "password is empty", func(c *pve.Config) { c.Credentials = pve.PasswordCredentials{Username: "root@pam"} }},
		{"CA", "no PEM certificate", func(c *pve.Config) { c.TLS.CABundle = []byte("x") }},
		{"fingerprint", "64 hexadecimal", func(c *pve.Config) { c.TLS.Fingerprints = []string{"ab:cd"} }},
	}
	for _, c := range cases {
		config := good()
		c.spoil(&config)
		_, err := pve.Open(config)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"r1"`) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v shows a secret", c.name, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	base := func() pve.Config {
		return pve.Config{Region: "a", Endpoints: []string{"https://a", "https://b"}, Credentials: token, TLS: pve.TLSConfig{CABundle: []byte("ca")}}
	}
	same := base()
	same.Region, same.Options.UserAgent = "b", "other"
	if same.Fingerprint() != base().Fingerprint() {
		t.Error("region or options count")
	}
	seen := map[string]string{base().Fingerprint(): "base"}
	spoil := map[string]func(*pve.Config){
		"endpoint": func(c *pve.Config) { c.Endpoints = []string{"https://a"} },
		"secret":   func(c *pve.Config) { c.Credentials = pve.TokenCredentials{ID: token.ID, Secret: "other"} },
		"user":     func(c *pve.Config) { c.Credentials = pve.TokenCredentials{ID: "x@pve!t1", Secret: token.Secret} },
		"kind": func(c *pve.Config) {
			c.Credentials = pve.PasswordCredentials{Username: token.ID, Password: token.Secret}
		},
		"nobody":       func(c *pve.Config) { c.Credentials = nil },
		"CA":           func(c *pve.Config) { c.TLS.CABundle = []byte("cb") },
		"fingerprint":  func(c *pve.Config) { c.TLS.Fingerprints = []string{"ca"} },
		"moved border": func(c *pve.Config) { c.TLS = pve.TLSConfig{Fingerprints: []string{"ca"}, CABundle: []byte{}} },
	}
	for name, change := range spoil {
		config := base()
		change(&config)
		if other, taken := seen[config.Fingerprint()]; taken {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[config.Fingerprint()] = name
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	const text = "hunter22"
	secret := pve.Secret(text)
	holder := struct {
		Password pve.Secret
		Creds    pve.Credentials
	}{secret, pve.TokenCredentials{ID: "a@b!c", Secret: secret}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "% x"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", secret, holder, &holder)
	}
	encoded, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", secret, "holder", holder)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", secret, "holder", holder)
	funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{}).Info("x", "secret", secret, "holder", holder)
	fmt.Fprintln(&out, secret, holder, secret.String(), fmt.Errorf("with %v", secret))
	shown := out.String()
	if strings.Contains(shown, text) || strings.Contains(shown, fmt.Sprintf("%x", text)) || !strings.Contains(shown, "***") {
		t.Errorf("shown:\n%s", shown)
	}
	if string(secret) != text {
		t.Error("the secret is lost")
	}
}
