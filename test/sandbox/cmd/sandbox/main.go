// Command sandbox brings up a Cluster API management cluster with our manager and a simulated Proxmox VE on this
// machine, and scales a cluster in it before the reader's eyes. People call it as `capve sandbox`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			fmt.Fprintln(os.Stderr, "interrupted: the sandbox is stopped and gone")
			os.Exit(130)
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:           "sandbox",
		Short:         "A Cluster API management cluster with a simulated Proxmox VE, on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.SetOut(os.Stdout)
	command.PersistentFlags().StringVar(&name, "name", "default", "name of the sandbox; several run side by side")
	command.AddCommand(newUp(&name), newDown(&name), newStatus(&name), newKubeconfig(&name))
	return command
}
