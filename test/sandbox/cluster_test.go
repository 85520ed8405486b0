package sandbox

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// rendered renders the default cluster's manifest and returns its objects by kind and name.
func rendered(t *testing.T, change func(*manifest)) map[string]unstructured.Unstructured {
	t.Helper()
	cluster := DefaultCluster()
	cluster.Host, cluster.Port = "127.0.0.1", 6443
	filled := manifest{
		Cluster: cluster, Version: "v1.36.3", ProviderID: providerID,
		PVE: connection{URL: "https://127.0.0.1:8006", TokenID: "capi@pve!t1", TokenSecret: "s3cret"},
		MachineTemplates: []machineTemplate{
			{Name: "control-plane", Cores: 2, MemoryMiB: 4096, DiskGiB: 20}, {Name: "workers", Cores: 2, MemoryMiB: 2048, DiskGiB: 20},
		},
	}
	if change != nil {
		change(&filled)
	}
	text, err := filled.render()
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]unstructured.Unstructured{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		objects[object.GetKind()+" "+object.GetName()] = object
	}
	return objects
}

func field(t *testing.T, object unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		t.Errorf("%s has no %s: %v", object.GetKind(), strings.Join(path, "."), err)
	}
	return fmt.Sprint(value)
}

func TestManifestHasEveryObject(t *testing.T) {
	objects := rendered(t, nil)
	for _, want := range []string{
		"Namespace default", "Secret demo-proxmox", "InClusterIPPool demo", "Cluster demo", "ProxmoxCluster demo",
		"KubeadmControlPlane demo", "KubeadmConfigTemplate demo-workers", "MachineDeployment demo-workers",
		"ProxmoxMachineTemplate demo-control-plane", "ProxmoxMachineTemplate demo-workers",
	} {
		if _, found := objects[want]; !found {
			t.Errorf("there is no %s", want)
		}
		delete(objects, want)
	}
	for unexpected := range objects {
		t.Errorf("there is %s", unexpected)
	}
}

func TestManifestSaysWhatTheClusterSays(t *testing.T) {
	objects := rendered(t, func(m *manifest) { m.ControlPlaneReplicas, m.WorkerReplicas = 3, 7 })
	for _, check := range []struct {
		object string
		path   string
		want   string
	}{
		{"ProxmoxCluster demo", "spec.controlPlaneEndpoint.host", "127.0.0.1"},
		{"ProxmoxCluster demo", "spec.controlPlaneEndpoint.port", "6443"},
		{"KubeadmControlPlane demo", "spec.replicas", "3"},
		{"MachineDeployment demo-workers", "spec.replicas", "7"},
		{"MachineDeployment demo-workers", "spec.template.spec.version", "v1.36.3"},
		{"InClusterIPPool demo", "spec.addresses", "[10.10.10.20-10.10.10.99]"},
		{"Secret demo-proxmox", "stringData.tokenSecret", "s3cret"},
		{"ProxmoxMachineTemplate demo-workers", "spec.template.spec.source.template.tags", "[kubernetes]"},
		{"ProxmoxMachineTemplate demo-workers", "spec.template.spec.memory.sizeMiB", "2048"},
	} {
		if got := field(t, objects[check.object], strings.Split(check.path, ".")...); got != check.want {
			t.Errorf("%s: %s is %s, want %s", check.object, check.path, got, check.want)
		}
	}
}

// cloud-init renders the provider id: our own template must leave it alone.
func TestManifestKeepsTheProviderIDTemplate(t *testing.T) {
	objects := rendered(t, nil)
	arguments := field(t, objects["KubeadmConfigTemplate demo-workers"],
		"spec", "template", "spec", "joinConfiguration", "nodeRegistration", "kubeletExtraArgs")
	if !strings.Contains(arguments, "proxmox://{{ ds.meta_data.instance_id }}") {
		t.Errorf("got %s", arguments)
	}
}

func TestManifestWithAuthority(t *testing.T) {
	plain := rendered(t, nil)["ProxmoxCluster demo"]
	if strings.Contains(fmt.Sprint(plain.Object), "tls") {
		t.Error("there is a tls without an authority")
	}
	signed := rendered(t, func(m *manifest) { m.PVE.Authority = []byte("PEM") })["ProxmoxCluster demo"]
	if !strings.Contains(fmt.Sprint(signed.Object), "caBundle:"+base64.StdEncoding.EncodeToString([]byte("PEM"))) {
		t.Errorf("got %v", signed.Object)
	}
}

// What a user types must not be able to change what the manifest means.
func TestManifestQuotes(t *testing.T) {
	hostile := "x\"\n---\nkind: Namespace #"
	objects := rendered(t, func(m *manifest) {
		m.PVE.TokenID, m.Tags, m.Addresses = hostile, []string{hostile, "b"}, hostile
	})
	if got := field(t, objects["Secret demo-proxmox"], "stringData", "tokenID"); got != hostile {
		t.Errorf("got token id %q", got)
	}
	if len(objects) != 10 {
		t.Errorf("got %d objects, want 10", len(objects))
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	remote := RemotePVE{TokenID: "capi@pve!t1", TokenSecret: "s3cret"}
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		if text := fmt.Sprintf(format, remote); strings.Contains(text, "s3cret") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
