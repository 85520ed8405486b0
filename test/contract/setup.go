package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// Setup is the world at the start of a recording.
type Setup struct {
	Nodes []struct {
		Node string `json:"node"`
	} `json:"nodes"`
	Storages []struct {
		Storage string `json:"storage"`
		Type    string `json:"type"`
		Path    string `json:"path"`
		Content string `json:"content"`
		Shared  int    `json:"shared"`
		// Nodes that have the storage, with commas; empty for all.
		Nodes   string `json:"nodes"`
		Disable int    `json:"disable"`
	} `json:"storages"`
	Guests []SetupGuest `json:"guests"`
	// Volumes by node/storage, * for the node of shared ones, beside those that drives of guests name.
	Volumes map[string][]SetupVolume `json:"volumes"`
	Pools   []struct {
		ID      string `json:"poolid"`
		Comment string `json:"comment"`
	} `json:"pools"`
	Users []struct {
		ID     string `json:"userid"`
		Enable int    `json:"enable"`
		Expire int64  `json:"expire"`
	} `json:"users"`
	Tokens []SetupToken `json:"tokens"`
	Roles  []struct {
		ID         string `json:"roleid"`
		Privileges string `json:"privs"`
	} `json:"roles"`
	ACL []struct {
		Path      string `json:"path"`
		Type      string `json:"type"`
		Holder    string `json:"ugid"`
		Role      string `json:"roleid"`
		Propagate int    `json:"propagate"`
	} `json:"acl"`
	FirewallGroups []struct {
		Group   string `json:"group"`
		Comment string `json:"comment"`
	} `json:"firewall_groups"`
	Zones []map[string]any `json:"sdn_zones"`
	// Text says what the lists cannot.
	Text string `json:"text"`
}

// SetupGuest is a VM at the start.
type SetupGuest struct {
	Node            string           `json:"node"`
	VMID            proxmox.VMID     `json:"vmid"`
	Config          map[string]any   `json:"config"`
	Status          string           `json:"status"`
	FirewallOptions map[string]any   `json:"firewall_options"`
	FirewallRules   []map[string]any `json:"firewall_rules"`
	Snapshots       []struct {
		Name        string `json:"name"`
		Parent      string `json:"parent"`
		Description string `json:"description"`
		Time        int64  `json:"snaptime"`
		RAM         int    `json:"vmstate"`
	} `json:"snapshots"`
}

// SetupVolume is a volume at the start.
type SetupVolume struct {
	ID     string       `json:"volid"`
	Format string       `json:"format"`
	VMID   proxmox.VMID `json:"vmid"`
	Size   int64        `json:"size"`
}

// SetupToken is an API token at the start.
type SetupToken struct {
	User    string `json:"user"`
	Name    string `json:"tokenid"`
	Privsep int    `json:"privsep"`
	Expire  int64  `json:"expire"`
}

func (t SetupToken) id() string { return t.User + "!" + t.Name }

// secret is what a token gets in a simulated world.
func (t SetupToken) secret() string { return "secret-of-" + t.User + "-" + t.Name }

// password is that of every user in a simulated world. Recordings have this word in place of real passwords.
const password = "PASSWORD"

// State is the setup as a world of pvesim.
func (s *Setup) State() pvesim.State {
	state := pvesim.State{ClusterName: "capi", Nodes: s.nodes(), Storages: s.storages(), Volumes: s.volumes()}
	for _, g := range s.Guests {
		state.VMs = append(state.VMs, g.spec())
	}
	for _, p := range s.Pools {
		state.Pools = append(state.Pools, pvesim.PoolSpec{ID: proxmox.PoolID(p.ID), Comment: p.Comment})
	}
	for _, g := range s.FirewallGroups {
		state.Firewall.Groups = append(state.Firewall.Groups, pvesim.GroupSpec{Name: g.Group, Comment: g.Comment})
	}
	state.SDN = s.network()
	s.addRights(&state)
	return state
}

// nodes are the recorded hosts: 2 CPUs and one NUMA node, Debian's QEMU, see «Not like production hardware» in the recordings' README.
func (s *Setup) nodes() []pvesim.NodeSpec {
	var out []pvesim.NodeSpec
	for i, n := range s.Nodes {
		out = append(out, pvesim.NodeSpec{
			Name: proxmox.NodeName(n.Node), Address: fmt.Sprintf("10.77.0.%d", 11+i), CPUs: 2, Sockets: 1, Threads: 1, NUMANodes: 1, Memory: 24 * 1024, StockQEMU: true,
		})
	}
	return out
}

// network has the zones as configured and not in force: cluster/resources of the recordings does not show them.
func (s *Setup) network() pvesim.SDNSpec {
	if len(s.Zones) == 0 {
		return pvesim.SDNSpec{}
	}
	zones := map[string]map[string]string{}
	for _, z := range s.Zones {
		zones[fmt.Sprint(z["zone"])] = texts(z, "zone", "digest")
	}
	return pvesim.SDNSpec{Configured: &pvesim.SDNSpec{Zones: zones}}
}

// recordedDisk is the size of the file system that the recorded storages were on.
const recordedDisk = 270553174016

func (s *Setup) storages() []pvesim.StorageSpec {
	var out []pvesim.StorageSpec
	for _, x := range s.Storages {
		spec := pvesim.StorageSpec{
			ID: proxmox.StorageID(x.Storage), Type: x.Type, Path: x.Path, Content: strings.Split(x.Content, ","), Shared: x.Shared == 1, Disabled: x.Disable == 1,
			Total: recordedDisk,
		}
		for _, n := range strings.FieldsFunc(x.Nodes, func(r rune) bool { return r == ',' }) {
			spec.Nodes = append(spec.Nodes, proxmox.NodeName(n))
		}
		out = append(out, spec)
	}
	slices.SortFunc(out, func(a, b pvesim.StorageSpec) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

func (s *Setup) volumes() []pvesim.VolumeSpec {
	var out []pvesim.VolumeSpec
	for place, list := range s.Volumes {
		node, _, _ := strings.Cut(place, "/")
		for _, v := range list {
			spec := pvesim.VolumeSpec{ID: proxmox.VolumeID(v.ID), Format: v.Format, VMID: v.VMID, Size: proxmox.Bytes(v.Size)}
			if node != "*" {
				spec.Node = proxmox.NodeName(node)
			}
			out = append(out, spec)
		}
	}
	slices.SortFunc(out, func(a, b pvesim.VolumeSpec) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

func (g SetupGuest) spec() pvesim.VMSpec {
	spec := pvesim.VMSpec{VMID: g.VMID, Node: proxmox.NodeName(g.Node), Config: texts(g.Config, "digest"), State: g.Status}
	spec.Firewall.Options = texts(g.FirewallOptions, "digest")
	for _, r := range g.FirewallRules {
		spec.Firewall.Rules = append(spec.Firewall.Rules, texts(r, "digest", "pos"))
	}
	for _, s := range g.Snapshots {
		if s.Name == "current" {
			continue
		}
		config := texts(g.Config, "digest", "parent", "lock")
		spec.Snapshots = append(spec.Snapshots, pvesim.SnapshotSpec{
			Name: s.Name, Parent: s.Parent, Description: s.Description, Config: config, Time: time.Unix(s.Time, 0), RAM: s.RAM == 1,
		})
	}
	return spec
}

func (s *Setup) addRights(state *pvesim.State) {
	for _, u := range s.Users {
		state.Users = append(state.Users, pvesim.UserSpec{ID: u.ID, Password: password, Disabled: u.Enable == 0, Expire: instant(u.Expire)})
	}
	for _, t := range s.Tokens {
		state.Tokens = append(state.Tokens, pvesim.TokenSpec{
			User: t.User, Name: t.Name, Unseparated: t.Privsep == 0, Expire: instant(t.Expire), Secret: pvesim.Secret(t.secret()), Privileges: map[string][]string{},
		})
	}
	for _, r := range s.Roles {
		state.Roles = append(state.Roles, pvesim.RoleSpec{ID: r.ID, Privileges: strings.Split(r.Privileges, ",")})
	}
	for _, a := range s.ACL {
		state.ACL = append(state.ACL, pvesim.ACLSpec{Path: a.Path, Role: a.Role, Type: a.Type, Holder: a.Holder, NoPropagate: a.Propagate == 0})
	}
}

func instant(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// texts turns a config as the API shows it into the texts of a config file.
func texts(in map[string]any, without ...string) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := map[string]string{}
	for key, value := range in {
		if !slices.Contains(without, key) {
			out[key] = formText(value)
		}
	}
	return out
}

// formText is how a JSON value is sent in a form.
func formText(value any) string {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "1"
		}
		return "0"
	}
	return fmt.Sprint(value)
}
