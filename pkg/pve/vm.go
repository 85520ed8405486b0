package pve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// VMRef is where a VM is: PVE's paths need the node as well as the VMID.
type VMRef struct {
	Node proxmox.NodeName
	ID   proxmox.VMID
}

// String returns node/vmid.
func (r VMRef) String() string { return string(r.Node) + "/" + r.ID.String() }

// call starts a request about the VM.
func (r VMRef) call(method, below string) (*call, error) {
	call, err := newCall(method, "/nodes/{node}/qemu/{vmid}"+below, string(r.Node), r.ID.String())
	if err == nil && r.ID <= 0 {
		err = call.refuse("no VMID")
	}
	return call, err
}

// VMConfig reads the config as it will be at the next start, with changes that are still pending.
// A VM that is not on the node is an error of class NotFound: look it up in the inventory before believing it is gone.
func (c *Client) VMConfig(ctx context.Context, vm VMRef) (VMConfig, error) {
	return c.config(ctx, vm, "", "")
}

// CurrentVMConfig reads the config that the running VM has, without pending changes.
func (c *Client) CurrentVMConfig(ctx context.Context, vm VMRef) (VMConfig, error) {
	return c.config(ctx, vm, "current", "1")
}

// SnapshotConfig reads the config that the VM had at a snapshot. An absent snapshot is an error of class Missing. Without a
// name it is VMConfig.
func (c *Client) SnapshotConfig(ctx context.Context, vm VMRef, name string) (VMConfig, error) {
	return c.config(ctx, vm, "snapshot", name)
}

func (c *Client) config(ctx context.Context, vm VMRef, option, value string) (VMConfig, error) {
	call, err := vm.call(http.MethodGet, "/config")
	if err == nil && value != "" {
		call.set(option, value)
	}
	data, err := c.get(ctx, call, err)
	if err != nil {
		return VMConfig{}, err
	}
	config, err := decodeVMConfig(data)
	if err != nil {
		return VMConfig{}, c.undecodable(call, err)
	}
	return config, nil
}

// PendingVMConfig reads the config as it will be at the next start, and which keys wait for that.
func (c *Client) PendingVMConfig(ctx context.Context, vm VMRef) (PendingVMConfig, error) {
	call, err := vm.call(http.MethodGet, "/pending")
	list, err := c.list(ctx, call, err)
	if err != nil {
		return PendingVMConfig{}, err
	}
	return decodePending(list), nil
}

// VMStatus is what the node says of a VM right now.
type VMStatus struct {
	// Status is running or stopped; QMPStatus tells more of a running one: paused, prelaunch, io-error.
	Status, QMPStatus string
	Name              string
	// Lock is the config lock, empty if none.
	Lock string
	Tags []string
	// HAManaged: start and stop are requests to the HA manager, whose task ends before anything happened.
	HAManaged bool
	Template  bool
	// PID is QEMU's process, 0 if stopped.
	PID    int64
	Uptime time.Duration
}

// VMStatus asks the VM's node. A VM that is not on the node is an error of class NotFound.
func (c *Client) VMStatus(ctx context.Context, vm VMRef) (VMStatus, error) {
	call, err := vm.call(http.MethodGet, "/status/current")
	data, err := c.get(ctx, call, err)
	if err != nil {
		return VMStatus{}, err
	}
	status, err := decodeVMStatus(data)
	if err != nil {
		return VMStatus{}, c.undecodable(call, err)
	}
	return status, nil
}

func decodeVMStatus(data []byte) (VMStatus, error) {
	var object fields
	if err := json.Unmarshal(data, &object); err != nil {
		return VMStatus{}, err
	}
	var ha fields
	_ = json.Unmarshal([]byte(object["ha"]), &ha) // absent or odd: not managed
	return VMStatus{
		Status: string(object["status"]), QMPStatus: string(object["qmpstatus"]), Name: string(object["name"]),
		Lock: string(object["lock"]), Tags: object["tags"].list(), HAManaged: ha["managed"].flag(),
		Template: object["template"].flag(), PID: object["pid"].integer(), Uptime: object["uptime"].seconds(),
	}, nil
}

// CloneMode says what becomes of the disks.
type CloneMode string

// The modes of a clone.
const (
	// CloneDefault leaves it to PVE: linked for templates, full for VMs.
	CloneDefault CloneMode = ""
	// CloneFull copies the disks.
	CloneFull CloneMode = "full"
	// CloneLinked stores the differences to the template's disks.
	CloneLinked CloneMode = "linked"
)

// CloneRequest asks for a copy of a VM or template. Everything optional may be empty.
type CloneRequest struct {
	Source VMRef
	// NewID is the VMID of the clone; choose it, PVE reserves none.
	NewID       proxmox.VMID
	Name        string
	Description string
	// Target is the node of the clone if it is another than the source's; all disks must then be on shared storage.
	Target proxmox.NodeName
	// Pool becomes the clone's pool, and is where VM.Allocate is looked for.
	Pool proxmox.PoolID
	// Storage and Format are for full clones only; Format is raw, qcow2 or vmdk.
	Storage proxmox.StorageID
	Format  string
	Mode    CloneMode
	// SnapName is a snapshot of the source to clone.
	SnapName string
}

// CloneVM starts the clone's task on the source's node. Nothing may touch the clone before the task has ended: it holds
// the clone's lock.
func (c *Client) CloneVM(ctx context.Context, request CloneRequest) (proxmox.UPID, error) {
	call, err := request.Source.call(http.MethodPost, "/clone")
	if err == nil {
		call.wantTask = true
		call.set("newid", request.NewID.String()).set("name", request.Name).set("description", request.Description).
			set("target", string(request.Target)).set("pool", string(request.Pool)).set("storage", string(request.Storage)).
			set("format", request.Format).set("snapname", request.SnapName).set("full", request.Mode.param())
	}
	return task(c.submit(ctx, call, err))
}

func (m CloneMode) param() string {
	switch m {
	case CloneFull:
		return "1"
	case CloneLinked:
		return "0"
	default:
		return ""
	}
}

// CreateRequest asks for a new VM.
type CreateRequest struct {
	// VM says where it is made, and its VMID; choose it, PVE reserves none.
	VM VMRef
	// Pool becomes the VM's pool, and is where its rights are looked for.
	Pool proxmox.PoolID
	// Config holds values as PVE wants them, as in ConfigUpdate. Drives may be new, `storage:GiB`, or imported.
	Config map[string]string
}

// CreateVM starts the task that makes a VM. The VM is locked until the task has ended, and has nothing of its config before.
func (c *Client) CreateVM(ctx context.Context, request CreateRequest) (proxmox.UPID, error) {
	call, err := newCall(http.MethodPost, "/nodes/{node}/qemu", string(request.VM.Node))
	if err == nil && request.VM.ID <= 0 {
		err = call.refuse("no VMID")
	}
	if err == nil {
		call.wantTask = true
		call.setAll(request.Config).set("vmid", request.VM.ID.String()).set("pool", string(request.Pool))
	}
	return task(c.submit(ctx, call, err))
}

// ConfigUpdate changes a VM's config.
type ConfigUpdate struct {
	VM VMRef
	// Set holds values as PVE wants them: booleans 1 and 0, sshkeys URL-encoded within the value.
	Set map[string]string
	// Delete lists the options to remove.
	Delete []string
	// Digest, if not empty, makes the update fail with class Conflict when the config has changed since.
	Digest proxmox.Digest
}

// UpdateConfig changes the config and returns when it is done. On a running VM, values that cannot be hotplugged wait for
// its next start. An update that changes nothing sends nothing.
func (c *Client) UpdateConfig(ctx context.Context, update ConfigUpdate) error {
	call, err := update.VM.call(http.MethodPut, "/config")
	if err == nil {
		if len(update.Set)+len(update.Delete) == 0 {
			return nil
		}
		call.change(update.Set, update.Delete, update.Digest)
	}
	_, err = c.submit(ctx, call, err)
	return err
}

// UpdateConfigInTask starts the task that changes the config: PVE makes disks in no other way. The task fails on a digest that
// does not match.
func (c *Client) UpdateConfigInTask(ctx context.Context, update ConfigUpdate) (proxmox.UPID, error) {
	call, err := update.VM.call(http.MethodPost, "/config")
	if err == nil {
		call.wantTask = true
		call.change(update.Set, update.Delete, update.Digest)
	}
	return task(c.submit(ctx, call, err))
}

// ResizeRequest grows a disk.
type ResizeRequest struct {
	VM VMRef
	// Disk is the option's name, for example scsi0.
	Disk string
	// Size is the whole size, so that repeating the request does no harm. PVE refuses, in the task, to shrink.
	Size proxmox.Bytes
	// Digest, if not empty, guards as in ConfigUpdate; a mismatch fails the task.
	Digest proxmox.Digest
}

// ResizeDisk starts the task that grows a disk.
func (c *Client) ResizeDisk(ctx context.Context, request ResizeRequest) (proxmox.UPID, error) {
	call, err := request.VM.call(http.MethodPut, "/resize")
	if err == nil && request.Size <= 0 {
		err = call.refuse("size is not positive")
	}
	if err == nil {
		call.wantTask = true
		call.set("disk", request.Disk).set("size", sizeText(request.Size)).set("digest", string(request.Digest))
	}
	return task(c.submit(ctx, call, err))
}

// sizeText writes a size in the largest unit that divides it.
func sizeText(size proxmox.Bytes) string {
	units := []string{"", "K", "M", "G", "T"}
	unit := 0
	for unit < len(units)-1 && size%1024 == 0 {
		size /= 1024
		unit++
	}
	return strconv.FormatInt(int64(size), 10) + units[unit]
}

// StartVM starts the task that starts the VM. A VM that runs already fails the task with class WrongState.
func (c *Client) StartVM(ctx context.Context, vm VMRef) (proxmox.UPID, error) {
	return c.power(ctx, vm, "/status/start")
}

// StopVM starts the task that turns the VM off at once. Stopping a stopped VM succeeds.
func (c *Client) StopVM(ctx context.Context, vm VMRef) (proxmox.UPID, error) {
	return c.power(ctx, vm, "/status/stop")
}

// ShutdownVM starts the task that has the guest shut the VM down. When that takes longer than the patience, the VM is turned
// off. Shutting down a stopped VM succeeds.
func (c *Client) ShutdownVM(ctx context.Context, vm VMRef, patience time.Duration) (proxmox.UPID, error) {
	call, err := vm.call(http.MethodPost, "/status/shutdown")
	if err == nil {
		call.wantTask = true
		call.set("timeout", strconv.Itoa(int(patience.Seconds()))).set("forceStop", "1")
	}
	return task(c.submit(ctx, call, err))
}

func (c *Client) power(ctx context.Context, vm VMRef, below string) (proxmox.UPID, error) {
	call, err := vm.call(http.MethodPost, below)
	if err == nil {
		call.wantTask = true
	}
	return task(c.submit(ctx, call, err))
}

// DestroyRequest names the VM to destroy.
type DestroyRequest struct{ VM VMRef }

// DestroyVM starts the task that removes a stopped VM with the disks in its config, and its HA, backup and replication
// entries. Disks that only have its VMID in their names stay: on a storage that two PVE clusters share they are of the
// other's VM. Make sure that the VM is the one you mean: PVE does not.
func (c *Client) DestroyVM(ctx context.Context, request DestroyRequest) (proxmox.UPID, error) {
	call, err := request.VM.call(http.MethodDelete, "")
	if err == nil {
		call.wantTask = true
		call.params = url.Values{"purge": {"1"}}
	}
	return task(c.del(ctx, call, err))
}
