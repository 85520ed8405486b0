package pvesim_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestEveryRequestGetsAnAnswer makes requests of any kind: nothing panics, and what a caller without rights is told is a refusal, a
// list or what every login may know.
func TestEveryRequestGetsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, v := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			c := newCallers(t, pvesim.WithVersion(v), pvesim.WithSpeed(1e6))
			c.world.AddUser(pvesim.UserSpec{ID: "a@pve"})
			limited, routes := c.token("a@pve", "t1"), c.world.Coverage()
			rapid.Check(t, func(rt *rapid.T) {
				route := rapid.SampledFrom(routes).Draw(rt, "route")
				path, body := drawPath(rt, route.Path), drawForm(rt, route)
				for _, who := range []caller{limited, c.root} {
					r := who.send(route.Method, "/api2/json"+path, formType, body)
					if r.status == 0 && !strings.HasSuffix(path, "/upload") {
						rt.Fatalf("%s %s %s: %s", route.Method, path, body, r.reason)
					}
				}
			})
		})
	}
}

var pathVariable = regexp.MustCompile(`\{[^}]+\}`)

func drawPath(t *rapid.T, pattern string) string {
	known := map[string][]string{
		"{node}": {"pve1", "pve2", "localhost"}, "{vmid}": {"9001", "9002"}, "{storage}": {"local", "shared"}, "{userid}": {"a@pve", "root@pam"},
		"{poolid}": {"capi"}, "{roleid}": {"PVEAuditor"},
	}
	return pathVariable.ReplaceAllStringFunc(pattern, func(name string) string {
		odd := rapid.StringMatching(`[a-z0-9:@!%. -]{1,12}`)
		if values := known[name]; values != nil {
			return url.PathEscape(rapid.OneOf(rapid.SampledFrom(values), odd).Draw(t, name))
		}
		return url.PathEscape(odd.Draw(t, name))
	})
}

func drawForm(t *rapid.T, route pvesim.Route) string {
	if route.Method == http.MethodGet && route.Path == "/version" {
		return ""
	}
	names := []string{"userid", "path", "roles", "users", "tokens", "groups", "delete", "vms", "pool", "newid", "net0", "scsi0", "hostpci0", "privs", "cores", "enable"}
	values := []string{"", "0", "1", "x", "a@pve", "/vms/9001", "PVEAuditor", "virtio,bridge=vmbr0", "local-lvm:1", "mapping=gpu", "9001", "200", ",;=", "\x00"}
	form := url.Values{}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, "names") {
		form.Set(name, rapid.OneOf(rapid.SampledFrom(values), rapid.String()).Draw(t, name))
	}
	return form.Encode()
}
