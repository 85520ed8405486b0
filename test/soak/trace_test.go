package soak_test

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// trace is what happened in a run: when, who, what.
type trace struct {
	start time.Time
	mu    sync.Mutex
	lines []string
}

func (t *trace) add(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := fmt.Sprintf("%12s  %-12s %s", time.Since(t.start).Round(time.Millisecond), who, fmt.Sprintf(format, args...))
	t.lines = append(t.lines, line)
}

// tail is the last lines.
func (t *trace) tail(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-n):], "\n")
}
