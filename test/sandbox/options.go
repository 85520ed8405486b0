package sandbox

import (
	"net/url"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

// Options configures a sandbox. The zero value is a quiet sandbox in a temporary directory with a simulated Proxmox VE.
type Options struct {
	// Dir is where the sandbox keeps its data, kubeconfig and logs; it is made if missing, and removed by Stop. Empty
	// means a fresh temporary directory.
	Dir string
	// Progress is where it is printed what the sandbox is doing; nil prints nothing.
	Progress *progress.Printer
	// Remote points the sandbox at a real Proxmox VE; nil means the simulator.
	Remote *RemotePVE
	// PVEVersion is the Proxmox VE that the simulator is; empty means its default.
	PVEVersion pvesim.Version
	// Speed divides the simulator's delays: 1, the default, is like a real host.
	Speed float64
	// RequestLog is the file to which our manager writes every request that it sends to Proxmox VE, secrets masked; empty means that
	// of PVE_REQUEST_LOG, or none.
	RequestLog string
}

// RemotePVE is a real Proxmox VE cluster.
type RemotePVE struct {
	// URL is the API endpoint, for example https://pve1.example.com:8006.
	URL *url.URL
	// TokenID is user@realm!name.
	TokenID string
	// TokenSecret is the token's UUID.
	TokenSecret Secret
	// Authority is the PEM certificate that the endpoint's certificate is signed by; empty means the system's roots.
	Authority []byte
}

// Secret prints as ***.
type Secret string

// String hides the secret.
func (Secret) String() string { return "***" }

// GoString hides the secret.
func (Secret) GoString() string { return "***" }
