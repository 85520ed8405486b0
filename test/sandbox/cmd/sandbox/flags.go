package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
)

// tokenVariable holds the API token where the command line, which other users can see, should not.
const tokenVariable = "PVE_TOKEN"

// upFlags are the flags of up.
type upFlags struct {
	keep       bool
	pveVersion string
	speed      float64

	pveURL, pveToken, pveCA string
	endpoint                string
	cluster                 sandbox.Cluster
}

func (f *upFlags) register(command *cobra.Command) {
	f.cluster = sandbox.DefaultCluster()
	flags := command.Flags()
	flags.BoolVar(&f.keep, "keep", false, "keep the cluster and the sandbox running until Ctrl-C or `down`")
	flags.StringVar(&f.pveVersion, "pve-version", string(pvesim.V92), "Proxmox VE that the simulator is: 8.4 or 9.2")
	flags.Float64Var(&f.speed, "speed", 1, "how much faster than a real host the simulator is")
	flags.StringVar(&f.pveURL, "pve-url", "", "use a real Proxmox VE: its API, https://HOST:8006")
	flags.StringVar(&f.pveToken, "pve-token", "", "API token, user@realm!name=secret (default: $"+tokenVariable+")")
	flags.StringVar(&f.pveCA, "pve-ca", "", "file with the certificate authority of the API, /etc/pve/pve-root-ca.pem on a node")
	flags.StringVar(&f.endpoint, "endpoint", "", "with --pve-url: host:port of the cluster's control plane, a virtual IP or load balancer")
	flags.StringSliceVar(&f.cluster.Tags, "template-tags", f.cluster.Tags, "tags of the template to clone")
	flags.StringVar(&f.cluster.Bridge, "bridge", f.cluster.Bridge, "bridge that machines are plugged into")
	flags.StringVar(&f.cluster.Addresses, "addresses", f.cluster.Addresses, "address range of the machines, FIRST-LAST")
	flags.IntVar(&f.cluster.Prefix, "prefix", f.cluster.Prefix, "prefix length of the machines' network")
	flags.StringVar(&f.cluster.Gateway, "gateway", f.cluster.Gateway, "gateway of the machines' network")
}

// options turns the flags into what the sandbox wants.
func (f *upFlags) options() (sandbox.Options, sandbox.Cluster, error) {
	version, err := pvesim.ParseVersion(f.pveVersion)
	if err != nil {
		return sandbox.Options{}, f.cluster, fmt.Errorf("--pve-version: %w", err)
	}
	if f.speed <= 0 {
		return sandbox.Options{}, f.cluster, fmt.Errorf("--speed: %v is not above 0", f.speed)
	}
	options := sandbox.Options{PVEVersion: version, Speed: f.speed}
	if f.pveURL == "" {
		return options, f.cluster, nil
	}
	if options.Remote, err = f.remote(); err != nil {
		return options, f.cluster, err
	}
	cluster := f.cluster
	cluster.Host, cluster.Port, err = parseEndpoint(f.endpoint)
	return options, cluster, err
}

// remote is the real Proxmox VE that the flags name.
func (f *upFlags) remote() (*sandbox.RemotePVE, error) {
	address, err := url.Parse(f.pveURL)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("--pve-url: %q is not https://HOST:8006", f.pveURL)
	}
	token := f.pveToken
	if token == "" {
		token = os.Getenv(tokenVariable)
	}
	id, secret, ok := strings.Cut(token, "=")
	if !ok || !strings.Contains(id, "@") || !strings.Contains(id, "!") {
		return nil, errors.New("--pve-token: give a token as user@realm!name=secret, here or in $" + tokenVariable)
	}
	remote := &sandbox.RemotePVE{URL: address, TokenID: id, TokenSecret: sandbox.Secret(secret)}
	if f.pveCA != "" {
		if remote.Authority, err = os.ReadFile(f.pveCA); err != nil {
			return nil, fmt.Errorf("--pve-ca: %w", err)
		}
	}
	return remote, nil
}

func parseEndpoint(endpoint string) (string, int, error) {
	host, portText, err := net.SplitHostPort(endpoint)
	if err != nil {
		return "", 0, fmt.Errorf("--endpoint: with --pve-url name the control plane's host:port: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return "", 0, fmt.Errorf("--endpoint: %q is no port", portText)
	}
	return host, int(port), nil
}
