// Command capve is the command line of the Cluster API provider for Proxmox VE.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := &cobra.Command{
		Use:           "capve",
		Short:         "The command line of the Cluster API provider for Proxmox VE",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newSandbox())
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
