package pve

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	// ticketAge is when a ticket is replaced; PVE lets it live two hours.
	ticketAge = 100 * time.Minute
	// loginPause keeps a wrong password from being sent with every request: PVE delays each failure by 3 s, and
	// fail2ban or a realm may lock the user out.
	loginPause = 10 * time.Second
)

// newAuthenticator adds what the credentials ask for to every request.
func newAuthenticator(config Config, next http.RoundTripper) http.RoundTripper {
	switch credentials := config.Credentials.(type) {
	case TokenCredentials:
		value := "PVEAPIToken=" + credentials.ID + "=" + string(credentials.Secret)
		return &tokenAuthenticator{header: value, agent: config.Options.UserAgent, next: next}
	case PasswordCredentials:
		return &ticketAuthenticator{
			region: config.Region, credentials: credentials, clock: config.Options.Clock, agent: config.Options.UserAgent,
			timeout: config.Options.RequestTimeout, next: next, turn: make(chan struct{}, 1),
		}
	default:
		return next
	}
}

// tokenAuthenticator sends an API token.
type tokenAuthenticator struct {
	header, agent string
	next          http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *tokenAuthenticator) RoundTrip(req *http.Request) (*http.Response, error) {
	signed := req.Clone(req.Context())
	signed.Header.Set("Authorization", a.header)
	signed.Header.Set("User-Agent", a.agent)
	return a.next.RoundTrip(signed)
}

// ticket is a login.
type ticket struct {
	value, csrf string
	at          time.Time
}

// ticketAuthenticator logs in by password, before the first request and whenever the ticket is old or refused.
type ticketAuthenticator struct {
	region      proxmox.RegionName
	credentials PasswordCredentials
	clock       clock.Clock
	agent       string
	timeout     time.Duration
	next        http.RoundTripper

	// turn is held by whoever looks at or replaces the ticket; a channel, so that waiting ends with the context.
	turn     chan struct{}
	ticket   ticket
	failure  error
	failedAt time.Time
}

// RoundTrip implements http.RoundTripper.
func (a *ticketAuthenticator) RoundTrip(req *http.Request) (*http.Response, error) {
	current, err := a.valid(req, "")
	if err != nil {
		return nil, err
	}
	answer, err := a.send(req, current)
	if ClassOf(err) != Unauthorized {
		return answer, err
	}
	// A refused request was not executed, so it may be sent once more, writes too. An upload is not: its body is large,
	// and the next pass makes it.
	renewed, loginErr := a.valid(req, current.value)
	if loginErr != nil || callOf(req).file != nil {
		return nil, err
	}
	return a.send(req, renewed)
}

// valid returns the ticket, or a new one if it is old or the refused one.
func (a *ticketAuthenticator) valid(req *http.Request, refused string) (ticket, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-req.Context().Done():
		failure := callOf(req).failure(a.region)
		failure.Cause = req.Context().Err()
		return ticket{}, failure
	}
	fresh := a.ticket.value != "" && a.clock.Since(a.ticket.at) < ticketAge
	if fresh && a.ticket.value != refused {
		return a.ticket, nil
	}
	if a.failure != nil && a.clock.Since(a.failedAt) < loginPause {
		return ticket{}, a.failure
	}
	return a.login(req)
}

// login asks the endpoint of the request for a ticket.
func (a *ticketAuthenticator) login(req *http.Request) (ticket, error) {
	started := a.clock.Now()
	granted, err := a.askTicket(req)
	a.failure = nil
	if ClassOf(err) == Unauthorized {
		a.failure, a.failedAt = err, a.clock.Now()
	}
	if err != nil {
		return ticket{}, err
	}
	granted.at = started
	a.ticket = granted
	return granted, nil
}

func (a *ticketAuthenticator) askTicket(req *http.Request) (ticket, error) {
	login := &call{
		method: http.MethodPost, route: ticketPath, path: ticketPath, timeout: a.timeout,
		params: url.Values{"username": {a.credentials.Username}, "password": {string(a.credentials.Password)}},
	}
	address := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: apiPrefix + ticketPath}
	form := strings.NewReader(login.params.Encode())
	post, err := http.NewRequestWithContext(withCall(req.Context(), login), http.MethodPost, address.String(), form)
	if err != nil {
		return ticket{}, login.asError(a.region, err)
	}
	post.Header.Set("Content-Type", formType)
	post.Header.Set("User-Agent", a.agent)
	answer, err := a.next.RoundTrip(post)
	if err != nil {
		return ticket{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	return login.readTicket(a.region, answer.Body)
}

// readTicket takes the ticket out of the answer to a login.
func (c *call) readTicket(region proxmox.RegionName, answer io.Reader) (ticket, error) {
	var granted struct {
		Data struct {
			Ticket scalar `json:"ticket"`
			CSRF   scalar `json:"CSRFPreventionToken"`
		} `json:"data"`
	}
	err := json.NewDecoder(answer).Decode(&granted)
	if err == nil && (granted.Data.Ticket == "" || strings.HasPrefix(string(granted.Data.Ticket), "PVE:!tfa!")) {
		err = errors.New("no ticket without a second factor")
	}
	if err != nil {
		return ticket{}, c.asError(region, err)
	}
	return ticket{value: string(granted.Data.Ticket), csrf: string(granted.Data.CSRF)}, nil
}

// send adds the ticket, and the token against forgery to writes.
func (a *ticketAuthenticator) send(req *http.Request, current ticket) (*http.Response, error) {
	signed := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		signed.Body = body
	}
	signed.Header.Set("Cookie", "PVEAuthCookie="+current.value)
	signed.Header.Set("User-Agent", a.agent)
	if req.Method != http.MethodGet {
		signed.Header.Set("CSRFPreventionToken", current.csrf)
	}
	return a.next.RoundTrip(signed)
}
