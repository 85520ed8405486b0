//go:build deps

package sandbox

import (
	_ "github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/onsi/gomega"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/etcd/client/pkg/v3/logutil"
	_ "golang.org/x/term"
	_ "sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	_ "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/admission"
	_ "sigs.k8s.io/cluster-api/controllers/clustercache"
	_ "sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane"
	_ "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/admission"
	_ "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	_ "sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	_ "sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster"
	_ "sigs.k8s.io/cluster-api/core/webhooks/admission"
	_ "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	_ "sigs.k8s.io/cluster-api/test/framework"
	_ "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	_ "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/api"
	_ "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/etcd"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/yaml"
)
