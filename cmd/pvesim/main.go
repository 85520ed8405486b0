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
	"syscall"

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

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	world, err := pvesim.NewWorld(pvesim.WithModel(o.model))
	if err != nil {
		return err
	}
	defer world.Close()
	servers, err := pvesim.ServeCluster(world, o.listen)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range servers {
			s.Close()
		}
	}()
	remove, err := o.writeAuthority(servers[0].CAPEM)
	if err != nil {
		return err
	}
	defer remove()
	printEnvironment(out, servers, o.caFile)
	<-ctx.Done()
	if o.dump == "" {
		return nil
	}
	return dumpState(o.dump, world.State())
}

// writeAuthority writes the certificate that clients have to trust; remove deletes it if nobody asked for the file.
func (o *options) writeAuthority(pem []byte) (remove func(), err error) {
	remove = func() {}
	if o.caFile == "" {
		dir, err := os.MkdirTemp("", "pvesim-")
		if err != nil {
			return remove, fmt.Errorf("make a directory for the CA file: %w", err)
		}
		remove = func() { _ = os.RemoveAll(dir) }
		o.caFile = filepath.Join(dir, "ca.pem")
	}
	if err := os.WriteFile(o.caFile, pem, 0o600); err != nil {
		remove()
		return remove, fmt.Errorf("write the CA file: %w", err)
	}
	return remove, nil
}

func printEnvironment(out io.Writer, servers []*pvesim.Server, caFile string) {
	s := servers[0]
	_, _ = fmt.Fprintf(out, "export PVE_URL=%s PVE_TOKEN_ID='%s' PVE_TOKEN_SECRET=%s PVE_CA_FILE=%s\n", s.URL, s.Token.ID, string(s.Token.Secret), caFile)
	for _, other := range servers[1:] {
		_, _ = fmt.Fprintf(out, "# %s: %s\n", other.Node, other.URL)
	}
	_, _ = fmt.Fprintf(out, "# curl --cacert \"$PVE_CA_FILE\" -H \"Authorization: PVEAPIToken=$PVE_TOKEN_ID=$PVE_TOKEN_SECRET\" \"$PVE_URL/api2/json/cluster/resources\"\n")
}
