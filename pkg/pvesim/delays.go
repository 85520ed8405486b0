package pvesim

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Durations of a host with fast disks, at a speed of 1. Each is what is typical: World.about draws from around it. Timeouts are not
// here but with what they end.
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
	// createDelay is making a VM with its volumes, configDelay changing one in a task.
	createDelay = 600 * time.Millisecond
	configDelay = 300 * time.Millisecond
	// resizeDelay is growing a disk.
	resizeDelay = 400 * time.Millisecond
	// moveDiskDelay is copying a disk to another storage.
	moveDiskDelay = 2 * time.Second
	// destroyDelay is removing a VM with its volumes, removeDelay removing one volume.
	destroyDelay = 600 * time.Millisecond
	removeDelay  = 120 * time.Millisecond
	// startDelay is starting QEMU, failedStartDelay finding out that it does not start, stopDelay ending it.
	startDelay       = 1500 * time.Millisecond
	failedStartDelay = 500 * time.Millisecond
	stopDelay        = 600 * time.Millisecond
	// suspendDelay is saving the memory of a VM that is suspended to disk.
	suspendDelay = 3500 * time.Millisecond
	// migrateDelay is moving a VM that is off, or preparing to move one that runs; migrateDiskDelay and migrateMemoryDelay come on
	// top for each local disk and for a running VM.
	migrateDelay       = 1500 * time.Millisecond
	migrateDiskDelay   = 5 * time.Second
	migrateMemoryDelay = 4500 * time.Millisecond
	// fileCopyDelay is copying an uploaded file or another volume, downloadDelay fetching a file.
	fileCopyDelay = 450 * time.Millisecond
	downloadDelay = 600 * time.Millisecond
	// emptyTaskDelay is a task that a fault keeps from doing anything.
	emptyTaskDelay = 600 * time.Millisecond
	// haRequestDelay is telling the HA manager what to do. A round of the manager comes between haRoundSoonest and haRoundLatest after
	// that, and its agent's work between haWorkSoonest and haWorkLatest after the round.
	haRequestDelay = 450 * time.Millisecond
	haRoundSoonest = 3600 * time.Millisecond
	haRoundLatest  = 3900 * time.Millisecond
	haWorkSoonest  = 3300 * time.Millisecond
	haWorkLatest   = 3600 * time.Millisecond
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
