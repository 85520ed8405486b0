package pve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	goproxmox "github.com/luthermonson/go-proxmox"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// formType is the content type of writes. Forms, not JSON: PVE checks both alike, but forms are what its own tools send.
const formType = "application/x-www-form-urlencoded"

// Client talks to one PVE cluster. Each of its methods is one request, plus repetitions that change nothing. It is safe
// for concurrent use. Errors of its methods are *Error.
type Client struct {
	region  proxmox.RegionName
	options Options
	http    *http.Client
	// api carries reads and deletes. It is given neither credentials nor retries: the chain below it has both.
	api     *goproxmox.Client
	base    string
	metrics *metrics
}

// NewClient checks the configuration and returns a client. It sends nothing.
func NewClient(config Config) (*Client, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("region %q: %w", config.Region, err)
	}
	trust, err := config.TLS.config()
	if err != nil {
		return nil, fmt.Errorf("region %q: %w", config.Region, err)
	}
	config.Options = config.Options.withDefaults()
	metrics, err := newMetrics(config.Options.Registerer)
	if err != nil {
		return nil, fmt.Errorf("region %q: register metrics: %w", config.Region, err)
	}
	endpoints := make([]*url.URL, len(config.Endpoints))
	for i, text := range config.Endpoints {
		if endpoints[i], err = parseEndpoint(text); err != nil {
			return nil, fmt.Errorf("region %q: %w", config.Region, err)
		}
	}
	c := &Client{
		region: config.Region, options: config.Options, metrics: metrics, base: endpoints[0].Scheme + "://" + endpoints[0].Host + apiPrefix,
		http: newHTTPClient(config, endpoints, trust, metrics),
	}
	c.api = goproxmox.NewClient(c.base, goproxmox.WithHTTPClient(c.http), goproxmox.WithUserAgent(config.Options.UserAgent),
		goproxmox.WithLogger(silent{}))
	return c, nil
}

// Region returns the name of the PVE cluster.
func (c *Client) Region() proxmox.RegionName { return c.region }

// CloseIdleConnections closes connections that wait for a next request.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// silent keeps go-proxmox from logging: it would print forms and bodies as they are.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Infof(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

// get sends a read and returns the answer's data.
func (c *Client) get(ctx context.Context, call *call, err error) (json.RawMessage, error) {
	return c.viaAPI(ctx, call, err, c.apiGet)
}

// del sends a DELETE, whose parameters PVE takes from the query, and returns the answer's data.
func (c *Client) del(ctx context.Context, call *call, err error) (json.RawMessage, error) {
	return c.viaAPI(ctx, call, err, c.apiDelete)
}

func (c *Client) apiGet(ctx context.Context, target string, into any) error {
	return c.api.Get(ctx, target, into)
}

func (c *Client) apiDelete(ctx context.Context, target string, into any) error {
	return c.api.Delete(ctx, target, into)
}

// viaAPI sends a request without a body through go-proxmox.
func (c *Client) viaAPI(
	ctx context.Context, call *call, err error, send func(context.Context, string, any) error,
) (json.RawMessage, error) {
	if err != nil {
		return nil, c.inRegion(err)
	}
	call.timeout = c.options.RequestTimeout
	var data json.RawMessage
	if err := send(withCall(ctx, call), call.target(), &data); err != nil {
		return nil, call.asError(c.region, err)
	}
	return data, nil
}

// submit sends a write with its parameters as a form and returns the answer's data.
func (c *Client) submit(ctx context.Context, call *call, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, c.inRegion(err)
	}
	call.timeout = c.options.RequestTimeout
	return c.post(ctx, call, formType, []byte(call.params.Encode()))
}

// inRegion completes an error that was made without knowing the region.
func (c *Client) inRegion(err error) error {
	if failure := (*Error)(nil); errors.As(err, &failure) {
		failure.Region = c.region
	}
	return err
}
