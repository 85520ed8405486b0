// Package contract replays exchanges that were recorded with a real Proxmox VE against a target, pvesim or another Proxmox
// VE, and tells where the answers differ. The format of recordings is described in the README beside them.
package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLine is the longest line of a recording that is read.
const maxLine = 16 << 20

// Recording is one scenario as it went with one release of Proxmox VE.
type Recording struct {
	// Version is the release, for example 9.2.
	Version string
	// Scenario is the name of the file without its ending, for example 05-config.
	Scenario string
	// Setup is the world at the start.
	Setup Setup
	// Exchanges in the order in which they were made. Some are missing: gaps in Seq.
	Exchanges []Exchange
}

// Exchange is one request and the answer that Proxmox VE gave.
type Exchange struct {
	Seq int `json:"seq"`
	// As says with whose credentials the request was made: root-token, root-ticket, limited-token, none or other.
	As string `json:"as"`
	// Via is the node whose API was asked; empty means pve1.
	Via    string `json:"via"`
	Method string `json:"method"`
	// Path is below /api2/json, as it was sent.
	Path string `json:"path"`
	// Params are an object, or a list of parts if Multipart is set.
	Params    json.RawMessage `json:"params"`
	JSON      bool            `json:"json"`
	Multipart bool            `json:"multipart"`
	// Status of the answer; 0 if the connection was closed without one.
	Status int    `json:"status"`
	Reason string `json:"reason"`
	// Body is parsed JSON with numbers as json.Number, or a string that is not JSON; "" is an empty body.
	Body any `json:"-"`
	// Note is what the recorder says about the exchange or did before it.
	Note string `json:"note"`
	// TaskOf is the Seq of the call that started the task which the path names; 0 for none.
	TaskOf int `json:"task_of"`
	// HeldOut exchanges have no answer but an effect.
	HeldOut bool `json:"held_out"`
	// Phase exchanges were made over and over until the answer changed: it shows a phase of a task.
	Phase bool `json:"phase"`
	// Concurrent exchanges were made at the same time as the other concurrent ones near them.
	Concurrent bool `json:"concurrent"`
}

// ReadRecording reads dir/version/scenario.jsonl.
func ReadRecording(dir, version, scenario string) (*Recording, error) {
	f, err := os.Open(filepath.Join(dir, version, scenario+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	defer func() { _ = f.Close() }()
	r := &Recording{Version: version, Scenario: scenario}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		if err := r.add(number, lines.Bytes()); err != nil {
			return nil, fmt.Errorf("read line %d of %s: %w", number, f.Name(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	r.forgetWarnings()
	return r, nil
}

func (r *Recording) add(number int, line []byte) error {
	if number == 1 {
		var first struct {
			Setup *Setup `json:"setup"`
		}
		first.Setup = &r.Setup
		return decodeJSON(line, &first)
	}
	var e Exchange
	var answer struct {
		Body any `json:"body"`
	}
	if err := decodeJSON(line, &e); err != nil {
		return err
	}
	if err := decodeJSON(line, &answer); err != nil {
		return err
	}
	e.Body = answer.Body
	r.Exchanges = append(r.Exchanges, e)
	return nil
}

// decodeJSON decodes without turning numbers into floating ones.
func decodeJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// Scenarios are the names of the recordings in dir/version, sorted.
func Scenarios(dir, version string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, version, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("list recordings: %w", err)
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(filepath.Base(f), ".jsonl")
	}
	slices.Sort(names)
	return names, nil
}

// Versions are the releases that dir has recordings of, sorted.
func Versions(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list recordings: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
