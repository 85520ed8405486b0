package pve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Version is what /version says.
type Version struct {
	// Version is for example 9.2.11, Release 9.2.
	Version, Release string
}

// AtLeast says whether the version is this one or newer. An unreadable version is older than all.
func (v Version) AtLeast(major, minor int) bool {
	var gotMajor, gotMinor int
	parts := strings.SplitN(v.Version, ".", 3)
	if len(parts) > 1 {
		gotMajor, _ = strconv.Atoi(parts[0])
		gotMinor, _ = strconv.Atoi(parts[1])
	}
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}

// Version asks for PVE's version. Any login may.
func (c *Client) Version(ctx context.Context) (Version, error) {
	call, err := newCall(http.MethodGet, "/version")
	object, err := c.object(ctx, call, err)
	if err != nil {
		return Version{}, err
	}
	return Version{Version: string(object["version"]), Release: string(object["release"])}, nil
}

// Authority asks for the SHA-256 fingerprint of the cluster's own root CA, which tells it from other clusters. Any login may.
func (c *Client) Authority(ctx context.Context, node proxmox.NodeName) (string, error) {
	call, err := newCall(http.MethodGet, "/nodes/{node}/certificates/info", string(node))
	list, err := c.list(ctx, call, err)
	if err != nil {
		return "", err
	}
	for _, certificate := range list {
		if fingerprint := string(certificate["fingerprint"]); certificate["filename"] == "pve-root-ca.pem" && fingerprint != "" {
			return fingerprint, nil
		}
	}
	return "", c.undecodable(call, errors.New("there is no pve-root-ca.pem"))
}

// Resources lists all that the credentials may see of the PVE cluster: nodes, guests, storages. What they may not see is
// silently absent.
func (c *Client) Resources(ctx context.Context) ([]Resource, error) {
	call, err := newCall(http.MethodGet, "/cluster/resources")
	list, err := c.list(ctx, call, err)
	if err != nil {
		return nil, err
	}
	resources := make([]Resource, len(list))
	for i, object := range list {
		resources[i] = object.resource()
	}
	return resources, nil
}

// Permissions are the privileges of the credentials: by path of the access tree, then by privilege, whether it also holds
// below the path.
type Permissions map[string]map[string]bool

// Allows says whether a privilege holds at a path such as /vms/101, directly or from above.
func (p Permissions) Allows(path, privilege string) bool {
	if _, here := p[path][privilege]; here {
		return true
	}
	for path != "/" && path != "" {
		path = path[:max(strings.LastIndex(path, "/"), 0)]
		if privileges, known := p[rootPath(path)]; known {
			return privileges[privilege]
		}
	}
	return false
}

func rootPath(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// Permissions asks for the credentials' own privileges. Any login may.
func (c *Client) Permissions(ctx context.Context) (Permissions, error) {
	call, err := newCall(http.MethodGet, "/access/permissions")
	data, err := c.get(ctx, call, err)
	if err != nil {
		return nil, err
	}
	var paths map[string]fields
	if err := json.Unmarshal(data, &paths); err != nil {
		return nil, c.undecodable(call, err)
	}
	permissions := Permissions{}
	for path, privileges := range paths {
		permissions[path] = map[string]bool{}
		for privilege, propagates := range privileges {
			permissions[path][privilege] = propagates.flag()
		}
	}
	return permissions, nil
}

// TaskStatus asks the node that runs the task. The error has class NotFound if the node does not know the task.
func (c *Client) TaskStatus(ctx context.Context, upid proxmox.UPID) (TaskStatus, error) {
	id, err := upid.Parse()
	if err != nil {
		return TaskStatus{}, c.inRegion((&call{method: http.MethodGet, path: "/nodes/{node}/tasks/{upid}/status"}).refuse(err.Error()))
	}
	call, err := newCall(http.MethodGet, "/nodes/{node}/tasks/{upid}/status", string(id.Node), string(upid))
	object, err := c.object(ctx, call, err)
	if err != nil {
		return TaskStatus{}, err
	}
	return object.taskStatus(upid), nil
}

// ClusterTasks lists the running and the last ended tasks of all nodes; 25 ended ones per node. Without Sys.Audit only
// those of the credentials' own user.
func (c *Client) ClusterTasks(ctx context.Context) ([]TaskStatus, error) {
	call, err := newCall(http.MethodGet, "/cluster/tasks")
	list, err := c.list(ctx, call, err)
	if err != nil {
		return nil, err
	}
	tasks := make([]TaskStatus, len(list))
	for i, object := range list {
		tasks[i] = object.clusterTask()
	}
	return tasks, nil
}

// list sends a read whose answer is a list of objects.
func (c *Client) list(ctx context.Context, call *call, err error) ([]fields, error) {
	data, err := c.get(ctx, call, err)
	if err != nil {
		return nil, err
	}
	list, err := decodeList(data)
	if err != nil {
		return nil, c.undecodable(call, err)
	}
	return list, nil
}

// names sends a read whose answer is a list of objects, and returns what they have under a key.
func (c *Client) names(ctx context.Context, call *call, err error, key string) ([]string, error) {
	list, err := c.list(ctx, call, err)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, object := range list {
		names[i] = string(object[key])
	}
	return names, nil
}

// object sends a read whose answer is one object.
func (c *Client) object(ctx context.Context, call *call, err error) (fields, error) {
	data, err := c.get(ctx, call, err)
	if err != nil {
		return nil, err
	}
	var object fields
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, c.undecodable(call, err)
	}
	return object, nil
}

// undecodable is the error of an answer that has another shape than PVE's.
func (c *Client) undecodable(call *call, err error) error {
	return call.asError(c.region, fmt.Errorf("decode answer: %w", err))
}
