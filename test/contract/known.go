package contract

import (
	_ "embed" // known-misses.yaml
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

//go:embed known-misses.yaml
var knownMisses []byte

// Known are the exchanges that are known to differ, by reason.
type Known []struct {
	Reason string `json:"reason"`
	// Misses are the Seq of exchanges by version/scenario.
	Misses map[string][]int `json:"misses"`
}

// ReadKnown returns the known misses of pvesim.
func ReadKnown() (Known, error) {
	var known Known
	if err := yaml.UnmarshalStrict(knownMisses, &known); err != nil {
		return nil, fmt.Errorf("read known misses: %w", err)
	}
	return known, nil
}

// Reason is why the exchange differs; "" if that is not known.
func (k Known) Reason(name string, seq int) string {
	for _, x := range k {
		if slices.Contains(x.Misses[name], seq) {
			return x.Reason
		}
	}
	return ""
}

// Stale are known misses of a recording that agree.
func (k Known) Stale(s Score) []int {
	var out []int
	for _, r := range s.Results {
		if len(r.Diffs) == 0 && k.Reason(s.Name(), r.Exchange.Seq) != "" {
			out = append(out, r.Exchange.Seq)
		}
	}
	return out
}
