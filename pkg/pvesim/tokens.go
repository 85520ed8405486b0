package pvesim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func tokenRoutes(v Version) []Route {
	own := anyOf{self{}, userGroup{privileges: []string{"User.Modify"}}}
	id := []schema.Param{userIDParam(), schema.Text("tokenid").Pattern(namePattern).Required()}
	data := append(slices.Clone(id), schema.Text("comment"), schema.Integer("expire").Min(0), schema.Boolean("privsep"))
	change := slices.Clone(data)
	if v != V84 {
		change = append(change, schema.Text("delete").Format("pve-configid-list"), schema.Boolean("regenerate"))
	}
	const path = "/access/users/{userid}/token"
	return []Route{
		{Method: "GET", Path: path, handle: listTokens, permission: own, params: id[:1]},
		{Method: "GET", Path: path + "/{tokenid}", handle: readToken, permission: own, params: id},
		{Method: "POST", Path: path + "/{tokenid}", handle: createToken, permission: own, params: data},
		{Method: "PUT", Path: path + "/{tokenid}", handle: updateToken, permission: own, params: change},
		{Method: "DELETE", Path: path + "/{tokenid}", handle: deleteToken, permission: own, params: id},
	}
}

// tokensOf are the tokens of a user by name.
func (w *World) tokensOf(u *user) []*token {
	var out []*token
	for _, t := range w.tokens {
		if t.user == u {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *token) int { return cmp.Compare(a.id, b.id) })
	return out
}

func (t *token) fields() map[string]any {
	out := map[string]any{"privsep": pveBool(t.separated), "expire": unixOrZero(t.expire)}
	if t.comment != "" {
		out["comment"] = t.comment
	}
	return out
}

func tokenList(tokens []*token) []map[string]any {
	out := []map[string]any{}
	for _, t := range tokens {
		entry := t.fields()
		entry["tokenid"] = t.name()
		out = append(out, entry)
	}
	return out
}

func listTokens(c *call) reply {
	u := c.users[c.params["userid"]]
	if u == nil {
		return noUser(c.params["userid"])
	}
	return ok(tokenList(c.tokensOf(u)))
}

// theToken finds the token of the path; nil with the refusal otherwise.
func (c *call) theToken() (*token, reply) {
	user, name := c.params["userid"], c.params["tokenid"]
	if c.users[user] == nil {
		return nil, noUser(user)
	}
	if t := c.tokens[user+"!"+name]; t != nil {
		return t, reply{}
	}
	return nil, fail("no such token '%s' for user '%s'", name, user)
}

func readToken(c *call) reply {
	t, refused := c.theToken()
	if t == nil {
		return refused
	}
	return ok(t.fields())
}

// createToken answers with the secret, which is never shown again.
func createToken(c *call) reply {
	u := c.users[c.params["userid"]]
	if u == nil {
		return noUser(c.params["userid"])
	}
	if c.tokens[u.id+"!"+c.params["tokenid"]] != nil {
		return invalidParam("tokenid", "Token already exists.")
	}
	t := c.addToken(TokenSpec{
		User: u.id, Name: c.params["tokenid"], Unseparated: c.has("privsep") && !c.flag("privsep"), Expire: expiry(c.params["expire"]), Comment: c.params["comment"],
	})
	info := c.givenTokenData()
	if !c.has("privsep") {
		info["privsep"] = 1
	}
	return ok(map[string]any{"full-tokenid": t.ID, "value": string(t.Secret), "info": info})
}

// givenTokenData are the values of the request as they came: Proxmox VE answers with texts here.
func (c *call) givenTokenData() map[string]any {
	out := map[string]any{}
	for _, name := range []string{"privsep", "expire", "comment"} {
		if value, given := c.params[name]; given && (value != "" || name != "comment") {
			out[name] = value
		}
	}
	return out
}

func updateToken(c *call) reply {
	t, refused := c.theToken()
	if t == nil {
		return refused
	}
	if c.has("privsep") {
		t.separated = c.flag("privsep")
	}
	if c.has("expire") {
		t.expire = expiry(c.params["expire"])
	}
	if text := c.params["comment"]; text != "" {
		t.comment = text
	}
	for _, name := range schema.SplitList(c.params["delete"]) {
		t.reset(name)
	}
	out := t.fields()
	maps.Copy(out, c.givenTokenData())
	if c.flag("regenerate") {
		t.secret = Secret(c.newUUID())
		out["full-tokenid"], out["value"] = t.id, string(t.secret)
	}
	return ok(out)
}

// reset puts a setting of the token back to its default.
func (t *token) reset(name string) {
	switch name {
	case "comment":
		t.comment = ""
	case "expire":
		t.expire = expiry("")
	case "privsep":
		t.separated = true
	}
}

func deleteToken(c *call) reply {
	t, refused := c.theToken()
	if t == nil {
		return refused
	}
	c.removeToken(t)
	return ok(nil)
}

func (w *World) removeToken(t *token) {
	delete(w.tokens, t.id)
	w.forgetACL(func(e ACLSpec) bool { return e.Type == tokenHolder && e.Holder == t.id })
}
