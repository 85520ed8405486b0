package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/instance"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

func newUp(name *string) *cobra.Command {
	var flags upFlags
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring the sandbox up and scale a cluster in it 0 → 3 → 1",
		Long: `Bring up a real Cluster API management cluster from Go modules on this machine, with our manager and a simulated
three-node Proxmox VE behind it. Create a cluster in it, scale its MachineDeployment 0 → 3 → 1, delete it, see that
Proxmox VE is empty, and stop.

With --keep the cluster stays, and the sandbox runs until Ctrl-C or "capve sandbox down".

The first run builds Kubernetes: about 6 minutes on two idle cores. Nothing listens on any address but 127.0.0.1.

PVE_REQUEST_LOG=FILE makes the manager append every request it sends to Proxmox VE to FILE as a JSON line.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command.Context(), *name)
		},
	}
	flags.register(command)
	return command
}

// run runs the scenario in a sandbox of that name.
func (f upFlags) run(ctx context.Context, name string) error {
	options, cluster, err := f.options()
	if err != nil {
		return err
	}
	this, err := instance.Named(name)
	if err != nil {
		return err
	}
	if err := this.Acquire(); err != nil {
		return err
	}
	defer this.Release()

	start := time.Now()
	options.Dir, options.Progress = this.Dir(), progress.For(os.Stdout)
	started, err := sandbox.Start(ctx, options)
	if err != nil {
		return err
	}
	defer started.Stop()
	if err := this.Publish(instance.Record{
		PID: os.Getpid(), Started: start, Kubeconfig: started.Kubeconfig(), ProxmoxURL: started.ProxmoxURL(), Logs: started.Dir(),
	}); err != nil {
		return err
	}
	options.Progress.Say("✓ a Cluster API management cluster is up (%s)", progress.Elapsed(time.Since(start)))
	return f.play(ctx, sandbox.NewScenario(started, cluster, options.Progress))
}

// play tells the scenario's story.
func (f upFlags) play(ctx context.Context, scenario sandbox.Scenario) error {
	for _, chapter := range []func(context.Context) error{
		scenario.Up,
		func(ctx context.Context) error { return scenario.Scale(ctx, 0, 3) },
		func(ctx context.Context) error { return scenario.Scale(ctx, 3, 1) },
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	if f.keep {
		return keep(ctx, scenario)
	}
	if err := scenario.DeleteCluster(ctx); err != nil {
		return err
	}
	if left := scenario.Sandbox.Leftovers(); len(left) > 0 {
		return fmt.Errorf("the cluster left in Proxmox VE: %s", strings.Join(left, "; "))
	}
	if failures := scenario.Sandbox.BootFailures(); len(failures) > 0 {
		return fmt.Errorf("machines that did not become nodes: %s", strings.Join(failures, "; "))
	}
	scenario.Progress.Say("✓ Proxmox VE is empty: no virtual machine, no disk, no task is left\n\n%s", nextSteps)
	return nil
}

const nextSteps = `What to try next:
  go run ./cmd/capve sandbox up --keep   the same, but keep it running
  go run ./cmd/capve sandbox --help      all there is`

// keep leaves the sandbox running until the user has had enough.
func keep(ctx context.Context, scenario sandbox.Scenario) error {
	running := scenario.Sandbox
	scenario.Progress.Say(`
The sandbox runs until Ctrl-C or "capve sandbox down". In another terminal:
  export KUBECONFIG=%s
  export PATH=$PATH:%s        # kubectl, if you have none
Proxmox VE's API is at %s; logs are in %s

What to try next:
  kubectl get cluster,machines,proxmoxmachines -o wide
  kubectl scale machinedeployment %s-workers --replicas=2
  kubectl describe proxmoxmachines
  kubectl delete cluster %s`,
		running.Kubeconfig(), running.Programs(), running.ProxmoxURL(), running.Dir(), scenario.Cluster.Name, scenario.Cluster.Name)
	select {
	case <-ctx.Done():
		scenario.Progress.Say("\nstopping")
		return nil
	case err := <-running.Failed():
		return fmt.Errorf("the sandbox broke: %w", err)
	}
}
