package pvesim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"sigs.k8s.io/yaml"
)

// control serves what is about the simulator itself, below /pvesim/. It asks for no login.
func (w *World) control(out http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /pvesim/coverage":
		w.writeCoverage(out, r)
	case "GET /pvesim/check":
		writeJSON(out, append([]Finding{}, w.Findings()...))
	case "GET /pvesim/state":
		writeYAML(out, w.State())
	case "GET /pvesim/faults":
		writeJSON(out, w.Faults())
	case "POST /pvesim/faults":
		w.postFault(out, r)
	case "DELETE /pvesim/faults":
		w.ClearFaults()
		writeJSON(out, w.Faults())
	case "POST /pvesim/acts":
		w.postAct(out, r)
	default:
		http.Error(out, fmt.Sprintf("%s %s: pvesim itself has GET coverage, check, state and faults, POST faults and acts, and DELETE faults", r.Method, r.URL.Path), http.StatusNotFound)
	}
}

func (w *World) postFault(out http.ResponseWriter, r *http.Request) {
	var f Fault
	if err := readInto(&f, r); err != nil {
		http.Error(out, "read fault: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := w.AddFault(f); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	writeJSON(out, w.Faults())
}

func (w *World) postAct(out http.ResponseWriter, r *http.Request) {
	var a Act
	if err := readInto(&a, r); err != nil {
		http.Error(out, "read act: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := w.Do(a); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	writeJSON(out, a)
}

// readInto reads a body of JSON or YAML. Fields that are not known are an error.
func readInto(value any, r *http.Request) error {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(raw, value)
}

func writeJSON(out http.ResponseWriter, value any) {
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(value)
}

func writeYAML(out http.ResponseWriter, value any) {
	raw, err := yaml.Marshal(value)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	out.Header().Set("Content-Type", "application/yaml")
	_, _ = out.Write(raw)
}
