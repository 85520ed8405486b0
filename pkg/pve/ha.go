package pve

import (
	"context"
	"net/http"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// HAResource is what is configured of a VM for high availability.
type HAResource struct {
	// Options are state, max_restart, max_relocate, group, failback and comment, as far as they are set.
	Options map[string]string
	// Digest is of the list of all resources.
	Digest proxmox.Digest
}

// HARule is a rule for HA resources, by its properties: type, resources, nodes, affinity and so on.
type HARule map[string]string

// HARules are the rules of a PVE cluster.
type HARules struct {
	// Rules are the rules by name.
	Rules map[string]HARule
	// Digest is of all of them; empty when there are none.
	Digest proxmox.Digest
}

// haResource starts a request about the VM's HA resource.
func haResource(method string, id proxmox.VMID) (*call, error) {
	call, err := newCall(method, "/cluster/ha/resources/{sid}", "vm:"+id.String())
	if err == nil && id <= 0 {
		err = call.refuse("no VMID")
	}
	return call, err
}

// HAResource reads the HA resource of a VM. For a VM that is none the error's class is Missing. It needs Sys.Audit on /.
func (c *Client) HAResource(ctx context.Context, id proxmox.VMID) (HAResource, error) {
	call, err := haResource(http.MethodGet, id)
	object, err := c.object(ctx, call, err)
	if err != nil {
		return HAResource{}, err
	}
	return HAResource{Options: object.without("digest", "sid", "type", "errors"), Digest: proxmox.Digest(object["digest"])}, nil
}

// HARules lists the rules, which there are from PVE 9 on: before, the error's class is Unimplemented. It needs Sys.Audit on /.
func (c *Client) HARules(ctx context.Context) (HARules, error) {
	call, err := newCall(http.MethodGet, "/cluster/ha/rules")
	list, err := c.list(ctx, call, err)
	if err != nil {
		return HARules{}, err
	}
	rules := HARules{Rules: map[string]HARule{}}
	for _, object := range list {
		rules.Rules[string(object["rule"])] = object.without("digest", "rule", "order", "errors")
		rules.Digest = proxmox.Digest(object["digest"])
	}
	return rules, nil
}

// HAGroups lists the names of the HA groups of PVE 8; PVE 9 has none and refuses. It needs Sys.Audit on /.
func (c *Client) HAGroups(ctx context.Context) ([]string, error) {
	call, err := newCall(http.MethodGet, "/cluster/ha/groups")
	return c.names(ctx, call, err, "group")
}

// CreateHAResource makes a VM an HA resource. PVE takes the name of a group that does not exist. It needs Sys.Console on /, as
// all changes here do.
func (c *Client) CreateHAResource(ctx context.Context, id proxmox.VMID, options map[string]string) error {
	call, err := newCall(http.MethodPost, "/cluster/ha/resources")
	if err == nil && id <= 0 {
		err = call.refuse("no VMID")
	}
	if err == nil {
		call.set("sid", "vm:"+id.String()).setAll(options)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// HAUpdate changes options of an HA resource, or of a rule.
type HAUpdate struct {
	Set    map[string]string
	Delete []string
	Digest proxmox.Digest
}

func (u HAUpdate) apply(call *call) {
	call.change(u.Set, u.Delete, u.Digest)
}

// UpdateHAResource changes the HA resource of a VM.
func (c *Client) UpdateHAResource(ctx context.Context, id proxmox.VMID, update HAUpdate) error {
	call, err := haResource(http.MethodPut, id)
	if err == nil {
		update.apply(call)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// DeleteHAResource ends that a VM is an HA resource; the VM stays as it is. PVE 9 takes it out of the rules, too, and deletes
// those that it leaves empty.
func (c *Client) DeleteHAResource(ctx context.Context, id proxmox.VMID) error {
	call, err := haResource(http.MethodDelete, id)
	_, err = c.del(ctx, call, err)
	return err
}

// CreateHARule makes a rule.
func (c *Client) CreateHARule(ctx context.Context, name string, rule HARule) error {
	call, err := newCall(http.MethodPost, "/cluster/ha/rules")
	if err == nil {
		call.set("rule", name).setAll(rule)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// UpdateHARule changes a rule. PVE wants its type set, too, and checks that it goes together with the others.
func (c *Client) UpdateHARule(ctx context.Context, name string, update HAUpdate) error {
	call, err := newCall(http.MethodPut, "/cluster/ha/rules/{rule}", name)
	if err == nil {
		update.apply(call)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// DeleteHARule deletes a rule; one that is not there is no error.
func (c *Client) DeleteHARule(ctx context.Context, name string) error {
	call, err := newCall(http.MethodDelete, "/cluster/ha/rules/{rule}", name)
	_, err = c.del(ctx, call, err)
	return err
}
