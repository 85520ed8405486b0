package controllers

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
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

// unlessConflict has a pass be taken again, soon, that another writer of the object came before. That is no error: nothing was
// written from what is no longer so.
func unlessConflict(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	if err == nil || !isConflict(err) {
		return result, err
	}
	ctrl.LoggerFrom(ctx).V(4).Info("Another writer came before, trying again", "conflict", err.Error())
	return ctrl.Result{RequeueAfter: tryAgain}, nil
}

// isConflict reports whether an error, or each of several, is that the object has changed.
func isConflict(err error) bool {
	var several kerrors.Aggregate
	if !errors.As(err, &several) {
		return apierrors.IsConflict(err)
	}
	return !slices.ContainsFunc(several.Errors(), func(one error) bool { return !isConflict(one) })
}

// deleteForMove is clusterctl's annotation of the objects that it moved elsewhere and is about to delete here.
const deleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"

// isMoved reports whether an object is what a move leaves behind: its VM is another management cluster's by now. It counts only
// as long as the Cluster is paused, as it is during a move, or gone: one that was resumed here was not moved after all.
func isMoved(owner *clusterv1.Cluster, object client.Object) bool {
	_, marked := object.GetAnnotations()[deleteForMove]
	return marked && (owner == nil || annotations.IsPaused(owner, object))
}

// leave lets a moved machine go once its Cluster is gone, and does nothing else: clusterctl takes finalizers off before it
// deletes, and one that we put back in between would stay.
func leave(ctx context.Context, writer client.Client, owner *clusterv1.Cluster, object client.Object) (ctrl.Result, error) {
	if object.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil
	}
	if owner != nil {
		return ctrl.Result{RequeueAfter: regionCheck}, nil
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.RemoveFinalizer(object, v1beta1.MachineFinalizer) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(writer.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
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
