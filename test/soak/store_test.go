package soak_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// part is the part of an object that a write is about.
type part int

const (
	main part = iota
	status
)

// String is how the part stands in the trace.
func (p part) String() string { return [...]string{"", "status "}[p] }

// store keeps objects as the API server does: versions and generations that rise, finalizers that hold back deletion, and
// status that is written for itself. The fake client of controller-runtime does so too and takes ten times as long. An object
// in it is never changed but replaced.
type store struct {
	scheme *runtime.Scheme

	mu            sync.Mutex
	uids, version int
	objects       map[ref]client.Object
}

func newStore(scheme *runtime.Scheme) *store {
	return &store{scheme: scheme, objects: map[ref]client.Object{}}
}

func resourceOf(kind string) schema.GroupResource {
	return schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: strings.ToLower(kind)}
}

func notFound(name ref) error { return apierrors.NewNotFound(resourceOf(name.kind), name.name) }

// copyInto copies an object into another of its type.
func copyInto(from, into client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

// now is the object as it is; nil if it is not there.
func (s *store) now(name ref) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[name]
}

func (s *store) read(name ref, into client.Object) error {
	found := s.now(name)
	if found == nil {
		return notFound(name)
	}
	copyInto(found, into)
	return nil
}

func (s *store) create(object client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := refOf(object)
	if s.objects[name] != nil {
		return apierrors.NewAlreadyExists(resourceOf(name.kind), name.name)
	}
	s.uids++
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	object.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	object.SetGeneration(1)
	clearStatus(object)
	s.put(name, object)
	return nil
}

// put stores a copy of an object under a new version. The caller holds the lock.
func (s *store) put(name ref, object client.Object) {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	if !object.GetDeletionTimestamp().IsZero() && len(object.GetFinalizers()) == 0 {
		delete(s.objects, name)
		return
	}
	kept, _ := object.DeepCopyObject().(client.Object)
	s.objects[name] = kept
}

// replace writes a part of an object that was read before.
func (s *store) replace(object client.Object, part part) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return s.change(object, part, func([]byte) ([]byte, error) { return data, nil })
}

// patch writes a part of an object by a merge patch.
func (s *store) patch(object client.Object, patch []byte, part part) error {
	return s.change(object, part, func(now []byte) ([]byte, error) { return merge(now, patch) })
}

// merge applies a JSON merge patch (RFC 7396).
func merge(text, patch []byte) ([]byte, error) {
	var target, changes any
	if err := errors.Join(json.Unmarshal(text, &target), json.Unmarshal(patch, &changes)); err != nil {
		return nil, err
	}
	return json.Marshal(merged(target, changes))
}

func merged(target, patch any) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	object, isObject := target.(map[string]any)
	if !isObject {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
		} else {
			object[key] = merged(object[key], value)
		}
	}
	return object
}

func (s *store) change(object client.Object, part part, change func([]byte) ([]byte, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := refOf(object)
	now := s.objects[name]
	if now == nil {
		return notFound(name)
	}
	before, err := json.Marshal(now)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil {
		return err
	}
	merged, err := combine(before, after, part)
	if err != nil {
		return err
	}
	fresh, _ := reflect.New(reflect.TypeOf(now).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(merged, fresh); err != nil {
		return err
	}
	if fresh.GetResourceVersion() != now.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(name.kind), name.name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if !now.GetDeletionTimestamp().IsZero() && slices.ContainsFunc(fresh.GetFinalizers(), func(f string) bool { return !slices.Contains(now.GetFinalizers(), f) }) {
		return apierrors.NewForbidden(resourceOf(name.kind), name.name, errors.New("no new finalizers can be added if the object is being deleted"))
	}
	if !reflect.DeepEqual(now, fresh) {
		s.put(name, fresh)
	}
	copyInto(fresh, object)
	return nil
}

// combine takes the part that is written from the new text and the rest from the old one.
func combine(before, after []byte, part part) ([]byte, error) {
	old, changed := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(before, &old), json.Unmarshal(after, &changed)); err != nil {
		return nil, err
	}
	var meta, wanted map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(old["metadata"], &meta), json.Unmarshal(changed["metadata"], &wanted)); err != nil {
		return nil, err
	}
	if part == status {
		if version, given := wanted["resourceVersion"]; given {
			meta["resourceVersion"] = version
		}
		old["status"] = changed["status"]
		return assemble(old, meta)
	}
	specChanged := string(old["spec"]) != string(changed["spec"])
	for _, key := range []string{"uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		wanted[key] = meta[key]
	}
	if specChanged {
		generation, err := strconv.Atoi(string(meta["generation"]))
		if err != nil {
			return nil, err
		}
		wanted["generation"] = json.RawMessage(strconv.Itoa(generation + 1))
	}
	changed["status"] = old["status"]
	return assemble(changed, wanted)
}

func assemble(object, meta map[string]json.RawMessage) ([]byte, error) {
	maps.DeleteFunc(meta, func(_ string, value json.RawMessage) bool { return len(value) == 0 })
	maps.DeleteFunc(object, func(_ string, value json.RawMessage) bool { return len(value) == 0 })
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	object["metadata"] = text
	return json.Marshal(object)
}

// remove deletes an object, or has it wait for its finalizers.
func (s *store) remove(name ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.objects[name]
	if now == nil {
		return notFound(name)
	}
	if !now.GetDeletionTimestamp().IsZero() {
		return nil
	}
	going, _ := now.DeepCopyObject().(client.Object)
	moment := metav1.NewTime(time.Now().Truncate(time.Second))
	going.SetDeletionTimestamp(&moment)
	going.SetGeneration(now.GetGeneration() + 1)
	s.put(name, going)
	return nil
}

func (s *store) sorted() []ref {
	return slices.SortedFunc(maps.Keys(s.objects), func(x, y ref) int { return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name)) })
}
