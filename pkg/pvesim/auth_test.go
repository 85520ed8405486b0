package pvesim_test

import (
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// login logs in and returns who the ticket lets one be, and the answer.
func (c callers) login(pairs ...string) (caller, map[string]any) {
	c.tb.Helper()
	data, _ := c.with().wants("OK", "POST", "/access/ticket", pairs...).data.(map[string]any)
	ticket, _ := data["ticket"].(string)
	csrf, _ := data["CSRFPreventionToken"].(string)
	return c.with("Cookie", "PVEAuthCookie="+url.QueryEscape(ticket), "CSRFPreventionToken", csrf), data
}

func TestLogin(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	c.world.AddUser(pvesim.UserSpec{ID: "a@pve", Password: "geheim-a"})
	c.world.AddUser(pvesim.UserSpec{ID: "off@pve", Password: "geheim-a", Disabled: true})
	c.world.AddUser(pvesim.UserSpec{ID: "old@pve", Password: "geheim-a", Expire: time.Unix(1000, 0)})
	c.world.AddUser(pvesim.UserSpec{ID: "none@pve"})
	a, data := c.login("username", "a", "realm", "pve", "password", "geheim-a")
	none := object{"vms": object{}, "nodes": object{}, "storage": object{}, "access": object{}, "dc": object{}, "sdn": object{}, "mapping": object{}}
	if diff := cmp.Diff(map[string]any(none), data["cap"]); diff != "" || data["clustername"] != nil || data["username"] != "a@pve" {
		t.Errorf("login of a user without rights: %v\n%s", data, diff)
	}
	a.wants("OK", "GET", "/version")
	nobody := c.with()
	for _, who := range []string{"a@nope", "nobody@pve", "off@pve", "old@pve", "none@pve", "a", "a@pve@pve"} {
		nobody.wants("401 authentication failure", "POST", "/access/ticket", "username", who, "password", "geheim-a")
	}
	nobody.wants("401 authentication failure", "POST", "/access/ticket", "username", "none@pve", "password", "")
	nobody.wants("401 authentication failure", "POST", "/access/ticket", "username", "a@pve", "password", "geheim-a", "tfa-challenge", "x")
	nobody.wants("400 password: property is missing and it is not optional", "POST", "/access/ticket", "username", "a@pve")
	nobody.wants("400 privs: missing property required by 'path'", "POST", "/access/ticket", "username", "a@pve", "password", "x", "path", "/")
}

func TestATicketIsRenewedByATicket(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	c.world.AddUser(pvesim.UserSpec{ID: "a@pve", Password: "geheim-a"})
	_, own := c.login("username", "a@pve", "password", "geheim-a")
	c.login("username", "a@pve", "password", own["ticket"].(string))
	_, roots := c.login("username", "root@pam", "password", "pvesim")
	if roots["clustername"] == nil || len(roots["cap"].(map[string]any)["vms"].(map[string]any)) < 19 {
		t.Errorf("login of root@pam: %v", roots)
	}
	as, _ := c.login("username", "a@pve", "password", roots["ticket"].(string))
	as.wants("403 Permission check failed (/, Sys.Audit)", "GET", "/cluster/status")
	c.with().wants("401 authentication failure", "POST", "/access/ticket", "username", "root@pam", "password", own["ticket"].(string))
}

func TestALoginCanCheckPrivileges(t *testing.T) {
	t.Parallel()
	c, _ := withUser(t)
	c.grant("a@pve", "/vms/9001", "VM.Audit")
	check := []string{"username", "a@pve", "password", "geheim-a", "path", "/vms/9001", "privs"}
	_, data := c.login(append(check, "VM.Audit")...)
	if data["ticket"] != nil || data["username"] != "a@pve" || data["cap"].(map[string]any)["vms"].(map[string]any)["VM.Audit"] != 1.0 {
		t.Errorf("check: %v", data)
	}
	c.with().wants("401 authentication failure", "POST", "/access/ticket", append(check, "VM.Audit VM.Clone")...)
}

func TestTicketsEndAfterTwoHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t)
		a, _ := c.login("username", "root@pam", "password", "pvesim")
		<-time.After(2 * time.Hour)
		a.wants("OK", "GET", "/version")
		<-time.After(time.Second)
		a.wants("401 Authentication failed!", "GET", "/version")
		c.world.Close()
	})
}

func TestAFailedLoginTakesThreeSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t, pvesim.WithSpeed(1))
		c.world.AddUser(pvesim.UserSpec{ID: "a@pve", Password: "geheim-a"})
		k := c.world.AddToken(pvesim.TokenSpec{User: "a@pve", Name: "t1", Expire: time.Now().Add(time.Minute)})
		for name, tt := range map[string]struct {
			who  caller
			took time.Duration
			want string
		}{
			"no login":      {c.with(), 3 * time.Second, "401 No ticket"},
			"wrong secret":  {c.with("Authorization", "PVEAPIToken=a@pve!t1=x"), 3 * time.Second, "401 Authentication failed!"},
			"empty token":   {c.with("Authorization", "PVEAPIToken="), 0, "401 No ticket"},
			"a good token":  {c.with("Authorization", k.Header()), 0, "200 OK"},
			"with a blank":  {c.with("Authorization", "PVEAPIToken a@pve!t1="+string(k.Secret)), 0, "200 OK"},
			"and more":      {c.with("Authorization", k.Header()+" x"), 3 * time.Second, "401 Authentication failed!"},
			"a cookie wins": {c.with("Authorization", k.Header(), "Cookie", "PVEAuthCookie=bad"), 3 * time.Second, "401 Authentication failed!"},
			"other cookies": {c.with("Authorization", k.Header(), "Cookie", "a=b; xPVEAuthCookie=c"), 0, "200 OK"},
		} {
			before := time.Now()
			if tt.who.wants(tt.want, "GET", "/version"); time.Since(before) != tt.took {
				t.Errorf("%s took %v, want %v", name, time.Since(before), tt.took)
			}
		}
		<-time.After(time.Minute)
		c.with("Authorization", k.Header()).wants("401 Authentication failed!", "GET", "/version")
		c.world.Close()
	})
}

func TestAnAccountThatIsOffCannotBeUsed(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	ticket, _ := c.login("username", "a@pve", "password", "geheim-a")
	c.root.wants("OK", "PUT", "/access/users/a@pve", "enable", "0")
	a.wants("401 Authentication failed!", "GET", "/version")
	ticket.wants("401 user 'a@pve' is disabled", "GET", "/version")
	c.root.wants("OK", "PUT", "/access/users/a@pve", "enable", "1", "expire", "1")
	ticket.wants("401 user 'a@pve' access expired", "GET", "/version")
	c.root.wants("OK", "PUT", "/access/users/a@pve", "expire", "0")
	ticket.wants("OK", "GET", "/version")
	c.root.wants("OK", "DELETE", "/access/users/a@pve")
	ticket.wants("401 Authentication failed!", "GET", "/version")
}

func TestPasswordsAreChangedByTheirOwnersAndThoseWhoMayModifyThem(t *testing.T) {
	t.Parallel()
	c, token := withUser(t)
	c.world.AddUser(pvesim.UserSpec{ID: "b@pve", Password: "geheim-b", Groups: []string{"ops"}})
	c.world.AddUser(pvesim.UserSpec{ID: "c@pam", Groups: []string{"ops"}})
	a, _ := c.login("username", "a@pve", "password", "geheim-a")
	a.wants("OK", "PUT", "/access/password", "userid", "a@pve", "password", "geheim-2")
	c.login("username", "a@pve", "password", "geheim-2")
	c.with().wants("401 authentication failure", "POST", "/access/ticket", "username", "a@pve", "password", "geheim-a")
	token.wants("403 Permission check failed (URI '/access/password' not available with API token, need proper ticket.", "PUT", "/access/password", "userid", "a@pve", "password", "geheim-3")

	change := []string{"userid", "b@pve", "password", "geheim-3"}
	a.wants("403 Permission check failed (/access/realm/pve, Realm.AllocateUser)", "PUT", "/access/password", change...)
	c.grant("a@pve", "/access/realm", "Realm.AllocateUser")
	a.wants("403 Permission check failed", "PUT", "/access/password", change...)
	c.grant("a@pve", "/access/groups/ops", "User.Modify")
	a.wants("OK", "PUT", "/access/password", change...)
	c.login("username", "b@pve", "password", "geheim-3")
	a.wants("403 Permission check failed", "PUT", "/access/password", "userid", "c@pam", "password", "geheim-3")
	a.wants("400 password: value must be at least 8 characters long", "PUT", "/access/password", "userid", "b@pve", "password", "short")
	root, _ := c.login("username", "root@pam", "password", "pvesim")
	root.wants("OK", "PUT", "/access/password", "userid", "c@pam", "password", "geheim-3")
	root.wants("500 no such user ('z@pve')", "PUT", "/access/password", "userid", "z@pve", "password", "geheim-3")
}
