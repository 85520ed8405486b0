package pve

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// The statuses that AnyEvent::HTTP in pveproxy makes up when it cannot talk to the node or daemon that should answer.
const (
	// statusNoConnection: no connection was made, so nothing was executed.
	statusNoConnection = 595
	// statusNoAnswer and above: the request was sent and the answer did not come.
	statusNoAnswer = 596
	lastPseudo     = 599
)

// ClassOf says what an error means. It looks through wrapping for an *Error or a *TaskError.
func ClassOf(err error) Class {
	if err == nil {
		return None
	}
	if answer := (*Error)(nil); errors.As(err, &answer) {
		return answer.Class()
	}
	if task := (*TaskError)(nil); errors.As(err, &task) {
		return classOfText(task.ExitStatus)
	}
	return Other
}

// Class says what the error means.
func (e *Error) Class() Class {
	switch {
	case errors.Is(e.Cause, errInvalidRequest):
		return Invalid
	case e.Status == 0:
		return e.classWithoutAnswer()
	case e.Status < http.StatusMultipleChoices:
		return e.lost(Other)
	case e.Status == statusNoConnection:
		return Unreachable
	case e.Status >= statusNoAnswer && e.Status <= lastPseudo, isGateway(e.Status):
		return e.lost(Unreachable)
	}
	return e.classOfStatus()
}

// classWithoutAnswer tells apart what was never sent from what may have arrived.
func (e *Error) classWithoutAnswer() Class {
	switch {
	case isUntrusted(e.Cause):
		return Untrusted
	case e.Sent:
		return e.lost(Unreachable)
	default:
		return Unreachable
	}
}

// lost is the class of a request whose answer is lost: nothing to worry about only if it could change nothing.
func (e *Error) lost(read Class) Class {
	if e.writes() {
		return Ambiguous
	}
	return read
}

// isGateway says that something between us and PVE answered, which cannot know whether PVE did anything.
func isGateway(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// classOfStatus is for answers of PVE itself. Texts come first where PVE gives one status for several causes.
func (e *Error) classOfStatus() Class {
	switch e.Status {
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusTooManyRequests:
		return Busy
	case http.StatusNotImplemented, http.StatusNotFound, http.StatusMethodNotAllowed:
		return Unimplemented
	}
	text := classOfText(e.allText())
	switch {
	case text != Other:
		return text
	case e.Status == http.StatusForbidden:
		return Forbidden
	case e.Status >= http.StatusBadRequest && e.Status < http.StatusInternalServerError:
		return Invalid
	}
	return Other
}

// refused says that the node's daemon, not the whole node, is away: a moment during its restart.
func (e *Error) refused() bool {
	return e.Status == statusNoConnection && strings.Contains(strings.ToLower(e.Reason), "refused")
}

// allText joins everything that PVE said.
func (e *Error) allText() string {
	texts := []string{e.Reason, e.Message}
	for name, text := range e.Params {
		texts = append(texts, name+": "+text)
	}
	return strings.Join(texts, "\n")
}

// IsCanceled says that the caller gave up, so that the error says nothing about PVE.
func IsCanceled(err error) bool { return errors.Is(err, context.Canceled) }
