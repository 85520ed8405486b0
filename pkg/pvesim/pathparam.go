package pvesim

import (
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func toVMID(s string) proxmox.VMID {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0
	}
	return proxmox.VMID(n)
}

// pathParams are the parameters of the variables in a path.
func pathParams(path string) []schema.Param {
	var out []schema.Param
	for _, part := range split(path) {
		name := strings.Trim(part, "{}")
		switch name {
		case part:
		case "vmid":
			out = append(out, schema.VMID(name).Required())
		case "node":
			out = append(out, schema.Text(name).Format("pve-node").Required())
		case "storage":
			out = append(out, schema.Text(name).Format("pve-storage-id").Required())
		case "poolid":
			out = append(out, schema.Text(name).Format("pve-poolid").Required())
		default:
			out = append(out, schema.Text(name).Required())
		}
	}
	return out
}
