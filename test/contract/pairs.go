package contract

import (
	"maps"
	"regexp"
	"strings"
)

// A drawn value is one that a server makes up: another server, or the same one another time, gives another. Recorded answers
// name theirs inside of longer texts, too; this finds them. The names of the groups are the kinds.
var drawn = regexp.MustCompile(strings.Join([]string{
	`(?P<upid>UPID:[A-Za-z0-9-]+:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:[a-z0-9_-]+:[^:/\s]*:[^:/\s]+:)`,
	`(?P<fingerprint>\b[0-9A-F]{2}(?::[0-9A-F]{2}){31}\b)`,
	`(?P<mac>\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b)`,
	`(?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)`,
	`(?P<digest>\b[0-9a-f]{40}\b)`,
	`(?P<upload>pveupload-[0-9a-f]{32})`,
	`(?P<process>\bpid \d+\b)`,
	`(?P<temporary>\.tmp(?:_dwnl)?\.\d+)`,
	`(?P<creation>creation-qemu=[0-9.]+)`,
	`(?P<ctime>ctime=\d+)`,
	`(?P<crypt>\$[56]\$[./A-Za-z0-9]+\$[./A-Za-z0-9]+)`,
	`(?P<machine>\bpc-(?:i440fx|q35)-[0-9.]+(?:\+pve\d+)?)`,
	`(?P<qemu>QEMU version '[0-9.]+')`,
	`(?P<moment>\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b)`,
	`(?P<duration>\bduration \d\d:\d\d:\d\d\b)`,
	`(?P<speed>\b[0-9.]+ [KMG]?i?B/s(?: - downtime \d+ ms)?)`,
	`(?P<moved>\btransferred [0-9.]+ [KMG]?i?B\b)`,
	`(?P<date>\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\b)`,
}, "|"))

// digestLength is that of a SHA-1 digest, the only drawn value without a sign between its characters.
const digestLength = 40

// piece is a part of a text: a literal one if kind is empty, a drawn value otherwise.
type piece struct{ kind, text string }

// pieces splits a text at its drawn values.
func pieces(s string) []piece {
	// Most texts are single words, and the expression is slow.
	if len(s) < digestLength && !strings.ContainsAny(s, ":-=. ") {
		return []piece{{text: s}}
	}
	var out []piece
	last := 0
	for _, at := range drawn.FindAllStringSubmatchIndex(s, -1) {
		if at[0] > last {
			out = append(out, piece{text: s[last:at[0]]})
		}
		for group, name := range drawn.SubexpNames() {
			if name != "" && at[2*group] >= 0 {
				out = append(out, piece{name, s[at[0]:at[1]]})
			}
		}
		last = at[1]
	}
	if last < len(s) {
		out = append(out, piece{text: s[last:]})
	}
	return out
}

// Pairs tell which value of the target stands for a value in the recording. They are learned from answers.
type Pairs struct {
	// chosen are values that setup or recorder chose: the target has the same.
	chosen map[string]bool
	// here is by what was recorded, there by what the target has.
	here, there map[string]string
}

// NewPairs returns pairs that know no value.
func NewPairs() *Pairs {
	return &Pairs{chosen: map[string]bool{}, here: map[string]string{}, there: map[string]string{}}
}

// Clone returns a copy to try something with.
func (p *Pairs) Clone() *Pairs {
	return &Pairs{chosen: maps.Clone(p.chosen), here: maps.Clone(p.here), there: maps.Clone(p.there)}
}

// Choose notes the MAC addresses, UUIDs and machine types in a text that the recorder chose.
func (p *Pairs) Choose(s string) {
	for _, x := range pieces(s) {
		if _, known := p.here[key(x)]; !known && (x.kind == "mac" || x.kind == "uuid" || x.kind == "machine") {
			p.chosen[key(x)] = true
		}
	}
}

// Learn makes got stand for want.
func (p *Pairs) Learn(kind, want, got string) {
	p.here[key(piece{kind, want})] = got
	p.there[key(piece{kind, got})] = want
}

// Here returns what stands for a recorded value.
func (p *Pairs) Here(kind, want string) (string, bool) {
	got, ok := p.here[key(piece{kind, want})]
	return got, ok
}

// Known tells whether a value of the target stands for a recorded one.
func (p *Pairs) Known(kind, got string) bool {
	_, ok := p.there[key(piece{kind, got})]
	return ok
}

func key(x piece) string { return x.kind + " " + strings.ToUpper(x.text) }

// Replace puts the target's values in the place of recorded ones.
func (p *Pairs) Replace(s string) string {
	var out strings.Builder
	for _, x := range pieces(s) {
		if got, ok := p.here[key(x)]; ok && x.kind != "" {
			x.text = got
		}
		out.WriteString(x.text)
	}
	return out.String()
}

// Same compares two texts but for drawn values, whose pairs it learns. The literal parts must be equal and the drawn values
// be of the same kinds; a MAC address or UUID must stand for the same recorded one all the time, and be new where the
// recorded one was new.
func (p *Pairs) Same(want, got string) bool {
	a, b := pieces(want), pieces(got)
	if len(a) != len(b) {
		return false
	}
	same := true
	for i := range a {
		same = a[i].kind == b[i].kind && p.samePiece(a[i], b[i]) && same
	}
	return same
}

func (p *Pairs) samePiece(want, got piece) bool {
	switch want.kind {
	case "":
		return want.text == got.text
	case "upid":
		return p.sameUPID(want.text, got.text)
	case "digest":
		p.Learn(want.kind, want.text, got.text)
		return true
	case "mac", "uuid":
		return p.sameIdentity(want, got)
	case "machine":
		return p.sameMachine(want, got)
	}
	return true
}

// sameMachine compares machine types. Where a server pins the version it takes that of its QEMU, which differs.
func (p *Pairs) sameMachine(want, got piece) bool {
	if p.chosen[key(want)] {
		return want.text == got.text
	}
	return strings.HasPrefix(want.text, "pc-q35") == strings.HasPrefix(got.text, "pc-q35")
}

// sameIdentity compares a MAC address or UUID. What differs is learned all the same, so that one miss is not counted again
// in every later answer.
func (p *Pairs) sameIdentity(want, got piece) bool {
	if p.chosen[key(want)] {
		return key(want) == key(got)
	}
	if known, ok := p.here[key(want)]; ok && strings.EqualFold(known, got.text) {
		return true
	} else if ok {
		p.Learn(want.kind, want.text, got.text)
		return false
	}
	other, taken := p.there[key(got)]
	p.Learn(want.kind, want.text, got.text)
	return !p.chosen[key(got)] && (!taken || strings.EqualFold(other, want.text))
}

// sameUPID compares what a UPID says: node, type, ID and user.
func (p *Pairs) sameUPID(want, got string) bool {
	a, b := strings.Split(want, ":"), strings.Split(got, ":")
	if known, ok := p.Here("upid", want); ok {
		return known == got
	}
	p.Learn("upid", want, got)
	return a[1] == b[1] && a[5] == b[5] && a[6] == b[6] && a[7] == b[7]
}
