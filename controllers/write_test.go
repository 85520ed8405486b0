package controllers

import (
	"testing"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestAMovedMachineIsLeftAlone(t *testing.T) {
	running, paused := &clusterv1.Cluster{}, &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}
	moved := machineAt("1")
	moved.Annotations = map[string]string{deleteForMove: ""}
	if !isMoved(nil, moved) || !isMoved(paused, moved) {
		t.Error("its VM is another management cluster's by now")
	}
	if isMoved(running, moved) {
		t.Error("the move was given up, and the Cluster resumed here")
	}
	if isMoved(nil, machineAt("1")) || isMoved(paused, machineAt("1")) {
		t.Error("nobody moved it")
	}
}
