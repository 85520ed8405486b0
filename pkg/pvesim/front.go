package pvesim

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// badFraming is the status of pveproxy for content that it does not read.
const badFraming = 506

// decode reads a request off the wire as PVE::APIServer::AnyEvent does. The refusal is for what is not worth a login.
func decode(r *http.Request, at proxmox.NodeName, v Version) (*exchange, *reply) {
	x := &exchange{version: v, ctx: r.Context(), method: r.Method, path: r.URL.Path, header: r.Header, params: map[string]string{}, at: at}
	if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, r.Method) {
		return x, unserved("method '%s' not available", r.Method)
	}
	if len(r.TransferEncoding) > 0 || r.ContentLength < 0 {
		return x, unserved("chunked transfer encoding not supported")
	}
	rest, isAPI := strings.CutPrefix(r.URL.Path, apiBase)
	if !isAPI {
		return x, unserved("no such file '%s'", r.URL.Path)
	}
	x.format, x.path, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
	x.path = "/" + x.path
	switch x.format {
	case "json", "extjs":
	case "":
		return x, unserved("no such uri")
	default:
		return x, unserved("no formatter for uri %s, format %s", x.path, x.format)
	}
	x.unreadable = x.readBody(r)
	x.addForm(r.URL.RawQuery)
	delete(x.params, "_dc")
	return x, nil
}

// unserved is pveproxy's own 501, which has no body.
func unserved(format string, args ...any) *reply {
	return &reply{status: http.StatusNotImplemented, reason: fmt.Sprintf(format, args...), bare: true}
}

// readBody takes the parameters from the body: a form, a JSON object or, for uploads, multipart.
func (x *exchange) readBody(r *http.Request) reply {
	content := r.Header.Get("Content-Type")
	kind, args, _ := mime.ParseMediaType(content)
	switch {
	case r.Body == nil || r.ContentLength == 0:
		return reply{}
	case r.Method != http.MethodPut && r.Method != http.MethodPost:
		return *unserved("Unexpected content for method '%s'", r.Method)
	case x.isUpload() && kind != "multipart/form-data":
		return reply{status: http.StatusInternalServerError, unanswered: true}
	case x.isUpload():
		if refused := x.readUpload(r.Body, args["boundary"]); refused != nil {
			return *refused
		}
		return reply{}
	case r.ContentLength > maxBody:
		return *unserved("for data too large")
	case content != "" && kind != "application/x-www-form-urlencoded" && kind != "application/json":
		return reply{status: badFraming, reason: fmt.Sprintf("upload 'Content-Type '%s' not implemented", content), bare: true}
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return reply{status: http.StatusBadRequest, reason: "Bad Request", bare: true}
	}
	if len(raw) > maxBody {
		return *unserved("for data too large")
	}
	if kind == "application/json" {
		return x.readJSON(raw)
	}
	x.addForm(string(raw))
	return reply{}
}

func (x *exchange) readJSON(raw []byte) reply {
	var body map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return *unserved("malformed JSON string")
	}
	for key, value := range body {
		x.params[key] = jsonParam(value)
	}
	return reply{}
}

// jsonParam turns a JSON value into the form value that means the same.
func jsonParam(value any) string {
	switch v := value.(type) {
	case bool:
		return fmt.Sprint(pveBool(v))
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = jsonParam(v[i])
		}
		return strings.Join(parts, "\x00")
	case nil:
		return ""
	}
	return fmt.Sprint(value)
}

// addForm takes a form or a query (PVE::APIServer::AnyEvent::decode_urlencoded): a repeated key is a list, a semicolon is as good
// as an ampersand, and what follows a second = is lost. Its keys replace those that are there.
func (x *exchange) addForm(form string) {
	found := map[string]string{}
	for _, pair := range strings.FieldsFunc(form, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		value, _, _ = strings.Cut(value, "=")
		key, value = formText(key), formText(value)
		if old, again := found[key]; again {
			value = old + "\x00" + value
		}
		found[key] = value
	}
	for key, value := range found {
		x.params[key] = value
	}
}

// formText decodes a key or a value. What is no escape is kept as it is.
func formText(s string) string {
	s = strings.ReplaceAll(s, "+", " ")
	if out, err := url.PathUnescape(s); err == nil {
		return out
	}
	out := strings.Builder{}
	for len(s) > 0 {
		n := 1
		if text, err := url.PathUnescape(s[:min(3, len(s))]); s[0] == '%' && err == nil {
			out.WriteString(text)
			n = 3
		} else {
			out.WriteByte(s[0])
		}
		s = s[n:]
	}
	return out.String()
}
