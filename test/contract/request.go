package contract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const apiPrefix = "/api2/json"

// request builds the HTTP request of an exchange, with the target's values for recorded ones, but without credentials.
func (p *Pairs) request(ctx context.Context, e Exchange, origin string) (*http.Request, error) {
	address := origin + apiPrefix + p.path(e.Path)
	var content []byte
	kind := ""
	switch {
	case e.Multipart:
		var err error
		if content, kind, err = multipartBody(e.Params); err != nil {
			return nil, err
		}
	case len(e.Params) > 0:
		var params map[string]any
		if err := decodeJSON(e.Params, &params); err != nil {
			return nil, fmt.Errorf("read params of exchange %d: %w", e.Seq, err)
		}
		params, _ = p.params(params).(map[string]any)
		switch {
		case e.JSON:
			content, kind = mustJSON(params), "application/json"
		case e.Method == http.MethodGet || e.Method == http.MethodDelete:
			address += "?" + form(params)
		default:
			content, kind = []byte(form(params)), "application/x-www-form-urlencoded"
		}
	}
	r, err := http.NewRequestWithContext(ctx, e.Method, address, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("build request of exchange %d: %w", e.Seq, err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	return r, nil
}

// path replaces recorded values in a path, percent-encoded ones too, and leaves all else as it was sent.
func (p *Pairs) path(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			continue
		}
		if other := p.Replace(plain); other != plain && strings.Contains(s, "%") {
			segments[i] = url.QueryEscape(other)
		} else if other != plain {
			segments[i] = other
		}
	}
	return strings.ReplaceAll(strings.Join(segments, "/"), " ", "%20")
}

// params replaces recorded values in parameters, and takes note of those that the recorder chose.
func (p *Pairs) params(v any) any {
	switch x := v.(type) {
	case string:
		if ticket, ok := p.Here("ticket", x); ok {
			return ticket
		}
		p.Choose(x)
		return p.Replace(x)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = p.params(x[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range x {
			out[k] = p.params(x[k])
			if pid, ok := p.Here("pid", fmt.Sprint(x[k])); ok && k == "pid" {
				out[k] = json.Number(pid)
			}
		}
		return out
	}
	return v
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// form encodes parameters; lists are repeated keys, null is left out.
func form(params map[string]any) string {
	values := url.Values{}
	for _, k := range slices.Sorted(maps.Keys(params)) {
		switch v := params[k].(type) {
		case nil:
		case []any:
			for _, x := range v {
				values.Add(k, formText(x))
			}
		default:
			values.Set(k, formText(v))
		}
	}
	return values.Encode()
}

// multipartBody builds an upload: fields and files in the recorded order.
func multipartBody(params json.RawMessage) (body []byte, contentType string, err error) {
	var parts [][2]json.RawMessage
	if err := json.Unmarshal(params, &parts); err != nil {
		return nil, "", fmt.Errorf("read parts: %w", err)
	}
	out := &bytes.Buffer{}
	w := multipart.NewWriter(out)
	for _, part := range parts {
		if err := writePart(w, part); err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("end parts: %w", err)
	}
	return out.Bytes(), w.FormDataContentType(), nil
}

func writePart(w *multipart.Writer, part [2]json.RawMessage) error {
	var name string
	var file struct {
		Name  string `json:"file"`
		Bytes int    `json:"bytes"`
		Sum   string `json:"sha256"`
	}
	var value any
	if err := json.Unmarshal(part[0], &name); err != nil {
		return fmt.Errorf("read name of part: %w", err)
	}
	if json.Unmarshal(part[1], &file) != nil {
		if err := decodeJSON(part[1], &value); err != nil {
			return fmt.Errorf("read part %s: %w", name, err)
		}
		return w.WriteField(name, formText(value))
	}
	out, err := w.CreateFormFile(name, file.Name)
	if err != nil {
		return fmt.Errorf("begin file %s: %w", file.Name, err)
	}
	content := uploaded(file.Bytes)
	if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != file.Sum {
		return fmt.Errorf("file %s: the recorded one has the checksum %s, what is known of its content gives %s", file.Name, file.Sum, sum)
	}
	_, err = out.Write(content)
	return err
}

// uploaded is the content of uploaded files: zero bytes with the mark of an ISO image in its place, if they reach so far, and
// x where they are longer than the usual 40960 bytes.
func uploaded(size int) []byte {
	const mark, place, usual = "CD001", 32769, 40960
	content := make([]byte, size)
	if size >= place+len(mark) {
		copy(content[place:], mark)
	}
	for i := usual; i < size; i++ {
		content[i] = 'x'
	}
	return content
}
