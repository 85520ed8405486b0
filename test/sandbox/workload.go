package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WorkloadClient reads and writes the workload cluster, with the kubeconfig that Cluster API made for it.
func (s *Sandbox) WorkloadClient(ctx context.Context, cluster Cluster) (client.Client, error) {
	kubeconfig, err := secret.Get(ctx, s.client, cluster.key(), secret.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("get the kubeconfig of cluster %s: %w", cluster.Name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Data[secret.KubeconfigDataName])
	if err != nil {
		return nil, fmt.Errorf("parse the kubeconfig of cluster %s: %w", cluster.Name, err)
	}
	workload, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", cluster.Name, err)
	}
	return workload, nil
}

// Nodes are the workload cluster's Nodes by name.
func (s *Sandbox) Nodes(ctx context.Context, cluster Cluster) (map[string]corev1.Node, error) {
	workload, err := s.WorkloadClient(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var list corev1.NodeList
	if err := workload.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes of cluster %s: %w", cluster.Name, err)
	}
	nodes := make(map[string]corev1.Node, len(list.Items))
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes, nil
}
