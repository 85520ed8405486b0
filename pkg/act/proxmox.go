package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// request sends the one request of an action.
func request(ctx context.Context, cluster *pve.Cluster, action plan.Action) (Outcome, error) {
	switch action := action.(type) { // partial: Machine sends the others elsewhere
	case plan.Clone:
		return started(cluster.CloneVM(ctx, cloneRequest(action)))
	case plan.Create:
		return started(cluster.CreateVM(ctx, pve.CreateRequest{VM: ref(action.VM), Pool: action.Pool, Config: action.Config}))
	case plan.UploadSeed:
		return uploadSeed(ctx, cluster, action)
	case plan.Configure:
		return configure(ctx, cluster, action.VM, action.Change, action.Digest)
	case plan.Reconfigure:
		return configure(ctx, cluster, action.VM, action.Change, action.Digest)
	case plan.Resize:
		return started(cluster.ResizeDisk(ctx, pve.ResizeRequest{VM: ref(action.VM), Disk: action.Disk, Size: action.Size, Digest: action.Digest}))
	case plan.MovePool:
		return Outcome{}, movePool(ctx, cluster, action)
	case plan.EditFirewall:
		return Outcome{}, editFirewall(ctx, cluster, ref(action.VM), action.Edit)
	case plan.EditHA:
		return Outcome{}, editHighAvailability(ctx, cluster, action.VM.ID, action.Edit)
	case plan.Start:
		return started(cluster.StartVM(ctx, ref(action.VM)))
	case plan.EjectSeed:
		return configure(ctx, cluster, action.VM, action.Change, action.Digest)
	case plan.DeleteSeed:
		return deleteSeed(ctx, cluster, action)
	case plan.Shutdown:
		return started(cluster.ShutdownVM(ctx, ref(action.VM), action.Patience))
	case plan.WithdrawSeed:
		outcome, err := deleteSeed(ctx, cluster, plan.DeleteSeed(action))
		return Outcome{Task: outcome.Task}, err // the VM gets another seed
	case plan.Stop:
		return started(cluster.StopVM(ctx, ref(action.VM)))
	case plan.Destroy:
		return destroy(ctx, cluster, action.VM)
	}
	return Outcome{}, fmt.Errorf("action %T is no request to Proxmox VE", action)
}

func ref(vm plan.VirtualMachine) pve.VMRef { return pve.VMRef{Node: vm.Node, ID: vm.ID} }

func started(task proxmox.UPID, err error) (Outcome, error) { return Outcome{Task: task}, err }

func cloneRequest(action plan.Clone) pve.CloneRequest {
	clone := pve.CloneRequest{
		Source: pve.VMRef{Node: action.SourceNode, ID: action.Source}, NewID: action.VM.ID,
		Name: action.Name, Description: action.Description, Pool: action.Pool, SnapName: action.Snapshot,
		Storage: action.Storage, Format: string(action.Format), Mode: pve.CloneFull,
	}
	if action.Mode == v1beta1.CloneModeLinked {
		clone.Mode = pve.CloneLinked
	}
	if action.VM.Node != action.SourceNode {
		clone.Target = action.VM.Node
	}
	return clone
}

func uploadSeed(ctx context.Context, cluster *pve.Cluster, action plan.UploadSeed) (Outcome, error) {
	image, err := seedImage(action.Seed)
	if err != nil {
		return Outcome{}, fmt.Errorf("make the seed ISO of VM %d: %w", action.VM.ID, err)
	}
	return started(cluster.UploadISO(ctx, pve.UploadRequest{
		Node: action.VM.Node, Storage: action.Storage, Filename: vmconfig.SeedFileName(action.VM.UUID), Content: image,
	}))
}

// configure changes the config that the plan was made from: the digest refuses any other, so that the identity which was
// read in it still holds.
func configure(ctx context.Context, cluster *pve.Cluster, vm plan.VirtualMachine, change vmconfig.Change, digest proxmox.Digest) (Outcome, error) {
	update := pve.ConfigUpdate{VM: ref(vm), Set: change.Set, Delete: change.Delete, Digest: digest}
	if change.Allocates() {
		return started(cluster.UpdateConfigInTask(ctx, update))
	}
	return Outcome{}, cluster.UpdateConfig(ctx, update)
}

func deleteSeed(ctx context.Context, cluster *pve.Cluster, action plan.DeleteSeed) (Outcome, error) {
	task, err := cluster.DeleteVolume(ctx, action.VM.Node, action.Volume)
	if pve.IsNoStorage(err) { // Proxmox VE has no such volume any more. Other errors, as of a node's name, prove nothing
		err = nil
	}
	return Outcome{Task: task, SeedRemoved: err == nil && task == ""}, err
}

// destroy reads the VM's config once more, right before: a destroy cannot be taken back.
func destroy(ctx context.Context, cluster *pve.Cluster, vm plan.VirtualMachine) (Outcome, error) {
	if err := proveIdentity(ctx, cluster, vm, "destroyed"); err != nil {
		return Outcome{}, err
	}
	return started(cluster.DestroyVM(ctx, pve.DestroyRequest{VM: ref(vm)}))
}

// proveIdentity reads the VM's config, which says whose it is, before something is done to it that names its VMID alone.
func proveIdentity(ctx context.Context, cluster *pve.Cluster, vm plan.VirtualMachine, done string) error {
	config, err := cluster.VMConfig(ctx, ref(vm))
	if err != nil {
		return fmt.Errorf("read the identity of VM %d before it is %s: %w", vm.ID, done, err)
	}
	if !vmconfig.Config(config.Values).BelongsTo(vm.UUID) {
		return fmt.Errorf("VM %d on %s is not %s: %w", vm.ID, vm.Node, done, ErrNotOurs)
	}
	return nil
}

// errRefused says that Proxmox VE refuses a change of a VM that ran once. It is remembered, and the plan goes on without it.
var errRefused = errors.New("the change is refused by Proxmox VE")

// IsStale reports whether an action was refused because the world had changed since the snapshot it was planned from, or is
// now known to be refused: it is planned anew, at once.
func IsStale(err error) bool {
	return pve.ClassOf(err) == pve.Conflict || errors.Is(err, observe.ErrLedgerChanged) || errors.Is(err, observe.ErrNoSlot) || errors.Is(err, errRefused) ||
		errors.Is(err, errRuleChanged)
}
