package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func authority(t *testing.T) *Authority {
	t.Helper()
	made, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func issue(t *testing.T, by *Authority, subject Subject) Pair {
	t.Helper()
	pair, err := by.Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// verify checks the pair as a client does that trusts the authority and asks for the name.
func verify(t *testing.T, trusted *Authority, pair Pair, name string) error {
	t.Helper()
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted.PEM())
	_, err = certificate.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name})
	return err
}

func TestServerCertificate(t *testing.T) {
	ca := authority(t)
	pair := issue(t, ca, Subject{CommonName: "server", Hosts: []string{"127.0.0.1", "etcd-demo"}})
	for name, want := range map[string]bool{"127.0.0.1": true, "etcd-demo": true, "example.com": false, "127.0.0.2": false} {
		if err := verify(t, ca, pair, name); (err == nil) != want {
			t.Errorf("connect to %s: %v, want success %v", name, err, want)
		}
	}
	if err := verify(t, authority(t), pair, "127.0.0.1"); err == nil {
		t.Error("a client that trusts another authority connects")
	}
}

func TestClientCertificate(t *testing.T) {
	ca := authority(t)
	certificate, err := issue(t, ca, Subject{CommonName: "admin", Organizations: []string{"system:masters"}}).TLS()
	if err != nil {
		t.Fatal(err)
	}
	leaf := certificate.Leaf
	if leaf.Subject.CommonName != "admin" || len(leaf.Subject.Organization) != 1 || leaf.Subject.Organization[0] != "system:masters" {
		t.Errorf("got subject %v", leaf.Subject)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM())
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
}

// The control plane provider replaces machines whose certificates are about to end.
func TestCertificatesOutliveAnySandbox(t *testing.T) {
	certificate, err := issue(t, authority(t), Subject{CommonName: "server"}).TLS()
	if err != nil {
		t.Fatal(err)
	}
	if until := time.Until(certificate.Leaf.NotAfter); until < 365*24*time.Hour {
		t.Errorf("a certificate is valid for %v only", until)
	}
}

// Cluster API makes the authorities of workload clusters with RSA keys.
func TestParseAuthorityWithRSAKey(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ParseAuthority(Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, parsed, issue(t, parsed, Subject{CommonName: "kube-apiserver", Hosts: []string{"127.0.0.1"}}), "127.0.0.1"); err != nil {
		t.Error(err)
	}
}

func TestParseAuthorityRefusesRubbish(t *testing.T) {
	good := issue(t, authority(t), Subject{CommonName: "a"})
	other := issue(t, authority(t), Subject{CommonName: "b"})
	for name, pair := range map[string]Pair{
		"nothing":           {},
		"no key":            {Certificate: good.Certificate},
		"another one's key": {Certificate: good.Certificate, Key: other.Key},
		"text":              {Certificate: []byte("x"), Key: []byte("y")},
	} {
		if _, err := ParseAuthority(pair); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWriteFilesKeepsKeysPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	if err := issue(t, authority(t), Subject{CommonName: "server"}).WriteFiles(dir, "tls"); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "tls.key")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: others can read it", path, info.Mode())
		}
	}
}
