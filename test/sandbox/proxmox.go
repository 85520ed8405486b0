package sandbox

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/go-logr/logr"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/build"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/guest"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/workload"
)

var _ = fmt.Sprint
var _ netip.Addr
var _ logr.Logger
var _ guest.Machine

// withEndpoint opens a workload cluster's port for the cluster and makes it the control plane's endpoint, unless the
// cluster names an endpoint of its own.
func (s *Sandbox) withEndpoint(ctx context.Context, cluster Cluster) (Cluster, error) {
	if cluster.Host != "" {
		return cluster, nil
	}
	opened, err := workload.New(ctx, s.guestLog)
	if err != nil {
		return cluster, err
	}
	s.onStop(opened.Close)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workloads[opened.Endpoint()] = opened
	cluster.Host, cluster.Port = "127.0.0.1", opened.Port()
	return cluster, nil
}

var _ = build.KubernetesVersion
