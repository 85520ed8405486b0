package integration_test

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// edit changes one place of an object as it goes over the wire, so that it can say what the Go types cannot: an empty
// string, an empty list, a number out of the type's range.
type edit struct {
	// path is the place, `spec.regions.0.name`; a list grows by one when the index is its length.
	path string
	// value is what it is set to; nil takes the place away.
	value any
}

func set(path string, value any) edit { return edit{path: path, value: value} }

func without(path string) edit { return edit{path: path} }

// document turns a typed object into what goes over the wire, and edits it.
func document(t *testing.T, scheme *runtime.Scheme, object client.Object, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result := &unstructured.Unstructured{Object: content}
	result.SetGroupVersionKind(kind)
	for _, edit := range edits {
		result.Object = edit.apply(t, result.Object, strings.Split(edit.path, ".")).(map[string]any)
	}
	return result
}

func (e edit) apply(t *testing.T, at any, path []string) any {
	t.Helper()
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(e.value)
	}
	switch at := at.(type) {
	case map[string]any:
		if e.value == nil && len(path) == 1 {
			delete(at, path[0])
			return at
		}
		at[path[0]] = e.apply(t, at[path[0]], path[1:])
		return at
	case []any:
		index, err := strconv.Atoi(path[0])
		if err != nil || index > len(at) {
			t.Fatalf("no place %s", e.path)
		}
		if index == len(at) {
			at = append(at, nil)
		}
		at[index] = e.apply(t, at[index], path[1:])
		return at
	case nil:
		return e.apply(t, map[string]any{}, path)
	}
	t.Fatalf("no place %s", e.path)
	return nil
}

// many is a list of that length, each value made from its index.
func many(length int, value func(int) any) []any {
	values := make([]any, length)
	for i := range values {
		values[i] = value(i)
	}
	return values
}
