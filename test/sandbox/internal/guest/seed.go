// Package guest is what runs inside the simulated virtual machines: cloud-init's and kubeadm's part of turning a machine
// into a Node. It knows nothing but the seed that the machine booted with, as on a real machine: the cluster it joins is
// the one whose endpoint its kubeadm configuration names, and the certificates are those in the seed's files. So a
// machine that Cluster API sees as a Node proves that the provider delivered the bootstrap data.
package guest

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/pki"
)

const (
	initFile = "/run/kubeadm/kubeadm.yaml"
	joinFile = "/run/kubeadm/kubeadm-join-config.yaml"
	pkiDir   = "/etc/kubernetes/pki"
)

// Role is what a machine is in its cluster.
type Role int

const (
	// Worker joins a cluster.
	Worker Role = iota
	// FirstControlPlane starts a cluster: kubeadm init.
	FirstControlPlane
	// FurtherControlPlane joins a cluster as another control plane node: kubeadm join --control-plane.
	FurtherControlPlane
)

// Seed is what the machine's user data says.
type Seed struct {
	Role Role
	// Endpoint is the host:port of the cluster's API server.
	Endpoint string
	// Token is the bootstrap token a joining machine shows.
	Token string
	// Registration is how the kubelet registers its Node.
	Registration Registration
	// ClusterConfiguration is kubeadm's, in YAML; only the first control plane machine has it.
	ClusterConfiguration string

	files map[string]string
}

// Registration is kubeadm's nodeRegistration.
type Registration struct {
	// Name is the Node's name; empty means the host's.
	Name string `json:"name"`
	// Taints are the Node's; nil means kubeadm's default.
	Taints []Taint `json:"taints"`
	// KubeletExtraArgs are the kubelet's flags.
	KubeletExtraArgs Arguments `json:"kubeletExtraArgs"`
}

// Taint is a Node's taint.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// Arguments are flags by name.
type Arguments map[string]string

// UnmarshalJSON reads both of kubeadm's forms: the map of v1beta3 and the list of names and values of v1beta4.
func (a *Arguments) UnmarshalJSON(content []byte) error {
	*a = Arguments{}
	var byName map[string]string
	if err := yaml.Unmarshal(content, &byName); err == nil {
		for name, value := range byName {
			(*a)[name] = value
		}
		return nil
	}
	var list []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	if err := yaml.Unmarshal(content, &list); err != nil {
		return fmt.Errorf("parse kubelet arguments: %w", err)
	}
	for _, argument := range list {
		(*a)[argument.Name] = argument.Value
	}
	return nil
}

// document is the part of kubeadm's documents that matters here.
type document struct {
	Kind                 string       `json:"kind"`
	ControlPlaneEndpoint string       `json:"controlPlaneEndpoint"`
	NodeRegistration     Registration `json:"nodeRegistration"`
	ControlPlane         *struct{}    `json:"controlPlane"`
	Discovery            struct {
		BootstrapToken struct {
			Token             string `json:"token"`
			APIServerEndpoint string `json:"apiServerEndpoint"`
		} `json:"bootstrapToken"`
	} `json:"discovery"`
}

// Parse reads rendered cloud-config user data.
func Parse(userData string) (Seed, error) {
	if !strings.Contains(userData, "#cloud-config") {
		return Seed{}, errors.New("user data is no cloud-config")
	}
	var config struct {
		WriteFiles []struct {
			Path    string `json:"path"`
			Content string `json:"content"`
		} `json:"write_files"`
	}
	if err := yaml.Unmarshal([]byte(userData), &config); err != nil {
		return Seed{}, fmt.Errorf("parse cloud-config: %w", err)
	}
	seed := Seed{files: map[string]string{}}
	for _, file := range config.WriteFiles {
		seed.files[path.Clean(file.Path)] = file.Content
	}
	for _, name := range []string{initFile, joinFile} {
		if content, ok := seed.files[name]; ok {
			return seed, seed.read(content)
		}
	}
	return Seed{}, fmt.Errorf("cloud-config writes neither %s nor %s", initFile, joinFile)
}

// read takes over what kubeadm's configuration says.
func (s *Seed) read(configuration string) error {
	for text := range strings.SplitSeq("\n"+configuration, "\n---") {
		var parsed document
		if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
			return fmt.Errorf("parse kubeadm configuration: %w", err)
		}
		switch parsed.Kind {
		case "ClusterConfiguration":
			s.Endpoint, s.ClusterConfiguration = parsed.ControlPlaneEndpoint, strings.TrimSpace(text)+"\n"
		case "InitConfiguration":
			s.Role, s.Registration = FirstControlPlane, parsed.NodeRegistration
		case "JoinConfiguration":
			s.Registration = parsed.NodeRegistration
			s.Endpoint = parsed.Discovery.BootstrapToken.APIServerEndpoint
			s.Token = parsed.Discovery.BootstrapToken.Token
			if parsed.ControlPlane != nil {
				s.Role = FurtherControlPlane
			}
		}
	}
	if s.Endpoint == "" {
		return errors.New("kubeadm configuration names no endpoint")
	}
	return nil
}

// authority reads an authority from the seed's files under /etc/kubernetes/pki.
func (s *Seed) authority(name string) (*pki.Authority, error) {
	pair := pki.Pair{
		Certificate: []byte(s.files[path.Join(pkiDir, name+".crt")]),
		Key:         []byte(s.files[path.Join(pkiDir, name+".key")]),
	}
	authority, err := pki.ParseAuthority(pair)
	if err != nil {
		return nil, fmt.Errorf("read %s of the seed: %w", path.Join(pkiDir, name), err)
	}
	return authority, nil
}
