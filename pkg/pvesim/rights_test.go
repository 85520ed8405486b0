package pvesim_test

import (
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// grant gives a role made of the privileges on a path.
func (c callers) grant(holder, path string, privileges string, extra ...string) {
	c.tb.Helper()
	role := "R" + sanitized(path+holder+privileges)
	c.root.do("POST", "/access/roles", "roleid", role, "privs", privileges)
	c.root.wants("OK", "PUT", "/access/acl", append([]string{"path", path, "roles", role, "users", holder}, extra...)...)
}

// sanitized is a text with what a role's name cannot have taken out.
func sanitized(s string) string {
	out := []byte{}
	for _, b := range []byte(s) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' {
			out = append(out, b)
		}
	}
	return string(out)
}

func withUser(t *testing.T, opts ...pvesim.Option) (callers, caller) {
	t.Helper()
	c := newCallers(t, opts...)
	c.world.AddUser(pvesim.UserSpec{ID: "a@pve", Password: "geheim-a"})
	return c, c.token("a@pve", "t1")
}

func TestEntriesOfADeeperPathReplaceThoseAbove(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	a.shows(object{}, "/access/permissions")
	c.grant("a@pve", "/", "VM.Audit,Sys.Audit")
	c.grant("a@pve", "/vms/9001", "VM.PowerMgmt")
	a.shows(object{"/vms/9001": object{"VM.PowerMgmt": 1}}, "/access/permissions", "path", "/vms/9001")
	a.shows(object{"/vms/9002": object{"VM.Audit": 1, "Sys.Audit": 1}}, "/access/permissions", "path", "/vms/9002")
	a.wants("403 Permission check failed (/vms/9001, VM.Audit)", "GET", "/nodes/pve1/qemu/9001/config")
	a.wants("OK", "GET", "/nodes/pve2/qemu/9002/config")
}

func TestEntriesThatDoNotPropagateCountOnTheirPathAlone(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	c.grant("a@pve", "/vms", "VM.Audit", "propagate", "0")
	a.shows(object{"/vms": object{"VM.Audit": 0}}, "/access/permissions")
	a.wants("403 Permission check failed (/vms/9001, VM.Audit)", "GET", "/nodes/pve1/qemu/9001/config")
}

func TestNoAccessTakesEverythingAway(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	c.grant("a@pve", "/", "VM.Audit")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/vms/9001", "roles", "NoAccess,PVEVMAdmin", "users", "a@pve")
	a.wants("403 Permission check failed (/vms/9001, VM.Audit)", "GET", "/nodes/pve1/qemu/9001/config")
	got, _ := a.wants("OK", "GET", "/cluster/resources", "type", "vm").data.([]any)
	if len(got) != 2 {
		t.Errorf("%d VMs are seen, want the other two", len(got))
	}
}

func TestAUsersEntryOutweighsThatOfItsGroup(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	c.root.wants("OK", "POST", "/access/groups", "groupid", "ops")
	c.root.wants("OK", "PUT", "/access/users/a@pve", "groups", "ops")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/vms", "roles", "PVEVMAdmin", "groups", "ops")
	a.wants("OK", "GET", "/nodes/pve1/qemu/9001/config")
	c.grant("a@pve", "/vms", "VM.Clone")
	a.shows(object{"/vms": object{"VM.Clone": 1}}, "/access/permissions", "path", "/vms")
}

func TestPoolsGiveRightsToTheirGuestsAndStorages(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	c.root.wants("OK", "PUT", "/pools/capi", "vms", "9001", "storage", "local")
	c.grant("a@pve", "/pool/capi", "VM.Audit,Datastore.Audit")
	a.wants("OK", "GET", "/nodes/pve1/qemu/9001/config")
	a.wants("OK", "GET", "/nodes/pve1/storage/local/status")
	a.wants("403 Permission check failed (/storage/shared, Datastore.Audit|Datastore.AllocateSpace)", "GET", "/nodes/pve1/storage/shared/status")
	both := object{"VM.Audit": 0, "Datastore.Audit": 0}
	a.shows(object{"/pool/capi": object{"VM.Audit": 1, "Datastore.Audit": 1}, "/vms/9001": both, "/storage/local": both}, "/access/permissions")

	c.root.wants("OK", "PUT", "/access/acl", "path", "/pool/capi", "roles", "NoAccess", "users", "a@pve")
	c.grant("a@pve", "/vms", "VM.Audit")
	a.wants("403 Permission check failed (/vms/9001, VM.Audit)", "GET", "/nodes/pve1/qemu/9001/config")
	if n := a.guests(); n != 2 {
		t.Errorf("%d guests are listed, want those outside the pool", n)
	}
}

// guests counts the guests in GET /cluster/resources.
func (c caller) guests() int {
	c.tb.Helper()
	got, _ := c.wants("OK", "GET", "/cluster/resources", "type", "vm").data.([]any)
	return len(got)
}

func TestListsOfGuestsAreFilteredByTheRightsOnEach(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	c.root.wants("OK", "PUT", "/pools/capi", "vms", "9001,9002")
	c.grant("a@pve", "/pool/capi", "VM.Audit")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/vms/9001", "roles", "NoAccess", "users", "a@pve")
	if n := a.guests(); n != 1 {
		t.Errorf("%d guests of the pool are listed, want the one that is not kept away", n)
	}
	k := c.separated("a@pve", "t2")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/vms", "roles", "PVEAuditor", "tokens", "a@pve!t2")
	if n := k.guests(); n != 1 {
		t.Errorf("%d guests are listed for a token with the right on all, want that which the user sees by its pool", n)
	}
}

func TestASeparatedTokenHasWhatBothHave(t *testing.T) {
	t.Parallel()
	c, _ := withUser(t)
	k := c.separated("a@pve", "t2")
	c.grant("a@pve", "/vms", "VM.Audit,VM.PowerMgmt")
	k.shows(object{}, "/access/permissions")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/vms/9001", "roles", "PVEVMAdmin", "tokens", "a@pve!t2")
	k.shows(object{"/vms/9001": object{"VM.Audit": 1, "VM.PowerMgmt": 1}}, "/access/permissions")
	k.wants("403 Permission check failed (/vms/9001, VM.Clone)", "POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
	roots := c.separated("root@pam", "t3")
	roots.shows(object{}, "/access/permissions")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/nodes", "roles", "PVEAuditor", "tokens", "root@pam!t3")
	roots.wants("OK", "GET", "/nodes/pve1/status")
	roots.wants("403 Permission check failed (/, Sys.Audit)", "GET", "/cluster/status")
}

func TestWhosePermissionsMayBeSeen(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	c.separated("a@pve", "t2")
	c.world.AddUser(pvesim.UserSpec{ID: "b@pve"})
	a.wants("403 Permission check failed (/access, Sys.Audit)", "GET", "/access/permissions", "userid", "b@pve")
	c.root.shows(object{}, "/access/permissions", "userid", "a@pve!t2")
	c.root.shows(object{}, "/access/permissions", "userid", "nobody@pve")
	c.grant("a@pve", "/access", "Sys.Audit")
	a.shows(object{}, "/access/permissions", "userid", "b@pve")
	a.wants("400 userid: value does not match the regex pattern", "GET", "/access/permissions", "userid", "b")
}

func TestPathsAreCheckedAndNormalised(t *testing.T) {
	t.Parallel()
	c, _ := withUser(t)
	for _, path := range []string{"/foo", "/vms/12", "/vms/abc", "/vms/100/x", "/sdn/zones/a/b/0", "/pool/a/b/c/d", "/sdn/fabrics/f"} {
		want := "400 path: invalid ACL path '" + path + "'"
		if path == "/sdn/fabrics/f" {
			want = "OK"
		}
		c.root.wants(want, "PUT", "/access/acl", "path", path, "roles", "PVEAuditor", "users", "a@pve")
	}
	c.root.wants("OK", "PUT", "/access/acl", "path", "/sdn/fabrics/f", "roles", "PVEAuditor", "users", "a@pve", "delete", "1")
	c.root.wants("OK", "PUT", "/access/acl", "path", "//vms//100/", "roles", "PVEAuditor", "users", "a@pve")
	c.root.wants("OK", "PUT", "/access/acl", "path", "mapping/pci/gpu", "roles", "PVEMappingUser", "users", "a@pve", "propagate", "0")
	c.root.shows(list{
		object{"path": "/mapping/pci/gpu", "type": "user", "ugid": "a@pve", "roleid": "PVEMappingUser", "propagate": 0},
		object{"path": "/vms/100", "type": "user", "ugid": "a@pve", "roleid": "PVEAuditor", "propagate": 1},
	}, "/access/acl")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/vms/100", "roles", "PVEAuditor", "users", "a@pve", "delete", "1")
	c.root.wants("OK", "PUT", "/access/acl", "path", "/nowhere", "roles", "PVEAuditor", "users", "a@pve", "delete", "1")
	c.root.wants("400 path: invalid ACL path '/a b'", "PUT", "/access/acl", "path", "/a b", "roles", "PVEAuditor", "users", "a@pve", "delete", "1")
	if old := newCallers(t, pvesim.WithVersion(pvesim.V84)); true {
		old.root.wants("400 path: invalid ACL path '/sdn/fabrics/f'", "PUT", "/access/acl", "path", "/sdn/fabrics/f", "roles", "PVEAuditor", "users", "root@pam")
	}
}

func TestNothingIsHeldOnWhatIsNoPath(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	c.root.wants("403 Permission check failed (, Pool.Allocate)", "POST", "/pools", "poolid", "a b")
	ticket, _ := c.login("username", "root@pam", "password", "pvesim")
	ticket.wants("400 poolid: invalid format - value 'a b' does not look like a valid pool name", "POST", "/pools", "poolid", "a b")
}

func TestACLEntriesNeedHoldersAndRolesThatExist(t *testing.T) {
	t.Parallel()
	c, _ := withUser(t)
	for want, params := range map[string][]string{
		"500 ACL update failed: role 'Nope' does not exist":                          {"roles", "Nope", "users", "a@pve"},
		"500 ACL update failed: user 'z@pve' does not exist":                         {"roles", "PVEAuditor", "users", "z@pve"},
		"500 ACL update failed: group 'z' does not exist":                            {"roles", "PVEAuditor", "groups", "z"},
		"500 ACL update failed: no such token 'z' for user 'a@pve'":                  {"roles", "PVEAuditor", "tokens", "a@pve!zz"},
		"500 ACL update failed: no such user ('z@pve')":                              {"roles", "PVEAuditor", "tokens", "z@pve!t1"},
		"400 users: invalid format - user name 'a' is too short":                     {"roles", "PVEAuditor", "users", "a"},
		"400 tokens: invalid format - value 'x' does not look like a valid token ID": {"roles", "PVEAuditor", "tokens", "x"},
	} {
		if params[3] == "a@pve!zz" {
			want = "500 ACL update failed: no such token 'zz' for user 'a@pve'"
		}
		c.root.wants(want, "PUT", "/access/acl", append([]string{"path", "/vms"}, params...)...)
	}
	r := c.root.do("PUT", "/access/acl", "path", "/vms", "roles", "PVEAuditor")
	if r.status != 400 || r.errors["users"] != "either 'users', 'groups' or 'tokens' is required." || len(r.errors) != 3 {
		t.Errorf("no holder: %+v", r)
	}
}

func TestWhoMayGiveRights(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	give := func(want, path, role string, extra ...string) result {
		t.Helper()
		return a.wants(want, "PUT", "/access/acl", append([]string{"path", path, "roles", role, "users", "a@pve"}, extra...)...)
	}
	give("403 Permission check failed (/vms/9001, Permissions.Modify|VM.Allocate)", "/vms/9001", "PVEVMUser")
	give("403 Permission check failed (/pool/capi, Permissions.Modify|Pool.Allocate)", "/pool/capi", "PVEVMUser")
	give("403 Permission check failed (/storage/local, Permissions.Modify|Datastore.Allocate)", "/storage/local", "PVEVMUser")
	give("403 Permission check failed (/nodes, Permissions.Modify)", "/nodes", "PVEVMUser")
	c.root.wants("OK", "POST", "/access/roles", "roleid", "Small", "privs", "VM.Allocate")
	c.grant("a@pve", "/vms/9001", "VM.Allocate,VM.Audit")
	r := give("500 ACL update failed: 400 Parameter verification failed.", "/vms/9001", "PVEVMAdmin")
	if want := "role: Cannot add role 'PVEVMAdmin' - requires 'Permissions.Modify' or superset of privileges."; !strings.Contains(r.body, want) {
		t.Errorf("the message is %s, want %s in it", r.body, want)
	}
	give("500 ACL update failed: 400 Parameter verification failed.", "/vms/9001", "NoAccess")
	give("OK", "/vms/9001", "Small")
	give("OK", "/vms/9001", "Small", "delete", "1")
	a.shows(list{object{"path": "/vms/9001", "type": "user", "ugid": "a@pve", "roleid": "Rvms9001apveVMAllocateVMAudit", "propagate": 1}}, "/access/acl")

	c.root.wants("OK", "PUT", "/pools/capi", "vms", "9002")
	c.grant("a@pve", "/pool/capi", "VM.Allocate")
	give("500 ACL update failed: 400 Parameter verification failed.", "/vms/9002", "Small")
	give("OK", "/vms/9002", "Small", "propagate", "0")
	c.grant("a@pve", "/nodes", "Permissions.Modify")
	give("OK", "/nodes", "Administrator")
}

func TestWhoMayManageUsers(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	c.world.AddUser(pvesim.UserSpec{ID: "b@pve", Groups: []string{"ops"}})
	c.world.AddUser(pvesim.UserSpec{ID: "c@pve"})
	a.shows(list{}, "/access/users")
	a.shows(list{}, "/access/groups")
	a.wants("403 Permission check failed", "GET", "/access/users/b@pve")
	a.wants("403 Permission check failed", "GET", "/access/users/a@pve/token")
	a.wants("403 Permission check failed (/access/realm/pve, Realm.AllocateUser)", "POST", "/access/users", "userid", "d@pve")
	a.wants("403 Permission check failed (/access/groups, User.Modify)", "PUT", "/access/users/b@pve", "comment", "x")
	a.wants("403 Permission check failed (/access/groups, Group.Allocate)", "POST", "/access/groups", "groupid", "g")
	a.wants("403 Permission check failed (/access/groups, Sys.Audit|Group.Allocate)", "GET", "/access/groups/ops")
	a.wants("403 Permission check failed (/access, Sys.Modify)", "POST", "/access/roles", "roleid", "g")

	c.grant("a@pve", "/access/groups/ops", "User.Modify")
	a.wants("OK", "GET", "/access/users/b@pve")
	a.wants("403 Permission check failed", "GET", "/access/users/c@pve")
	a.wants("OK", "POST", "/access/users/b@pve/token/t1")
	a.shows(list{object{"userid": "b@pve", "enable": 1, "expire": 0, "realm-type": "pve"}}, "/access/users")
	a.shows(list{object{"groupid": "ops", "users": "b@pve"}}, "/access/groups")
	c.grant("a@pve", "/access/realm/pve", "Realm.AllocateUser")
	a.wants("403 Permission check failed (/access/groups, User.Modify)", "POST", "/access/users", "userid", "d@pve")
	a.wants("403 Permission check failed (/access/groups/zz, User.Modify)", "POST", "/access/users", "userid", "d@pve", "groups", "ops,zz")
	a.wants("OK", "POST", "/access/users", "userid", "d@pve", "groups", "ops")
	a.wants("OK", "PUT", "/access/users/d@pve", "groups", "ops", "comment", "x")
	a.wants("OK", "DELETE", "/access/users/d@pve")
	c.grant("a@pve", "/access/groups", "User.Modify")
	a.wants("OK", "PUT", "/access/users/c@pve", "comment", "x")
}
