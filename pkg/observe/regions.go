package observe

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// Keys of a credentials Secret.
const (
	tokenIDKey     = "tokenID"
	tokenSecretKey = "tokenSecret"
	usernameKey    = "username"
	passwordKey    = "password"
)

// UnavailableError says that a region cannot be used now. The reason says what a person can do.
type UnavailableError struct {
	Reason plan.Reason
	Err    error
}

// Error implements error.
func (e *UnavailableError) Error() string { return e.Reason.Message }

// Unwrap returns the cause, if there is one.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Regions opens the Proxmox VE clusters that ProxmoxClusters name.
type Regions struct {
	secrets  client.Reader
	registry *pve.Registry
	options  pve.Options

	mu sync.Mutex
	// last holds the credentials that Secrets had when they were read last.
	last map[lastKey]pve.Credentials
	// authorities are the root CAs that connections led to, by the fingerprint of the connection.
	authorities map[string]authority
}

// NewRegions returns Regions that read credentials with the reader and share connections through the registry.
func NewRegions(secrets client.Reader, registry *pve.Registry, options pve.Options) *Regions {
	return &Regions{secrets: secrets, registry: registry, options: options, last: map[lastKey]pve.Credentials{}, authorities: map[string]authority{}}
}

// Open returns the Proxmox VE cluster of a region, polled and tracked. The error is an *UnavailableError when the region
// or its credentials are not as they should be.
func (r *Regions) Open(ctx context.Context, cluster *v1beta1.ProxmoxCluster, name proxmox.RegionName) (*pve.Cluster, error) {
	if cluster == nil {
		return nil, unavailable(plan.Unobserved, nil, "the ProxmoxCluster is gone, and with it the way to region %s: restore it, so that its VMs can be seen to", name)
	}
	region, found := regionOf(cluster, name)
	if !found {
		return nil, unavailable(plan.Unobserved, nil, "ProxmoxCluster %s has no region %q: its machines refer to it, add it again to spec.regions", cluster.Name, name)
	}
	credentials, err := r.credentials(ctx, cluster.Namespace, region)
	if err != nil {
		return nil, err
	}
	r.keep(cluster.Namespace, region, credentials)
	return r.open(cluster, region, credentials)
}

func (r *Regions) open(cluster *v1beta1.ProxmoxCluster, region v1beta1.Region, credentials pve.Credentials) (*pve.Cluster, error) {
	name := proxmox.RegionName(region.Name)
	opened, err := r.registry.Get(pve.Config{
		Region: name, Endpoints: region.Endpoints, Credentials: credentials,
		TLS:     pve.TLSConfig{CABundle: region.TLS.CABundle, Fingerprints: region.TLS.Fingerprints},
		Options: r.options,
	})
	if err != nil {
		return nil, unavailable(v1beta1.InvalidRegionReason, err,
			"%v: correct spec.regions[%s] of ProxmoxCluster %s, or Secret %s with its credentials", err, name, cluster.Name, region.CredentialsRef.Name)
	}
	return opened, nil
}

func (r *Regions) credentials(ctx context.Context, namespace string, region v1beta1.Region) (pve.Credentials, error) {
	secret := &corev1.Secret{}
	err := r.secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: region.CredentialsRef.Name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, unavailable(v1beta1.CredentialsNotFoundReason, nil,
			"region %s: Secret %s/%s of spec.regions[].credentialsRef does not exist: create it with the keys tokenID and tokenSecret",
			region.Name, namespace, region.CredentialsRef.Name)
	case err != nil:
		return nil, fmt.Errorf("get Secret %s with the credentials of region %s: %w", region.CredentialsRef.Name, region.Name, err)
	case len(secret.Data[tokenIDKey]) > 0 && len(secret.Data[tokenSecretKey]) > 0:
		return pve.TokenCredentials{ID: string(secret.Data[tokenIDKey]), Secret: pve.Secret(secret.Data[tokenSecretKey])}, nil
	case len(secret.Data[usernameKey]) > 0 && len(secret.Data[passwordKey]) > 0:
		return pve.PasswordCredentials{Username: string(secret.Data[usernameKey]), Password: pve.Secret(secret.Data[passwordKey])}, nil
	}
	return nil, unavailable(v1beta1.CredentialsNotFoundReason, nil,
		"region %s: Secret %s/%s lacks credentials: it needs the keys tokenID and tokenSecret, or username and password",
		region.Name, namespace, region.CredentialsRef.Name)
}

func unavailable(code string, cause error, format string, args ...any) *UnavailableError {
	return &UnavailableError{Reason: plan.Reason{Code: code, Message: fmt.Sprintf(format, args...)}, Err: cause}
}

// withoutQuorum says what is wrong, and what to do.
const withoutQuorum = "the Proxmox VE cluster has no quorum and takes no changes; bring its nodes back"

// reasonOf gives the reason why a region cannot be used, of an error that one of its requests ended with.
func reasonOf(err error) (plan.Reason, bool) {
	switch pve.ClassOf(err) { //nolint:exhaustive // the other classes speak of one object, not of the region
	case pve.Unauthorized:
		return plan.Reason{Code: v1beta1.CredentialsRefusedReason, Message: fmt.Sprintf("%v: check the token or password in the region's credentials Secret, and that it has not expired", err)}, true
	case pve.Untrusted:
		return plan.Reason{Code: v1beta1.UnreachableReason, Message: fmt.Sprintf("%v: set spec.regions[].tls.caBundle or fingerprints of the ProxmoxCluster", err)}, true
	case pve.Unreachable:
		return plan.Reason{Code: v1beta1.UnreachableReason, Message: fmt.Sprintf("%v: check spec.regions[].endpoints of the ProxmoxCluster, and that Proxmox VE runs", err)}, true
	case pve.NoQuorum:
		return plan.Reason{Code: v1beta1.UnreachableReason, Message: fmt.Sprintf("%v: %s", err, withoutQuorum)}, true
	}
	return plan.Reason{}, false
}
