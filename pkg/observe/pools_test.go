package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

func TestWhoseAPoolIs(t *testing.T) {
	owner := &v1beta1.ProxmoxCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1-x7k2p", UID: "new", Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"}}}
	controlledBy := func(kind, name string, uid types.UID) []metav1.OwnerReference {
		isController := true
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: uid, Controller: &isController}}
	}
	for _, c := range []struct {
		name   string
		owners []metav1.OwnerReference
		label  string
		want   bool
	}{
		{"the cluster's", controlledBy("ProxmoxCluster", "c1-x7k2p", "new"), "c1", true},
		{"the cluster's after a restore, which gave it another UID", controlledBy("ProxmoxCluster", "c1-x7k2p", "old"), "c1", true},
		{"the cluster's after somebody took the owner away", nil, "c1", true},
		{"another cluster's", controlledBy("ProxmoxCluster", "c2", "old"), "c1", false},
		{"something else's", controlledBy("Thing", "c1-x7k2p", "old"), "c1", false},
		{"a person's", nil, "", false},
		{"a person's for another cluster", nil, "c2", false},
	} {
		pool := &unstructured.Unstructured{Object: map[string]any{}}
		pool.SetOwnerReferences(c.owners)
		if c.label != "" {
			pool.SetLabels(map[string]string{clusterv1.ClusterNameLabel: c.label})
		}
		if got := isPoolOf(pool, owner); got != c.want {
			t.Errorf("a pool of %s is ours: %t", c.name, got)
		}
	}
}
