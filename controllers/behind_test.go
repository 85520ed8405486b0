package controllers

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

func machineAt(version string) *v1beta1.ProxmoxMachine {
	return &v1beta1.ProxmoxMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m1", ResourceVersion: version}}
}

func TestAMachineIsLeftUntilTheCacheShowsWhatWasWritten(t *testing.T) {
	var w writes
	if w.isBehind(machineAt("9")) {
		t.Error("nothing was written")
	}
	w.note(machineAt("9"), "10")
	w.note(machineAt("10"), "") // nothing more was written
	for version, want := range map[string]bool{"9": true, "10": false, "11": false, "none": false} {
		if got := w.isBehind(machineAt(version)); got != want {
			t.Errorf("at %s it is behind: %t, want %t", version, got, want)
		}
	}
	w.forget(client.ObjectKeyFromObject(machineAt("")))
	if w.isBehind(machineAt("1")) {
		t.Error("it is forgotten")
	}
}

func TestAMachineIsNotLeftForEverForAVersionThatNeverComes(t *testing.T) {
	var w writes
	w.note(machineAt("900"), "901")
	left := 0
	for range 10 * mostBehind { // its API server was restored, and counts from 7
		if w.isBehind(machineAt("7")) {
			left++
		}
	}
	if left != mostBehind {
		t.Errorf("it was left %d times, want %d", left, mostBehind)
	}
}

// versioned is an API server that gives each patched object the next version, or refuses.
type versioned struct {
	client.Client
	version string
	err     error
}

func (v *versioned) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	object.SetResourceVersion(v.version)
	return v.err
}

func TestAWitnessKeepsTheLastVersionThatWasWritten(t *testing.T) {
	server := &versioned{version: "10"}
	witness := &witness{Client: server}
	patch := func(version string, err error) {
		server.version, server.err = version, err
		if got := witness.Patch(t.Context(), machineAt("9"), nil); !errors.Is(got, err) {
			t.Errorf("error %v", got)
		}
	}
	patch("10", nil)
	patch("9", nil)
	patch("12", errors.New("refused"))
	if witness.version != "10" {
		t.Errorf("the last version is %s", witness.version)
	}
}
