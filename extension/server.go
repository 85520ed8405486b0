// Package extension answers the hooks by which Cluster API asks whether a machine can be updated in place, rather than be
// replaced, and has it done: a runtime extension. It writes nothing. Cluster API writes the new spec of a ProxmoxMachine, and
// the controller carries it out as it does any other change.
package extension

import (
	"crypto/tls"
	"fmt"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options say where the hooks are served, and with which certificate.
type Options struct {
	Host string
	Port int
	// CertDir is the directory with the certificate and the key.
	CertDir, CertName, KeyName string
	TLSOptions                 []func(*tls.Config)
}

// SetupWithManager adds a server of the hooks to the manager. It answers on every replica, not on the leader alone.
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return fmt.Errorf("build the catalog of runtime hooks: %w", err)
	}
	hooks, err := server.New(server.Options{
		Catalog: catalog, Host: options.Host, Port: options.Port, CertDir: options.CertDir, CertName: options.CertName, KeyName: options.KeyName,
		TLSOpts: options.TLSOptions,
	})
	if err != nil {
		return fmt.Errorf("make the server of runtime hooks: %w", err)
	}
	for _, handler := range Handlers(mgr.GetClient()) {
		if err := hooks.AddExtensionHandler(handler); err != nil {
			return fmt.Errorf("add the runtime hook %s: %w", handler.Name, err)
		}
	}
	if err := mgr.Add(hooks); err != nil {
		return fmt.Errorf("add the server of runtime hooks: %w", err)
	}
	return nil
}
