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
	after := follow(below, ours, former)
	if after == below {
		return observed["description"]
	}
	return joinNotes(above, strings.TrimSpace(follow(after, ours, former))) // what was put there may, with what follows, be what is to go
}

// follow puts ours in the place of what the spec had, but only where that stands by itself: a sentence of somebody else's may
// have the same words. It changes nothing the second time, as the spec counts as new until it is written down as applied.
func follow(below, ours, former string) string {
	if former != ours && (ours == "" || paragraphs(former, ours) >= 0) { // ours would be seen in what is to go
		for at := paragraphs(below, former); at >= 0; at = paragraphs(below, former) {
			below = replaceNotes(below, at, former, ours)
		}
	}
	if ours == "" || paragraphs(below, ours) >= 0 {
		return below
	}
	if at := paragraphs(below, former); at >= 0 {
		return replaceNotes(below, at, former, ours)
	}
	return ours + "\n\n" + strings.TrimSpace(below)
}

func replaceNotes(text string, at int, former, ours string) string {
	before, after := text[:at], text[at+len(former):]
	if ours == "" { // not two gaps in the place of one
		return strings.TrimRight(before, blanks) + "\n\n" + strings.TrimLeft(after, blanks)
	}
	return before + ours + after
}

// blanks are what may stand between paragraphs.
const blanks = " \t\r\n"

// paragraphs is where a part stands in a text with blank lines, or nothing, around it; -1 if nowhere.
func paragraphs(text, part string) int {
	if part == "" {
		return -1
	}
	for from := 0; ; {
		at := strings.Index(text[from:], part)
		if at < 0 {
			return -1
		}
		at += from
		before, after := text[:at], text[at+len(part):]
		kept, rest := strings.TrimRight(before, blanks), strings.TrimLeft(after, blanks)
		if (kept == "" || isGap(before[len(kept):])) && (rest == "" || isGap(after[:len(after)-len(rest)])) {
			return at
		}
		from = at + 1
	}
}

// isGap reports whether there is a blank line in what stands between two texts.
func isGap(between string) bool { return strings.Count(between, "\n") > 1 }

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
