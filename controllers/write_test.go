package controllers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
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

// TestAConflictIsNoError: whoever reads the log is told of what is wrong, and of nothing else.
func TestAConflictIsNoError(t *testing.T) {
	conflict := fmt.Errorf("patch: %w", apierrors.NewConflict(schema.GroupResource{}, "m1", errors.New("the object has been modified")))
	several := func(errs ...error) error { return fmt.Errorf("patch ProxmoxMachine: %w", kerrors.NewAggregate(errs)) }
	other := errors.New("no route to host")
	for name, row := range map[string]struct {
		err     error
		isError bool
	}{
		"nothing": {nil, false}, "a conflict": {conflict, false}, "two": {several(conflict, several(conflict)), false},
		"another": {other, true}, "another beside it": {several(conflict, several(other)), true},
	} {
		result, err := unlessConflict(t.Context(), ctrl.Result{RequeueAfter: time.Hour}, row.err)
		if (err != nil) != row.isError || row.err != nil && !row.isError && result.RequeueAfter != tryAgain {
			t.Errorf("%s: %v, error %v", name, result, err)
		}
		if row.err == nil && result.RequeueAfter != time.Hour {
			t.Errorf("%s: what the pass came to is lost", name)
		}
	}
}
