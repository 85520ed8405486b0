package pvesim

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// idleTimeout is after how long pveproxy closes a connection that is not used.
const idleTimeout = 5 * time.Second

// Server serves a world over HTTPS as one of its nodes, with a certificate by the authority of the world.
type Server struct {
	// Node is whose API this is.
	Node proxmox.NodeName
	// URL is https://host:port.
	URL string
	// CAPEM is the certificate of the authority, PEM-encoded; the same for all servers of a world.
	CAPEM []byte
	// Token is root@pam!pvesim, which may do all but what only a ticket of root@pam may.
	Token Token
	World *World

	http   *http.Server
	ownsIt bool
	done   chan struct{}
}

// Serve serves the world as its first node. The address is host:port; empty means a free port of 127.0.0.1.
func Serve(w *World, addr string) (*Server, error) {
	first := proxmox.NodeName("")
	if names := w.nodeNames(); len(names) > 0 {
		first = names[0]
	}
	return ServeNode(w, first, addr)
}

// ServeCluster serves the world as each of its nodes: the first at the address, the others at free ports of the same host.
func ServeCluster(w *World, addr string) ([]*Server, error) {
	first, err := Serve(w, addr)
	if err != nil {
		return nil, err
	}
	out := []*Server{first}
	host, _, _ := net.SplitHostPort(strings.TrimPrefix(first.URL, "https://"))
	for i, name := range w.nodeNames() {
		if i == 0 {
			continue
		}
		s, err := ServeNode(w, name, net.JoinHostPort(host, "0"))
		if err != nil {
			for _, started := range out {
				started.Close()
			}
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (w *World) nodeNames() []proxmox.NodeName {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]proxmox.NodeName, 0, len(w.nodes))
	for _, n := range w.nodes {
		out = append(out, n.Name)
	}
	return out
}

// ServeNode serves the world as the API of that node. While the node or its pveproxy is down, connections to it are closed.
func ServeNode(w *World, name proxmox.NodeName, addr string) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := listen(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	host, _, _ := net.SplitHostPort(listener.Addr().String())
	ca, err := w.authority()
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("make the authority of the cluster: %w", err)
	}
	certificate, err := ca.issue(host, name)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("make a certificate for %s: %w", addr, err)
	}
	s := &Server{Node: name, URL: "https://" + listener.Addr().String(), CAPEM: ca.pem, World: w, Token: w.serverToken(), done: make(chan struct{})}
	s.http = &http.Server{
		Handler: w.Handler(name), IdleTimeout: idleTimeout, ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		// An empty map keeps HTTP/2 off, which pveproxy does not speak.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() {
		defer close(s.done)
		_ = s.http.ServeTLS(listener, "", "")
	}()
	return s, nil
}

func listen(addr string) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	return net.ListenTCP("tcp", at)
}

// serverToken is the one token of root@pam that all servers of a world hand out.
func (w *World) serverToken() Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.tokens[rootUser+"!pvesim"]; t != nil {
		return Token{ID: t.id, Secret: t.secret}
	}
	return w.addToken(TokenSpec{User: rootUser, Name: "pvesim", Unseparated: true})
}

// Close stops the server. The world goes on, unless Run made it.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.done
	if s.ownsIt {
		s.World.Close()
	}
}

// Client returns an HTTP client that trusts the server's authority and sends its token.
func (s *Server) Client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CAPEM)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: idleTimeout - time.Second}
	return &http.Client{Transport: withToken{next: transport, token: s.Token}}
}

type withToken struct {
	next  http.RoundTripper
	token Token
}

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", t.token.Header())
	return t.next.RoundTrip(r)
}

// Handler serves the API of one node. It needs a server that speaks HTTP/1.1, because it sets the reason phrase itself.
func (w *World) Handler(name proxmox.NodeName) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/pvesim/") {
			w.control(out, r)
			return
		}
		if w.down(name) != "" {
			drop(out)
			return
		}
		answer, dropped := w.roundTrip(r, name)
		if dropped {
			drop(out)
			return
		}
		writeReply(out, answer)
	})
}

// drop closes the connection without an answer.
func drop(out http.ResponseWriter) {
	if hijacker, ok := out.(http.Hijacker); ok {
		if conn, _, err := hijacker.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

// down says why no connection to the node's API can be made; empty if it can.
func (w *World) down(name proxmox.NodeName) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	switch {
	case n == nil || !n.online:
		return "no route to host"
	case n.Daemons[PVEProxy] == DaemonStopped:
		return "connection refused"
	}
	return ""
}

// roundTrip serves one HTTP request; dropped means that no answer is given.
func (w *World) roundTrip(r *http.Request, name proxmox.NodeName) (answer reply, dropped bool) {
	x, refused := decode(r, name, w.version)
	if refused != nil {
		return w.record(x, *refused), false
	}
	answer = w.answer(x)
	answer.extjs = x.format == "extjs"
	return answer, x.dropped
}

// writeReply sends a success as usual. Failures carry their message in the reason phrase and end the connection, as
// pveproxy does, which takes the connection out of net/http's hands.
func writeReply(out http.ResponseWriter, r reply) {
	body := r.body()
	status, reason := r.statusLine()
	hijacker, can := out.(http.Hijacker)
	if status < http.StatusBadRequest || !can {
		out.Header().Set("Content-Type", "application/json;charset=UTF-8")
		out.Header().Set("Content-Length", strconv.Itoa(len(body)))
		out.WriteHeader(status)
		_, _ = out.Write(body)
		return
	}
	conn, buffer, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(buffer, "HTTP/1.1 %d %s\r\nContent-Type: application/json;charset=UTF-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", status, reason, len(body))
	_, _ = buffer.Write(body)
	_ = buffer.Flush()
}

// Transport serves the API of one node without a network, for http.Client.Transport. The scheme and host of a request do
// not matter.
func (w *World) Transport(name proxmox.NodeName) http.RoundTripper { return transport{w, name} }

type transport struct {
	world *World
	node  proxmox.NodeName
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if in.Body != http.NoBody && in.ContentLength == 0 {
		// A client that does not know the length sends chunks.
		in.ContentLength = -1
	}
	defer func() { _ = in.Body.Close() }()
	if reason := t.world.down(t.node); reason != "" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect to %s: %s", t.node, reason)}
	}
	answer, dropped := t.world.roundTrip(in, t.node)
	if dropped {
		return nil, droppedError(r.Context())
	}
	body := answer.body()
	status, reason := answer.statusLine()
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, reason), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, nil
}

func droppedError(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return io.ErrUnexpectedEOF
}
