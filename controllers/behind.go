package controllers

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostBehind bounds how often in a row an object is left for what was written of it: a minute, at one look a second. An API
// server that was restored from a backup counts its versions anew, and never shows the one that is waited for.
const mostBehind = 60

// writes knows the resource version that each object had when it was last written here. A cache that does not show that one
// yet tells of a step that is done already: what is planned from it costs requests in vain, and is told twice in events.
type writes struct {
	mu   sync.Mutex
	last map[types.NamespacedName]written
}

// written is the last write of an object.
type written struct {
	version string
	// left counts how often the object was left for it.
	left int
}

// note keeps the version of an object that was written.
func (w *writes) note(object client.Object, version string) {
	if !isOlder(object.GetResourceVersion(), version) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[types.NamespacedName]written{}
	}
	w.last[client.ObjectKeyFromObject(object)] = written{version: version}
}

// isBehind reports whether an object that was read from a cache is older than what was written.
func (w *writes) isBehind(object client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(object)
	last, found := w.last[key]
	if !found || !isOlder(object.GetResourceVersion(), last.version) {
		return false
	}
	if last.left++; last.left > mostBehind {
		delete(w.last, key)
		return false
	}
	w.last[key] = last
	return true
}

func (w *writes) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, key)
}

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
