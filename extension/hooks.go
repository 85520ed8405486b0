package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// The names of the handlers, which Cluster API shows.
const (
	canUpdateMachine    = "can-update-machine"
	canUpdateMachineSet = "can-update-machine-set"
	updateMachine       = "update-machine"
)

// lookAgain is after how many seconds Cluster API asks again how far an update is.
const lookAgain = 5

// Handlers are the handlers of the hooks. They read ProxmoxMachines with the reader.
func Handlers(reader client.Reader) []server.ExtensionHandler {
	return []server.ExtensionHandler{
		{Name: canUpdateMachine, Hook: runtimehooksv1.CanUpdateMachine, HandlerFunc: CanUpdateMachine},
		{Name: canUpdateMachineSet, Hook: runtimehooksv1.CanUpdateMachineSet, HandlerFunc: CanUpdateMachineSet},
		{Name: updateMachine, Hook: runtimehooksv1.UpdateMachine, HandlerFunc: Updater{Reader: reader}.UpdateMachine},
	}
}

// CanUpdateMachine says whether a machine can be updated in place: if all that changes of its ProxmoxMachine takes effect while
// the VM runs. What changes of other objects is not ours to say.
func CanUpdateMachine(_ context.Context, request *runtimehooksv1.CanUpdateMachineRequest, response *runtimehooksv1.CanUpdateMachineResponse) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	var current, desired v1beta1.ProxmoxMachine
	found, err := read(request.Current.InfrastructureMachine, request.Desired.InfrastructureMachine, &current, &desired)
	if err != nil {
		fail(response, err)
		return
	}
	if !found {
		return
	}
	before, now := &v1beta1.ProxmoxMachine{Spec: current.Spec}, &v1beta1.ProxmoxMachine{Spec: desired.Spec}
	patch, why, err := change(before, now, vmconfig.Obstacles(current.Spec, desired.Spec))
	if err != nil {
		fail(response, err)
		return
	}
	response.InfrastructureMachinePatch = patch
	response.SetMessage(why)
}

// CanUpdateMachineSet says the same of the machines of a MachineSet, by their templates.
func CanUpdateMachineSet(_ context.Context, request *runtimehooksv1.CanUpdateMachineSetRequest, response *runtimehooksv1.CanUpdateMachineSetResponse) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	var current, desired v1beta1.ProxmoxMachineTemplate
	found, err := read(request.Current.InfrastructureMachineTemplate, request.Desired.InfrastructureMachineTemplate, &current, &desired)
	if err != nil {
		fail(response, err)
		return
	}
	if !found {
		return
	}
	before, now := &v1beta1.ProxmoxMachineTemplate{}, &v1beta1.ProxmoxMachineTemplate{}
	before.Spec.Template.Spec, now.Spec.Template.Spec = current.Spec.Template.Spec, desired.Spec.Template.Spec
	patch, why, err := change(before, now, vmconfig.Obstacles(before.Spec.Template.Spec, now.Spec.Template.Spec))
	if err != nil {
		fail(response, err)
		return
	}
	response.InfrastructureMachineTemplatePatch = patch
	response.SetMessage(why)
}

// Updater tells how far updates in place are.
type Updater struct {
	Reader client.Reader
}

// UpdateMachine says whether the VM is as the new spec says. Cluster API has written that into the ProxmoxMachine before it
// asks, and the controller carries it out.
func (u Updater) UpdateMachine(ctx context.Context, request *runtimehooksv1.UpdateMachineRequest, response *runtimehooksv1.UpdateMachineResponse) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	desired := &v1beta1.ProxmoxMachine{}
	raw := request.Desired.InfrastructureMachine
	if kind := kindOf(raw); kind != machineKind {
		fail(response, fmt.Errorf("the infrastructure of Machine %s is a %s, and not a %s, which is all that this extension updates", request.Desired.Machine.Name, kind, machineKind))
		return
	}
	if err := json.Unmarshal(raw.Raw, desired); err != nil {
		fail(response, fmt.Errorf("decode the ProxmoxMachine of Machine %s: %w", request.Desired.Machine.Name, err))
		return
	}
	present := &v1beta1.ProxmoxMachine{}
	if err := u.Reader.Get(ctx, client.ObjectKeyFromObject(desired), present); err != nil {
		fail(response, fmt.Errorf("get ProxmoxMachine %s: %w", desired.Name, err))
		return
	}
	if !reflect.DeepEqual(present.Spec, desired.Spec) { // the cache will show it
		wait(response, fmt.Sprintf("ProxmoxMachine %s is not seen with its new spec yet", desired.Name))
		return
	}
	if why, isDone := status.CarriedOut(present); !isDone {
		wait(response, why)
	}
}

func wait(response *runtimehooksv1.UpdateMachineResponse, why string) {
	response.SetRetryAfterSeconds(lookAgain)
	response.SetMessage(why)
}

func fail(response runtimehooksv1.ResponseObject, err error) {
	response.SetStatus(runtimehooksv1.ResponseStatusFailure)
	response.SetMessage(err.Error())
}

const (
	machineKind  = "ProxmoxMachine"
	templateKind = "ProxmoxMachineTemplate"
)

// kindOf is the kind of an object, if it is of our group; otherwise its group comes along.
func kindOf(object runtime.RawExtension) string {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if json.Unmarshal(object.Raw, &header) != nil {
		return "thing that is no object"
	}
	if header.APIVersion != v1beta1.GroupVersion.String() {
		return header.Kind + "." + header.APIVersion
	}
	return header.Kind
}

// read decodes two objects of ours. It says false of those of other providers.
func read(before, after runtime.RawExtension, current, desired client.Object) (bool, error) {
	for _, object := range []struct {
		raw  runtime.RawExtension
		into client.Object
	}{{before, current}, {after, desired}} {
		if kind := kindOf(object.raw); kind != machineKind && kind != templateKind {
			return false, nil
		}
		if err := json.Unmarshal(object.raw.Raw, object.into); err != nil {
			return false, fmt.Errorf("decode a %s: %w", kindOf(object.raw), err)
		}
	}
	return true, nil
}

// change is the patch from one object to another that differs in its spec, if the VM can follow the change as it runs; otherwise
// it is why not.
func change(from, to client.Object, obstacles []string) (runtimehooksv1.Patch, string, error) {
	if len(obstacles) > 0 {
		return runtimehooksv1.Patch{}, "not in place: " + strings.Join(obstacles, "; "), nil
	}
	patch, err := client.MergeFrom(from).Data(to)
	if err != nil {
		return runtimehooksv1.Patch{}, "", fmt.Errorf("compare the specs: %w", err)
	}
	if string(patch) == "{}" {
		return runtimehooksv1.Patch{}, "", nil
	}
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: patch}, "", nil
}
