package contract

import (
	"fmt"
	"regexp"
	"strings"
)

// warnings matches the end of a task that warned.
var warnings = regexp.MustCompile(`WARNINGS: \d+$`)

// forgetWarnings makes an OK of WARNINGS: n where it is false: the counter was inherited from the worker process. Notes say
// so, or the task's log has no warning; then it is false in its status and in lists of tasks, too.
func (r *Recording) forgetWarnings() {
	forged := map[string]bool{}
	for _, e := range r.Exchanges {
		if strings.Contains(e.Note, "WARNINGS without a WARN line") || warnsWithoutReason(e) {
			forged[upidIn(e.Path)] = true
		}
	}
	for i, e := range r.Exchanges {
		switch upid := upidIn(e.Path); {
		case upid != "" && forged[upid]:
			r.Exchanges[i].Body = replaceTexts(e.Body, warnings, "OK")
		case strings.HasSuffix(e.Path, "/tasks"):
			forgetInList(e.Body, forged)
		}
	}
}

// warnsWithoutReason tells whether an answer is a whole log that ends with warnings but has none.
func warnsWithoutReason(e Exchange) bool {
	if !strings.HasSuffix(e.Path, "/log") || cut.MatchString(e.Note) || !isList(e.Body) {
		return false
	}
	body, _ := e.Body.(map[string]any)
	texts, _ := lines(body["data"])
	if len(texts) == 0 || !warnings.MatchString(texts[len(texts)-1]) {
		return false
	}
	return !strings.Contains(strings.Join(texts, "\n"), "WARN: ")
}

func forgetInList(body any, forged map[string]bool) {
	o, _ := body.(map[string]any)
	list, _ := o["data"].([]any)
	for _, x := range list {
		if task, ok := x.(map[string]any); ok && forged[fmt.Sprint(task["upid"])] {
			task["status"] = replaceTexts(task["status"], warnings, "OK")
		}
	}
}

// upidIn is the UPID that a path names; "" if there is none.
func upidIn(path string) string {
	for _, x := range pieces(path) {
		if x.kind == "upid" {
			return x.text
		}
	}
	return ""
}
