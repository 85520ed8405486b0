package soak_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// namespace of all objects.
const namespace = "default"

// ref names an object: its Go type and its name.
type ref struct{ kind, name string }

func refOf(object client.Object) ref { return ref{kindOf(object), object.GetName()} }

func kindOf(object runtime.Object) string {
	name := fmt.Sprintf("%T", object)
	return name[strings.LastIndex(name, ".")+1:]
}

// apiServer stands in for the Kubernetes API server.
type apiServer struct {
	*store
	// wrote hears of each write, with the objects before and after; nil for none.
	wrote func(before, after client.Object)
}

func newAPIServer() (*apiServer, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, ipamv1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return &apiServer{store: newStore(scheme)}, nil
}

// write carries a write out and tells of it.
func (a *apiServer) write(object client.Object, do func() error) error {
	name := refOf(object)
	before := a.now(name)
	if err := do(); err != nil {
		return err
	}
	if after := a.now(name); after != before {
		a.wrote(before, after)
	}
	return nil
}

func (a *apiServer) create(object client.Object) error {
	object.SetNamespace(namespace)
	return a.write(object, func() error { return a.store.create(object) })
}

func (a *apiServer) update(object client.Object) error {
	return a.write(object, func() error { return a.replace(object, main) })
}

func (a *apiServer) updateStatus(object client.Object) error {
	return a.write(object, func() error { return a.replace(object, status) })
}

func (a *apiServer) delete(object client.Object) error {
	return client.IgnoreNotFound(a.write(object, func() error { return a.remove(refOf(object)) }))
}

// all are the objects of a type, by name.
func all[T client.Object](a *apiServer) []T {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []T
	for _, name := range a.sorted() {
		if object, ok := a.objects[name].(T); ok {
			out = append(out, object)
		}
	}
	return out
}

// find returns a copy of an object; false if it is not there.
func find[T client.Object](a *apiServer, name string) (T, bool) {
	var zero T
	a.mu.Lock()
	defer a.mu.Unlock()
	object, ok := a.objects[ref{kindOf(zero), name}].(T)
	if !ok {
		return zero, false
	}
	out, ok := object.DeepCopyObject().(T)
	return out, ok
}

// cache stands in for a manager's informers: copies of the objects that lag behind, each kind for itself.
type cache struct {
	mu      sync.Mutex
	objects map[ref]client.Object
	// shown is when the last change of a kind is shown.
	shown map[string]time.Time
}

func newCache(a *apiServer) *cache {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &cache{objects: maps.Clone(a.objects), shown: map[string]time.Time{}}
}

func (c *cache) show(name ref, object client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if object == nil {
		delete(c.objects, name)
	} else {
		c.objects[name] = object
	}
}

// Get reads from the cache.
func (c *cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.objects[ref{kindOf(into), key.Name}]
	if found == nil {
		return notFound(ref{kindOf(into), key.Name})
	}
	copyInto(found, into)
	return nil
}

// List reads from the cache.
func (c *cache) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	listing := client.ListOptions{}
	listing.ApplyOptions(options)
	wanted := strings.TrimSuffix(kindOf(into), "List")
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []client.Object
	for name, object := range c.objects {
		if name.kind == wanted && (listing.LabelSelector == nil || listing.LabelSelector.Matches(labels.Set(object.GetLabels()))) {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	items := make([]runtime.Object, len(found))
	for i, object := range found {
		items[i] = object.DeepCopyObject()
	}
	return meta.SetList(into, items)
}

// uncached reads past the cache.
type uncached struct {
	client.Reader // what the controllers do not call is missing
	api           *apiServer
}

// Get implements client.Reader.
func (u *uncached) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return u.api.read(ref{kindOf(into), key.Name}, into)
}

// kubeClient is a manager's client: it reads from the cache, and its writes may go wrong.
type kubeClient struct {
	client.Client // what the controllers do not call is missing
	api           *apiServer
	cache         *cache
	gate          *gate
}

// Get implements client.Reader.
func (k *kubeClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if wait := patienceOf(ctx); !wait.until.IsZero() {
		time.Sleep(time.Until(wait.until)) //nolint:forbidigo // virtual time
		wait.until = time.Time{}
	}
	return k.cache.Get(ctx, key, into, options...)
}

// List implements client.Reader.
func (k *kubeClient) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.cache.List(ctx, into, options...)
}

// errReplyLost is what a client sees when the connection breaks before the answer.
var errReplyLost = errors.New("http2: client connection lost")

// Scheme implements client.Client.
func (k *kubeClient) Scheme() *runtime.Scheme { return k.api.scheme }

// GroupVersionKindFor implements client.Client.
func (k *kubeClient) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, k.api.scheme)
}

// pause is how long a client waits at most before it tries again after a conflict: it draws how long exactly, which could not
// be repeated.
const pause = 250 * time.Millisecond

// write passes the gate.
func (k *kubeClient) write(ctx context.Context, verb string, object client.Object, do func(client.Object) error) error {
	name := refOf(object)
	what := verb + " " + name.kind
	v, err := k.gate.pass(ctx, &ticket{kind: kubeWrite, what: what, label: fmt.Sprintf("%s %s %s", whoOf(ctx), what, name.name)})
	resource := resourceOf(name.kind)
	switch {
	case err != nil:
		return err
	case v.fate == conflicts:
		patienceOf(ctx).until = time.Now().Add(pause)
		return apierrors.NewConflict(resource, name.name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case v.fate == refused:
		return apierrors.NewServerTimeout(resource, verb, 1)
	case v.fate == replyLost:
		unseen, isObject := object.DeepCopyObject().(client.Object)
		if !isObject {
			return errReplyLost
		}
		_ = k.api.write(unseen, func() error { return do(unseen) })
		return errReplyLost
	}
	err = k.api.write(object, func() error { return do(object) })
	if apierrors.IsConflict(err) {
		patienceOf(ctx).until = time.Now().Add(pause)
	}
	return err
}

// patience is until when a reconcile waits with its next read.
type waiting struct{ until time.Time }

type waitingKey struct{}

func patienceOf(ctx context.Context) *waiting {
	if found, ok := ctx.Value(waitingKey{}).(*waiting); ok {
		return found
	}
	return &waiting{}
}

// Create implements client.Writer.
func (k *kubeClient) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	return k.write(ctx, "create", object, k.api.store.create)
}

// Patch implements client.Writer.
func (k *kubeClient) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return k.patch(ctx, object, patch, main)
}

func (k *kubeClient) patch(ctx context.Context, object client.Object, patch client.Patch, part part) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	return k.write(ctx, "patch "+part.String()+"of", object, func(object client.Object) error { return k.api.patch(object, data, part) })
}

// Delete implements client.Writer.
func (k *kubeClient) Delete(ctx context.Context, object client.Object, _ ...client.DeleteOption) error {
	return k.write(ctx, "delete", object, func(object client.Object) error { return k.api.remove(refOf(object)) })
}

// Status implements client.StatusClient.
func (k *kubeClient) Status() client.SubResourceWriter { return &statusClient{client: k} }

// statusClient writes status; what the controllers do not call is missing.
type statusClient struct {
	client.SubResourceWriter
	client *kubeClient
}

// Patch implements client.SubResourceWriter.
func (s *statusClient) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.client.patch(ctx, object, patch, status)
}

type whoKey struct{}

// withWho says in a context who acts.
func withWho(ctx context.Context, who string) context.Context {
	return context.WithValue(context.WithValue(ctx, whoKey{}, who), waitingKey{}, &waiting{})
}

func whoOf(ctx context.Context) string {
	who, _ := ctx.Value(whoKey{}).(string)
	return cmp.Or(who, "manager")
}

// text is an object as JSON, to look for what must not be in it.
func text(object any) string {
	data, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
