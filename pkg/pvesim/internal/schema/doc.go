// Package schema checks parameters as Proxmox VE does (PVE::JSONSchema) and refuses them with its words. It knows types,
// limits, formats and property strings such as `virtio,bridge=vmbr0`, but no endpoint: their parameters are declared with it.
//
// It is pure. No input makes it panic.
package schema
