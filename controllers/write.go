package controllers

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/patch"
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
