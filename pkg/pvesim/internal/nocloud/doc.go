// Package nocloud reads NoCloud seeds as the cloud-init of a guest does: the ISO 9660 image that carries one, its meta-data,
// user-data and network-config, and the addresses that it gives to the network devices.
//
// It is pure: bytes in, texts and addresses out. No input makes it panic or hang.
//
// https://cloudinit.readthedocs.io/en/latest/reference/datasources/nocloud.html
package nocloud
