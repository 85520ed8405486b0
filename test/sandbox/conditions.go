package sandbox

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// message is a condition's reason and message on one line.
func message(conditions []metav1.Condition, kind string) string {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil {
		return "unknown"
	}
	text := strings.Join(strings.Fields(condition.Message), " ")
	if text == "" {
		return condition.Reason
	}
	return condition.Reason + ": " + text
}
