package capi

import (
	"testing"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

func TestNewestVersion(t *testing.T) {
	for label, want := range map[string]string{
		"v1beta1": "v1beta1", "v1alpha2_v1beta1": "v1beta1", "v1_v1beta2": "v1", "v1beta2_v1beta10": "v1beta10",
	} {
		if got, err := newestVersion(label); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", label, got, err, want)
		}
	}
	if _, err := newestVersion(""); err == nil {
		t.Error("a CRD without a contract label has a version")
	}
}

// The conversion webhooks fail on kinds that the scheme does not know in their old versions.
func TestSchemeKnowsOldVersions(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		known bool
		name  string
	}{
		{scheme.Recognizes(clusterv1beta1.GroupVersion.WithKind("Cluster")), "Cluster v1beta1"},
		{scheme.Recognizes(clusterv1.GroupVersion.WithKind("Cluster")), "Cluster v1beta2"},
		{scheme.Recognizes(bootstrapv1beta1.GroupVersion.WithKind("KubeadmConfig")), "KubeadmConfig v1beta1"},
		{scheme.Recognizes(ipamv1.GroupVersion.WithKind("IPAddressClaim")), "IPAddressClaim v1beta2"},
	} {
		if !kind.known {
			t.Errorf("%s is unknown", kind.name)
		}
	}
}
