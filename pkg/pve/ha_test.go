package pve_test

import (
	"context"
	"net/url"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func haReads() []request {
	return []request{
		{
			name: "HA resource", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.HAResource(ctx, vm101.ID) },
			line: "GET /cluster/ha/resources/vm:101",
			data: `{"type":"vm","state":"stopped","max_restart":2,"comment":"c","digest":"104f","max_relocate":3,"sid":"vm:101","group":"g"}`,
			want: pve.HAResource{Digest: "104f", Options: map[string]string{
				"state": "stopped", "max_restart": "2", "max_relocate": "3", "comment": "c", "group": "g",
			}},
		}, {
			name: "HA rules", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.HARules(ctx) },
			line: "GET /cluster/ha/rules",
			data: `[{"strict":1,"nodes":"pve1:2,pve2","type":"node-affinity","rule":"r1","order":1,"comment":"c","digest":"37d6","resources":"vm:101"}]`,
			want: pve.HARules{Digest: "37d6", Rules: map[string]pve.HARule{"r1": {
				"strict": "1", "nodes": "pve1:2,pve2", "type": "node-affinity", "comment": "c", "resources": "vm:101",
			}}},
		}, {
			name: "no HA rules", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.HARules(ctx) },
			line: "GET /cluster/ha/rules", data: `[]`, want: pve.HARules{Rules: map[string]pve.HARule{}},
		}, {
			name: "HA groups", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.HAGroups(ctx) },
			line: "GET /cluster/ha/groups",
			data: `[{"type":"group","nofailback":1,"group":"g1","nodes":"pve2,pve1:2","digest":"3b8d"},{"group":"g2"}]`, want: []string{"g1", "g2"},
		},
	}
}

func haWrites() []request {
	return []request{
		{
			name: "make an HA resource", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.CreateHAResource(ctx, vm101.ID, map[string]string{"state": "started", "max_restart": "2", "comment": "c"})
			},
			line: "POST /cluster/ha/resources", data: `null`,
			form: url.Values{"sid": {"vm:101"}, "state": {"started"}, "max_restart": {"2"}, "comment": {"c"}},
		}, {
			name: "change an HA resource", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.UpdateHAResource(ctx, vm101.ID, pve.HAUpdate{
					Set: map[string]string{"max_restart": "3"}, Delete: []string{"max_relocate", "comment"}, Digest: rulesDigest,
				})
			},
			line: "PUT /cluster/ha/resources/vm:101", data: `null`,
			form: url.Values{"max_restart": {"3"}, "delete": {"max_relocate,comment"}, "digest": {rulesDigest}},
		}, {
			name: "delete an HA resource", send: func(ctx context.Context, c *pve.Client) (any, error) { return nil, c.DeleteHAResource(ctx, vm101.ID) },
			line: "DELETE /cluster/ha/resources/vm:101", data: `null`,
		}, {
			name: "make an HA rule", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.CreateHARule(ctx, "r1", pve.HARule{"type": "resource-affinity", "affinity": "negative", "resources": "vm:101", "disable": "1"})
			},
			line: "POST /cluster/ha/rules", data: `null`,
			form: url.Values{"rule": {"r1"}, "type": {"resource-affinity"}, "affinity": {"negative"}, "resources": {"vm:101"}, "disable": {"1"}},
		}, {
			name: "change an HA rule", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.UpdateHARule(ctx, "r1", pve.HAUpdate{
					Set: map[string]string{"type": "resource-affinity", "resources": "vm:101,vm:102"}, Delete: []string{"disable"}, Digest: rulesDigest,
				})
			},
			line: "PUT /cluster/ha/rules/r1", data: `null`,
			form: url.Values{"type": {"resource-affinity"}, "resources": {"vm:101,vm:102"}, "delete": {"disable"}, "digest": {rulesDigest}},
		}, {
			name: "delete an HA rule", send: func(ctx context.Context, c *pve.Client) (any, error) { return nil, c.DeleteHARule(ctx, "r1") },
			line: "DELETE /cluster/ha/rules/r1", data: `null`,
		},
	}
}
