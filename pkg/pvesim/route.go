package pvesim

import (
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// Route is one simulated endpoint.
type Route struct {
	// Method is GET, POST, PUT or DELETE.
	Method string `json:"method"`
	// Path is the pattern below /api2/json, with {node}, {vmid} … as in Proxmox VE's API viewer.
	Path string `json:"path"`
	// Parameters that may be given, those of the path among them; only filled by Coverage.
	Parameters []Parameter `json:"parameters"`

	// Check is what the caller needs, as Proxmox VE's API schema writes it; nil where any login will do.
	Check any `json:"check,omitempty"`

	params     []schema.Param
	permission permission
	// ticketOnly routes refuse tokens (allowtoken).
	ticketOnly bool
	// proxied routes are passed on to the {node} in the path (proxyto), the others are answered by the node that is asked.
	proxied bool
	// protected routes run in pvedaemon, as root; pveproxy runs the others itself.
	protected bool
	handle    func(*call) reply
}

// call is one request on its way through a handler. The world's mutex is held.
type call struct {
	*World
	route  *Route
	method string
	path   string
	params map[string]string
	who    *identity
	// at is the node whose API was asked; node the one that the path names, or at.
	at   *node
	node *node
	file *upload
	// fault strikes the request; mostly nil.
	fault *Fault
}

// vmid is the {vmid} of the path; parameters are validated before a handler runs.
func (c *call) vmid() proxmox.VMID { return toVMID(c.params["vmid"]) }

// vm is the VM that the path names, or nil if its config is not on that node.
func (c *call) vm() *vm { return c.vmOn(c.node.Name, c.vmid()) }

func (c *call) flag(name string) bool { return c.params[name] == "1" }

func (c *call) has(name string) bool {
	_, ok := c.params[name]
	return ok
}

// task starts a task of the calling user on the node that the path names.
func (c *call) task(typ, id string, body func(*task)) reply {
	return ok(c.start(taskKey{node: c.node.Name, typ: typ, id: id, user: c.who.name()}, body))
}

// vmTask is a handler that starts a task of that type on the path's VM, whether it exists or not.
func vmTask(typ string, body func(*call, *task)) func(*call) reply {
	return func(c *call) reply {
		return c.task(typ, c.params["vmid"], func(t *task) {
			t.vms = []proxmox.VMID{c.vmid()}
			body(c, t)
		})
	}
}

// routeTable finds the route of a request: a tree by path element.
type routeTable struct {
	version Version
	routes  []*Route
	numeric map[string]bool
	// options are those of a VM's config.
	options []schema.Param
	root    *routeNode
}

type routeNode struct {
	children map[string]*routeNode
	variable *routeNode
	name     string
	rest     bool
	methods  map[string]*Route
}

func newRouteTable(v Version) *routeTable {
	t := &routeTable{version: v, root: &routeNode{}}
	groups := [][]Route{
		clusterRoutes(v), accessRoutes(v), poolRoutes(), mappingRoutes(),
		nodeRoutes(v), hardwareRoutes(v), containerRoutes(), storageRoutes(v), contentRoutes(), uploadRoutes(), taskRoutes(),
		vmRoutes(v), cloudInitRoutes(), powerRoutes(v), firewallRoutes(), sdnRoutes(v),
		agentRoutes(v), migrateRoutes(v), bulkRoutes(v), consoleRoutes(v), haRoutes(v), cloneRoutes(), snapshotRoutes(),
	}
	for _, group := range groups {
		for _, r := range group {
			t.add(&r)
		}
	}
	t.collectNumeric()
	return t
}

func (t *routeTable) add(r *Route) {
	for _, p := range pathParams(r.Path) {
		if schema.Lookup(r.params, p.Name) == nil {
			r.params = append(r.params, p)
		}
	}
	r.proxied, r.protected = isProxied(r.Method, r.Path), isProtected(r.Method, r.Path)
	t.routes = append(t.routes, r)
	n := t.root
	for _, part := range split(r.Path) {
		n = n.child(part)
	}
	if n.methods == nil {
		n.methods = map[string]*Route{}
	}
	n.methods[r.Method] = r
}

func (n *routeNode) child(part string) *routeNode {
	if name, ok := strings.CutPrefix(part, "{"); ok {
		if n.variable == nil {
			name = strings.TrimSuffix(name, "}")
			n.variable = &routeNode{name: name, rest: name == "volume" || name == "cidr"}
		}
		return n.variable
	}
	if n.children == nil {
		n.children = map[string]*routeNode{}
	}
	if n.children[part] == nil {
		n.children[part] = &routeNode{}
	}
	return n.children[part]
}

// find returns the route and the values of its path variables, or nil.
func (t *routeTable) find(method, path string) (*Route, map[string]string) {
	vars := map[string]string{}
	n := t.root
	parts := split(path)
	for i, part := range parts {
		next := n.children[part]
		if next == nil {
			if next = n.variable; next == nil {
				return nil, nil
			}
			vars[next.name] = part
			if next.rest {
				vars[next.name] = strings.Join(parts[i:], "/")
				return next.methods[method], vars
			}
		}
		n = next
	}
	return n.methods[method], vars
}

func split(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
}
