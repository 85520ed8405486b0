package pvesim_test

import (
	"fmt"
	"strconv"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// operation is a request that a client may make at any time.
type operation struct {
	method, path string
	params       []string
}

func (o operation) String() string { return fmt.Sprint(o.method, " ", o.path, " ", o.params) }

// dice draws a number from 0 to n-1.
type dice func(n int) int

func (d dice) one(of ...string) string { return of[d(len(of))] }

// managed is a VM that the HA manager looks after: it is there from the start, and is not made again when it is gone.
const managed = "300"

// vmid is one of a few, so that operations meet.
func (d dice) vmid() string { return strconv.Itoa(200 + d(5)) }

// operation draws one of those that never break a world, whatever their order. Not among them are those that do so on a real host:
// deleting a disk that is in use, a firewall or membership of a VM that does not exist, or HA for a VM that just comes or goes.
func (d dice) operation() operation {
	id, node := d.vmid(), d.one("pve1", "pve2")
	vm := "/nodes/" + node + "/qemu/" + d.one(id, id, managed)
	draws := []func() operation{
		func() operation { return d.make(id, node) },
		func() operation { return d.clone(id, node) },
		func() operation { return d.configure(vm) },
		func() operation { return d.power(vm) },
		func() operation { return d.snapshot(vm) },
		func() operation {
			return operation{"DELETE", vm, []string{"purge", d.one("0", "1"), "destroy-unreferenced-disks", d.one("0", "1")}}
		},
		func() operation {
			return operation{"POST", vm + "/migrate", []string{"target", d.one("pve1", "pve2"), "online", d.one("0", "1")}}
		},
		func() operation { return d.member(id) },
		func() operation {
			return operation{"GET", d.one("/cluster/resources", "/cluster/tasks", vm+"/config", vm+"/status/current", "/nodes"), nil}
		},
	}
	return draws[d(len(draws))]()
}

func (d dice) make(id, node string) operation {
	storage := d.one("local-lvm", "shared", "local-lvm")
	return operation{"POST", "/nodes/" + node + "/qemu", []string{
		"vmid", id, "scsi0", storage + ":1", "net0", "virtio,bridge=vmbr0", "pool", "capi", "start", d.one("0", "1"), "ide2", storage + ":cloudinit",
	}}
}

func (d dice) clone(id, node string) operation {
	source := d.one("9001", "9002", d.vmid())
	params := []string{"newid", id}
	switch d(4) {
	case 0:
		params = append(params, "full", "1", "storage", "shared", "target", d.one("pve1", "pve2"))
	case 1:
		params = append(params, "full", "1")
	case 2:
		params = append(params, "full", "0", "pool", "capi")
	}
	return operation{"POST", "/nodes/" + node + "/qemu/" + source + "/clone", params}
}

func (d dice) configure(vm string) operation {
	switch d(7) {
	case 0:
		return operation{"PUT", vm + "/config", []string{"memory", d.one("512", "1024"), "cores", d.one("1", "2"), "tags", d.one("a;b", "c")}}
	case 1:
		return operation{"POST", vm + "/config", []string{"scsi1", d.one("local-lvm", "shared") + ":1"}}
	case 2:
		return operation{"PUT", vm + "/config", []string{"delete", d.one("scsi1", "unused0", "ide2", "tags"), "force", d.one("0", "1")}}
	case 3:
		return operation{"PUT", vm + "/config", []string{"net1", "virtio,bridge=vmbr0"}}
	case 4:
		return operation{"PUT", vm + "/config", []string{"revert", "memory"}}
	case 5:
		return operation{"POST", vm + "/template", nil}
	}
	return operation{"PUT", vm + "/resize", []string{"disk", "scsi0", "size", "+1G"}}
}

func (d dice) power(vm string) operation {
	return operation{"POST", vm + "/status/" + d.one("start", "start", "stop", "shutdown", "reset", "suspend", "resume", "reboot"), nil}
}

func (d dice) snapshot(vm string) operation {
	name := d.one("one", "two")
	switch d(3) {
	case 0:
		return operation{"DELETE", vm + "/snapshot/" + name, nil}
	case 1:
		return operation{"POST", vm + "/snapshot/" + name + "/rollback", nil}
	}
	return operation{"POST", vm + "/snapshot", []string{"snapname", name, "vmstate", d.one("0", "1")}}
}

func (d dice) member(id string) operation {
	switch d(3) {
	case 0:
		return operation{"PUT", "/cluster/ha/resources/vm:" + managed, []string{"state", d.one("started", "stopped", "ignored")}}
	case 1:
		return operation{"DELETE", "/cluster/ha/resources/vm:" + managed, nil}
	}
	return operation{"PUT", "/pools", []string{"poolid", "capi", "vms", id, "delete", "1"}}
}

// fault draws one that clients have to live with.
func (d dice) fault() pvesim.Fault {
	f := pvesim.Fault{Method: d.one("", "POST", "PUT", "DELETE"), Percent: 5 + d(20)}
	switch d(4) {
	case 0:
		f.Status = 500
	case 1:
		f.When, f.Status = pvesim.AfterEffect, 596
	case 2:
		f.When = pvesim.DropReply
	case 3:
		f.TaskError = "out of luck"
	}
	return f
}
