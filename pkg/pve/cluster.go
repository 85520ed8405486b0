package pve

import (
	"context"
	"strings"
	"sync"
)

// Cluster is a PVE cluster put together: requests, inventory and tasks over one set of connections.
type Cluster struct {
	*Client
	Inventory *Inventory
	Tracker   *Tracker

	fingerprint string
}

// Open checks the configuration and puts the cluster together. It sends nothing; Run does.
func Open(config Config) (*Cluster, error) {
	client, err := NewClient(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		Client:      client,
		Inventory:   newInventory(client, client.region, client.options, client.metrics),
		Tracker:     newTracker(client, client.region, client.options, client.metrics),
		fingerprint: config.Fingerprint(),
	}, nil
}

// Fingerprint is that of the configuration the cluster was opened with.
func (c *Cluster) Fingerprint() string { return c.fingerprint }

// Endpoint is the first of the endpoints. It stays when credentials change, which make another Cluster.
func (c *Cluster) Endpoint() string { return strings.TrimSuffix(c.base, apiPrefix) }

// Run polls the inventory, follows tasks and calls listeners until the context ends. It returns nil then, after all it
// started has ended but for a listener that hangs.
func (c *Cluster) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for _, loop := range []func(context.Context){
		c.Inventory.run, c.Inventory.changes.run, c.Tracker.run, c.Tracker.done.run,
	} {
		group.Go(func() { loop(ctx) })
	}
	group.Wait()
	c.CloseIdleConnections()
	c.metrics.forget(c.region)
	return nil
}
