package pvesim_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const jsonType, formType = "application/json", "application/x-www-form-urlencoded"

func TestWhatTheFrontRefuses(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	large := "comment=" + strings.Repeat("x", 512*1024)
	for name, tt := range map[string]struct{ method, path, kind, body, want string }{
		"other method":      {"PATCH", "/api2/json/version", "", "", "501 method 'PATCH' not available"},
		"head":              {"HEAD", "/api2/json/version", "", "", "501 method 'HEAD' not available"},
		"outside":           {"GET", "/elsewhere", "", "", "501 no such file '/elsewhere'"},
		"no format":         {"GET", "/api2", "", "", "501 no such uri"},
		"other format":      {"GET", "/api2/yaml/version", "", "", "501 no formatter for uri /version, format yaml"},
		"unknown":           {"GET", "/api2/json/foo", "", "", "501 Method 'GET /foo' not implemented"},
		"other content":     {"POST", "/api2/json/pools", "text/plain", "poolid=x", "506 upload 'Content-Type 'text/plain' not implemented"},
		"multipart":         {"POST", "/api2/json/pools", "multipart/form-data; boundary=x", "--x--", "506 upload 'Content-Type 'multipart/form-data; boundary=x' not implemented"},
		"malformed JSON":    {"POST", "/api2/json/pools", jsonType, "{", "501 malformed JSON string"},
		"too large":         {"POST", "/api2/json/pools", formType, large, "501 for data too large"},
		"duplicate":         {"PUT", "/api2/json/pools/capi", formType, "poolid=capi", "400 Parameter verification failed."},
		"unknown parameter": {"GET", "/api2/json/version", "", "a=b", "400 Parameter verification failed."},
	} {
		r := c.root.send(tt.method, tt.path, tt.kind, tt.body)
		if got := fmt.Sprint(r.status, " ", r.reason); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if bare := r.body == ""; bare != (r.status != 400 && name != "unknown") {
			t.Errorf("%s: the body is %q", name, r.body)
		}
	}
}

func TestBodiesOfOddRequests(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	odd := func(method, path string, body io.Reader, length int64, kind string) result {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://pve1/api2/json"+path, body)
		must(t, err)
		req.ContentLength = length
		req.Header.Set("Content-Type", kind)
		return c.root.request(req)
	}
	if r := odd("POST", "/pools", struct{ io.Reader }{strings.NewReader("poolid=x")}, 0, formType); r.reason != "chunked transfer encoding not supported" {
		t.Errorf("chunked: %+v", r)
	}
	if r := odd("DELETE", "/pools/capi", strings.NewReader("a=b"), 3, formType); r.reason != "Unexpected content for method 'DELETE'" {
		t.Errorf("DELETE with a body: %+v", r)
	}
	if r := odd("POST", "/nodes/pve1/storage/local/upload", strings.NewReader("content=iso"), 11, formType); r.status != 0 || !strings.Contains(r.reason, "EOF") {
		t.Errorf("an upload that is no multipart gets an answer: %+v", r)
	}
}

func TestTheLoginComesBeforeTheBody(t *testing.T) {
	t.Parallel()
	c, a := withUser(t)
	if r := c.with().send("POST", "/api2/json/pools", jsonType, "{"); r.status != 401 {
		t.Errorf("without a login: %+v", r)
	}
	body := &bytes.Buffer{}
	w := multipart.NewWriter(body)
	must(t, w.WriteField("content", "iso"))
	must(t, w.Close())
	r := a.send("POST", "/api2/json/nodes/pve1/storage/local/upload", w.FormDataContentType(), body.String())
	if r.status != 403 || r.reason != "Permission check failed (/storage/local, Datastore.AllocateTemplate)" || r.body != "" {
		t.Errorf("an upload without the right: %+v", r)
	}
}

func TestFormsAreReadAsPveproxyDoes(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	for body, want := range map[string]string{
		"comment=a%20b+c":              "a b c",
		"comment=a;b=":                 "",
		"comment=50%":                  "50%",
		"comment=%zz%41":               "%zzA",
		"comment=a=b":                  "a",
		"comment=%C3%A4":               "ä",
		"comment=x&_dc=123":            "x",
		`json:{"comment":"j"}`:         "j",
		`json:{"comment":5}`:           "5",
		`json:{"comment":true}`:        "1",
		`json:{"comment":null}`:        "",
		`query:comment=q:comment=body`: "q",
	} {
		kind, path := formType, "/api2/json/pools/capi"
		if rest, ok := strings.CutPrefix(body, "json:"); ok {
			kind, body = jsonType, rest
		}
		if rest, ok := strings.CutPrefix(body, "query:"); ok {
			query, rest, _ := strings.Cut(rest, ":")
			path, body = path+"?"+query, rest
		}
		r := c.root.send("PUT", path, kind, body)
		pool, _ := c.root.wants("OK", "GET", "/pools/capi").data.(map[string]any)
		if strings.Contains(body, ";b=") {
			if r.status != 400 || r.errors["b"] == "" {
				t.Errorf("a semicolon splits no form: %+v", r)
			}
			continue
		}
		if got := fmt.Sprint(pool["comment"]); r.status != 200 || (got != want && (want != "" || pool["comment"] != nil)) {
			t.Errorf("%s: %d %s, the comment is %q, want %q", body, r.status, r.reason, got, want)
		}
	}
}

func TestListsComeRepeatedOrAsJSON(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	c.root.wants("OK", "PUT", "/pools/capi", "vms", "9001", "vms", "9002")
	if r := c.root.send("PUT", "/api2/json/pools/capi", jsonType, `{"vms":["9003"]}`); r.status != 200 {
		t.Errorf("list in JSON: %+v", r)
	}
	pool, _ := c.root.wants("OK", "GET", "/pools/capi").data.(map[string]any)
	if got, _ := pool["members"].([]any); len(got) != 3 {
		t.Errorf("members: %v", got)
	}
}

func TestExtJSSaysInTheBodyHowItWent(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	if r := c.root.send("GET", "/api2/extjs/version", "", ""); r.status != 200 || !strings.Contains(r.body, `"success":1`) {
		t.Errorf("%+v", r)
	}
	r := c.root.send("POST", "/api2/extjs/pools", formType, "poolid=capi")
	if r.status != 200 || r.reason != "OK" || !strings.Contains(r.body, `"success":0`) || !strings.Contains(r.body, `"status":500`) {
		t.Errorf("%+v", r)
	}
	if r := c.with().send("GET", "/api2/extjs/version", "", ""); r.status != 401 {
		t.Errorf("without a login: %+v", r)
	}
}

func TestNoSecretIsTold(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	c.world.AddUser(pvesim.UserSpec{ID: "a@pve", Password: "geheim-a"})
	k := c.world.AddToken(pvesim.TokenSpec{User: "a@pve", Name: "t1"})
	answers := c.with("Authorization", k.Header()+"x").do("GET", "/version").body
	answers += c.with().do("POST", "/access/ticket", "username", "a@pve", "password", "geheim-a", "realm", "pve").body
	answers += c.root.do("GET", "/access/users", "full", "1").body + c.root.do("GET", "/access/users/a@pve").body
	answers += fmt.Sprintf("%+v %+v", c.world.Requests(), c.world.State())
	for _, secret := range []string{"geheim-a", string(k.Secret)} {
		if strings.Contains(answers, secret) {
			t.Errorf("%q is told in %s", secret, answers)
		}
	}
}
