package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// options are the flags.
type options struct {
	listen    string
	version   string
	templates string
	caFile    string
	load      string
	dump      string
	memory    uint64
	boot      bool
	model     pvesim.Model
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{model: pvesim.DefaultModel()}
	flags := flag.NewFlagSet("pvesim", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address of the first host's API; port 0 means a free one")
	flags.StringVar(&o.version, "pve-version", string(o.model.Version), "release to speak as: 8.4 or 9.2")
	flags.Float64Var(&o.model.Speed, "speed", o.model.Speed, "divides every delay of the simulated hosts")
	flags.Uint64Var(&o.model.Seed, "seed", o.model.Seed, "seed of everything that is drawn")
	flags.StringVar(&o.model.ClusterName, "cluster-name", o.model.ClusterName, "name of the cluster")
	flags.IntVar(&o.model.Nodes, "nodes", o.model.Nodes, "number of hosts, pve1, pve2 …")
	flags.IntVar(&o.model.CPUs, "cpus", o.model.CPUs, "CPUs of each host")
	flags.Uint64Var(&o.memory, "memory", uint64(o.model.Memory), "memory of each host in MiB")
	flags.StringVar(&o.templates, "templates", "ubuntu-2404-k8s", "VM templates, separated by commas; each gets a copy on every host")
	flags.StringVar(&o.load, "load", "", "YAML file to build the world from, instead of -nodes, -cpus, -memory and -templates")
	flags.StringVar(&o.dump, "dump", "", "YAML file to write the world to at the end; GET /pvesim/state shows it at any time")
	flags.StringVar(&o.caFile, "ca-file", "", "where to write the certificate of the authority; default: a temporary file, removed at the end")
	flags.BoolVar(&o.boot, "boot", true, "let guests boot: read their cloud-init seed and answer the guest agent")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q: pvesim takes flags only, see -help", flags.Arg(0))
	}
	return o, o.complete()
}

// complete turns flags that are not fields of the model into it.
func (o *options) complete() error {
	version, err := pvesim.ParseVersion(o.version)
	if err != nil {
		return err
	}
	o.model.Version, o.model.Memory = version, proxmox.MiB(o.memory)
	o.model.Templates = []pvesim.TemplateSpec{}
	for i, name := range strings.FieldsFunc(o.templates, func(r rune) bool { return r == ',' }) {
		spec := pvesim.DefaultModel().Templates[0]
		spec.Name, spec.FirstVMID = name, templateVMID(i)
		o.model.Templates = append(o.model.Templates, spec)
	}
	if o.boot {
		o.model.Guests = pvesim.Booting(pvesim.BootHooks{})
	}
	if o.load == "" {
		return nil
	}
	o.model.State, err = loadState(o.load)
	return err
}

// loadState reads a world. Unknown fields are errors: they are most often typing mistakes.
func loadState(path string) (*pvesim.State, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load the world: %w", err)
	}
	var s pvesim.State
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		return nil, fmt.Errorf("load the world from %s: %w", path, err)
	}
	return &s, nil
}

func dumpState(path string, s pvesim.State) error {
	raw, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("dump the world: %w", err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return fmt.Errorf("dump the world: %w", err)
	}
	return nil
}

// templateVMID numbers templates apart: 9001…, 9101…, 9201….
func templateVMID(i int) proxmox.VMID { return proxmox.VMID(9001 + 100*i) }
