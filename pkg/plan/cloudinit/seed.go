// Package cloudinit makes the texts of a NoCloud seed: what a guest finds on the ISO image that it boots with.
package cloudinit

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Seed is the texts of a NoCloud seed.
// https://cloudinit.readthedocs.io/en/latest/reference/datasources/nocloud.html
type Seed struct {
	UserData      UserData
	MetaData      string
	NetworkConfig string
}

// UserData is a machine's bootstrap data. It holds join tokens and private keys, so it never prints itself.
type UserData string

// String hides the data.
func (UserData) String() string { return "***" }

// GoString hides the data.
func (UserData) GoString() string { return "***" }

// Format hides the data from every verb, also from those that would otherwise reach the text, such as %d.
func (UserData) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("***")) }

// MarshalJSON hides the data.
func (UserData) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }

// metaData is the NoCloud meta-data. The guest's cloud-init runs its per-instance modules again when instance-id changes.
type metaData struct {
	InstanceID    string `json:"instance-id"`
	LocalHostname string `json:"local-hostname"`
}

// NewSeed returns the seed of a machine. Its instance-id is the VM's SMBIOS UUID, so that kubelet arguments can refer to
// it: `provider-id: "proxmox://{{ ds.meta_data.instance_id }}"`.
func NewSeed(hostname string, uuid proxmox.SMBIOSUUID, config network.Config, userData UserData) (Seed, error) {
	meta, err := yaml.Marshal(metaData{InstanceID: string(uuid), LocalHostname: hostname})
	if err != nil {
		return Seed{}, fmt.Errorf("render meta-data of %s: %w", hostname, err)
	}
	net, err := yaml.Marshal(config)
	if err != nil {
		return Seed{}, fmt.Errorf("render network-config of %s: %w", hostname, err)
	}
	return Seed{UserData: userData, MetaData: string(meta), NetworkConfig: string(net)}, nil
}
