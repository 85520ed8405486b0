package observe

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Cluster takes the snapshot of a cluster. An error says that it could not be taken now; a region that does not answer is
// part of the snapshot.
func (o *Observer) Cluster(ctx context.Context, object *v1beta1.ProxmoxCluster, owner *clusterv1.Cluster) (plan.Cluster, error) {
	cluster := plan.Cluster{Spec: object.Spec, Deleting: !object.DeletionTimestamp.IsZero(), Name: object.Labels[clusterv1.ClusterNameLabel]}
	if owner != nil {
		cluster.Name, cluster.APIServerPort = owner.Name, owner.Spec.ClusterNetwork.APIServerPort
		cluster.Endpoint = v1beta1.APIEndpoint{Host: owner.Spec.ControlPlaneEndpoint.Host, Port: owner.Spec.ControlPlaneEndpoint.Port}
	}
	var err error
	if cluster.VirtualIP, err = o.virtualIP(ctx, object, cluster.Name); err != nil {
		return cluster, err
	}
	if cluster.Deleting {
		cluster.Machines, err = o.machines(ctx, object)
		return cluster, err
	}
	if cluster.Pools, err = o.pools(ctx, object, cluster.Name); err != nil {
		return cluster, err
	}
	for _, region := range object.Spec.Regions {
		observed, err := o.region(ctx, object, proxmox.RegionName(region.Name))
		if err != nil {
			return cluster, err
		}
		cluster.Regions = append(cluster.Regions, observed)
	}
	return cluster, nil
}

func (o *Observer) region(ctx context.Context, object *v1beta1.ProxmoxCluster, name proxmox.RegionName) (plan.Region, error) {
	region := plan.Region{Name: name}
	opened, err := o.Regions.Open(ctx, object, name)
	if err == nil {
		snapshot, snapshotErr := firstSnapshot(ctx, opened)
		err = snapshotErr
		for _, node := range snapshot.Nodes() {
			region.Nodes = append(region.Nodes, node.Name)
		}
		if err == nil {
			_, err = o.authorityFor(ctx, opened, object, string(name))
		}
	}
	reason, isUnavailable := Unavailable(err)
	if isUnavailable {
		region.Unavailable = reason
		return region, nil
	}
	return region, err
}

// machines names the ProxmoxMachines of the cluster that still exist.
func (o *Observer) machines(ctx context.Context, object *v1beta1.ProxmoxCluster) ([]string, error) {
	name, labelled := object.Labels[clusterv1.ClusterNameLabel]
	if !labelled {
		return nil, nil // it never had a Cluster, so it has no machines
	}
	var list v1beta1.ProxmoxMachineList
	if err := o.Client.List(ctx, &list, client.InNamespace(object.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return nil, fmt.Errorf("list the ProxmoxMachines of cluster %s: %w", name, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}
