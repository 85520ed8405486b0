package schema

import (
	"strconv"
	"strings"
)

// Kind is the JSON-schema type of a parameter.
type Kind string

// The kinds of parameters.
const (
	StringKind  Kind = "string"
	IntegerKind Kind = "integer"
	NumberKind  Kind = "number"
	BooleanKind Kind = "boolean"
	ListKind    Kind = "array"
)

// Param is one parameter of an endpoint, with what Proxmox VE checks of it. The builders Text, Integer … make one, and its
// methods return copies that check more.
type Param struct {
	Name     string
	Kind     Kind
	Optional bool
	// Enum are the only values allowed; nil allows all.
	Enum []string
	// Minimum and Maximum are inclusive; nil means no limit.
	Minimum, Maximum *float64
	// Longest is the length allowed, in characters. Zero means no limit.
	Longest int
	// Shortest is the length asked for, in characters. Zero means no limit.
	Shortest int
	// Regexp must match the whole value, unless it is empty.
	Regexp string
	// FormatName is the format that the value must have; one that this package does not know takes every value.
	FormatName string
	// Needs is the parameter that must be given with this one; empty for none.
	Needs string
	// Count is how many indexed parameters name0, name1 … this one stands for; zero means it is not indexed.
	Count int
	// Properties are those of a value like `virtio,bridge=vmbr0`; nil for other values.
	Properties *PropertyString
}

// Text is an optional string.
func Text(name string) Param { return Param{Name: name, Kind: StringKind, Optional: true} }

// Integer is an optional whole number.
func Integer(name string) Param { return Param{Name: name, Kind: IntegerKind, Optional: true} }

// Number is an optional number.
func Number(name string) Param { return Param{Name: name, Kind: NumberKind, Optional: true} }

// Boolean is an optional 0 or 1.
func Boolean(name string) Param { return Param{Name: name, Kind: BooleanKind, Optional: true} }

// List is an optional list; its elements are what its properties or format say. As a form value they are separated by a NUL byte.
func List(name string) Param { return Param{Name: name, Kind: ListKind, Optional: true} }

// Choice is an optional string out of the values.
func Choice(name string, values ...string) Param { return Text(name).OneOf(values...) }

// VMID is an optional ID of a guest.
func VMID(name string) Param { return Integer(name).Format("pve-vmid").Min(100).Max(999999999) }

// Required makes the parameter one that must be given.
func (p Param) Required() Param { p.Optional = false; return p }

// OneOf allows only the values.
func (p Param) OneOf(values ...string) Param { p.Enum = values; return p }

// Min sets the smallest value allowed.
func (p Param) Min(low float64) Param { p.Minimum = &low; return p }

// Max sets the largest value allowed.
func (p Param) Max(high float64) Param { p.Maximum = &high; return p }

// MaxLength limits the value to n characters.
func (p Param) MaxLength(n int) Param { p.Longest = n; return p }

// MinLength asks for n characters at least.
func (p Param) MinLength(n int) Param { p.Shortest = n; return p }

// Pattern sets the regular expression that the whole value must match.
func (p Param) Pattern(expression string) Param { p.Regexp = expression; return p }

// Format sets the format by its name in Proxmox VE, for example pve-node.
func (p Param) Format(name string) Param { p.FormatName = name; return p }

// Requires names the parameter that must be given with this one.
func (p Param) Requires(other string) Param { p.Needs = other; return p }

// Times makes it stand for the n parameters name0, name1 …
func (p Param) Times(n int) Param { p.Count = n; return p }

// Of sets the properties of its value.
func (p Param) Of(s PropertyString) Param { p.Properties = &s; return p }

// Lookup finds the parameter that a key means, an indexed one by its index. It returns nil for an unknown key.
func Lookup(params []Param, key string) *Param {
	base := strings.TrimRight(key, "0123456789")
	for i := range params {
		p := &params[i]
		if p.Count == 0 && p.Name == key {
			return p
		}
		if p.Count > 0 && p.Name == base && validIndex(key[len(base):], p.Count) {
			return p
		}
	}
	return nil
}

func validIndex(s string, count int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n < count && strconv.Itoa(n) == s
}
