package pvesim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// kind is the JSON-schema type of a parameter.
type kind string

const (
	stringKind  kind = "string"
	integerKind kind = "integer"
	numberKind  kind = "number"
	booleanKind kind = "boolean"
)

// param is one parameter of an endpoint, with what Proxmox VE checks of it (PVE::JSONSchema::check_prop).
type param struct {
	name     string
	kind     kind
	optional bool
	enum     []string
	low      *float64
	high     *float64
	maxLen   int
	pattern  string
	format   string
	requires string
	// count is how many indexed parameters name0, name1 … this one stands for; zero means it is not indexed.
	count int
	// props are the properties of a value like `virtio,bridge=vmbr0`.
	props *propertyString
}

func text(name string) param    { return param{name: name, kind: stringKind, optional: true} }
func integer(name string) param { return param{name: name, kind: integerKind, optional: true} }
func number(name string) param  { return param{name: name, kind: numberKind, optional: true} }
func boolean(name string) param { return param{name: name, kind: booleanKind, optional: true} }

func choice(name string, values ...string) param {
	return param{name: name, kind: stringKind, optional: true, enum: values}
}

func (p param) required() param           { p.optional = false; return p }
func (p param) as(format string) param    { p.format = format; return p }
func (p param) min(low float64) param     { p.low = &low; return p }
func (p param) max(high float64) param    { p.high = &high; return p }
func (p param) long(n int) param          { p.maxLen = n; return p }
func (p param) like(re string) param      { p.pattern = re; return p }
func (p param) needs(o string) param      { p.requires = o; return p }
func (p param) times(n int) param         { p.count = n; return p }
func vmidParam(name string) param         { return integer(name).as("pve-vmid").min(100).max(999999999) }
func (p param) of(s propertyString) param { p.props = &s; return p }

func toVMID(s string) proxmox.VMID {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0
	}
	return proxmox.VMID(n)
}

// pathParams are the parameters of the variables in a path.
func pathParams(path string) []param {
	var out []param
	for _, part := range split(path) {
		name := strings.Trim(part, "{}")
		switch name {
		case part:
		case "vmid":
			out = append(out, vmidParam(name).required())
		case "node":
			out = append(out, text(name).as("pve-node").required())
		case "storage":
			out = append(out, text(name).as("pve-storage-id").required())
		case "poolid":
			out = append(out, text(name).as("pve-poolid").required())
		default:
			out = append(out, text(name).required())
		}
	}
	return out
}

// lookup finds the parameter that a key means, an indexed one by its index.
func lookup(params []param, key string) *param {
	base := strings.TrimRight(key, "0123456789")
	for i := range params {
		p := &params[i]
		if p.count == 0 && p.name == key {
			return p
		}
		if p.count > 0 && p.name == base && validIndex(key[len(base):], p.count) {
			return p
		}
	}
	return nil
}

func validIndex(s string, count int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n < count && strconv.Itoa(n) == s
}

const notInSchema = "property is not defined in schema and the schema does not allow additional properties"

// verify checks the given values and returns the text per refused parameter, empty if all is well.
func verify(params []param, given map[string]string) map[string]string {
	errors := map[string]string{}
	for key, value := range given {
		p := lookup(params, key)
		if p == nil {
			errors[key] = notInSchema
			continue
		}
		if msg := p.check(key, value); msg != "" {
			errors[key] = msg
			continue
		}
		if _, ok := given[p.requires]; p.requires != "" && !ok {
			errors[p.requires] = fmt.Sprintf("missing property required by '%s'", key)
		}
	}
	for _, p := range params {
		if _, ok := given[p.name]; !ok && !p.optional && p.count == 0 {
			errors[p.name] = "property is missing and it is not optional"
		}
	}
	return errors
}

// check returns why the value is refused, or "".
func (p *param) check(key, value string) string {
	if !p.kind.accepts(value) {
		return fmt.Sprintf("type check ('%s') failed - got '%s'", p.kind, value)
	}
	if msg := checkFormat(p.format, value); msg != "" {
		return "invalid format - " + msg + "\n"
	}
	if p.props != nil {
		if msg := p.props.check(key, value); msg != "" {
			return "invalid format - format error\n" + msg
		}
	}
	return p.checkLimits(value)
}

func (p *param) checkLimits(value string) string {
	if len(p.enum) > 0 && !slices.Contains(p.enum, value) {
		return fmt.Sprintf("value '%s' does not have a value in the enumeration '%s'", value, strings.Join(p.enum, ", "))
	}
	if p.low != nil || p.high != nil {
		n, _ := strconv.ParseFloat(value, 64)
		if p.low != nil && n < *p.low {
			return "value must have a minimum value of " + strconv.FormatFloat(*p.low, 'f', -1, 64)
		}
		if p.high != nil && n > *p.high {
			return "value must have a maximum value of " + strconv.FormatFloat(*p.high, 'f', -1, 64)
		}
	}
	if p.maxLen > 0 && len([]rune(value)) > p.maxLen {
		return fmt.Sprintf("value may only be %d characters long", p.maxLen)
	}
	if p.pattern != "" && !matches(p.pattern, value) {
		return "value does not match the regex pattern"
	}
	return ""
}

// accepts is the type check: booleans are only 1 and 0 once they came as a form value.
func (k kind) accepts(value string) bool {
	switch k {
	case integerKind:
		return isInteger(value)
	case numberKind:
		return matches(`[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?`, value)
	case booleanKind:
		return value == "0" || value == "1"
	case stringKind:
	}
	return true
}

func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

func matches(pattern, value string) bool {
	ok, err := regexp.MatchString("^(?:"+pattern+")$", value)
	return err == nil && ok
}
