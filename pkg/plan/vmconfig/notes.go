package vmconfig

import (
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Description returns the description of a VM: for people what it is, for us the marker. It is set at the clone, before
// SMBIOS and tags can be. The second line is ours; people may add others.
func Description(machine string, uuid proxmox.SMBIOSUUID) string {
	return fmt.Sprintf("Cluster API machine %s, managed by CAPVE.\n\n%s%s\n", machine, markerPrefix, uuid)
}

// Marker returns the line of a description that marks the VM with the identity.
func Marker(uuid proxmox.SMBIOSUUID) string { return markerPrefix + string(uuid) }

// Description returns the description of a new VM: ours, and below it what the spec has.
func (d Desired) Description() string { return d.notes(nil) }

// notes is the description, on top of the one that is there. One that has our marker stays, with what people wrote in it. What
// the spec has is below the marker: it takes the place of what the spec had, and what others wrote comes after it.
func (d Desired) notes(observed Config) string {
	ours, former := strings.TrimSpace(d.Spec.Description), strings.TrimSpace(d.former)
	if !observed.describes(d.UUID) {
		return joinNotes(Description(d.Machine, d.UUID), ours)
	}
	above, below := cutNotes(observed["description"])
	switch {
	case former != "" && former != ours && strings.Contains(below, former):
		return joinNotes(above, strings.TrimSpace(strings.Replace(below, former, ours, 1)))
	case strings.Contains(below, ours): // an empty one, too
		return observed["description"]
	}
	return joinNotes(above, strings.TrimSpace(ours+"\n\n"+strings.TrimSpace(below)))
}

func joinNotes(above, below string) string {
	if below == "" {
		return strings.TrimRight(above, "\r\n") + "\n"
	}
	return strings.TrimRight(above, "\r\n") + "\n\n" + below + "\n"
}

// cutNotes parts a description after the line with a marker.
func cutNotes(description string) (above, below string) {
	at := strings.Index(description, markerPrefix)
	if at < 0 {
		return "", description
	}
	end := strings.IndexByte(description[at:], '\n')
	if end < 0 {
		return description, ""
	}
	return description[:at+end+1], description[at+end+1:]
}
