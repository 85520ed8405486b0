package pvesim_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestCoverageTellsParameters(t *testing.T) {
	t.Parallel()
	world, err := pvesim.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	routes := world.Coverage()
	i := slices.IndexFunc(routes, func(r pvesim.Route) bool { return r.Method == http.MethodPost && r.Path == "/nodes/{node}/qemu" })
	if i < 0 {
		t.Fatal("POST /nodes/{node}/qemu is not listed")
	}
	find := func(list []pvesim.Parameter, name string) *pvesim.Parameter {
		if i := slices.IndexFunc(list, func(p pvesim.Parameter) bool { return p.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	if vmid := find(routes[i].Parameters, "vmid"); vmid == nil || vmid.Optional || vmid.Minimum == nil || *vmid.Minimum != 100 {
		t.Errorf("vmid is %+v, want a required one from 100 on", vmid)
	}
	net := find(routes[i].Parameters, "net[n]")
	if net == nil {
		t.Fatal("net[n] is not listed")
	}
	if bridge := find(net.Properties, "bridge"); bridge == nil || bridge.Type != "string" {
		t.Errorf("bridge of net[n] is %+v, want a string", bridge)
	}
}

func TestBrowsersGetACoveragePage(t *testing.T) {
	t.Parallel()
	server := pvesim.Run(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/pvesim/coverage", nil)
	must(t, err)
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	resp, err := server.Client().Do(req)
	must(t, err)
	page, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	for _, want := range []string{
		"pvesim speaks Proxmox VE 9.2", "<h2>/nodes/{node}/qemu/{vmid}/agent ", "<b>POST</b>/nodes/{node}/qemu/{vmid}/clone", "VM.Clone",
		"<td><code>newid</code></td><td>integer</td>", "any login",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if got := resp.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("content type is %s", got)
	}
}
