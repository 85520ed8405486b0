package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

const (
	// stepTimeout bounds one step of the scenario.
	stepTimeout = 10 * time.Minute
	// showEvery is how often the table is brought up to date.
	showEvery = 500 * time.Millisecond
)

// Scenario is the sandbox's story: a cluster comes up, its MachineDeployment is scaled 0 → 3 → 1, and the cluster goes.
type Scenario struct {
	Sandbox  *Sandbox
	Cluster  Cluster
	Progress *progress.Printer

	table *progress.Table
}

// NewScenario makes a scenario that is told on the printer.
func NewScenario(sandbox *Sandbox, cluster Cluster, printer *progress.Printer) Scenario {
	return Scenario{Sandbox: sandbox, Cluster: cluster, Progress: printer, table: printer.NewTable(Columns())}
}

// Up makes the cluster and waits until it is available with one control plane machine.
func (s Scenario) Up(ctx context.Context) error {
	return s.step(ctx, "Create cluster "+s.Cluster.Name+": a control plane of 1, a MachineDeployment of 0",
		func(ctx context.Context) error { return s.Sandbox.ApplyCluster(ctx, s.Cluster) },
		func(ctx context.Context) error { return s.Sandbox.Available(ctx, s.Cluster, s.Cluster.WorkerReplicas) })
}

// Scale scales the MachineDeployment and waits until all machines are available, or gone.
func (s Scenario) Scale(ctx context.Context, from, to int) error {
	return s.step(ctx, fmt.Sprintf("Scale the MachineDeployment %d → %d", from, to),
		func(ctx context.Context) error { return s.Sandbox.Scale(ctx, s.Cluster, to) },
		func(ctx context.Context) error { return s.settled(ctx, to) })
}

// DeleteCluster deletes the cluster and waits until it is gone.
func (s Scenario) DeleteCluster(ctx context.Context) error {
	return s.step(ctx, "Delete cluster "+s.Cluster.Name,
		func(ctx context.Context) error { return s.Sandbox.DeleteCluster(ctx, s.Cluster) },
		func(ctx context.Context) error { return s.Sandbox.Gone(ctx, s.Cluster) })
}

// settled reports, as an error, why the cluster is not exactly what it should be: available, and no machine too many.
func (s Scenario) settled(ctx context.Context, workers int) error {
	if err := s.Sandbox.Available(ctx, s.Cluster, workers); err != nil {
		return err
	}
	machines, err := s.Sandbox.Machines(ctx, s.Cluster)
	if err != nil {
		return err
	}
	if want := s.Cluster.ControlPlaneReplicas + workers; len(machines) != want {
		return fmt.Errorf("%d machines of %d", len(machines), want)
	}
	return nil
}

// step says what happens, makes it happen, and shows the machines until it has.
func (s Scenario) step(ctx context.Context, title string, begin, until func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	start := time.Now()
	s.Progress.Say("\n%s", title)
	if err := begin(ctx); err != nil {
		return err
	}
	defer s.table.Leave()
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	for {
		pending := until(ctx)
		if err := s.show(ctx, start, pending); err != nil {
			return err
		}
		if pending == nil {
			s.Progress.Say("✓ %s (%s)", title, progress.Elapsed(time.Since(start)))
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", title, errors.Join(ctx.Err(), pending))
		case err := <-s.Sandbox.Failed():
			return err
		case <-tick.C:
		}
	}
}

func (s Scenario) show(ctx context.Context, start time.Time, pending error) error {
	machines, err := s.Sandbox.Machines(ctx, s.Cluster)
	if err != nil {
		return err
	}
	now := time.Now()
	rows := make([][]string, 0, len(machines))
	for _, machine := range machines {
		rows = append(rows, machine.Cells(now))
	}
	footer := ""
	if pending != nil {
		footer = fmt.Sprintf("  %s  %v", progress.Elapsed(now.Sub(start)), pending)
	}
	s.table.Show(rows, footer)
	return nil
}
