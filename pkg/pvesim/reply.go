package pvesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// reply is what a handler answers.
type reply struct {
	status int
	// reason is the HTTP reason phrase: Proxmox VE puts its error messages there.
	reason string
	data   any
	// extra are members of the body beside data, such as total.
	extra map[string]any
	// errors are the parameters that were refused, of a 400.
	errors map[string]string
	// bare replies have an empty body.
	bare bool
	// delay is how long a real host takes to answer.
	delay time.Duration
	// later delivers the real reply, for handlers that must wait.
	later <-chan reply
	// text replaces the JSON body.
	text string
	// unanswered replies are none: the connection is closed.
	unanswered bool
	// extjs replies say in their body how it went; their status is always 200.
	extjs bool
}

func ok(data any) reply { return reply{status: http.StatusOK, reason: "OK", data: data} }

// fail is the 500 that most errors of Proxmox VE are.
func fail(format string, args ...any) reply {
	return reply{status: http.StatusInternalServerError, reason: fmt.Sprintf(format, args...)}
}

func denied(path, privileges string) reply {
	return reply{status: http.StatusForbidden, reason: fmt.Sprintf("Permission check failed (%s, %s)", path, privileges)}
}

// invalid is the 400 that names the refused parameters.
func invalid(errors map[string]string) reply {
	return reply{status: http.StatusBadRequest, reason: "Parameter verification failed.", errors: errors}
}

func invalidParam(name, format string, args ...any) reply {
	return invalid(map[string]string{name: fmt.Sprintf(format, args...)})
}

func notImplemented(method, path string) reply {
	return reply{status: http.StatusNotImplemented, reason: fmt.Sprintf("Method '%s %s' not implemented", method, path)}
}

func missingVM(name proxmox.NodeName, id proxmox.VMID) reply { return fail("%s", noConfig(name, id)) }

// statusLine are the status and the reason phrase, which has the first line of a message alone.
func (r reply) statusLine() (status int, reason string) {
	if r.extjs && !r.bare {
		return http.StatusOK, "OK"
	}
	reason, _, _ = strings.Cut(r.reason, "\n")
	return r.status, strings.ReplaceAll(reason, "\r", " ")
}

func (r reply) failed() bool { return r.status >= http.StatusBadRequest }

// body renders the reply as pveproxy does: {"data":…} or {"data":null,"message":"…\n","errors":{…}}.
func (r reply) body() []byte {
	if r.bare {
		return nil
	}
	if r.text != "" {
		return []byte(r.text)
	}
	if list, ok := r.data.(entries); ok && len(r.extra) == 0 && !r.failed() {
		return list.envelope(`{"data":[`, "]}")
	}
	out := map[string]any{"data": r.data}
	for k, v := range r.extra {
		out[k] = v
	}
	if r.failed() {
		out["message"] = r.reason + "\n"
		if r.status == http.StatusNotImplemented {
			out["message"] = r.reason
		}
	}
	if len(r.errors) > 0 {
		out["errors"] = r.errors
	}
	if r.extjs {
		out["success"] = pveBool(!r.failed())
		if r.failed() {
			out["status"] = r.status
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return []byte(`{"data":null}`)
	}
	return raw
}
