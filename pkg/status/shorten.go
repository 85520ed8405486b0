package status

import "strings"

// longestMessage bounds the message of a condition, in bytes. Kubernetes takes 32 KiB; the message is repeated, with others, in
// the summaries of the object, of its Machine and of what owns that.
const longestMessage = 4096

// shorten shortens the messages of an object's conditions: with one that is too long, nothing of the status would be taken.
func shorten(object settable) {
	all := object.GetConditions()
	for i := range all {
		if message := all[i].Message; len(message) > longestMessage {
			all[i].Message = strings.ToValidUTF8(message[:longestMessage-len("…")], "") + "…" // the cut may go through a character
		}
	}
	object.SetConditions(all)
}
