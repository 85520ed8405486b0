package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/instance"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

// downTimeout bounds how long a sandbox may take to stop.
const downTimeout = time.Minute

func newDown(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop a running sandbox and remove everything of it",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			found, err := instance.Named(*name)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), downTimeout)
			defer cancel()
			switch err := found.Stop(ctx); {
			case errors.Is(err, instance.ErrNotRunning):
				command.Printf("sandbox %q is not running\n", *name)
				return nil
			case err != nil:
				return err
			}
			command.Printf("sandbox %q is stopped and gone\n", *name)
			return nil
		},
	}
}

func newStatus(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say whether a sandbox runs, and how to reach it",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			record, err := running(*name)
			if errors.Is(err, instance.ErrNotRunning) {
				command.Printf("sandbox %q is not running: start one with `capve sandbox up --keep`\n", *name)
				return nil
			}
			if err != nil {
				return err
			}
			command.Printf("sandbox     %s, up for %s (process %d)\n", *name, progress.Elapsed(time.Since(record.Started)), record.PID)
			command.Printf("kubeconfig  %s\nProxmox VE  %s\nlogs        %s\n", record.Kubeconfig, record.ProxmoxURL, record.Logs)
			return nil
		},
	}
}

func newKubeconfig(name *string) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of a running sandbox's kubeconfig",
		Example: "  export KUBECONFIG=$(capve sandbox kubeconfig)",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			record, err := running(*name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), record.Kubeconfig)
			return err
		},
	}
}

func running(name string) (instance.Record, error) {
	found, err := instance.Named(name)
	if err != nil {
		return instance.Record{}, err
	}
	return found.Running()
}
