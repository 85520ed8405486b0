package pvesim_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// asked is a request in one line, such as `PUT /pools/p vms=100 delete=1`, and what its answer has to contain. An answer reads
// status, reason, the errors of parameters and the data as JSON with its keys in order.
type asked struct{ request, want string }

// answers makes the requests in order.
func (a *api) answers(rows ...asked) {
	a.t.Helper()
	for _, row := range rows {
		if got := a.line(row.request); !strings.Contains(got, row.want) {
			a.t.Errorf("%s\n got: %s\nwant: %s", row.request, got, row.want)
		}
	}
}

// line makes a request given in one line and writes its answer in one.
func (a *api) line(request string) string {
	a.t.Helper()
	words := strings.Split(request, " ")
	var params []string
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		params = append(params, key, value)
	}
	r := a.do(words[0], words[1], params...)
	data, err := json.Marshal(r.data)
	if err != nil {
		a.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %v %s", r.status, r.reason, r.errors, data)
}
