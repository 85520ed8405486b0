package pveschema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARequestLogIsCheckedLineByLine(t *testing.T) {
	schema, err := parse([]byte(`[{"path": "/a", "info": {"POST": {"parameters": {"additionalProperties": 0, "properties": {
		"filename": {"type": "string"}, "n": {"type": "integer", "optional": 1}
	}}}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	requests, err := ReadLog(strings.NewReader(`{"method": "POST", "path": "/a", "file": {"name": "x.iso", "size": 1}}
{"method": "POST", "path": "/a", "params": {"n": "1"}, "file": {"name": "x.iso"}}
{"method": "POST", "path": "/a", "params": {"filename": "x", "m": "1"}}
{"method": "POST", "path": "/a", "params": {"filename": "x", "m": "1"}}
{"method": "GET", "path": "/b"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"POST /a: m: property is not defined in schema", "GET /b: no such path"}
	if diff := cmp.Diff(want, schema.Misfits(requests)); diff != "" {
		t.Errorf("misfits (-want +got):\n%s", diff)
	}
	if _, err := ReadLog(strings.NewReader("{")); err == nil {
		t.Error("a log that was cut off is read")
	}
}
