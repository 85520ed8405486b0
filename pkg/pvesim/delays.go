package pvesim

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Durations of a host with fast disks, at a speed of 1. Each is what is typical: World.about draws from around it.
const (
	// forkDelay is what a worker needs to begin its work after the request has been answered.
	forkDelay = 20 * time.Millisecond
	// lockedStep is a change of a config file under a VM's lock file.
	lockedStep = 30 * time.Millisecond
	// templateDelay is renaming a VM's disks to base volumes.
	templateDelay = 250 * time.Millisecond
	// linkDelay is making a volume that refers to a base volume.
	linkDelay = 400 * time.Millisecond
	// allocateDelay is making an empty volume.
	allocateDelay = 200 * time.Millisecond
	// copyRate is how fast the data of a volume is copied: that of a template of 10 GiB with 2 GiB of data in it takes 7 s.
	copyRate = 300 * proxmox.Bytes(1<<20)
	// cloneFailDelay is the second that qemu-server sleeps before it frees the volumes of a failed clone, because «some storage like rbd need to wait before release volume».
	cloneFailDelay = time.Second
	// snapshotDelay is taking, removing or going back to a snapshot of a VM's disks.
	snapshotDelay = 400 * time.Millisecond
	// memoryRate is how fast the memory of a running VM is saved with a snapshot.
	memoryRate = 500 * proxmox.Bytes(1<<20)
)

// about draws a duration from two thirds to four thirds of what is typical.
func (w *World) about(typical time.Duration) time.Duration {
	return w.between(typical*2/3, typical*4/3)
}

// timeFor is how long so many bytes take at that many bytes a second.
func timeFor(n, rate proxmox.Bytes) time.Duration {
	return time.Duration(float64(n) / float64(rate) * float64(time.Second))
}
