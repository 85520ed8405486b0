// Package interop has other projects' Proxmox VE clients work against pvesim: what a client takes for granted of Proxmox VE, and
// no recording shows, fails here. It is a module of its own, so that nobody else depends on what they depend on.
package interop
