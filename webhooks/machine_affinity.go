package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// checkAffinity refuses HA rules that Proxmox VE does not take together (PVE::HA::Rules), and one that keeps the VM off every
// host that it may be put on.
func checkAffinity(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	ha := s.spec.HighAvailability
	if !isTrue(ha.Enabled) {
		return nil
	}
	hasResources := slices.ContainsFunc(ha.Rules, func(r v1beta1.HighAvailabilityRule) bool { return r.ResourceAffinity != "" })
	first := ""
	for i, rule := range ha.Rules {
		nodes := rule.NodeAffinity.Nodes
		if len(nodes) == 0 {
			continue
		}
		path := s.path.Child("highAvailability", "rules").Index(i).Child("nodeAffinity")
		if first != "" {
			errs = append(errs, field.Invalid(path, rule.Name, fmt.Sprintf("a VM is in one rule with nodeAffinity at most, which %s is: leave one of them out", first)))
		}
		first = rule.Name
		if hasResources && slices.ContainsFunc(nodes, func(n v1beta1.AffinityNode) bool { return ptr.Deref(n.Priority, 0) != ptr.Deref(nodes[0].Priority, 0) }) {
			errs = append(errs, field.Invalid(path.Child("nodes"), describe(nodes), "beside a rule with resourceAffinity all nodes have one priority: leave priority out of them, or leave that rule out"))
		}
		errs = append(errs, checkStrict(path, rule.NodeAffinity, s.spec.Placement.AllowedNodes)...)
	}
	return errs
}

func checkStrict(path *field.Path, affinity v1beta1.NodeAffinity, allowed []string) field.ErrorList {
	if !isTrue(affinity.Strict) || len(allowed) == 0 || slices.ContainsFunc(affinity.Nodes, func(n v1beta1.AffinityNode) bool { return slices.Contains(allowed, n.Name) }) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("nodes"), describe(affinity.Nodes), fmt.Sprintf(
		"none of them is in placement.allowedNodes, %s, and strict keeps the VM off all others: name one of those, or leave strict out", strings.Join(allowed, ", ")))}
}

func describe(nodes []v1beta1.AffinityNode) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = node.Name
		if node.Priority != nil {
			texts[i] = fmt.Sprintf("%s (priority %d)", node.Name, *node.Priority)
		}
	}
	return strings.Join(texts, ", ")
}
