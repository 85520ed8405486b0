package pvesim

import (
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// Parameter is one parameter of an endpoint, in the words of Proxmox VE's API schema.
type Parameter struct {
	// Name ends in [n] if the parameter stands for several, as net[n] does for net0, net1 …
	Name string `json:"name"`
	// Type is string, integer, number, boolean or array.
	Type     string   `json:"type"`
	Optional bool     `json:"optional,omitempty"`
	Enum     []string `json:"enum,omitempty"`
	// Minimum and Maximum are inclusive; nil means no limit.
	Minimum *float64 `json:"minimum,omitempty"`
	Maximum *float64 `json:"maximum,omitempty"`
	// MaxLength in characters; zero means no limit.
	MaxLength int `json:"maxLength,omitempty"`
	// Requires names the parameter that must be given with this one.
	Requires string `json:"requires,omitempty"`
	// Properties are those of a value like virtio,bridge=vmbr0; nil for other values.
	Properties []Parameter `json:"properties,omitempty"`
}

// Coverage lists the simulated endpoints, with their parameters, in the order of their paths.
func (w *World) Coverage() []Route {
	out := make([]Route, 0, len(w.routes.routes))
	for _, r := range w.routes.routes {
		entry := Route{Method: r.Method, Path: r.Path, Parameters: parameters(r.params)}
		if r.permission != nil {
			entry.Check = r.permission.tree()
		}
		out = append(out, entry)
	}
	slices.SortFunc(out, func(a, b Route) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	return out
}

func parameters(list []schema.Param) []Parameter {
	out := make([]Parameter, 0, len(list))
	for _, p := range list {
		x := Parameter{
			Name: p.Name, Type: string(p.Kind), Optional: p.Optional, Enum: p.Enum, Minimum: p.Minimum, Maximum: p.Maximum, MaxLength: p.Longest, Requires: p.Needs,
		}
		if p.Count > 0 {
			x.Name += "[n]"
		}
		if p.Properties != nil {
			x.Properties = parameters(p.Properties.Params)
		}
		out = append(out, x)
	}
	return out
}
