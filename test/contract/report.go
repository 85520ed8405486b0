package contract

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Score is the outcome of one recording.
type Score struct {
	Version, Scenario string
	Results           []Result
}

// Name is version/scenario.
func (s Score) Name() string { return s.Version + "/" + s.Scenario }

// Misses are the exchanges whose answers differ.
func (s Score) Misses() []Result {
	return slices.DeleteFunc(slices.Clone(s.Results), func(r Result) bool { return len(r.Diffs) == 0 })
}

// Agree is how many answers are as recorded.
func (s Score) Agree() int { return len(s.Results) - len(s.Misses()) }

// Percent of the answers that agree; of none, all do.
func (s Score) Percent() float64 { return percent(s.Agree(), len(s.Results)) }

func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}

// Total adds scores up.
func Total(scores []Score) (agree, compared int) {
	for _, s := range scores {
		agree += s.Agree()
		compared += len(s.Results)
	}
	return agree, compared
}

// WriteMisses writes what differs in one recording, a line for each exchange and each difference.
func WriteMisses(out io.Writer, s Score, known Known) {
	for _, r := range s.Misses() {
		e := r.Exchange
		_, _ = fmt.Fprintf(out, "%d %s %s %s\n", e.Seq, e.Method, e.Path, brief(string(e.Params)))
		for _, d := range r.Diffs {
			_, _ = fmt.Fprintf(out, "    %s\n", d)
		}
		if reason := known.Reason(s.Name(), e.Seq); reason != "" {
			_, _ = fmt.Fprintf(out, "    known: %s\n", reason)
		}
	}
}

// WriteTable writes a line for each recording and the total.
func WriteTable(out io.Writer, scores []Score) {
	for _, s := range scores {
		_, _ = fmt.Fprintf(out, "%-24s %5d of %5d agree  %5.1f %%\n", s.Name(), s.Agree(), len(s.Results), s.Percent())
	}
	agree, compared := Total(scores)
	_, _ = fmt.Fprintf(out, "%-24s %5d of %5d agree  %5.1f %%\n", "total", agree, compared, percent(agree, compared))
}

// WriteMarkdown writes the report as a page.
func WriteMarkdown(out io.Writer, scores []Score, known Known) {
	_, _ = fmt.Fprintf(out, "# Agreement with recordings of Proxmox VE\n\n| recording | agree | compared | percent |\n| --- | ---: | ---: | ---: |\n")
	agree, compared := Total(scores)
	for _, s := range scores {
		_, _ = fmt.Fprintf(out, "| %s | %d | %d | %.1f |\n", s.Name(), s.Agree(), len(s.Results), s.Percent())
	}
	_, _ = fmt.Fprintf(out, "| **total** | **%d** | **%d** | **%.1f** |\n", agree, compared, percent(agree, compared))
	for _, s := range scores {
		if len(s.Misses()) == 0 {
			continue
		}
		misses := &strings.Builder{}
		WriteMisses(misses, s, known)
		_, _ = fmt.Fprintf(out, "\n## %s\n\n```text\n%s```\n", s.Name(), misses)
	}
}
