package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// errUnfit says that a recording cannot be replayed against a Proxmox VE that is not simulated, or not against this one.
var errUnfit = errors.New("cannot be replayed here")

// ReplayRemote seeds a Proxmox VE over its API with the setup of the recording, replays it and removes all that was made.
// It does nothing but return an error if the setup or the recorder's acts cannot be had over the API, if nodes or storages
// are missing, or if a VMID, pool, user or role that the recording names is there already.
func ReplayRemote(ctx context.Context, r *Recording, target Target) (results []Result, err error) {
	p := newReplay(r, target, nil)
	if err := r.fit(); err != nil {
		return nil, err
	}
	if err := p.checkVacant(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.cleanUp(context.WithoutCancel(ctx))) }()
	if err := p.seed(ctx); err != nil {
		return nil, err
	}
	return Replay(ctx, r, target, nil)
}

// fit tells whether setup and acts can be had over the API.
func (r *Recording) fit() error {
	for _, a := range acts {
		if a.scenario == r.Scenario && a.do != nil {
			return fmt.Errorf("%w: the recorder did things at the hosts", errUnfit)
		}
	}
	if changesCluster[r.Scenario] {
		return fmt.Errorf("%w: it changes what is common to the whole cluster", errUnfit)
	}
	if len(r.Setup.Zones) > 0 && r.Scenario == "15-sdn" || len(r.Setup.Volumes) > 0 {
		return fmt.Errorf("%w: the setup has zones or volumes", errUnfit)
	}
	for _, f := range facts {
		if f.scenario == r.Scenario {
			return fmt.Errorf("%w: its text tells what the API cannot do", errUnfit)
		}
	}
	for _, g := range r.Setup.Guests {
		for name, value := range g.Config {
			if text := fmt.Sprint(value); drive.MatchString(name) && (strings.Contains(text, ":iso/") || strings.Count(text, "/") > 1) {
				return fmt.Errorf("%w: VM %d has an ISO image or is a linked clone", errUnfit, g.VMID)
			}
		}
	}
	return nil
}

// changesCluster are recordings that touch options of the datacenter, its firewall, HA, mappings or networks.
var changesCluster = map[string]bool{"01-cluster-read": true, "10-firewall": true, "11-pools-ha-mapping": true, "15-sdn": true}

var (
	drive  = regexp.MustCompile(`^(ide|sata|scsi|virtio|efidisk|tpmstate)\d+$`)
	inPath = regexp.MustCompile(`^/nodes/[^/]+/qemu/(\d+)`)
)

// vmids are all that a recording names.
func (r *Recording) vmids() []proxmox.VMID {
	found := map[proxmox.VMID]bool{}
	for _, g := range r.Setup.Guests {
		found[g.VMID] = true
	}
	for _, e := range r.Exchanges {
		var params map[string]any
		_ = json.Unmarshal(e.Params, &params)
		texts := []string{formText(params["vmid"]), formText(params["newid"])}
		if m := inPath.FindStringSubmatch(e.Path); m != nil {
			texts = append(texts, m[1])
		}
		for _, text := range texts {
			if id, err := strconv.Atoi(text); err == nil {
				found[proxmox.VMID(id)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// uses tells whether a guest of the setup or a request names the storage.
func (r *Recording) uses(storage string) bool {
	for _, g := range r.Setup.Guests {
		for _, value := range g.Config {
			if strings.HasPrefix(fmt.Sprint(value), storage+":") {
				return true
			}
		}
	}
	return slices.ContainsFunc(r.Exchanges, func(e Exchange) bool {
		return strings.Contains(e.Path, "/storage/"+storage) || strings.Contains(string(e.Params), `"`+storage)
	})
}

// checkVacant refuses a target that lacks nodes or storages of the setup or has anything with one of its names.
func (r *replay) checkVacant(ctx context.Context) error {
	s := &r.recording.Setup
	nodes, storages := r.names(ctx, "/nodes", "node"), r.names(ctx, "/storage", "storage")
	for _, n := range s.Nodes {
		if !nodes[n.Node] {
			return fmt.Errorf("%w: no node %s", errUnfit, n.Node)
		}
	}
	for _, x := range s.Storages {
		if r.recording.uses(x.Storage) && !storages[x.Storage] {
			return fmt.Errorf("%w: no storage %s", errUnfit, x.Storage)
		}
	}
	taken := r.names(ctx, "/cluster/resources?type=vm", "vmid")
	for _, id := range r.recording.vmids() {
		if taken[fmt.Sprint(id)] {
			return fmt.Errorf("%w: VM %d is there already", errUnfit, id)
		}
	}
	pools, users, roles := r.names(ctx, "/pools", "poolid"), r.names(ctx, "/access/users", "userid"), r.names(ctx, "/access/roles", "roleid")
	for _, x := range s.Pools {
		if pools[x.ID] {
			return fmt.Errorf("%w: pool %s is there already", errUnfit, x.ID)
		}
	}
	for _, x := range s.Users {
		if x.ID != rootUser && users[x.ID] {
			return fmt.Errorf("%w: user %s is there already", errUnfit, x.ID)
		}
	}
	for _, x := range s.Roles {
		if roles[x.ID] {
			return fmt.Errorf("%w: role %s is there already", errUnfit, x.ID)
		}
	}
	return nil
}

// names are the values of a key in the list that a path gives.
func (r *replay) names(ctx context.Context, path, key string) map[string]bool {
	out := map[string]bool{}
	path, query, _ := strings.Cut(path, "?")
	e := Exchange{As: "root-token", Method: "GET", Path: path}
	if name, value, ok := strings.Cut(query, "="); ok {
		e.Params = mustJSON(map[string]string{name: value})
	}
	answer, _ := r.send(ctx, e)
	body, _ := answer.Body.(map[string]any)
	list, _ := body["data"].([]any)
	for _, x := range list {
		o, _ := x.(map[string]any)
		out[fmt.Sprint(o[key])] = true
	}
	return out
}

// must makes a call and waits for its task; any refusal is an error.
func (r *replay) must(ctx context.Context, as, method, path string, params map[string]string) (any, error) {
	answer, err := r.send(ctx, Exchange{As: as, Method: method, Path: path, Params: mustJSON(params)})
	if err != nil {
		return nil, err
	}
	if answer.Status != 200 {
		return nil, fmt.Errorf("seed %s: %s %s: %d %s", r.recording.Scenario, method, path, answer.Status, answer.Reason)
	}
	if upid := upidOf(answer.Body); upid != "" {
		if exit := r.waitFor(ctx, proxmox.UPID(upid)); exit != "OK" {
			return nil, fmt.Errorf("seed %s: %s %s: %s", r.recording.Scenario, method, path, exit)
		}
	}
	body, _ := answer.Body.(map[string]any)
	return body["data"], nil
}

// step is one call that seeds.
type step struct {
	as, method, path string
	params           map[string]string
}

// seed makes the setup.
func (r *replay) seed(ctx context.Context) error {
	for _, s := range r.recording.Setup.steps() {
		if _, err := r.must(ctx, s.as, s.method, s.path, s.params); err != nil {
			return err
		}
	}
	for _, t := range r.recording.Setup.Tokens {
		if t.User == rootUser {
			continue
		}
		params := map[string]string{"privsep": fmt.Sprint(t.Privsep), "expire": fmt.Sprint(t.Expire)}
		data, err := r.must(ctx, "root-token", "POST", "/access/users/"+t.User+"/token/"+t.Name, params)
		if err != nil {
			return err
		}
		o, _ := data.(map[string]any)
		r.target.Secrets[t.id()] = fmt.Sprint(o["value"])
	}
	for _, a := range r.recording.Setup.ACL {
		params := map[string]string{"path": a.Path, "roles": a.Role, a.Type + "s": a.Holder, "propagate": fmt.Sprint(a.Propagate)}
		if _, err := r.must(ctx, "root-token", "PUT", "/access/acl", params); err != nil {
			return err
		}
	}
	return nil
}

// steps are the calls that make roles, users, pools and guests.
func (s *Setup) steps() []step {
	var out []step
	add := func(as, method, path string, params map[string]string) {
		out = append(out, step{as, method, path, params})
	}
	for _, x := range s.Roles {
		add("root-token", "POST", "/access/roles", map[string]string{"roleid": x.ID, "privs": x.Privileges})
	}
	for _, x := range s.Users {
		if x.ID != rootUser {
			add("root-token", "POST", "/access/users", map[string]string{"userid": x.ID, "password": password, "enable": fmt.Sprint(x.Enable), "expire": fmt.Sprint(x.Expire)})
		}
	}
	for _, x := range s.Pools {
		add("root-token", "POST", "/pools", map[string]string{"poolid": x.ID, "comment": x.Comment})
	}
	for _, g := range s.Guests {
		out = append(out, g.steps()...)
	}
	return out
}

// steps are the calls that make one guest. As root@pam with a ticket, who may set every option.
func (g SetupGuest) steps() []step {
	base := fmt.Sprintf("/nodes/%s/qemu", g.Node)
	vm := fmt.Sprintf("%s/%d", base, g.VMID)
	create := texts(g.Config, "digest", "meta", "vmgenid", "parent", "template", "lock")
	create["vmid"] = fmt.Sprint(g.VMID)
	for name, value := range create {
		if drive.MatchString(name) {
			create[name] = newDrive(value)
		}
		if strings.TrimSpace(value) == "" {
			delete(create, name)
		}
	}
	out := []step{{"root-ticket", "POST", base, create}}
	for _, s := range g.Snapshots {
		if s.Name != "current" {
			out = append(out, step{"root-ticket", "POST", vm + "/snapshot", map[string]string{"snapname": s.Name, "description": s.Description}})
		}
	}
	if options := texts(g.FirewallOptions, "digest"); options != nil {
		out = append(out, step{"root-ticket", "PUT", vm + "/firewall/options", options})
	}
	for _, rule := range g.FirewallRules {
		out = append(out, step{"root-ticket", "POST", vm + "/firewall/rules", texts(rule, "digest", "pos")})
	}
	if g.Config["template"] != nil {
		out = append(out, step{"root-ticket", "POST", vm + "/template", nil})
	}
	if g.Status == "running" {
		out = append(out, step{"root-ticket", "POST", vm + "/status/start", nil})
	}
	if lock := g.Config["lock"]; lock != nil {
		out = append(out, step{"root-ticket", "PUT", vm + "/config", map[string]string{"lock": fmt.Sprint(lock)}})
	}
	return out
}

// newDrive is what allocates a volume like that of a drive, for example local:1,format=qcow2 for
// local:100/vm-100-disk-0.qcow2,size=1G.
func newDrive(value string) string {
	parts := strings.Split(value, ",")
	storage, volume, ok := strings.Cut(parts[0], ":")
	if !ok {
		return value
	}
	size, options := "1", []string{}
	for _, o := range parts[1:] {
		if text, ok := strings.CutPrefix(o, "size="); ok {
			size = gibibytes(text)
		} else {
			options = append(options, o)
		}
	}
	if strings.Contains(volume, "cloudinit") {
		return storage + ":cloudinit"
	}
	format := volume[strings.LastIndexByte(volume, '.')+1:]
	return strings.Join(append([]string{storage + ":" + size, "format=" + format}, options...), ",")
}

// gibibytes turns a size such as 40M into GiB.
func gibibytes(size string) string {
	units := map[byte]float64{'K': 1 << 20, 'M': 1 << 10, 'G': 1}
	unit, ok := units[size[len(size)-1]]
	number, err := strconv.ParseFloat(size[:len(size)-1], 64)
	if !ok || err != nil {
		return "1"
	}
	return strconv.FormatFloat(number/unit, 'f', -1, 64)
}

// cleanUp removes what seed and the recording made. None of it was there before.
func (r *replay) cleanUp(ctx context.Context) error {
	where := r.placesOf(ctx)
	for _, id := range slices.Backward(r.recording.vmids()) {
		node, ok := where[fmt.Sprint(id)]
		if !ok {
			continue
		}
		vm := fmt.Sprintf("/nodes/%s/qemu/%d", node, id)
		for _, s := range []step{
			{"root-ticket", "POST", vm + "/status/stop", map[string]string{"skiplock": "1"}},
			{"root-ticket", "PUT", vm + "/config", map[string]string{"protection": "0", "skiplock": "1"}},
			{"root-ticket", "DELETE", vm, map[string]string{"purge": "1", "skiplock": "1", "destroy-unreferenced-disks": "1"}},
		} {
			_, _ = r.must(ctx, s.as, s.method, s.path, s.params)
		}
	}
	for _, x := range r.recording.Setup.Pools {
		_, _ = r.must(ctx, "root-token", "DELETE", "/pools/"+x.ID, nil)
	}
	for _, x := range r.recording.Setup.Users {
		if x.ID != rootUser {
			_, _ = r.must(ctx, "root-token", "DELETE", "/access/users/"+x.ID, nil)
		}
	}
	for _, x := range r.recording.Setup.Roles {
		_, _ = r.must(ctx, "root-token", "DELETE", "/access/roles/"+x.ID, nil)
	}
	if left := r.placesOf(ctx); len(left) > 0 {
		return fmt.Errorf("clean up after %s: VMs %v are left", r.recording.Scenario, slices.Sorted(maps.Keys(left)))
	}
	return nil
}

// placesOf are the nodes of those VMs that the recording names.
func (r *replay) placesOf(ctx context.Context) map[string]string {
	out := map[string]string{}
	answer, _ := r.send(ctx, Exchange{As: "root-token", Method: "GET", Path: "/cluster/resources", Params: []byte(`{"type":"vm"}`)})
	body, _ := answer.Body.(map[string]any)
	list, _ := body["data"].([]any)
	ours := r.recording.vmids()
	for _, x := range list {
		o, _ := x.(map[string]any)
		if id, err := strconv.Atoi(fmt.Sprint(o["vmid"])); err == nil && slices.Contains(ours, proxmox.VMID(id)) {
			out[fmt.Sprint(id)] = fmt.Sprint(o["node"])
		}
	}
	return out
}

// IsUnfit tells whether a recording was not replayed because it cannot be replayed there.
func IsUnfit(err error) bool { return errors.Is(err, errUnfit) }
