// Package sdn holds the configuration of Proxmox VE's software-defined network: zones, vnets, subnets and what belongs to them, as
// sections with options, what is in force of them and what is pending, with the checks and words of pve-network. It makes no
// bridges and knows no API.
//
// It is pure. No input makes it panic.
package sdn
