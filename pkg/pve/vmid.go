package pve

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// VMIDFree asks whether no guest has a VMID, on any node of the PVE cluster, whatever the credentials may see: any login
// may ask (GET /cluster/nextid?vmid=). It reserves nothing.
func (c *Client) VMIDFree(ctx context.Context, id proxmox.VMID) (bool, error) {
	call, err := newCall(http.MethodGet, "/cluster/nextid")
	if err == nil {
		call.set("vmid", id.String())
	}
	_, err = c.get(ctx, call, err)
	var refused *Error
	if errors.As(err, &refused) && strings.Contains(refused.Params["vmid"], "already exists") {
		return false, nil
	}
	return err == nil, err
}
