package guest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// initUserData is user data of Cluster API's kubeadm bootstrap provider for a first control plane machine, rendered.
const initUserData = `## template: jinja
#cloud-config

write_files:
-   path: /etc/kubernetes/pki/ca.crt
    owner: root:root
    permissions: '0640'
    content: |
      certificate
-   path: /run/kubeadm/kubeadm.yaml
    owner: root:root
    permissions: '0640'
    content: |
      ---
      apiVersion: kubeadm.k8s.io/v1beta4
      kind: ClusterConfiguration
      clusterName: demo
      controlPlaneEndpoint: 127.0.0.1:6443
      kubernetesVersion: v1.36.3
      
      ---
      apiVersion: kubeadm.k8s.io/v1beta4
      kind: InitConfiguration
      nodeRegistration:
        kubeletExtraArgs:
        - name: provider-id
          value: proxmox://6f1c0d9e-0000-4000-8000-000000000001
        - name: node-labels
          value: a=b
        taints: null
-   path: /run/cluster-api/placeholder
    content: "This placeholder"
runcmd:
  - 'kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/cluster-api/bootstrap-success.complete'
`

const joinUserData = `## template: jinja
#cloud-config

write_files:
-   path: /run/kubeadm/kubeadm-join-config.yaml
    content: |
      ---
      apiVersion: kubeadm.k8s.io/v1beta3
      kind: JoinConfiguration
      discovery:
        bootstrapToken:
          apiServerEndpoint: 127.0.0.1:6443
          token: abcdef.0123456789abcdef
      nodeRegistration:
        name: worker-1
        kubeletExtraArgs:
          provider-id: proxmox://6f1c0d9e-0000-4000-8000-000000000002
        taints:
        - effect: NoSchedule
          key: node.cluster.x-k8s.io/uninitialized
runcmd:
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml
`

func TestParseInit(t *testing.T) {
	seed, err := Parse(initUserData)
	if err != nil {
		t.Fatal(err)
	}
	if seed.Role != FirstControlPlane || seed.Endpoint != "127.0.0.1:6443" || seed.Token != "" {
		t.Errorf("got role %v, endpoint %q, token %q", seed.Role, seed.Endpoint, seed.Token)
	}
	want := Registration{KubeletExtraArgs: Arguments{"provider-id": "proxmox://6f1c0d9e-0000-4000-8000-000000000001", "node-labels": "a=b"}}
	if diff := cmp.Diff(want, seed.Registration); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(seed.ClusterConfiguration, "apiVersion:") || strings.Contains(seed.ClusterConfiguration, "InitConfiguration") {
		t.Errorf("got cluster configuration %q", seed.ClusterConfiguration)
	}
}

func TestParseJoin(t *testing.T) {
	seed, err := Parse(joinUserData)
	if err != nil {
		t.Fatal(err)
	}
	if seed.Role != Worker || seed.Endpoint != "127.0.0.1:6443" || seed.Token != "abcdef.0123456789abcdef" {
		t.Errorf("got role %v, endpoint %q, token %q", seed.Role, seed.Endpoint, seed.Token)
	}
	want := Registration{
		Name:             "worker-1",
		Taints:           []Taint{{Key: "node.cluster.x-k8s.io/uninitialized", Effect: "NoSchedule"}},
		KubeletExtraArgs: Arguments{"provider-id": "proxmox://6f1c0d9e-0000-4000-8000-000000000002"},
	}
	if diff := cmp.Diff(want, seed.Registration); diff != "" {
		t.Error(diff)
	}
}

func TestParseJoinOfControlPlane(t *testing.T) {
	data := strings.Replace(joinUserData, "      discovery:", "      controlPlane:\n        localAPIEndpoint: {}\n      discovery:", 1)
	seed, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if seed.Role != FurtherControlPlane {
		t.Errorf("got role %v", seed.Role)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":             "",
		"a script":            "#!/bin/sh\nkubeadm init\n",
		"broken YAML":         "#cloud-config\nwrite_files: [",
		"no kubeadm file":     "#cloud-config\nwrite_files: []\n",
		"no endpoint":         strings.Replace(joinUserData, "apiServerEndpoint: 127.0.0.1:6443", "caCertHashes: []", 1),
		"broken kubeadm file": strings.Replace(joinUserData, "kind: JoinConfiguration", "kind: [", 1),
		"arguments of a kind nobody knows": strings.Replace(joinUserData,
			"kubeletExtraArgs:\n          provider-id: proxmox://6f1c0d9e-0000-4000-8000-000000000002", "kubeletExtraArgs: 7", 1),
	} {
		if seed, err := Parse(data); err == nil {
			t.Errorf("%s: no error, but %+v", name, seed)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(initUserData)
	f.Add(joinUserData)
	f.Fuzz(func(t *testing.T, data string) {
		seed, err := Parse(data)
		if err == nil && seed.Endpoint == "" {
			t.Error("a seed without an endpoint")
		}
	})
}
