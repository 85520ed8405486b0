//go:build tools

// Package ipam pins the in-cluster IPAM provider, which the sandbox builds from this module: it needs its own, because
// v1.1.0 compiles only with controller-runtime v0.21 and Kubernetes v0.33, not with the versions the sandbox uses.
package ipam

import _ "sigs.k8s.io/cluster-api-ipam-provider-in-cluster"
