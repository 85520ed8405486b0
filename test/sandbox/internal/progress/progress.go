// Package progress tells a person at a terminal what the sandbox is doing and for how long: one line per step, redrawn
// while the step runs on a terminal, and repeated now and then where output goes to a file.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	redrawEvery = 200 * time.Millisecond
	repeatEvery = 20 * time.Second
)

// Style says how output is written.
type Style int

const (
	// Lines prints whole lines only, for files and pipes.
	Lines Style = iota
	// Terminal redraws the line of the running step.
	Terminal
)

// Printer prints steps.
type Printer struct {
	out   io.Writer
	style Style
}

// For makes a printer for a file, as the file deserves: a terminal's lines are redrawn.
func For(file *os.File) *Printer {
	style := Lines
	if term.IsTerminal(int(file.Fd())) {
		style = Terminal
	}
	return New(file, style)
}

// New makes a printer. A nil out prints nothing.
func New(out io.Writer, style Style) *Printer {
	if out == nil {
		out, style = io.Discard, Lines
	}
	return &Printer{out: out, style: style}
}

// fit cuts a line to the terminal's width: one that wraps could not be redrawn.
func (p *Printer) fit(line string) string {
	file, ok := p.out.(*os.File)
	if !ok || p.style != Terminal {
		return line
	}
	width, _, err := term.GetSize(int(file.Fd()))
	runes := []rune(line)
	if err != nil || width < 2 || len(runes) < width {
		return line
	}
	return string(runes[:width-2]) + "…"
}

// Say prints a line between steps.
func (p *Printer) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// Step runs a step and prints what it does, how long it has taken so far, and how long it took. Its body may note what
// it is at.
func (p *Printer) Step(what string, body func(note func(string)) error) error {
	step := &step{printer: p, what: what, start: time.Now()}
	stop := step.show()
	err := body(step.note)
	stop()
	step.finish(err)
	return err
}

type step struct {
	printer *Printer
	what    string
	start   time.Time

	mu   sync.Mutex
	text string
}

func (s *step) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}

// show prints the step until the function it returns is called.
func (s *step) show() (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	every := repeatEvery
	if s.printer.style == Terminal {
		every = redrawEvery
	}
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s.print()
			}
		}
	}()
	return func() { close(done); <-stopped }
}

func (s *step) print() {
	s.mu.Lock()
	line := s.line("…")
	s.mu.Unlock()
	if s.printer.style == Terminal {
		_, _ = fmt.Fprint(s.printer.out, "\r\033[K"+s.printer.fit(line))
		return
	}
	_, _ = fmt.Fprintln(s.printer.out, line)
}

func (s *step) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mark := "✓"
	if err != nil {
		mark = "✗"
	}
	if s.printer.style == Terminal {
		_, _ = fmt.Fprint(s.printer.out, "\r\033[K")
	}
	_, _ = fmt.Fprintln(s.printer.out, s.line(mark))
}

func (s *step) line(mark string) string {
	line := fmt.Sprintf("%s %s (%s)", mark, s.what, Elapsed(time.Since(s.start)))
	if s.text != "" {
		line += "  " + s.text
	}
	return strings.TrimRight(line, " ")
}

// Elapsed formats a duration for people: 0.4s, 12s, 3m05s.
func Elapsed(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	default:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
}
