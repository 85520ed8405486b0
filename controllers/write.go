package controllers

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// write writes what a pass changed of its object, with the conditions that are ours. An object whose finalizer this takes off
// may be gone before its status is written.
func write(ctx context.Context, helper *patch.Helper, object client.Object, conditions []string) error {
	err := helper.Patch(ctx, object, patch.WithOwnedConditions{Conditions: append(conditions, clusterv1.PausedCondition)})
	if !object.GetDeletionTimestamp().IsZero() {
		return kerrors.FilterOut(err, apierrors.IsNotFound)
	}
	return err
}

// isPaused sets an object's Paused condition and reports whether the pass ends with that. What is not paused goes on even
// when the condition cannot be written: an API server that rejects a status must not keep VMs from being deleted.
func isPaused(ctx context.Context, writer client.Client, owner *clusterv1.Cluster, object paused.ConditionSetter) (bool, error) {
	if owner == nil { // as on the side that clusterctl moved from, where what is paused may be somebody else's by now
		return annotations.HasPaused(object), nil
	}
	paused, written, err := paused.EnsurePausedCondition(ctx, writer, owner, object)
	return paused || written || apierrors.IsNotFound(err), err
}
