// Package workload serves workload clusters without machines to run them on: Cluster API's in-memory API server and
// etcd, one loopback port per cluster. The port is open from the beginning, like a load balancer's, and answers once
// the first control plane node is up.
//
// Upstream's own WorkloadClustersMux is not used, because it listens on all addresses of the machine and on a fixed
// debug port.
package workload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	"sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/api"
	"sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/etcd"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/pki"
)

const (
	loopback = "127.0.0.1"
	// resourceGroup is the name under which a cluster's objects are kept: each cluster has a store of its own.
	resourceGroup = "cluster"
	// headerTimeout bounds how long a client may take to send a request's header.
	headerTimeout = 10 * time.Second
)

// errDown is what a client sees while no control plane node is up: a failed handshake.
var errDown = errors.New("no control plane node is up")

// Authorities are the authorities of a workload cluster, as its first control plane machine gets them.
type Authorities struct {
	// Cluster signs the API server's certificate.
	Cluster *pki.Authority
	// Etcd signs the etcd members' certificates.
	Etcd *pki.Authority
}

// Cluster is one workload cluster.
type Cluster struct {
	listener net.Listener
	server   *http.Server
	store    inmemory.Manager
	cancel   context.CancelFunc
	served   chan struct{}

	mu          sync.Mutex
	authorities Authorities
	apiServer   *tls.Certificate
	members     map[string]*tls.Certificate // etcd members by pod name
}

// New opens a workload cluster's port. It runs until Close.
func New(ctx context.Context, logger logr.Logger) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("open the workload cluster's port: %w", err)
	}
	running, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logger))
	cluster := &Cluster{
		listener: listener, store: inmemory.NewManager(scheme), cancel: cancel,
		served: make(chan struct{}), members: map[string]*tls.Certificate{},
	}
	cluster.store.AddResourceGroup(resourceGroup)
	if err := cluster.store.Start(running); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("start the workload cluster's store: %w", err), listener.Close())
	}
	cluster.server = &http.Server{
		Handler:           cluster.handler(logger),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cluster.certificate},
		ReadHeaderTimeout: headerTimeout,
		// Every handshake that fails while the control plane is down would be a line here.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	go func() {
		defer close(cluster.served)
		if err := cluster.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "workload cluster ended", "port", cluster.Port())
		}
	}()
	return cluster, nil
}

// Close closes the port and every connection.
func (c *Cluster) Close() {
	_ = c.server.Close()
	<-c.served
	c.cancel()
}

// Port is the port on loopback at which the cluster is reached.
func (c *Cluster) Port() int {
	if address, ok := c.listener.Addr().(*net.TCPAddr); ok {
		return address.Port
	}
	return 0
}

// Endpoint is host:port, as kubeadm's configuration names it.
func (c *Cluster) Endpoint() string { return c.listener.Addr().String() }

// Store reads and writes the cluster's objects.
func (c *Cluster) Store() inmemory.Client { return c.store.GetResourceGroup(resourceGroup).GetClient() }

// Up makes the API server answer, with a certificate of the cluster's authority, and adds an etcd member that answers
// to the name of its pod.
func (c *Cluster) Up(authorities Authorities, etcdPod string) error {
	apiServer, err := issue(authorities.Cluster, pki.Subject{CommonName: "kube-apiserver", Hosts: []string{loopback, "localhost"}})
	if err != nil {
		return err
	}
	member, err := issue(authorities.Etcd, pki.Subject{CommonName: etcdPod, Hosts: []string{etcdPod, loopback, "localhost"}})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.authorities, c.apiServer = authorities, apiServer
	c.members[etcdPod] = member
	return nil
}

// Down takes an etcd member away, and with the last one the API server.
func (c *Cluster) Down(etcdPod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, etcdPod)
	if len(c.members) == 0 {
		c.apiServer = nil
	}
}

// Serving reports whether the API server answers.
func (c *Cluster) Serving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer != nil
}

func issue(authority *pki.Authority, subject pki.Subject) (*tls.Certificate, error) {
	pair, err := authority.Issue(subject)
	if err != nil {
		return nil, err
	}
	return pair.TLS()
}

// certificate chooses by the name that the client asks for: an etcd member's pod, or else the API server.
func (c *Cluster) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer == nil {
		return nil, errDown
	}
	if member, ok := c.members[hello.ServerName]; ok {
		return member, nil
	}
	return c.apiServer, nil
}

// handler serves etcd's gRPC and the API server on one port, as port forwarding to an etcd pod ends up here too.
func (c *Cluster) handler(logger logr.Logger) http.Handler {
	thisCluster := func(string) (string, error) { return resourceGroup, nil }
	apiHandler := api.NewAPIServerHandler(c.store, logger, thisCluster)
	etcdHandler := etcd.NewEtcdServerHandler(c.store, logger, thisCluster)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !c.Serving(): // a connection from before the last control plane node went down
			http.Error(w, errDown.Error(), http.StatusServiceUnavailable)
		case r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
			etcdHandler.ServeHTTP(w, r)
		default:
			apiHandler.ServeHTTP(w, r)
		}
	})
}
