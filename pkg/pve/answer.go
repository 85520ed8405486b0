package pve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// maxAnswer bounds the body of an answer; /cluster/resources of 10,000 guests is about 5 MB.
const maxAnswer = 64 << 20

// answerChecker makes an *Error of everything that is not a success, and reads the whole body, so that a lost answer is
// found here and nowhere else. Whoever sits above cannot swallow it: it is the round trip's error.
type answerChecker struct {
	region proxmox.RegionName
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *answerChecker) RoundTrip(req *http.Request) (*http.Response, error) {
	call := callOf(req)
	ctx, cancel := context.WithTimeout(req.Context(), call.timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// net/http begins again with a new connection, but a write only if nothing of it left on the last one.
		GetConn:      func(string) { sent.Store(false) },
		WroteHeaders: func() { sent.Store(true) },
	})

	answer, err := a.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, a.noAnswer(call, err, sent.Load())
	}
	body, err := readAll(answer.Body)
	if err != nil {
		return nil, a.noAnswer(call, fmt.Errorf("read answer with status %d: %w", answer.StatusCode, err), true)
	}
	if err := a.check(call, answer, body); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// readAll reads a body of bounded length and closes it.
func readAll(body io.ReadCloser) ([]byte, error) {
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = errors.New("answer is too long")
	}
	return data, err
}

// noAnswer is the error of a request without an answer.
func (a *answerChecker) noAnswer(call *call, err error, sent bool) error {
	failure := call.failure(a.region)
	failure.Cause, failure.Sent = err, sent
	return failure
}

// check finds what is wrong with an answer.
func (a *answerChecker) check(call *call, answer *http.Response, body []byte) error {
	failure := call.failure(a.region)
	failure.Status = answer.StatusCode
	if answer.StatusCode >= http.StatusOK && answer.StatusCode < http.StatusMultipleChoices {
		if call.wantTask && !namesTask(body) {
			failure.Cause = errors.New("answer names no task")
			return failure
		}
		return nil
	}
	failure.Reason = call.scrub(strings.TrimSpace(strings.TrimPrefix(answer.Status, fmt.Sprint(answer.StatusCode))))
	failure.Message, failure.Params = call.complaint(body)
	return failure
}

// complaint reads the message and the errors by parameter out of the body of an error, if there are any.
func (c *call) complaint(body []byte) (string, map[string]string) {
	var text struct {
		Message scalar            `json:"message"`
		Errors  map[string]scalar `json:"errors"`
	}
	if json.Unmarshal(body, &text) != nil {
		return "", nil
	}
	var params map[string]string
	for i, name := range slices.Sorted(maps.Keys(text.Errors)) {
		if i == maxParams {
			break
		}
		if params == nil {
			params = map[string]string{}
		}
		params[clip(name, 100)] = c.scrub(string(text.Errors[name]))
	}
	return c.scrub(string(text.Message)), params
}

// scrub takes secrets that were sent out of what PVE says about them, and bounds the text.
func (c *call) scrub(text string) string {
	for name, values := range c.params {
		for _, value := range values {
			if isSecretParam(name) && len(value) > 3 {
				text = strings.ReplaceAll(text, value, masked)
			}
		}
	}
	return clip(strings.TrimSpace(text), maxMessage)
}

// namesTask says that the answer's data is a task identifier.
func namesTask(body []byte) bool {
	var answer struct {
		Data scalar `json:"data"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return false
	}
	_, err := proxmox.UPID(answer.Data).Parse()
	return err == nil
}
