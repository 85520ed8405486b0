package pve

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// errFingerprint marks a certificate that is none of the pinned ones.
var errFingerprint = errors.New("server certificate matches no trusted fingerprint")

// fingerprint is the SHA-256 sum of a certificate.
type fingerprint [sha256.Size]byte

// parseFingerprint reads hex, with or without colons, in either case, as PVE and openssl print it.
func parseFingerprint(text string) (fingerprint, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), ":", ""))
	if err != nil || len(raw) != sha256.Size {
		return fingerprint{}, fmt.Errorf("certificate fingerprint %q: want the SHA-256 sum, 64 hexadecimal digits", clip(text, 120))
	}
	return fingerprint(raw), nil
}

// config turns the trust into a client configuration.
func (t TLSConfig) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(t.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(t.CABundle) {
			return nil, errors.New("CA bundle holds no PEM certificate")
		}
	}
	if len(t.Fingerprints) == 0 {
		return config, nil
	}
	trusted := map[fingerprint]bool{}
	for _, text := range t.Fingerprints {
		sum, err := parseFingerprint(text)
		if err != nil {
			return nil, err
		}
		trusted[sum] = true
	}
	pin(config, trusted)
	return config, nil
}

// pin demands one of the fingerprints on every connection, also resumed ones.
func pin(config *tls.Config, trusted map[fingerprint]bool) {
	// The pin is stronger than the chain it replaces: PVE nodes come with certificates of a CA of their own, for names
	// that are often not those used to reach them. With a CA bundle the chain must be right as well.
	config.InsecureSkipVerify = config.RootCAs == nil
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errFingerprint
		}
		sum := fingerprint(sha256.Sum256(state.PeerCertificates[0].Raw))
		if !trusted[sum] {
			return fmt.Errorf("%w: got %s", errFingerprint, hex.EncodeToString(sum[:]))
		}
		return nil
	}
}

// isUntrusted says that a connection failed because of the server's certificate.
func isUntrusted(err error) bool {
	verification := (*tls.CertificateVerificationError)(nil)
	return errors.Is(err, errFingerprint) || errors.As(err, &verification)
}
