package pve

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Defaults of Options.
const (
	// DefaultMaxRequestsPerNode is how many requests may be under way at one PVE node at a time. pvedaemon has 3 workers.
	DefaultMaxRequestsPerNode = 4
	// DefaultPollInterval is half of pvestatd's 10 s cycle: polling faster shows nothing new of what it reports.
	DefaultPollInterval = 5 * time.Second
	// DefaultTaskInterval is the time between two looks at the tasks while any is in flight.
	DefaultTaskInterval = time.Second
	// DefaultRequestTimeout is above the 30 s after which pveproxy itself gives up on a node (595, 596): its answer says
	// more than a timeout of ours.
	DefaultRequestTimeout = 45 * time.Second
	// DefaultUploadTimeout bounds one upload.
	DefaultUploadTimeout = 10 * time.Minute
	// DefaultUserAgent is what PVE's access log shows.
	DefaultUserAgent = "capve"
)

// Config says how to reach one PVE cluster.
type Config struct {
	// Region names the PVE cluster in errors, logs and metrics.
	Region proxmox.RegionName
	// Endpoints are the API's base addresses, https://host:8006, in order of preference. Any node of the cluster will do.
	Endpoints []string
	// Credentials are TokenCredentials or PasswordCredentials.
	Credentials Credentials
	// TLS says which certificates are trusted. Empty trusts the system's roots.
	TLS TLSConfig
	// Options are the settings that all clients of a process share.
	Options Options
}

// TLSConfig says which server certificates are trusted. There is no way to trust all.
type TLSConfig struct {
	// CABundle holds PEM certificates that replace the system's roots.
	CABundle []byte
	// Fingerprints are SHA-256 sums of acceptable server certificates, in hex with or without colons. Without CABundle
	// they replace the check of chain and host name, as PVE's own certificates mostly need; with it both must hold.
	Fingerprints []string
}

// Options are settings that have sensible defaults. The zero value is ready to use.
type Options struct {
	// RequestLog records each request that is sent; nil records nothing.
	RequestLog *RequestLog
	// MaxRequestsPerNode limits the requests under way at one node, and those that name no node.
	MaxRequestsPerNode int
	// PollInterval is the inventory's interval.
	PollInterval time.Duration
	// TaskInterval is the tracker's interval while tasks are in flight.
	TaskInterval time.Duration
	// RequestTimeout bounds one attempt of a request; UploadTimeout that of an upload.
	RequestTimeout, UploadTimeout time.Duration
	// Clock is the time source of intervals and backoff. Nil is the real clock.
	Clock clock.Clock
	// UserAgent is sent with each request.
	UserAgent string
	// Logger gets what no caller is told of: lost pollers, endpoints given up. The zero Logger discards.
	Logger logr.Logger
	// Registerer receives the metrics; nil keeps none. Several clients may share one.
	Registerer prometheus.Registerer
	// Transport carries the requests instead of connections of the client's own, which nil means. TLS settings are then its
	// affair.
	Transport http.RoundTripper
	// Draw gives a number from 0 to below n, to spread what would happen at the same moment. Nil draws at random.
	Draw func(n int64) int64
}

// withDefaults returns the options with every unset field filled in.
func (o Options) withDefaults() Options {
	setDefault(&o.MaxRequestsPerNode, DefaultMaxRequestsPerNode)
	setDefault(&o.PollInterval, DefaultPollInterval)
	setDefault(&o.TaskInterval, DefaultTaskInterval)
	setDefault(&o.RequestTimeout, DefaultRequestTimeout)
	setDefault(&o.UploadTimeout, DefaultUploadTimeout)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.UserAgent == "" {
		o.UserAgent = DefaultUserAgent
	}
	return o
}

// setDefault replaces a value that is not positive.
func setDefault[N int | time.Duration](value *N, fallback N) {
	if *value <= 0 {
		*value = fallback
	}
}

// Credentials are a closed set: TokenCredentials or PasswordCredentials.
//
//sumtype:decl
type Credentials interface {
	// principal names who the credentials are for, without the secret.
	principal() string
	// check reports what is missing.
	check() error
	// secret is the part to hide.
	secret() Secret
}

// TokenCredentials are an API token. A token, even one of root@pam, may not set the options PVE keeps for root.
type TokenCredentials struct {
	// ID is user@realm!name.
	ID string
	// Secret is the token's UUID.
	Secret Secret
}

// PasswordCredentials are a user and password. The client logs in and renews the ticket before its two hours are over.
type PasswordCredentials struct {
	// Username is user@realm.
	Username string
	Password Secret
}

func (c TokenCredentials) principal() string { return "token " + c.ID }
func (c TokenCredentials) secret() Secret    { return c.Secret }

func (c TokenCredentials) check() error {
	user, name, found := strings.Cut(c.ID, "!")
	if !found || !strings.Contains(user, "@") || name == "" {
		return fmt.Errorf("token identifier %q: want user@realm!name", c.ID)
	}
	return checkHeaderText("token secret", c.ID+string(c.Secret), c.Secret)
}

func (c PasswordCredentials) principal() string { return "user " + c.Username }
func (c PasswordCredentials) secret() Secret    { return c.Password }

func (c PasswordCredentials) check() error {
	if !strings.Contains(c.Username, "@") {
		return fmt.Errorf("user name %q: want user@realm", c.Username)
	}
	if c.Password == "" {
		return errors.New("password is empty")
	}
	return nil
}

// checkHeaderText reports an empty secret, or text that cannot stand in a header, such as a trailing newline of a file.
func checkHeaderText(what, text string, secret Secret) error {
	if secret == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s holds white space or characters that are not ASCII", what)
	}
	return nil
}

// check reports the first thing that is wrong with the configuration.
func (c Config) check() error {
	if len(c.Endpoints) == 0 {
		return errors.New("no endpoint")
	}
	for _, endpoint := range c.Endpoints {
		if _, err := parseEndpoint(endpoint); err != nil {
			return err
		}
	}
	if c.Credentials == nil {
		return errors.New("no credentials")
	}
	return c.Credentials.check()
}

// parseEndpoint accepts https://host[:port] with an optional trailing slash.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("endpoint is no URL: %w", errors.Unwrap(err))
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf("endpoint %q: credentials do not belong into the URL", u.Redacted())
	case u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("endpoint %q: want https://host:8006", text)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("endpoint %q: want no path or query", text)
	}
	return u, nil
}

// Fingerprint identifies the PVE cluster together with the rights to use it: equal for two configurations with the same
// endpoints, credentials and trust. Region and Options do not count. It is derived from the secret, so keep it in memory.
func (c Config) Fingerprint() string {
	sum := sha256.New()
	part := func(text string) { fmt.Fprintf(sum, "%d:%s,", len(text), text) }
	part(strings.Join(c.Endpoints, " "))
	if c.Credentials != nil {
		part(c.Credentials.principal())
		part(string(c.Credentials.secret()))
	}
	part(string(c.TLS.CABundle))
	part(strings.Join(c.TLS.Fingerprints, " "))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
