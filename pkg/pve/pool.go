package pve

import (
	"context"
	"net/http"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Pool makes sure that there is a resource pool: of one that does not exist the error has class Missing. It needs Pool.Audit
// on /pool/<pool>, and Forbidden leaves open whether there is one.
func (c *Client) Pool(ctx context.Context, pool proxmox.PoolID) error {
	call, err := poolCall(http.MethodGet, pool)
	_, err = c.list(ctx, call, err)
	return err
}

// AddToPool puts a VM into a pool, out of another that it may be in. It needs Pool.Allocate on both, and VM.Allocate or
// Permissions.Modify on the VM. Of a VM that is in it the error has class AlreadyExists. PVE checks neither that there is such a
// VM, nor whose it is.
func (c *Client) AddToPool(ctx context.Context, pool proxmox.PoolID, id proxmox.VMID) error {
	call, err := memberCall(pool, id)
	if err == nil {
		call.set("allow-move", "1")
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// RemoveFromPool takes a VM out of a pool. It needs Pool.Allocate on the pool, and VM.Allocate or Permissions.Modify on the VM. Of
// a VM that is not in it, and of a pool that does not exist, the error has class Missing.
func (c *Client) RemoveFromPool(ctx context.Context, pool proxmox.PoolID, id proxmox.VMID) error {
	call, err := memberCall(pool, id)
	if err == nil {
		call.set("delete", "1")
	}
	_, err = c.submit(ctx, call, err)
	return err
}

func memberCall(pool proxmox.PoolID, id proxmox.VMID) (*call, error) {
	call, err := poolCall(http.MethodPut, pool)
	switch {
	case err != nil:
		return call, err
	case pool == "":
		return call, call.refuse("no pool")
	case id <= 0:
		return call, call.refuse("no VMID")
	}
	call.set("vms", id.String())
	return call, nil
}

// poolCall starts a request about a pool. Its name may have slashes in it, so that it does not go into the path.
func poolCall(method string, pool proxmox.PoolID) (*call, error) {
	call, err := newCall(method, "/pools")
	if err == nil {
		call.set("poolid", string(pool))
	}
	return call, err
}
