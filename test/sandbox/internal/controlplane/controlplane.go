// Package controlplane runs a real Kubernetes control plane without nodes: etcd, kube-apiserver and the two
// controllers of kube-controller-manager that a Cluster API management cluster cannot do without, the garbage collector
// (owner references) and the namespace controller. All of it listens on loopback only.
package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/pki"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/process"
)

const (
	etcdGrace        = 5 * time.Second
	apiServerGrace   = 5 * time.Second
	controllersGrace = 3 * time.Second
)

// Options says what to run and where.
type Options struct {
	// Binaries is the directory with etcd, kube-apiserver and kube-controller-manager or our collector.
	Binaries string
	// Dir is where data, certificates, the kubeconfig and logs go. It must exist.
	Dir string
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	options   Options
	authority *pki.Authority
	url       string
	etcdURL   string

	etcd, apiServer, controllers *process.Process
}

// Start starts the control plane and waits until its API server is ready. When it fails it leaves no process behind.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	plane := &ControlPlane{
		options: options,
		etcdURL: fmt.Sprintf("http://%s:%d", Loopback, ports[0]),
		url:     fmt.Sprintf("https://%s:%d", Loopback, ports[1]),
	}
	for _, step := range []func(context.Context) error{
		plane.writeCertificates, plane.startEtcd, plane.startAPIServer, plane.startControllers,
	} {
		if err := step(ctx); err != nil {
			plane.Stop()
			return nil, err
		}
	}
	return plane, nil
}

// Stop stops the control plane. The API server goes before etcd: without etcd it takes over 10 s to end.
func (p *ControlPlane) Stop() {
	p.controllers.Stop(controllersGrace)
	p.apiServer.Stop(apiServerGrace)
	p.etcd.Stop(etcdGrace)
}

// Kubeconfig is the path of the administrator's kubeconfig, readable by the user only.
func (p *ControlPlane) Kubeconfig() string { return filepath.Join(p.options.Dir, "kubeconfig") }

// URL is where the API server serves.
func (p *ControlPlane) URL() string { return p.url }

// RESTConfig is the administrator's client configuration, without client-side rate limit: the API server has its own.
func (p *ControlPlane) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// WriteUserKubeconfig writes a kubeconfig for a user without any rights of its own; RBAC may grant them.
func (p *ControlPlane) WriteUserKubeconfig(path, user string) error {
	return p.writeKubeconfig(path, pki.Subject{CommonName: user})
}

func (p *ControlPlane) certificates() string { return filepath.Join(p.options.Dir, "certificates") }

func (p *ControlPlane) file(name string) string { return filepath.Join(p.certificates(), name) }

func (p *ControlPlane) writeCertificates(context.Context) error {
	var err error
	if p.authority, err = pki.NewAuthority("capve-sandbox"); err != nil {
		return err
	}
	server, err := p.authority.Issue(pki.Subject{CommonName: "kube-apiserver", Hosts: []string{Loopback, "localhost"}})
	if err != nil {
		return err
	}
	if err := server.WriteFiles(p.certificates(), "server"); err != nil {
		return err
	}
	accounts, err := p.authority.Issue(pki.Subject{CommonName: "service-accounts"})
	if err != nil {
		return err
	}
	if err := accounts.WriteFiles(p.certificates(), "service-accounts"); err != nil {
		return err
	}
	if err := os.WriteFile(p.file("ca.crt"), p.authority.PEM(), 0o600); err != nil {
		return fmt.Errorf("write authority: %w", err)
	}
	return p.writeKubeconfig(p.Kubeconfig(), pki.Subject{CommonName: "admin", Organizations: []string{"system:masters"}})
}

func (p *ControlPlane) writeKubeconfig(path string, subject pki.Subject) error {
	pair, err := p.authority.Issue(subject)
	if err != nil {
		return err
	}
	const name = "capve-sandbox"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: p.url, CertificateAuthorityData: p.authority.PEM()}
	config.AuthInfos[subject.CommonName] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: subject.CommonName}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", subject.CommonName, err)
	}
	return nil
}

func (p *ControlPlane) start(name string, args ...string) (*process.Process, error) {
	return process.Start(process.Command{
		Name: name, Path: filepath.Join(p.options.Binaries, name), Args: args, LogDir: p.options.Dir,
	})
}

// get asks for a URL with the client and is satisfied with status 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, response.Status)
	}
	return nil
}

// client trusts the control plane's authority.
func (p *ControlPlane) client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.authority.PEM())
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
	}
}
