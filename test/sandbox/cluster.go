package sandbox

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/build"
)

//go:embed cluster.yaml.tmpl
var clusterTemplate string

// providerID is the kubelet's --provider-id: cloud-init puts the instance id in, which our seed sets to the VM's SMBIOS
// UUID.
const providerID = "proxmox://{{ ds.meta_data.instance_id }}"

// Cluster says what cluster to make: one with a kubeadm control plane and one MachineDeployment, all on one network.
type Cluster struct {
	Namespace, Name string
	// ControlPlaneReplicas and WorkerReplicas are how many machines of each kind to begin with.
	ControlPlaneReplicas, WorkerReplicas int
	// Tags find the template VM.
	Tags []string
	// Bridge is the bridge that machines are plugged into.
	Bridge string
	// Addresses is the range that machines get addresses from, in the network of Gateway and Prefix.
	Addresses string
	Prefix    int
	Gateway   string
	// Host and Port are the control plane's endpoint. The sandbox sets them when Host is empty.
	Host string
	Port int
}

// DefaultCluster is a cluster that the simulator's default world has room for: one control plane machine, no worker.
func DefaultCluster() Cluster {
	return Cluster{
		Namespace: "default", Name: "demo", ControlPlaneReplicas: 1,
		Tags: []string{"kubernetes"}, Bridge: "vmbr0",
		Addresses: "10.10.10.20-10.10.10.99", Prefix: 24, Gateway: "10.10.10.1",
	}
}

// key names the Cluster and, as the sandbox gives them the same name, its ProxmoxCluster and KubeadmControlPlane.
func (c Cluster) key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

// workers names the cluster's MachineDeployment.
func (c Cluster) workers() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name + "-workers"}
}

// machineTemplate is one ProxmoxMachineTemplate.
type machineTemplate struct {
	Name                      string
	Cores, MemoryMiB, DiskGiB int
}

// manifest is what the template is filled with.
type manifest struct {
	Cluster

	PVE              connection
	Version          string
	ProviderID       string
	MachineTemplates []machineTemplate
}

// TokenSecret is the API token's secret in the clear: the manifest is where it goes.
func (m manifest) TokenSecret() string { return string(m.PVE.TokenSecret) }

// connection is how to reach a Proxmox VE.
type connection struct {
	URL         string
	TokenID     string
	TokenSecret Secret
	Authority   []byte
}

// render fills the manifest's template.
func (m manifest) render() ([]byte, error) {
	functions := template.FuncMap{
		"json": func(value any) (string, error) {
			text, err := json.Marshal(value)
			return string(text), err
		},
		"base64": base64.StdEncoding.EncodeToString,
	}
	parsed, err := template.New("cluster").Funcs(functions).Option("missingkey=error").Parse(clusterTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the cluster's manifest: %w", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, m); err != nil {
		return nil, fmt.Errorf("write the cluster's manifest: %w", err)
	}
	return text.Bytes(), nil
}

// ApplyCluster creates the cluster's objects. It does not wait for the cluster.
func (s *Sandbox) ApplyCluster(ctx context.Context, cluster Cluster) error {
	cluster, err := s.withEndpoint(ctx, cluster)
	if err != nil {
		return err
	}
	text, err := manifest{
		Cluster: cluster, PVE: s.pve, Version: build.KubernetesVersion, ProviderID: providerID,
		MachineTemplates: []machineTemplate{
			{Name: "control-plane", Cores: 2, MemoryMiB: 4096, DiskGiB: 20},
			{Name: "workers", Cores: 2, MemoryMiB: 2048, DiskGiB: 20},
		},
	}.render()
	if err != nil {
		return err
	}
	return s.Apply(ctx, text)
}

// Apply creates the objects of a YAML stream; those that exist already are left alone.
func (s *Sandbox) Apply(ctx context.Context, manifests []byte) error {
	for document := range strings.SplitSeq("\n"+string(manifests), "\n---") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return fmt.Errorf("parse manifest: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		err := s.client.Create(ctx, &object)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Scale sets how many workers the cluster shall have. It does not wait for them.
func (s *Sandbox) Scale(ctx context.Context, cluster Cluster, replicas int) error {
	var workers clusterv1.MachineDeployment
	if err := s.client.Get(ctx, cluster.workers(), &workers); err != nil {
		return fmt.Errorf("get MachineDeployment: %w", err)
	}
	before := workers.DeepCopy()
	count := int32(replicas)
	workers.Spec.Replicas = &count
	if err := s.client.Patch(ctx, &workers, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("scale MachineDeployment %s to %d: %w", workers.Name, replicas, err)
	}
	return nil
}

// DeleteCluster asks for the cluster's deletion. It does not wait for it.
func (s *Sandbox) DeleteCluster(ctx context.Context, cluster Cluster) error {
	object := &clusterv1.Cluster{}
	object.Namespace, object.Name = cluster.Namespace, cluster.Name
	if err := s.client.Delete(ctx, object); err != nil {
		return fmt.Errorf("delete cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// Gone reports, as an error, what is left of a cluster that is being deleted.
func (s *Sandbox) Gone(ctx context.Context, cluster Cluster) error {
	var object clusterv1.Cluster
	err := s.client.Get(ctx, cluster.key(), &object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get cluster: %w", err)
	default:
		return errors.New("deleted: " + message(object.Status.Conditions, clusterv1.ClusterDeletingCondition))
	}
}

// Available reports, as an error, why the cluster is not available with this many workers.
func (s *Sandbox) Available(ctx context.Context, cluster Cluster, workers int) error {
	var object clusterv1.Cluster
	if err := s.client.Get(ctx, cluster.key(), &object); err != nil {
		return fmt.Errorf("get cluster: %w", err)
	}
	if !isTrue(object.Status.Conditions, clusterv1.ClusterAvailableCondition) {
		return errors.New("available: " + message(object.Status.Conditions, clusterv1.ClusterAvailableCondition))
	}
	var deployment clusterv1.MachineDeployment
	if err := s.client.Get(ctx, cluster.workers(), &deployment); err != nil {
		return fmt.Errorf("get MachineDeployment: %w", err)
	}
	status := deployment.Status
	if status.ObservedGeneration < deployment.Generation || count(status.Replicas) != workers || count(status.AvailableReplicas) != workers {
		return fmt.Errorf("at %d workers: %d exist, %d are available", workers, count(status.Replicas), count(status.AvailableReplicas))
	}
	return nil
}

func count(replicas *int32) int {
	if replicas == nil {
		return 0
	}
	return int(*replicas)
}
