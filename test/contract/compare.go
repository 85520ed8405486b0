package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Answer is what a target said to a request.
type Answer struct {
	// Status of the answer; 0 if the connection was closed without one.
	Status int
	Reason string
	// Body is as in an Exchange.
	Body any
}

// comparison collects the differences between a recorded answer and one of the target.
type comparison struct {
	pairs   *Pairs
	route   string
	settled Settled
	diffs   []string
}

// Settled tells whether a VM has not been changed for so long that all nodes know what pvestatd says of it.
type Settled func(vmid string) bool

// Compare returns how the target's answer differs from the recorded one, a line each, and learns the pairs of values.
func Compare(want Exchange, got Answer, pairs *Pairs, settled Settled) []string {
	c := &comparison{pairs: pairs, route: routeOf(want.Method, want.Path), settled: settled}
	want = amended(want)
	if want.Status != got.Status {
		c.differ("status", fmt.Sprint(want.Status, " ", want.Reason), fmt.Sprint(got.Status, " ", got.Reason))
		return c.diffs
	}
	if want.Status == 0 {
		return nil
	}
	c.text("reason", want.Reason, got.Reason)
	switch {
	case strings.HasSuffix(c.route, "/log") && isList(want.Body) && isList(got.Body):
		c.log(want, got)
	case c.route == "GET /nodes/{node}/tasks" || c.route == "GET /cluster/tasks":
		a, b := c.tasks(want.Body, got.Body)
		c.value("", a, b)
	default:
		c.value("", want.Body, got.Body)
	}
	return c.diffs
}

func (c *comparison) differ(field string, want, got any) {
	c.diffs = append(c.diffs, fmt.Sprintf("%s: want %s, got %s", field, brief(want), brief(got)))
}

// brief is a value on one short line.
func brief(v any) string {
	const most = 300
	s, ok := v.(string)
	if !ok {
		raw, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		s = string(raw)
	}
	s = strings.ReplaceAll(s, "\n", `\n`)
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "text"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}

// value compares two values. The field is a path such as data[].name; "" is the body itself.
func (c *comparison) value(field string, want, got any) {
	how := leniencyOf(c.route, field)
	switch {
	case how&ignored != 0:
		return
	case typeOf(want) != typeOf(got):
		c.differ(orBody(field), typeOf(want)+" "+brief(want), typeOf(got)+" "+brief(got))
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		c.object(field, w, g)
	case []any:
		g, _ := got.([]any)
		c.list(field, w, g, how)
	case string:
		g, _ := got.(string)
		c.leaf(field, w, g, how)
	default:
		c.scalar(field, want, got, how)
	}
}

func (c *comparison) scalar(field string, want, got any, how leniency) {
	if lastKey(field) == "pid" {
		c.pairs.Learn("pid", fmt.Sprint(want), fmt.Sprint(got))
	}
	_, number := want.(json.Number)
	if how&anyValue != 0 || (number && how&anyNumber != 0) {
		return
	}
	if !sameScalar(want, got) {
		c.differ(field, want, got)
	}
}

func sameScalar(a, b any) bool {
	x, ok := a.(json.Number)
	y, both := b.(json.Number)
	if !ok || !both {
		return a == b
	}
	p, parsed := new(big.Rat).SetString(x.String())
	q, also := new(big.Rat).SetString(y.String())
	return parsed && also && p.Cmp(q) == 0
}

func orBody(field string) string {
	if field == "" {
		return "body"
	}
	return field
}

func (c *comparison) leaf(field, want, got string, how leniency) {
	switch {
	case how&anyValue != 0:
		c.pairs.Same(want, got)
	case how&commaSet != 0:
		if !slices.Equal(commaParts(want), commaParts(got)) {
			c.differ(field, want, got)
		}
	default:
		c.text(orBody(field), want, got)
	}
}

func commaParts(s string) []string {
	parts := strings.Split(s, ",")
	slices.Sort(parts)
	return parts
}

// text compares two texts. QEMU is called qemu-system-x86_64 where production has kvm.
func (c *comparison) text(field, want, got string) {
	want = strings.ReplaceAll(want, "qemu-system-x86_64:", "kvm:")
	if removed.MatchString(want) {
		pattern := removed.ReplaceAllString(regexp.QuoteMeta(want), `(?s:.+)`)
		if matched, err := regexp.MatchString("^"+pattern+"$", got); err == nil && matched {
			return
		}
	}
	if !c.pairs.Same(want, got) {
		c.differ(field, want, got)
	}
}

func (c *comparison) object(field string, want, got map[string]any) {
	if isCached(c.route, want) {
		want, got = c.cachedEntry(want, got)
	}
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		below := strings.TrimPrefix(field+"."+k, ".")
		w, wanted := want[k]
		g, given := got[k]
		switch {
		case wanted && given:
			c.value(below, w, g)
		case leniencyOf(c.route, below)&optional != 0:
		case wanted:
			c.diffs = append(c.diffs, fmt.Sprintf("%s: missing, want %s", below, brief(w)))
		default:
			c.diffs = append(c.diffs, fmt.Sprintf("%s: not wanted, got %s", below, brief(g)))
		}
	}
}

func (c *comparison) list(field string, want, got []any, how leniency) {
	if how&sample != 0 {
		if len(want) > 0 && len(got) > 0 {
			c.shape(field+"[]", want[0], got[0])
		}
		return
	}
	if how&anyOrder != 0 {
		want, got = sortedTexts(want), sortedTexts(got)
	}
	if id := idOf(want, got); id != "" {
		c.keyed(field, id, want, got)
		return
	}
	if len(want) != len(got) {
		c.differ(field, fmt.Sprintf("%d elements %s", len(want), brief(want)), fmt.Sprintf("%d elements %s", len(got), brief(got)))
		return
	}
	for i := range want {
		c.value(field+"[]", want[i], got[i])
	}
}

// shape compares the keys of two objects and the types of their values.
func (c *comparison) shape(field string, want, got any) {
	w, ok := want.(map[string]any)
	g, both := got.(map[string]any)
	if !ok || !both {
		if typeOf(want) != typeOf(got) {
			c.differ(field, typeOf(want), typeOf(got))
		}
		return
	}
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if typeOf(w[k]) != typeOf(g[k]) {
			c.differ(field+"."+k, typeOf(w[k]), typeOf(g[k]))
		}
	}
}

func sortedTexts(list []any) []any {
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

// idOf is the key that tells the elements of both lists apart; "" if there is none.
func idOf(lists ...[]any) string {
	for _, id := range ids {
		if slices.ContainsFunc(lists, func(list []any) bool { return len(list) > 0 }) &&
			!slices.ContainsFunc(lists, func(list []any) bool { return !identifies(id, list) }) {
			return id
		}
	}
	return ""
}

func identifies(id string, list []any) bool {
	seen := map[string]bool{}
	for _, x := range list {
		name, ok := idName(id, x)
		if !ok || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// idName is the ID of an element.
func idName(id string, element any) (string, bool) {
	o, _ := element.(map[string]any)
	var names []string
	for _, k := range strings.Split(id, "+") {
		value, ok := o[k]
		if !ok {
			return "", false
		}
		names = append(names, fmt.Sprint(value))
	}
	return strings.Join(names, " "), true
}

// keyed compares lists whose elements have an ID.
func (c *comparison) keyed(field, id string, want, got []any) {
	var wanted, given []string
	elements := map[string]any{}
	for _, g := range got {
		name, _ := idName(id, g)
		given = append(given, name)
		elements[name] = g
	}
	for _, w := range want {
		name, _ := idName(id, w)
		name = c.pairs.Replace(name)
		wanted = append(wanted, name)
		if g, ok := elements[name]; ok {
			c.value(field+"[]", w, g)
		} else {
			c.diffs = append(c.diffs, fmt.Sprintf("%s: %s %s is missing, want %s", field, id, name, brief(w)))
		}
	}
	for i, name := range given {
		if !slices.Contains(wanted, name) {
			c.diffs = append(c.diffs, fmt.Sprintf("%s: %s %s is not wanted, got %s", field, id, name, brief(got[i])))
		}
	}
	if orderedBy[id] && len(c.diffs) == 0 && !slices.Equal(wanted, given) {
		c.differ(field+" order", strings.Join(wanted, " "), strings.Join(given, " "))
	}
}
