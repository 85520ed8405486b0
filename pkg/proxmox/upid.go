package proxmox

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// UPID identifies one PVE task: `UPID:node:pid:pstart:starttime:type:id:user:`, the numbers in hexadecimal. The user may
// hold `@` and `!`, as in `capi@pve!token` (PVE::Tools::upid_decode in pve-common).
type UPID string

// TaskID is a UPID taken apart.
type TaskID struct {
	Node NodeName
	// PID and PStart are the worker's process id and start ticks on the node.
	PID, PStart uint64
	// Started is when the task began, in whole seconds of the node's clock.
	Started time.Time
	// Type is the worker type, for example qmclone, qmstart, imgcopy.
	Type string
	// ID is what the task works on, mostly a VMID; empty for an upload.
	ID string
	// User is who started it, with the token's name after `!`.
	User string
}

// upidFields counts the colon-separated parts of a UPID, with the empty one behind the last colon.
const upidFields = 9

// Parse takes the UPID apart. It never panics; a malformed UPID is an error that quotes it.
func (u UPID) Parse() (TaskID, error) {
	parts := strings.Split(string(u), ":")
	if len(parts) != upidFields || parts[0] != "UPID" || parts[1] == "" || parts[8] != "" {
		return TaskID{}, fmt.Errorf("parse task identifier %q: want the form UPID:node:pid:pstart:starttime:type:id:user: of PVE", string(u))
	}
	numbers := [3]uint64{}
	for i := range numbers {
		n, err := strconv.ParseUint(parts[2+i], 16, 63)
		if err != nil {
			return TaskID{}, fmt.Errorf("parse task identifier %q: field %d: %w", string(u), 2+i, err)
		}
		numbers[i] = n
	}
	return TaskID{
		Node: NodeName(parts[1]), PID: numbers[0], PStart: numbers[1], Started: time.Unix(int64(numbers[2]), 0).UTC(),
		Type: parts[5], ID: parts[6], User: parts[7],
	}, nil
}
