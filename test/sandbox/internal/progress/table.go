package progress

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table shows rows that change: redrawn in place on a terminal, otherwise a line for every row that is new or has
// changed, and for every row that has gone.
type Table struct {
	printer *Printer
	heads   []string
	ignored int   // index of the column whose changes do not count, for example an age
	drawn   int   // lines on the terminal now
	widths  []int // widest cell seen per column
	last    map[string][]string
}

// NewTable makes a table. Its first column tells rows apart; changes of its last column alone print no line.
func (p *Printer) NewTable(heads []string) *Table {
	return &Table{printer: p, heads: heads, ignored: len(heads) - 1, widths: make([]int, len(heads)), last: map[string][]string{}}
}

// Show shows the rows as they are now, with a line of text under them.
func (t *Table) Show(rows [][]string, footer string) {
	if t.printer.style == Terminal {
		t.redraw(rows, footer)
		return
	}
	t.printChanges(rows)
}

// Leave leaves the table as it is; the next Show draws a new one below.
func (t *Table) Leave() { t.drawn = 0 }

func (t *Table) redraw(rows [][]string, footer string) {
	var text strings.Builder
	if t.drawn > 0 {
		fmt.Fprintf(&text, "\033[%dA\033[J", t.drawn)
	}
	body := t.align(append([][]string{t.heads}, rows...))
	if footer != "" {
		body += footer + "\n"
	}
	t.drawn = 0
	for line := range strings.Lines(body) {
		text.WriteString(t.printer.fit(strings.TrimRight(line, "\n ")) + "\n")
		t.drawn++
	}
	_, _ = fmt.Fprint(t.printer.out, text.String())
}

func (t *Table) printChanges(rows [][]string) {
	seen := map[string]bool{}
	var changed [][]string
	for _, row := range rows {
		seen[row[0]] = true
		if !slices.Equal(t.last[row[0]], row[:t.ignored]) {
			changed = append(changed, row)
			t.last[row[0]] = slices.Clone(row[:t.ignored])
		}
	}
	for name := range t.last {
		if !seen[name] {
			delete(t.last, name)
			changed = append(changed, []string{name, "gone"})
		}
	}
	if len(changed) > 0 {
		_, _ = fmt.Fprint(t.printer.out, t.align(changed))
	}
}

// align writes the cells in columns, which are never narrower than they were: a table that breathes is hard to read.
func (t *Table) align(rows [][]string) string {
	for _, row := range rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := " "
		for i, cell := range row {
			line += " " + cell + strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+1)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}
