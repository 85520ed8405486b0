package pve

import (
	"fmt"
	"log/slog"
)

// masked stands for every secret in text meant for people.
const masked = "***"

// Secret is a text that no formatting shows: it prints, marshals and logs as ***. Convert it to string to use it.
type Secret string

// String returns ***.
func (Secret) String() string { return masked }

// GoString returns ***, for %#v.
func (Secret) GoString() string { return masked }

// Format prints *** for every verb, also those that would otherwise reach the underlying string (%x, %d).
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(masked)) }

// MarshalJSON returns "***".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + masked + `"`), nil }

// MarshalText returns ***.
func (Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// MarshalLog returns ***, for logr.
func (Secret) MarshalLog() any { return masked }

// LogValue returns ***, for slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(masked) }
