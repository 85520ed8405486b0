package guest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/pki"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/workload"
)

func newCluster(t *testing.T) *workload.Cluster {
	t.Helper()
	cluster, err := workload.New(t.Context(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// newMachine boots a machine with the user data, in which the endpoint is the cluster's.
func newMachine(t *testing.T, cluster *workload.Cluster, name, userData string) Machine {
	t.Helper()
	seed, err := Parse(strings.ReplaceAll(userData, "127.0.0.1:6443", cluster.Endpoint()))
	if err != nil {
		t.Fatal(err)
	}
	return Machine{Hostname: name, Address: netip.MustParseAddr("10.10.10.20"), KubeletVersion: "v1.36.3", Seed: seed}
}

// newControlPlane boots a first control plane machine, whose seed has the authorities' certificates and keys.
func newControlPlane(t *testing.T, cluster *workload.Cluster, name string) (machine Machine, ca *pki.Authority) {
	t.Helper()
	machine = newMachine(t, cluster, name, initUserData)
	ca = seedAuthority(t, &machine.Seed, "ca")
	seedAuthority(t, &machine.Seed, "etcd/ca")
	return machine, ca
}

// seedAuthority puts an authority into the seed's files: one that an authority has signed, which serves as well.
func seedAuthority(t *testing.T, seed *Seed, name string) *pki.Authority {
	t.Helper()
	made, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := made.Export()
	if err != nil {
		t.Fatal(err)
	}
	seed.files[pkiDir+"/"+name+".crt"], seed.files[pkiDir+"/"+name+".key"] = string(pair.Certificate), string(pair.Key)
	return made
}

func bootstrap(t *testing.T, machine Machine, cluster *workload.Cluster) {
	t.Helper()
	if err := machine.Bootstrap(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

func node(t *testing.T, cluster *workload.Cluster, name string) *corev1.Node {
	t.Helper()
	var found corev1.Node
	if err := cluster.Store().Get(t.Context(), client.ObjectKey{Name: name}, &found); err != nil {
		t.Fatal(err)
	}
	return &found
}

func ready(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}

// healthz asks the cluster's API server, as Cluster API does.
func healthz(t *testing.T, cluster *workload.Cluster, ca *pki.Authority) error {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM())
	caller := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+cluster.Endpoint()+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := caller.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestFirstControlPlaneStartsTheCluster(t *testing.T) {
	cluster := newCluster(t)
	machine, ca := newControlPlane(t, cluster, "cp")
	if err := healthz(t, cluster, ca); err == nil {
		t.Error("the API server answers before there is one")
	}
	bootstrap(t, machine, cluster)
	if err := healthz(t, cluster, ca); err != nil {
		t.Error(err)
	}
	made := node(t, cluster, "cp")
	if _, labelled := made.Labels[controlPlaneRole]; !labelled || len(made.Spec.Taints) != 1 || made.Spec.Taints[0].Key != controlPlaneRole {
		t.Errorf("got labels %v, taints %v", made.Labels, made.Spec.Taints)
	}
	if made.Labels["a"] != "b" || made.Spec.ProviderID != "proxmox://6f1c0d9e-0000-4000-8000-000000000001" || ready(made) != corev1.ConditionTrue {
		t.Errorf("got labels %v, provider id %q, ready %v", made.Labels, made.Spec.ProviderID, ready(made))
	}
	var configuration corev1.ConfigMap
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}
	if err := cluster.Store().Get(t.Context(), key, &configuration); err != nil || !strings.Contains(configuration.Data["ClusterConfiguration"], "clusterName: demo") {
		t.Errorf("got kubeadm-config %v, %v", configuration.Data, err)
	}
	var pods corev1.PodList
	if err := cluster.Store().List(t.Context(), &pods, client.MatchingLabels{"tier": "control-plane"}); err != nil || len(pods.Items) != 4 {
		t.Errorf("got %d static pods, %v", len(pods.Items), err)
	}
}

func createToken(t *testing.T, cluster *workload.Cluster, id, secret string) {
	t.Helper()
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		Data:       map[string][]byte{"token-secret": []byte(secret)},
	}
	if err := cluster.Store().Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
}

func TestWorkerJoins(t *testing.T) {
	cluster := newCluster(t)
	first, _ := newControlPlane(t, cluster, "cp")
	bootstrap(t, first, cluster)
	createToken(t, cluster, "abcdef", "0123456789abcdef")
	bootstrap(t, newMachine(t, cluster, "host", joinUserData), cluster)

	made := node(t, cluster, "worker-1") // the name in the seed goes before the host's
	if made.Spec.ProviderID != "proxmox://6f1c0d9e-0000-4000-8000-000000000002" || made.Status.NodeInfo.KubeletVersion != "v1.36.3" {
		t.Errorf("got provider id %q, kubelet %q", made.Spec.ProviderID, made.Status.NodeInfo.KubeletVersion)
	}
	if len(made.Spec.Taints) != 1 || made.Spec.Taints[0].Key != "node.cluster.x-k8s.io/uninitialized" {
		t.Errorf("got taints %v", made.Spec.Taints)
	}
	if _, labelled := made.Labels[controlPlaneRole]; labelled {
		t.Error("a worker says that it is control plane")
	}
}

func TestWorkerCannotJoin(t *testing.T) {
	t.Run("a cluster that is not up", func(t *testing.T) {
		cluster := newCluster(t)
		if err := newMachine(t, cluster, "host", joinUserData).Bootstrap(t.Context(), cluster); err == nil {
			t.Error("joined")
		}
	})
	for name, secret := range map[string]string{"without a token": "", "with the wrong token": "ffffffffffffffff"} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			first, _ := newControlPlane(t, cluster, "cp")
			bootstrap(t, first, cluster)
			if secret != "" {
				createToken(t, cluster, "abcdef", secret)
			}
			if err := newMachine(t, cluster, "host", joinUserData).Bootstrap(t.Context(), cluster); err == nil {
				t.Error("joined")
			}
		})
	}
}

func TestControlPlaneNeedsItsAuthorities(t *testing.T) {
	cluster := newCluster(t)
	if err := newMachine(t, cluster, "cp", initUserData).Bootstrap(t.Context(), cluster); err == nil {
		t.Error("a control plane without the keys of its authorities came up")
	}
}

func TestPowerOffAndOn(t *testing.T) {
	cluster := newCluster(t)
	machine, ca := newControlPlane(t, cluster, "cp")
	bootstrap(t, machine, cluster)
	if err := machine.PowerOff(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := healthz(t, cluster, ca); err == nil {
		t.Error("the API server answers without power")
	}
	if got := ready(node(t, cluster, "cp")); got != corev1.ConditionUnknown {
		t.Errorf("without power the node is ready: %v", got)
	}
	if err := machine.PowerOn(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := healthz(t, cluster, ca); err != nil {
		t.Error(err)
	}
	if got := ready(node(t, cluster, "cp")); got != corev1.ConditionTrue {
		t.Errorf("with power the node is ready: %v", got)
	}
}

func TestRemove(t *testing.T) {
	cluster := newCluster(t)
	machine, _ := newControlPlane(t, cluster, "cp")
	bootstrap(t, machine, cluster)
	for range 2 { // again, of no effect
		if err := machine.Remove(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Store().Get(t.Context(), client.ObjectKey{Name: "cp"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the node is there: %v", err)
	}
	if err := machine.PowerOff(t.Context(), cluster); err != nil {
		t.Errorf("power off after removal: %v", err)
	}
	if cluster.Serving() {
		t.Error("the API server answers without machines")
	}
}

// A cluster with another control plane node does not notice that one goes.
func TestFurtherControlPlaneKeepsTheClusterUp(t *testing.T) {
	cluster := newCluster(t)
	first, ca := newControlPlane(t, cluster, "cp-1")
	bootstrap(t, first, cluster)
	createToken(t, cluster, "abcdef", "0123456789abcdef")
	data := strings.Replace(joinUserData, "      discovery:", "      controlPlane: {}\n      discovery:", 1)
	second := newMachine(t, cluster, "cp-2", strings.Replace(data, "        name: worker-1\n", "", 1))
	for name, content := range first.Seed.files {
		if strings.HasPrefix(name, pkiDir) {
			second.Seed.files[name] = content
		}
	}
	bootstrap(t, second, cluster)
	if err := first.Remove(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := healthz(t, cluster, ca); err != nil {
		t.Error(err)
	}
}
