package pvesim

import "github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"

// accessRoutes are the endpoints below /access.
func accessRoutes(v Version) []Route {
	out := []Route{
		{Method: "GET", Path: "/access", handle: func(*call) reply { return ok(accessIndex()) }},
		{Method: "GET", Path: "/access/ticket", handle: func(*call) reply { return ok(nil) }, permission: world{}},
		{Method: "POST", Path: "/access/ticket", handle: login, permission: world{}, ticketOnly: true, params: []schema.Param{
			schema.Text("username").MaxLength(64).Required(), schema.Text("password").Required(), schema.Text("realm").Format("pve-realm").MaxLength(32),
			schema.Boolean("new-format"), schema.Text("otp"), schema.Text("path").MaxLength(64).Requires("privs"), schema.Text("privs").MaxLength(64).Requires("path"),
			schema.Text("tfa-challenge"),
		}},
		{Method: "GET", Path: "/access/permissions", handle: permissions, params: []schema.Param{
			schema.Text("path"), schema.Text("userid").Pattern(`[^\s:/]+@` + namePattern + `(?:!` + namePattern + `)?`),
		}},
		{Method: "GET", Path: "/access/domains", handle: func(*call) reply { return ok(realms()) }, permission: world{}},
		{
			Method: "PUT", Path: "/access/password", handle: changePassword, ticketOnly: true,
			permission: anyOf{self{}, allOf{allocateUser{}, userGroup{privileges: []string{"User.Modify"}}}},
			params: []schema.Param{
				userIDParam(), schema.Text("password").MinLength(8).MaxLength(64).Required(), schema.Text("confirmation-password").MinLength(5).MaxLength(64),
			},
		},
	}
	for _, group := range [][]Route{userRoutes(), tokenRoutes(v), userGroupRoutes(), roleRoutes(), aclRoutes()} {
		out = append(out, group...)
	}
	return out
}

// namePattern is that of realms and of names of tokens.
const namePattern = `[A-Za-z][A-Za-z0-9.\-_]+`

func userIDParam() schema.Param {
	return schema.Text("userid").Format("pve-userid").MaxLength(64).Required()
}

func accessIndex() []map[string]string {
	var out []map[string]string
	for _, name := range []string{"users", "groups", "roles", "acl", "domains", "openid", "tfa", "ticket", "password"} {
		out = append(out, map[string]string{"subdir": name})
	}
	return out
}

// realms are those that every Proxmox VE has.
func realms() []map[string]string {
	return []map[string]string{
		{"realm": "pam", "type": "pam", "comment": "Linux PAM standard authentication"},
		{"realm": "pve", "type": "pve", "comment": "Proxmox VE authentication server"},
	}
}

// realmType is the type of the realm of a user; empty if there is none.
func realmType(userID string) string {
	for _, r := range realms() {
		if n := len(userID) - len(r["realm"]); n > 0 && userID[n-1:] == "@"+r["realm"] {
			return r["type"]
		}
	}
	return ""
}
