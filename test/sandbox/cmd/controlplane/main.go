// Command controlplane prints the directory that holds etcd and kube-apiserver, for KUBEBUILDER_ASSETS, and builds them
// from their Go modules first if need be. A KUBEBUILDER_ASSETS that is set and complete is printed as it is.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/build"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	builder, err := build.New()
	if err != nil {
		return err
	}
	var directory string
	err = progress.For(os.Stderr).Step("etcd and kube-apiserver", func(note func(string)) error {
		directory, err = builder.APIServer(ctx, note)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println(directory)
	return nil
}
