package pvesim

import (
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
)

// writeCoverage lists the endpoints: as a page for browsers, as JSON for others.
func (w *World) writeCoverage(out http.ResponseWriter, r *http.Request) {
	list := w.Coverage()
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		writeJSON(out, list)
		return
	}
	page, err := template.New("coverage").Funcs(template.FuncMap{"json": asJSON, "areas": areas}).Parse(coveragePage)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(out, map[string]any{"Version": w.version, "Routes": list})
}

// area are the endpoints below one path.
type area struct {
	Name   string
	Routes []Route
}

// areas groups endpoints, sorted by path, by what they are about.
func areas(list []Route) []area {
	var out []area
	for _, r := range list {
		name := areaOf(r.Path)
		if len(out) == 0 || out[len(out)-1].Name != name {
			out = append(out, area{Name: name})
		}
		last := &out[len(out)-1]
		last.Routes = append(last.Routes, r)
	}
	return out
}

// areaOf is the part of a path that names its subject, for example /nodes/{node}/qemu/{vmid}/agent.
func areaOf(path string) string {
	parts := strings.Split(path, "/")
	depth := 2
	switch {
	case strings.HasPrefix(path, "/nodes/{node}/qemu/{vmid}/"):
		depth = 6
	case strings.HasPrefix(path, "/nodes/{node}/"):
		depth = 4
	case strings.HasPrefix(path, "/cluster/"):
		depth = 3
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

func asJSON(value any) (string, error) {
	if value == nil {
		return "any login", nil
	}
	raw, err := json.Marshal(value)
	return string(raw), err
}

const coveragePage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>pvesim {{.Version}}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#222}
h2{font-size:1.05em;margin:1.6em 0 .2em}summary{cursor:pointer}code,summary{font-family:ui-monospace,monospace;font-size:13px}
b{display:inline-block;width:5em}small{color:#666}td{padding:0 1.5em 0 0;vertical-align:top}details div{margin:.3em 0 .8em 5.5em}
</style></head>
<body><h1>pvesim speaks Proxmox VE {{.Version}}</h1>
<p>{{len .Routes}} endpoints are simulated; every other one answers 501 and names itself. Open one for its rights and parameters.</p>
{{range areas .Routes}}<h2>{{.Name}} <small>{{len .Routes}}</small></h2>
{{range .Routes}}<details><summary><b>{{.Method}}</b>{{.Path}}</summary><div>needs <code>{{json .Check}}</code>
<table>{{range .Parameters}}<tr><td><code>{{.Name}}</code></td><td>{{.Type}}{{if .Optional}}, optional{{end}}</td><td><small>{{range .Enum}}{{.}} {{end}}</small></td></tr>
{{end}}</table></div></details>
{{end}}{{end}}</body></html>
`
