package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// lastKey says whose credentials are remembered, and for what: those of a Secret go to no other endpoints than they went to
// while it existed.
type lastKey struct {
	namespace, secret, endpoints string
}

func keyOf(namespace string, region v1beta1.Region) lastKey {
	return lastKey{
		namespace: namespace, secret: region.CredentialsRef.Name,
		endpoints: strings.Join(append(append([]string{}, region.Endpoints...), region.TLS.Fingerprints...), " ") + " " + string(region.TLS.CABundle),
	}
}

func (r *Regions) keep(namespace string, region v1beta1.Region, credentials pve.Credentials) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[keyOf(namespace, region)] = credentials
}

// Forget drops the credentials of a ProxmoxCluster that is gone.
func (r *Regions) Forget(cluster *v1beta1.ProxmoxCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, region := range cluster.Spec.Regions {
		delete(r.last, keyOf(cluster.Namespace, region))
	}
}

// Of opens the region of a machine that has its place. For one that is being deleted it does without the credentials Secret
// as long as this process knows what was in it: the deletion of a namespace takes the Secret before the machines. A
// finalizer on the Secret would do, too, and would need the right to change Secrets. The text is a remark about that.
func (r *Regions) Of(ctx context.Context, subject MachineSubject) (*pve.Cluster, string, error) {
	name := proxmox.RegionName(subject.ProxmoxMachine.Spec.Reservation.Region)
	opened, err := r.Open(ctx, subject.ProxmoxCluster, name)
	var missing *UnavailableError
	if !errors.As(err, &missing) || missing.Reason.Code != v1beta1.CredentialsNotFoundReason || !subject.isDeleted() {
		return opened, "", err
	}
	region, _ := regionOf(subject.ProxmoxCluster, name)
	r.mu.Lock()
	credentials, known := r.last[keyOf(subject.ProxmoxCluster.Namespace, region)]
	r.mu.Unlock()
	if !known {
		missing.Reason.Message += fmt.Sprintf(
			"; where it cannot be created because the namespace is being deleted, remove VM %d of region %s and what belongs to it by hand, and then the finalizer %s",
			subject.ProxmoxMachine.Spec.Reservation.VMID, name, v1beta1.MachineFinalizer)
		return nil, "", missing
	}
	opened, err = r.open(subject.ProxmoxCluster, region, credentials)
	return opened, fmt.Sprintf("Secret %s/%s with the credentials of region %s is missing: the deletion uses the last ones that were in it, which are known until the manager restarts",
		subject.ProxmoxCluster.Namespace, region.CredentialsRef.Name, name), err
}
