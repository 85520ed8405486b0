package pvesim

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"
)

// control serves what is about the simulator itself, below /pvesim/. It asks for no login.
func (w *World) control(out http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /pvesim/coverage":
		w.writeCoverage(out, r)
	case "GET /pvesim/check":
		writeJSON(out, append([]string{}, w.Check()...))
	case "GET /pvesim/state":
		writeYAML(out, w.State())
	case "GET /pvesim/faults":
		writeJSON(out, w.Faults())
	case "POST /pvesim/faults":
		w.postFault(out, r)
	case "DELETE /pvesim/faults":
		w.ClearFaults()
		writeJSON(out, w.Faults())
	default:
		http.Error(out, fmt.Sprintf("%s %s: pvesim itself has GET coverage, check, state and faults, and POST and DELETE faults", r.Method, r.URL.Path), http.StatusNotFound)
	}
}

func (w *World) postFault(out http.ResponseWriter, r *http.Request) {
	var f Fault
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		http.Error(out, "read fault: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.AddFault(f)
	writeJSON(out, w.Faults())
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

// writeCoverage lists the endpoints: as a page for browsers, as JSON for others.
func (w *World) writeCoverage(out http.ResponseWriter, r *http.Request) {
	list := w.Coverage()
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		writeJSON(out, list)
		return
	}
	page, err := template.New("coverage").Parse(coveragePage)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(out, map[string]any{"Version": w.version, "Routes": list})
}

const coveragePage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>pvesim {{.Version}}</title>
<style>body{font:15px system-ui;margin:2em}td,th{text-align:left;padding:.15em 1em .15em 0}code{font-size:14px}</style></head>
<body><h1>pvesim speaks Proxmox VE {{.Version}}</h1>
<p>{{len .Routes}} endpoints are simulated. Every other one answers 501 and names itself.</p>
<table><tr><th>Method</th><th>Path</th></tr>
{{range .Routes}}<tr><td>{{.Method}}</td><td><code>{{.Path}}</code></td></tr>
{{end}}</table></body></html>
`
