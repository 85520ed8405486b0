package capi

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// newestVersion is the newest of the versions that a contract label lists: v1beta1_v1beta2 means v1beta2.
func newestVersion(label string) (string, error) {
	if label == "" {
		return "", errors.New("its CRD has no contract label cluster.x-k8s.io/v1beta2")
	}
	return slices.MaxFunc(strings.Split(label, "_"), version.CompareKubeAwareVersionStrings), nil
}

// preflightChecks are the checks before a MachineSet creates machines: all of them, as by upstream's default.
func preflightChecks() sets.Set[clusterv1.MachineSetPreflightCheck] {
	return sets.New(clusterv1.MachineSetPreflightCheckAll)
}
