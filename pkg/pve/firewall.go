package pve

import (
	"context"
	"net/http"
	"strconv"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// FirewallOptions are the options of a VM's firewall that are set.
type FirewallOptions struct {
	Values map[string]string
	Digest proxmox.Digest
}

// FirewallRules are the rules of a VM's firewall in their order, each by its properties.
type FirewallRules struct {
	Rules []map[string]string
	// Digest is empty when there are no rules.
	Digest proxmox.Digest
}

// IPSets are the IP sets of a VM's firewall.
type IPSets struct {
	// Comments are their comments, by name.
	Comments map[string]string
	// Digest is empty when there are no IP sets.
	Digest proxmox.Digest
}

// IPSetEntries are what is in an IP set.
type IPSetEntries struct {
	Entries []IPSetEntry
	// Digest is empty when there are no entries.
	Digest proxmox.Digest
}

// IPSetEntry is an address or a network in an IP set, the name of an alias, or, with NoMatch, what is excluded from it.
type IPSetEntry struct {
	CIDR    string
	NoMatch bool
}

// firewallCall starts a request about a VM's firewall. Proxmox VE does not look whether there is such a VM: a write makes a
// file that stays.
func (r VMRef) firewallCall(method, below string, args ...string) (*call, error) {
	args = append([]string{string(r.Node), r.ID.String()}, args...)
	call, err := newCall(method, "/nodes/{node}/qemu/{vmid}/firewall"+below, args...)
	if err == nil && r.ID <= 0 {
		err = call.refuse("no VMID")
	}
	return call, err
}

// FirewallOptions reads the options.
func (c *Client) FirewallOptions(ctx context.Context, vm VMRef) (FirewallOptions, error) {
	call, err := vm.firewallCall(http.MethodGet, "/options")
	object, err := c.object(ctx, call, err)
	if err != nil {
		return FirewallOptions{}, err
	}
	return FirewallOptions{Values: object.without("digest"), Digest: proxmox.Digest(object["digest"])}, nil
}

// FirewallRules reads the rules. What tells only where a rule is, or what is wrong with it, is left out.
func (c *Client) FirewallRules(ctx context.Context, vm VMRef) (FirewallRules, error) {
	call, err := vm.firewallCall(http.MethodGet, "/rules")
	list, err := c.list(ctx, call, err)
	if err != nil {
		return FirewallRules{}, err
	}
	var rules FirewallRules
	for _, object := range list {
		rules.Rules = append(rules.Rules, object.without("digest", "pos", "errors"))
		rules.Digest = proxmox.Digest(object["digest"])
	}
	return rules, nil
}

// IPSets lists the IP sets of a VM.
func (c *Client) IPSets(ctx context.Context, vm VMRef) (IPSets, error) {
	call, err := vm.firewallCall(http.MethodGet, "/ipset")
	list, err := c.list(ctx, call, err)
	if err != nil {
		return IPSets{}, err
	}
	sets := IPSets{Comments: map[string]string{}}
	for _, object := range list {
		sets.Comments[string(object["name"])], sets.Digest = string(object["comment"]), proxmox.Digest(object["digest"])
	}
	return sets, nil
}

// IPSetEntries reads what is in an IP set of a VM.
func (c *Client) IPSetEntries(ctx context.Context, vm VMRef, set string) (IPSetEntries, error) {
	call, err := vm.firewallCall(http.MethodGet, "/ipset/{name}", set)
	list, err := c.list(ctx, call, err)
	if err != nil {
		return IPSetEntries{}, err
	}
	var entries IPSetEntries
	for _, object := range list {
		entries.Entries = append(entries.Entries, IPSetEntry{CIDR: string(object["cidr"]), NoMatch: object["nomatch"].flag()})
		entries.Digest = proxmox.Digest(object["digest"])
	}
	return entries, nil
}

// SecurityGroups lists the names of the cluster's security groups. Any login may ask.
func (c *Client) SecurityGroups(ctx context.Context) ([]string, error) {
	call, err := newCall(http.MethodGet, "/cluster/firewall/groups")
	return c.names(ctx, call, err, "group")
}

// FirewallOptionsUpdate changes options of a VM's firewall.
type FirewallOptionsUpdate struct {
	VM     VMRef
	Set    map[string]string
	Delete []string
	Digest proxmox.Digest
}

// UpdateFirewallOptions changes options, all at once.
func (c *Client) UpdateFirewallOptions(ctx context.Context, update FirewallOptionsUpdate) error {
	call, err := update.VM.firewallCall(http.MethodPut, "/options")
	if err == nil {
		call.change(update.Set, update.Delete, update.Digest)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// CreateFirewallRule makes a rule. It becomes the first one, whatever position is asked for.
func (c *Client) CreateFirewallRule(ctx context.Context, vm VMRef, rule map[string]string) error {
	call, err := vm.firewallCall(http.MethodPost, "/rules")
	if err == nil {
		call.setAll(rule)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// FirewallRuleRef names a rule by its position among rules that the digest is of.
type FirewallRuleRef struct {
	VM       VMRef
	Position int
	Digest   proxmox.Digest
}

// MoveFirewallRule moves a rule before the one at another position; a position beyond the last one means the end.
func (c *Client) MoveFirewallRule(ctx context.Context, rule FirewallRuleRef, before int) error {
	call, err := rule.call(http.MethodPut)
	if err == nil {
		call.set("moveto", strconv.Itoa(before))
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// EnableFirewallRule gives a rule its effect.
func (c *Client) EnableFirewallRule(ctx context.Context, rule FirewallRuleRef) error {
	call, err := rule.call(http.MethodPut)
	if err == nil {
		call.set("enable", "1")
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// DeleteFirewallRule deletes a rule.
func (c *Client) DeleteFirewallRule(ctx context.Context, rule FirewallRuleRef) error {
	call, err := rule.call(http.MethodDelete)
	_, err = c.del(ctx, call, err)
	return err
}

func (r FirewallRuleRef) call(method string) (*call, error) {
	call, err := r.VM.firewallCall(method, "/rules/{pos}", strconv.Itoa(r.Position))
	if err == nil {
		call.set("digest", string(r.Digest))
	}
	return call, err
}

// IPSetRequest makes an IP set, or gives the one called Rename the name and the comment.
type IPSetRequest struct {
	VM                    VMRef
	Name, Comment, Rename string
	// Digest counts for a rename alone.
	Digest proxmox.Digest
}

// CreateIPSet makes or renames an IP set.
func (c *Client) CreateIPSet(ctx context.Context, request IPSetRequest) error {
	call, err := request.VM.firewallCall(http.MethodPost, "/ipset")
	if err == nil {
		call.set("name", request.Name).set("comment", request.Comment).set("rename", request.Rename).set("digest", string(request.Digest))
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// DeleteIPSet deletes an IP set with all that is in it.
func (c *Client) DeleteIPSet(ctx context.Context, vm VMRef, name string) error {
	call, err := vm.firewallCall(http.MethodDelete, "/ipset/{name}", name)
	if err == nil {
		call.set("force", "1")
	}
	_, err = c.del(ctx, call, err)
	return err
}

// IPSetEntryRef names an entry of an IP set.
type IPSetEntryRef struct {
	VM        VMRef
	Set, CIDR string
	// Digest counts for the removal alone.
	Digest proxmox.Digest
}

// AddIPSetEntry puts an address or a network into an IP set.
func (c *Client) AddIPSetEntry(ctx context.Context, entry IPSetEntryRef) error {
	call, err := entry.VM.firewallCall(http.MethodPost, "/ipset/{name}", entry.Set)
	if err == nil {
		call.set("cidr", entry.CIDR)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// RemoveIPSetEntry takes an entry out of an IP set; one that is not in it is no error.
func (c *Client) RemoveIPSetEntry(ctx context.Context, entry IPSetEntryRef) error {
	call, err := entry.VM.firewallCall(http.MethodDelete, "/ipset/{name}/{cidr}", entry.Set, entry.CIDR)
	if err == nil {
		call.set("digest", string(entry.Digest))
	}
	_, err = c.del(ctx, call, err)
	return err
}
