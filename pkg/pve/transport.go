package pve

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// idleTimeout is below pveproxy's keep-alive limit of 5 s, so that no request is put on a connection being closed.
	idleTimeout = 4 * time.Second
	// dialTimeout bounds connecting to an endpoint; the next one is tried after it.
	dialTimeout = 5 * time.Second
	// maxIdlePerHost keeps connections for a burst of requests without hoarding pveproxy's workers.
	maxIdlePerHost = 8
)

// newHTTPClient puts the chain together, the outermost first: retry → failover → limit → authentication → record →
// answer check → connection.
func newHTTPClient(config Config, endpoints []*url.URL, trust *tls.Config, metrics *metrics) *http.Client {
	options := config.Options
	wire := options.Transport
	if wire == nil {
		wire = newConnection(trust)
	}
	base := &answerChecker{region: config.Region, next: wire}
	sent := &recorder{region: config.Region, log: options.RequestLog, metrics: metrics, next: base}
	authenticated := newAuthenticator(config, sent)
	limited := newLimiter(config.Region, options.MaxRequestsPerNode, metrics, authenticated)
	balanced := newFailover(endpoints, options.Clock, options.Logger, limited)
	retried := &retrier{clock: options.Clock, jitter: options.jitter, next: balanced}
	return &http.Client{
		Transport: retried,
		// A redirect would turn a write into a read and carry the credentials elsewhere. The check makes it an error.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// newConnection is the transport itself: HTTP/1.1 only, as pveproxy speaks.
func newConnection(trust *tls.Config) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: 2 * dialTimeout,
		Protocols:           protocols,
		MaxIdleConnsPerHost: maxIdlePerHost,
		IdleConnTimeout:     idleTimeout,
	}
}
