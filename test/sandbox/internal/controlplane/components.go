package controlplane

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

const controllerManager = "kube-controller-manager"

func (p *ControlPlane) startEtcd(ctx context.Context) (err error) {
	p.etcd, err = p.start("etcd",
		"--name=default",
		"--data-dir="+filepath.Join(p.options.Dir, "etcd"),
		"--listen-client-urls="+p.etcdURL,
		"--advertise-client-urls="+p.etcdURL,
		// There is no peer, but etcd insists on listening for one.
		"--listen-peer-urls=http://"+Loopback+":0",
		// The data need not survive a power cut, and fsync is what makes etcd slow on a busy disk.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	return p.etcd.WaitReady(ctx, func(ctx context.Context) error {
		return get(ctx, p.client(), p.etcdURL+"/health")
	})
}

func (p *ControlPlane) startAPIServer(ctx context.Context) error {
	address, err := url.Parse(p.url)
	if err != nil {
		return fmt.Errorf("parse API server URL: %w", err)
	}
	p.apiServer, err = p.start("kube-apiserver",
		"--etcd-servers="+p.etcdURL,
		"--bind-address="+Loopback,
		"--advertise-address="+Loopback,
		"--secure-port="+address.Port(),
		"--tls-cert-file="+p.file("server.crt"),
		"--tls-private-key-file="+p.file("server.key"),
		"--client-ca-file="+p.file("ca.crt"),
		// Nobody is a front proxy here; without this kube-controller-manager waits for the setting.
		"--requestheader-client-ca-file="+p.file("ca.crt"),
		"--requestheader-allowed-names=nobody",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+p.file("service-accounts.crt"),
		"--service-account-signing-key-file="+p.file("service-accounts.key"),
		"--service-cluster-ip-range=10.96.0.0/24",
		"--authorization-mode=RBAC",
		// No pods run here, so nothing needs a service account's token.
		"--disable-admission-plugins=ServiceAccount",
		// A loopback address is no valid endpoint of the Service "kubernetes", and the server would say so for ever.
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	return p.apiServer.WaitReady(ctx, func(ctx context.Context) error {
		return get(ctx, p.client(), p.url+"/readyz")
	})
}

// startControllers starts kube-controller-manager with two controllers, or the collector, which is nothing but those.
func (p *ControlPlane) startControllers(context.Context) (err error) {
	if _, missing := os.Stat(filepath.Join(p.options.Binaries, controllerManager)); missing != nil {
		p.controllers, err = p.start("collector", "--kubeconfig="+p.Kubeconfig())
		return err
	}
	p.controllers, err = p.start(controllerManager,
		"--kubeconfig="+p.Kubeconfig(),
		"--authentication-kubeconfig="+p.Kubeconfig(),
		"--authorization-kubeconfig="+p.Kubeconfig(),
		"--bind-address="+Loopback,
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=garbage-collector-controller,namespace-controller",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	)
	return err
}
