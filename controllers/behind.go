package controllers

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes knows the resource version that each object had when it was last written here. A cache that does not show that one
// yet tells of a step that is done already: what is planned from it costs requests in vain, and is told twice in events.
type writes struct {
	versions sync.Map // by types.NamespacedName
}

// note keeps the version of an object that was written.
func (w *writes) note(object client.Object, version string) {
	if isOlder(object.GetResourceVersion(), version) {
		w.versions.Store(client.ObjectKeyFromObject(object), version)
	}
}

// isBehind reports whether an object that was read from a cache is older than what was written.
func (w *writes) isBehind(object client.Object) bool {
	version, written := w.versions.Load(client.ObjectKeyFromObject(object))
	text, isText := version.(string)
	return written && isText && isOlder(object.GetResourceVersion(), text)
}

func (w *writes) forget(key types.NamespacedName) { w.versions.Delete(key) }

// isOlder compares resource versions. Of those that are no numbers it is never true.
func isOlder(version, other string) bool {
	one, err := strconv.ParseUint(version, 10, 64)
	two, otherErr := strconv.ParseUint(other, 10, 64)
	return err == nil && otherErr == nil && one < two
}

// witness is a client that keeps the last version that its patches gave an object.
type witness struct {
	client.Client
	version string
}

// Patch implements client.Client.
func (w *witness) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := w.Client.Patch(ctx, object, patch, options...)
	w.saw(object, err)
	return err
}

// Status implements client.Client.
func (w *witness) Status() client.SubResourceWriter {
	return statusWitness{SubResourceWriter: w.Client.Status(), witness: w}
}

func (w *witness) saw(object client.Object, err error) {
	if version := object.GetResourceVersion(); err == nil && !isOlder(version, w.version) {
		w.version = version
	}
}

type statusWitness struct {
	client.SubResourceWriter
	witness *witness
}

// Patch implements client.SubResourceWriter.
func (s statusWitness) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	err := s.SubResourceWriter.Patch(ctx, object, patch, options...)
	s.witness.saw(object, err)
	return err
}
