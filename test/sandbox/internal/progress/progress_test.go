package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestStepSaysWhatAndHowLong(t *testing.T) {
	var out bytes.Buffer
	err := New(&out, Lines).Step("build Kubernetes", func(note func(string)) error {
		note("cached")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "✓ build Kubernetes (0.0s)  cached\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStepReturnsTheError(t *testing.T) {
	var out bytes.Buffer
	want := errors.New("no space left on device")
	if err := New(&out, Lines).Step("build", func(func(string)) error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	if !strings.HasPrefix(out.String(), "✗ build") {
		t.Errorf("got %q", out.String())
	}
}

func TestTerminalStepErasesItsLine(t *testing.T) {
	var out bytes.Buffer
	step := &step{printer: New(&out, Terminal), what: "build", start: time.Now()}
	step.note("half of it")
	step.print()
	step.finish(nil)
	if got, want := out.String(), "\r\033[K… build (0.0s)  half of it\r\033[K✓ build (0.0s)  half of it\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoOutput(t *testing.T) {
	quiet := New(nil, Terminal)
	quiet.Say("hello %s", "you")
	if err := quiet.Step("build", func(func(string)) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestElapsed(t *testing.T) {
	for duration, want := range map[time.Duration]string{
		0:                                     "0.0s",
		400 * time.Millisecond:                "0.4s",
		9*time.Second + 940*time.Millisecond:  "9.9s",
		12 * time.Second:                      "12s",
		59*time.Second + 400*time.Millisecond: "59s",
		65 * time.Second:                      "1m05s",
		6*time.Minute + 16*time.Second:        "6m16s",
	} {
		if got := Elapsed(duration); got != want {
			t.Errorf("%v: got %s, want %s", duration, got, want)
		}
	}
}

func TestTablePrintsChangesOnce(t *testing.T) {
	var out bytes.Buffer
	table := New(&out, Lines).NewTable([]string{"MACHINE", "PHASE", "AGE"})
	for _, rows := range [][][]string{
		{{"a", "Pending", "1s"}},
		{{"a", "Pending", "2s"}}, // only older
		{{"a", "Running", "3s"}, {"b", "Pending", "0s"}},
		{{"b", "Pending", "1s"}},
	} {
		table.Show(rows, "a footer")
	}
	want := "  a  Pending  1s\n  a  Running  3s\n  b  Pending  0s\n  a  gone\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTableIsRedrawnInPlace(t *testing.T) {
	var out bytes.Buffer
	table := New(&out, Terminal).NewTable([]string{"MACHINE", "PHASE", "AGE"})
	table.Show([][]string{{"a", "Pending", "1s"}}, "  waiting")
	first := out.String()
	if want := "  MACHINE  PHASE    AGE\n  a        Pending  1s\n  waiting\n"; first != want {
		t.Errorf("got\n%s\nwant\n%s", first, want)
	}
	table.Show([][]string{{"a", "Running", "2s"}}, "")
	if second := strings.TrimPrefix(out.String(), first); !strings.HasPrefix(second, "\033[3A\033[J") {
		t.Errorf("the second table does not start over the first: %q", second)
	}
	out.Reset()
	table.Leave()
	table.Show(nil, "")
	if strings.Contains(out.String(), "\033[") {
		t.Errorf("a table that was left is overwritten: %q", out.String())
	}
}

func TestColumnsDoNotBreathe(t *testing.T) {
	table := New(nil, Lines).NewTable([]string{"A", "B", "C"})
	wide := table.align([][]string{{"a long cell", "b", "c"}})
	narrow := table.align([][]string{{"a", "b", "c"}})
	if strings.Index(wide, "b") != strings.Index(narrow, "b") {
		t.Errorf("column B moved:\n%s%s", wide, narrow)
	}
}
