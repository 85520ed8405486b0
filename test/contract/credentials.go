package contract

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const rootUser = "root@pam"

// holder says which token the recorder used where the setup has several, for exchanges from one Seq to another.
type holder struct {
	scenario string
	from, to int
	// token is user!name.
	token string
}

// holders of 02-auth follow from its notes: a@pve has no ACL entry, b@pve's token t1 is separated, t2 is not.
var holders = []holder{
	{"02-auth", 34, 34, "a@pve!t1"},
	{"02-auth", 35, 35, "b@pve!t1"},
	{"02-auth", 36, 39, "b@pve!t2"},
	{"02-auth", 40, 54, "a@pve!t1"},
	{"02-auth", 55, 70, "b@pve!t1"},
	{"02-auth", 71, 84, "b@pve!t2"},
	{"02-auth", 85, 91, "b@pve!t1"},
	{"02-auth", 92, 101, "a@pve!t1"},
	{"02-auth", 102, 105, "b@pve!t2"},
	{"02-auth", 106, 200, "a@pve!t1"},
}

// others are the Authorization headers of exchanges made as other, by their note. The words in braces are a token's ID and
// its secret.
var others = map[string]string{ //nolint:gosec // no secrets: the words in braces stand for them
	"right":                   "PVEAPIToken=a@pve!t1={a@pve!t1}",
	"wrong secret":            "PVEAPIToken=a@pve!t1=00000000-0000-0000-0000-000000000000",
	"no such token":           "PVEAPIToken=a@pve!zz={a@pve!t1}",
	"no token id":             "PVEAPIToken=a@pve={a@pve!t1}",
	"no such user":            "PVEAPIToken=nobody@pve!t1={a@pve!t1}",
	"malformed":               "PVEAPIToken=foo",
	"empty token":             "PVEAPIToken=",
	"expired token":           "PVEAPIToken=a@pve!old={a@pve!old}",
	"disabled user":           "PVEAPIToken=d@pve!t1={d@pve!t1}",
	"trailing blank":          "PVEAPIToken=a@pve!t1={a@pve!t1} x",
	"no secret":               "PVEAPIToken=a@pve!t1",
	"Authorization: Bearer …": "Bearer {a@pve!t1}",
	"blank instead of =":      "PVEAPIToken a@pve!t1={a@pve!t1}",
}

// authorize puts the credentials of an exchange on its request.
func (r *replay) authorize(ctx context.Context, e Exchange, req *http.Request) error {
	switch e.As {
	case "none":
		return nil
	case "other":
		req.Header.Set("Authorization", r.otherHeader(e.Note))
		return nil
	case "root-ticket":
		return r.useTicket(ctx, e, req)
	}
	t, ok := r.token(e)
	if !ok {
		return fmt.Errorf("exchange %d: the setup names no token for %s", e.Seq, e.As)
	}
	req.Header.Set("Authorization", authorization(t.id(), r.target.Secrets[t.id()]))
	return nil
}

// token is that of the exchange: root's, or the one of the setup that is not.
func (r *replay) token(e Exchange) (SetupToken, bool) {
	wanted := ""
	for _, h := range holders {
		if h.scenario == r.recording.Scenario && e.As == "limited-token" && h.from <= e.Seq && e.Seq <= h.to {
			wanted = h.token
		}
	}
	for _, t := range r.recording.Setup.Tokens {
		if (wanted == "" && (t.User == rootUser) == (e.As == "root-token")) || t.id() == wanted {
			return t, true
		}
	}
	return SetupToken{}, false
}

func (r *replay) otherHeader(note string) string {
	header := others[note]
	for _, t := range r.recording.Setup.Tokens {
		header = strings.ReplaceAll(header, "{"+t.id()+"}", r.target.Secrets[t.id()])
	}
	return header
}

// useTicket logs in as root@pam once and uses that ticket. Two notes of 02-auth tell of a wrong one.
func (r *replay) useTicket(ctx context.Context, e Exchange, req *http.Request) error {
	if r.ticket == "" {
		login := url.Values{"username": {rootUser}, "password": {r.target.Password}}
		in, err := http.NewRequestWithContext(ctx, http.MethodPost, r.target.Origin+apiPrefix+"/access/ticket", strings.NewReader(login.Encode()))
		if err != nil {
			return fmt.Errorf("build login: %w", err)
		}
		in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.learnTicket(r.target.send("pve1", in).Body)
	}
	ticket, csrf := r.ticket, r.csrf
	switch e.Note {
	case "bad ticket":
		ticket = "PVE:root@pam:00000000::bad"
	case "wrong CSRF token":
		csrf = "00000000:bad"
	}
	req.Header.Set("Cookie", "PVEAuthCookie="+url.QueryEscape(ticket))
	if req.Method != http.MethodGet {
		req.Header.Set("CSRFPreventionToken", csrf)
	}
	return nil
}

// learnTicket takes the ticket of root@pam from the answer to a login.
func (r *replay) learnTicket(body any) {
	o, _ := body.(map[string]any)
	data, _ := o["data"].(map[string]any)
	ticket, _ := data["ticket"].(string)
	csrf, _ := data["CSRFPreventionToken"].(string)
	if data["username"] != rootUser || ticket == "" {
		return
	}
	r.ticket, r.csrf = ticket, csrf
	r.pairs.Learn("ticket", "TICKET", ticket)
}
