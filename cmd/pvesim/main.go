// Command pvesim serves a simulated Proxmox VE cluster over HTTPS and prints the environment to use it with.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func main() { os.Exit(serve()) }

// serve returns the exit code.
func serve() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "pvesim:", err)
		return 1
	}
	return 0
}

// options are the flags.
type options struct {
	listen    string
	version   string
	templates string
	caFile    string
	boot      bool
	model     pvesim.Model
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{model: pvesim.DefaultModel()}
	flags := flag.NewFlagSet("pvesim", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 means a free one")
	flags.IntVar(&o.model.Nodes, "nodes", o.model.Nodes, "number of hosts, pve1, pve2 …")
	flags.IntVar(&o.model.CPUs, "cpus", o.model.CPUs, "CPUs of each host")
	flags.StringVar(&o.version, "pve-version", string(o.model.Version), "release to speak as: 8.4 or 9.2")
	flags.Float64Var(&o.model.Speed, "speed", o.model.Speed, "divides every delay of the simulated hosts")
	flags.Uint64Var(&o.model.Seed, "seed", o.model.Seed, "seed of everything that is drawn")
	flags.StringVar(&o.templates, "templates", "ubuntu-2404-k8s", "VM templates, separated by commas; each gets a copy on every host")
	flags.StringVar(&o.caFile, "ca-file", "", "where to write the certificate of the authority; default: a temporary file, removed at the end")
	flags.BoolVar(&o.boot, "boot", true, "let guests boot: read their cloud-init seed and answer the guest agent")
	err := flags.Parse(args)
	return o, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	if err := o.complete(); err != nil {
		return err
	}
	world, err := pvesim.NewWorld(pvesim.WithModel(o.model))
	if err != nil {
		return err
	}
	defer world.Close()
	server, err := pvesim.Serve(world, o.listen)
	if err != nil {
		return err
	}
	defer server.Close()
	if o.caFile == "" {
		dir, err := os.MkdirTemp("", "pvesim-")
		if err != nil {
			return fmt.Errorf("make a directory for the CA file: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.caFile = filepath.Join(dir, "ca.pem")
	}
	if err := os.WriteFile(o.caFile, server.CAPEM, 0o600); err != nil {
		return fmt.Errorf("write the CA file: %w", err)
	}
	printEnvironment(out, server, o.caFile)
	<-ctx.Done()
	return nil
}

// complete turns flags that are not fields of the model into it.
func (o *options) complete() error {
	version, err := pvesim.ParseVersion(o.version)
	if err != nil {
		return err
	}
	o.model.Version = version
	o.model.Templates = []pvesim.TemplateSpec{}
	for i, name := range strings.FieldsFunc(o.templates, func(r rune) bool { return r == ',' }) {
		spec := pvesim.DefaultModel().Templates[0]
		spec.Name, spec.FirstVMID = name, templateVMID(i)
		o.model.Templates = append(o.model.Templates, spec)
	}
	if o.boot {
		o.model.Guests = pvesim.Booting(pvesim.BootHooks{})
	}
	return nil
}

func printEnvironment(out io.Writer, s *pvesim.Server, caFile string) {
	_, _ = fmt.Fprintf(out, "export PVE_URL=%s PVE_TOKEN_ID='%s' PVE_TOKEN_SECRET=%s PVE_CA_FILE=%s\n", s.URL, s.Token.ID, string(s.Token.Secret), caFile)
	_, _ = fmt.Fprintf(out, "# curl --cacert \"$PVE_CA_FILE\" -H \"Authorization: PVEAPIToken=$PVE_TOKEN_ID=$PVE_TOKEN_SECRET\" \"$PVE_URL/api2/json/cluster/resources\"\n")
}

// templateVMID numbers templates apart: 9001…, 9101…, 9201….
func templateVMID(i int) proxmox.VMID { return proxmox.VMID(9001 + 100*i) }
