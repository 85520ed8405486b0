// Package pki issues the certificates of the sandbox: for its control plane, its webhooks and its workload clusters.
// Keys are ECDSA P-256, because drawing RSA keys would take longer than starting etcd.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is how long a certificate is valid: longer than any sandbox lives, and longer than the 6 months that the
// kubeadm control plane provider wants left before it replaces a machine.
const lifetime = 5 * 365 * 24 * time.Hour

// backdate is how far in the past a certificate's validity begins, so that a clock set back does not break a sandbox.
const backdate = time.Hour

// Authority is a certificate authority.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

// Pair is a certificate with its private key, both PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Subject says whom a certificate is for.
type Subject struct {
	// CommonName is the user name of a client certificate.
	CommonName string
	// Organizations are the groups of a client certificate.
	Organizations []string
	// Hosts are the names and IP addresses of a server certificate.
	Hosts []string
}

// NewAuthority makes a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("draw the key of authority %s: %w", name, err)
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse authority %s: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// ParseAuthority reads an authority from its PEM certificate and private key (PKCS #1, PKCS #8 or SEC 1), as the
// Secrets of a workload cluster hold them.
func ParseAuthority(pair Pair) (*Authority, error) {
	parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("parse authority: %w", err)
	}
	key, ok := parsed.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("parse authority: its private key cannot sign")
	}
	return &Authority{certificate: parsed.Leaf, key: key, pem: pair.Certificate}, nil
}

// PEM is the authority's certificate, for those who shall trust it.
func (a *Authority) PEM() []byte { return a.pem }

// Export is the authority's certificate and private key, PEM. ParseAuthority reads them back.
func (a *Authority) Export() (Pair, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode private key: %w", err)
	}
	return Pair{Certificate: a.pem, Key: encode("PRIVATE KEY", der)}, nil
}

// Issue signs a certificate for the subject with a fresh key. It serves as server and client certificate.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("draw the key of %s: %w", subject.CommonName, err)
	}
	template, err := newTemplate(pkix.Name{CommonName: subject.CommonName, Organization: subject.Organizations})
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range subject.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: keyPEM}, nil
}

// TLS is the pair as crypto/tls wants it.
func (p Pair) TLS() (*tls.Certificate, error) {
	certificate, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("parse certificate and key: %w", err)
	}
	return &certificate, nil
}

// WriteFiles writes the pair to <dir>/<name>.crt and <dir>/<name>.key, readable by the user only.
func (p Pair) WriteFiles(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make certificate directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Certificate, 0o600); err != nil {
		return fmt.Errorf("write certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return fmt.Errorf("write key %s: %w", name, err)
	}
	return nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		BasicConstraintsValid: true,
	}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return encode("PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
