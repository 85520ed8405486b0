// Package sandbox runs a real Cluster API management cluster on this machine, with our manager and a simulated Proxmox
// VE behind it, from Go modules only: no containers, no downloads besides modules, nothing but loopback listeners, and
// nothing left behind when it stops.
//
// What is real: etcd, kube-apiserver and kube-controller-manager; Cluster API's core, kubeadm bootstrap and kubeadm
// control plane controllers with their webhooks; the in-cluster IPAM provider; our manager, as the binary that ships.
// What is simulated: Proxmox VE (pkg/pvesim), and the workload clusters, which are Cluster API's in-memory API server
// (see internal/workload) fed by the simulated virtual machines that boot with a good seed (see internal/guest).
package sandbox
