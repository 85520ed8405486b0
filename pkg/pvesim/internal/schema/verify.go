package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Wording is how a release says that a parameter needs another one: a format with the name of the first.
type Wording string

// The wordings of Proxmox VE 8 and 9.
const (
	Wording8 Wording = "missing property - '%s' requires this property"
	Wording9 Wording = "missing property required by '%s'"
)

const (
	notInSchema     = "property is not defined in schema and the schema does not allow additional properties"
	missingProperty = "property is missing and it is not optional"
)

// Verify checks the given values and returns the text per refused parameter, empty if all is well
// (PVE::JSONSchema::check_object).
func (w Wording) Verify(params []Param, given map[string]string) map[string]string {
	return w.verify(params, given, "")
}

// verify puts the prefix before the names in texts.
func (w Wording) verify(params []Param, given map[string]string, prefix string) map[string]string {
	errors := map[string]string{}
	for key, value := range given {
		p := Lookup(params, key)
		if p == nil {
			errors[key] = notInSchema
			continue
		}
		if place, msg := w.checkGiven(p, key, value); msg != "" {
			errors[place] = msg
		}
	}
	for _, p := range params {
		if _, ok := given[p.Name]; !ok && !p.Optional && p.Count == 0 {
			errors[p.Name] = missingProperty
		}
	}
	w.requirements(params, given, prefix, errors)
	return errors
}

// requirements adds the parameters that others need and that are not given.
func (w Wording) requirements(params []Param, given map[string]string, prefix string, errors map[string]string) {
	for _, p := range params {
		if _, used := given[p.Name]; !used || p.Needs == "" {
			continue
		}
		if _, ok := given[p.Needs]; !ok {
			errors[p.Needs] = fmt.Sprintf(string(w), prefix+p.Name)
		}
	}
}

// checkGiven returns what is refused, the parameter or an element of a list, and why.
func (w Wording) checkGiven(p *Param, key, value string) (place, msg string) {
	if p.Kind != ListKind {
		return key, w.Check(p, key, value)
	}
	for i, element := range strings.Split(value, "\x00") {
		place = fmt.Sprintf("%s[%d]", key, i)
		if msg = w.Check(p, place, element); msg != "" {
			return place, msg
		}
	}
	return key, ""
}

// Check returns why the value, given under the key, is refused, or "" (PVE::JSONSchema::check_prop).
func (w Wording) Check(p *Param, key, value string) string {
	if !p.Kind.accepts(value) {
		return fmt.Sprintf("type check ('%s') failed - got '%s'", p.Kind, value)
	}
	if p.Properties != nil {
		if msg := w.CheckProperties(*p.Properties, key, value); msg != "" {
			return "invalid format - " + msg
		}
	} else if msg := CheckFormat(p.FormatName, value); msg != "" {
		return "invalid format - " + msg + "\n"
	}
	return p.checkLimits(value)
}

func (p *Param) checkLimits(value string) string {
	length := len([]rune(value))
	switch {
	case length < p.Shortest:
		return fmt.Sprintf("value must be at least %d characters long", p.Shortest)
	case p.Longest > 0 && length > p.Longest:
		return fmt.Sprintf("value may only be %d characters long", p.Longest)
	case p.Regexp != "" && !matches(p.Regexp, value):
		return "value does not match the regex pattern"
	}
	if p.Minimum != nil || p.Maximum != nil {
		n, _ := strconv.ParseFloat(value, 64)
		if p.Maximum != nil && n > *p.Maximum {
			return "value must have a maximum value of " + strconv.FormatFloat(*p.Maximum, 'f', -1, 64)
		}
		if p.Minimum != nil && n < *p.Minimum {
			return "value must have a minimum value of " + strconv.FormatFloat(*p.Minimum, 'f', -1, 64)
		}
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, value) {
		return fmt.Sprintf("value '%s' does not have a value in the enumeration '%s'", value, strings.Join(p.Enum, ", "))
	}
	return ""
}

// accepts is the type check: booleans are only 1 and 0 once they came as a form value.
func (k Kind) accepts(value string) bool {
	switch k {
	case IntegerKind:
		return IsInteger(value)
	case NumberKind:
		return matches(`[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?`, value)
	case BooleanKind:
		return value == "0" || value == "1"
	case StringKind, ListKind:
	}
	return true
}

// IsInteger tells whether a value is a whole number of any size, as Perl's JSON schema check does.
func IsInteger(s string) bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	return digits != "" && len(s)-len(digits) <= 1 && strings.Trim(digits, "0123456789") == ""
}

func matches(pattern, value string) bool {
	ok, err := regexp.MatchString("^(?:"+pattern+")$", value)
	return err == nil && ok
}
