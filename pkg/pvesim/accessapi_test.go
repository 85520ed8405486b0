package pvesim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestUsersComeAndGo(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	root := c.root
	root.wants("OK", "POST", "/access/groups", "groupid", "ops", "comment", "c")
	root.wants("OK", "POST", "/access/users", "userid", "a@pve", "password", "secret-1", "groups", "ops", "comment", "x", "expire", "4102444800", "email", "a@b.c")
	root.shows(object{"enable": 1, "expire": 4102444800, "comment": "x", "email": "a@b.c", "groups": list{"ops"}, "tokens": nil}, "/access/users/a@pve")
	root.wants("OK", "PUT", "/access/users/a@pve", "enable", "0", "expire", "0", "comment", "", "firstname", "A")
	root.wants("OK", "POST", "/access/users/a@pve/token/t1", "privsep", "0")
	root.shows(list{
		object{"userid": "a@pve", "enable": 0, "expire": 0, "email": "a@b.c", "firstname": "A", "realm-type": "pve", "groups": "ops", "tokens": list{
			object{"tokenid": "t1", "privsep": 0, "expire": 0},
		}},
	}, "/access/users", "full", "1", "enabled", "0")
	root.shows(list{object{"userid": "root@pam", "enable": 1, "expire": 0, "realm-type": "pam"}}, "/access/users", "enabled", "1")

	root.wants("500 create user failed: user 'a@pve' already exists", "POST", "/access/users", "userid", "a@pve")
	root.wants("500 create user failed: no such group 'zz'", "POST", "/access/users", "userid", "b@pve", "groups", "zz")
	root.wants("500 create user failed: auth domain 'nope' does not exist", "POST", "/access/users", "userid", "b@nope", "password", "secret-1")
	root.wants("500 user name 'a' is too short", "POST", "/access/users", "userid", "a")
	root.wants("500 value 'a b@pve' does not look like a valid user name", "POST", "/access/users", "userid", "a b@pve")
	root.wants("400 password: value must be at least 8 characters long", "POST", "/access/users", "userid", "b@pve", "password", "short")
	root.wants("500 no such user ('b@pve')", "GET", "/access/users/b@pve")
	root.wants("500 no such user ('b@pve')", "PUT", "/access/users/b@pve", "enable", "1")
	root.wants("500 update user failed: no such group 'zz'", "PUT", "/access/users/a@pve", "groups", "zz")

	root.wants("OK", "PUT", "/access/acl", "path", "/vms", "roles", "PVEVMUser", "users", "a@pve", "tokens", "a@pve!t1")
	root.wants("OK", "DELETE", "/access/users/a@pve")
	root.wants("500 no such user ('a@pve')", "DELETE", "/access/users/a@pve")
	root.shows(list{}, "/access/acl")
	root.shows(object{"comment": "c", "members": list{}}, "/access/groups/ops")
}

func TestRootStays(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	root, _ := c.login("username", "root@pam", "password", "pvesim")
	root.wants("OK", "PUT", "/access/users/root@pam", "enable", "0")
	root.wants("OK", "GET", "/version")
	root.wants("OK", "DELETE", "/access/users/root@pam")
	root.wants("OK", "GET", "/version")
	c.root.wants("401 Authentication failed!", "GET", "/version")
}

func TestGroupsHoldUsers(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	root := c.root
	c.world.AddUser(pvesim.UserSpec{ID: "a@pve"})
	root.wants("OK", "POST", "/access/groups", "groupid", "ops")
	root.wants("OK", "POST", "/access/groups", "groupid", "dev")
	root.wants("500 create group failed: group 'ops' already exists", "POST", "/access/groups", "groupid", "ops")
	root.wants("400 groupid: invalid format - value 'o ps' does not look like a valid group name", "POST", "/access/groups", "groupid", "o ps")
	root.wants("OK", "PUT", "/access/users/a@pve", "groups", "ops")
	root.wants("OK", "PUT", "/access/users/a@pve", "groups", "dev", "append", "1")
	root.wants("OK", "PUT", "/access/groups/dev", "comment", "d")
	root.shows(list{object{"groupid": "dev", "users": "a@pve", "comment": "d"}, object{"groupid": "ops", "users": "a@pve"}}, "/access/groups")
	root.wants("500 update group failed: group 'zz' does not exist", "PUT", "/access/groups/zz", "comment", "d")
	root.wants("500 group 'zz' does not exist", "GET", "/access/groups/zz")
	root.wants("500 delete group failed: group 'zz' does not exist", "DELETE", "/access/groups/zz")

	a := c.token("a@pve", "t1")
	a.wants("403 Permission check failed (/, Sys.Audit)", "GET", "/cluster/status")
	root.wants("OK", "PUT", "/access/acl", "path", "/", "roles", "PVEAuditor", "groups", "ops")
	a.wants("OK", "GET", "/cluster/status")
	root.wants("OK", "DELETE", "/access/groups/ops")
	a.wants("403 Permission check failed (/, Sys.Audit)", "GET", "/cluster/status")
	root.shows(list{}, "/access/acl")
	if got := c.world.State().Users[0].Groups; len(got) != 1 || got[0] != "dev" {
		t.Errorf("a@pve is in %v, want dev alone", got)
	}
}

func TestRolesAreSetsOfPrivileges(t *testing.T) {
	t.Parallel()
	root := newCallers(t, pvesim.WithVersion(pvesim.V92)).root
	root.wants("OK", "POST", "/access/roles", "roleid", "r", "privs", "VM.Audit VM.PowerMgmt,VM.Audit")
	root.shows(object{"VM.Audit": 1, "VM.PowerMgmt": 1}, "/access/roles/r")
	root.wants("OK", "PUT", "/access/roles/r", "privs", "VM.Clone", "append", "1")
	root.shows(object{"VM.Audit": 1, "VM.PowerMgmt": 1, "VM.Clone": 1}, "/access/roles/r")
	root.wants("OK", "PUT", "/access/roles/r", "privs", "Sys.Audit")
	root.shows(object{"Sys.Audit": 1}, "/access/roles/r")
	root.wants("400 privs: invalid format - invalid privilege 'VM.Monitor'", "POST", "/access/roles", "roleid", "m", "privs", "VM.Monitor")
	root.wants("400 privs: invalid format - invalid privilege 'VM.Foo'", "PUT", "/access/roles/r", "privs", "VM.Foo")
	root.wants("500 create role failed: role 'r' already exists", "POST", "/access/roles", "roleid", "r")
	root.wants("400 roleid: cannot use role ID starting with the (case-insensitive) 'PVE' namespace", "POST", "/access/roles", "roleid", "pveX")
	root.wants("500 auto-generated role 'PVEAuditor' cannot be modified", "PUT", "/access/roles/PVEAuditor", "privs", "VM.Audit")
	root.wants("500 auto-generated role 'NoAccess' cannot be deleted", "DELETE", "/access/roles/NoAccess")
	root.wants("500 update role failed: role 'zz' does not exist", "PUT", "/access/roles/zz", "privs", "VM.Audit")
	root.wants("500 role 'zz' does not exist", "GET", "/access/roles/zz")
	root.wants("OK", "PUT", "/access/acl", "path", "/vms", "roles", "r", "users", "root@pam")
	root.wants("OK", "DELETE", "/access/roles/r")
	root.wants("500 delete role failed: role 'r' does not exist", "DELETE", "/access/roles/r")
	root.shows(list{}, "/access/acl")
}

func TestVersionsBringDifferentRoles(t *testing.T) {
	t.Parallel()
	for v, agent := range map[pvesim.Version]string{pvesim.V84: "VM.Monitor", pvesim.V92: "VM.GuestAgent.Unrestricted"} {
		c := newCallers(t, pvesim.WithVersion(v))
		list, _ := c.root.wants("OK", "GET", "/access/roles").data.([]any)
		if len(list) != 17 {
			t.Errorf("%s has %d roles, want 17", v, len(list))
		}
		admin, _ := c.root.wants("OK", "GET", "/access/roles/PVEVMAdmin").data.(map[string]any)
		if admin[agent] == nil {
			t.Errorf("PVEVMAdmin of %s lacks %s: %v", v, agent, admin)
		}
	}
}

func TestTokensShowTheirSecretOnce(t *testing.T) {
	t.Parallel()
	c := newCallers(t, pvesim.WithVersion(pvesim.V92))
	root := c.root
	c.world.AddUser(pvesim.UserSpec{ID: "a@pve"})
	made, _ := root.wants("OK", "POST", "/access/users/a@pve/token/t1", "comment", "c", "expire", "4102444800").data.(map[string]any)
	if made["full-tokenid"] != "a@pve!t1" || made["info"].(map[string]any)["privsep"] != 1.0 {
		t.Errorf("created token: %v", made)
	}
	secret, _ := made["value"].(string)
	a := c.with("Authorization", "PVEAPIToken=a@pve!t1="+secret)
	a.wants("OK", "GET", "/version")
	root.shows(object{"privsep": 1, "expire": 4102444800, "comment": "c"}, "/access/users/a@pve/token/t1")
	root.shows(list{object{"tokenid": "t1", "privsep": 1, "expire": 4102444800, "comment": "c"}}, "/access/users/a@pve/token")
	root.wants("OK", "PUT", "/access/users/a@pve/token/t1", "privsep", "0", "delete", "comment,expire")
	root.shows(object{"privsep": 0, "expire": 0}, "/access/users/a@pve/token/t1")

	renewed, _ := root.wants("OK", "PUT", "/access/users/a@pve/token/t1", "regenerate", "1", "comment", "n").data.(map[string]any)
	a.wants("401 Authentication failed!", "GET", "/version")
	c.with("Authorization", "PVEAPIToken=a@pve!t1="+renewed["value"].(string)).wants("OK", "GET", "/version")

	root.wants("400 tokenid: Token already exists.", "POST", "/access/users/a@pve/token/t1")
	root.wants("500 no such token 'zz' for user 'a@pve'", "GET", "/access/users/a@pve/token/zz")
	root.wants("500 no such token 'zz' for user 'a@pve'", "DELETE", "/access/users/a@pve/token/zz")
	root.wants("403 Permission check failed", "GET", "/access/users/b@pve/token")
	root.wants("400 tokenid: value does not match the regex pattern", "POST", "/access/users/a@pve/token/1")
	root.wants("OK", "PUT", "/access/users/a@pve/token/t1", "expire", "1")
	root.wants("OK", "DELETE", "/access/users/a@pve/token/t1")
	root.shows(list{}, "/access/users/a@pve/token")
}

func TestWhatNeedsNoLogin(t *testing.T) {
	t.Parallel()
	nobody := newCallers(t).with()
	nobody.shows(nil, "/access/ticket")
	nobody.shows(list{
		object{"realm": "pam", "type": "pam", "comment": "Linux PAM standard authentication"},
		object{"realm": "pve", "type": "pve", "comment": "Proxmox VE authentication server"},
	}, "/access/domains")
	nobody.wants("401 No ticket", "GET", "/access")
}

func TestEverythingBelowAccessIsListed(t *testing.T) {
	t.Parallel()
	got, _ := newCallers(t).root.wants("OK", "GET", "/access").data.([]any)
	if len(got) != 9 {
		t.Errorf("index: %v", got)
	}
}

func TestUsersAndGroupsAreInTheState(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	c.root.wants("OK", "POST", "/access/groups", "groupid", "ops", "comment", "c")
	c.root.wants("OK", "POST", "/access/users", "userid", "a@pve", "groups", "ops", "email", "a@b.c", "expire", "4102444800")
	c.root.wants("OK", "POST", "/access/users/a@pve/token/t1", "comment", "k")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/vms", "roles", "PVEVMUser", "groups", "ops", "tokens", "a@pve!t1", "propagate", "0")
	first := c.world.State()
	if diff := cmp.Diff(first, newWorld(t, pvesim.FromState(first)).State()); diff != "" {
		t.Errorf("the world differs (-first +rebuilt):\n%s", diff)
	}
	if len(first.UserGroups) != 1 || first.Users[0].Details["email"] != "a@b.c" || first.Tokens[0].Comment != "k" || len(first.ACL) != 2 {
		t.Errorf("state: %+v", first)
	}
}

// TestARoleWithoutPrivilegesIsLoaded: it is a role all the same, and may be given.
func TestARoleWithoutPrivilegesIsLoaded(t *testing.T) {
	t.Parallel()
	state := newWorld(t).State()
	state.Roles = append(state.Roles, pvesim.RoleSpec{ID: "none"})
	state.ACL = append(state.ACL, pvesim.ACLSpec{Path: "/vms", Role: "none", Type: "user", Holder: "root@pam"})
	if w, err := pvesim.NewWorld(pvesim.FromState(state)); err != nil {
		t.Error(err)
	} else {
		w.Close()
	}
}
