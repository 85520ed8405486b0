package guest

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	etcdv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/workload"
)

// controlPlaneRole is the label and the default taint of control plane nodes.
const controlPlaneRole = "node-role.kubernetes.io/control-plane"

// Machine is a booted machine.
type Machine struct {
	// Hostname is the machine's name.
	Hostname string
	// Address is the machine's address, that of its Node.
	Address netip.Addr
	// KubeletVersion is the version of Kubernetes that the machine's image has, for example v1.36.3.
	KubeletVersion string
	// Seed is the machine's user data.
	Seed Seed
}

// NodeName is the name that the machine's Node has.
func (m Machine) NodeName() string {
	if m.Seed.Registration.Name != "" {
		return m.Seed.Registration.Name
	}
	return m.Hostname
}

func (m Machine) etcdPod() string { return "etcd-" + m.NodeName() }

// Bootstrap does what kubeadm and the kubelet do: it makes the machine a ready Node of the cluster.
func (m Machine) Bootstrap(ctx context.Context, cluster *workload.Cluster) error {
	switch m.Seed.Role {
	case FirstControlPlane:
		if err := m.initialize(ctx, cluster.Store()); err != nil {
			return fmt.Errorf("kubeadm init: %w", err)
		}
	case FurtherControlPlane, Worker:
		if err := m.authenticate(ctx, cluster); err != nil {
			return fmt.Errorf("kubeadm join: %w", err)
		}
	}
	if err := create(ctx, cluster.Store(), m.node()); err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	if m.Seed.Role == Worker {
		return nil
	}
	return m.controlPlane(ctx, cluster)
}

// initialize makes what kubeadm init makes for the whole cluster. The kubeadm control plane provider takes the cluster
// for initialized when it sees the ConfigMap.
func (m Machine) initialize(ctx context.Context, store inmemory.Client) error {
	role := metav1.ObjectMeta{Name: "kubeadm:get-nodes"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}},
		&rbacv1.ClusterRole{ObjectMeta: role, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: role,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "system:bootstrappers:kubeadm:default-node-token"}},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"},
			Data:       map[string]string{"ClusterConfiguration": m.Seed.ClusterConfiguration},
		},
	} {
		if err := create(ctx, store, object); err != nil {
			return err
		}
	}
	return nil
}

// authenticate checks that the cluster is up and knows the machine's bootstrap token.
func (m Machine) authenticate(ctx context.Context, cluster *workload.Cluster) error {
	if !cluster.Serving() {
		return fmt.Errorf("the API server at %s does not answer", cluster.Endpoint())
	}
	id, secret, _ := strings.Cut(m.Seed.Token, ".")
	var token corev1.Secret
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}
	if err := cluster.Store().Get(ctx, key, &token); err != nil {
		return fmt.Errorf("find bootstrap token %s: %w", id, err)
	}
	if string(token.Data["token-secret"]) != secret {
		return fmt.Errorf("bootstrap token %s has another secret", id)
	}
	return nil
}

func (m Machine) node() *corev1.Node {
	arguments := m.Seed.Registration.KubeletExtraArgs
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.NodeName(), Labels: map[string]string{corev1.LabelHostname: m.Hostname}},
		Spec:       corev1.NodeSpec{ProviderID: arguments["provider-id"], Taints: m.taints()},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: m.KubeletVersion, OSImage: "capve sandbox guest", Architecture: "amd64", OperatingSystem: "linux"},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: m.Address.String()},
				{Type: corev1.NodeHostName, Address: m.Hostname},
			},
			Conditions: nodeConditions(corev1.ConditionTrue, "KubeletReady"),
		},
	}
	for label := range strings.SplitSeq(arguments["node-labels"], ",") {
		if key, value, ok := strings.Cut(label, "="); ok {
			node.Labels[key] = value
		}
	}
	if m.Seed.Role != Worker {
		node.Labels[controlPlaneRole] = ""
	}
	return node
}

func (m Machine) taints() []corev1.Taint {
	if m.Seed.Registration.Taints == nil && m.Seed.Role != Worker {
		return []corev1.Taint{{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule}}
	}
	var taints []corev1.Taint
	for _, taint := range m.Seed.Registration.Taints {
		taints = append(taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)})
	}
	return taints
}

func nodeConditions(ready corev1.ConditionStatus, reason string) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, ready, reason),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
}

// controlPlane starts the machine's static pods, and makes the API server and the machine's etcd member answer.
func (m Machine) controlPlane(ctx context.Context, cluster *workload.Cluster) error {
	authorities, err := m.authorities()
	if err != nil {
		return err
	}
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		pod := m.staticPod(component)
		if component == "etcd" {
			if err := m.joinEtcd(ctx, cluster.Store(), pod); err != nil {
				return err
			}
		}
		if err := create(ctx, cluster.Store(), pod); err != nil {
			return fmt.Errorf("start %s: %w", pod.Name, err)
		}
	}
	return cluster.Up(authorities, m.etcdPod())
}

func (m Machine) authorities() (workload.Authorities, error) {
	cluster, err := m.Seed.authority("ca")
	if err != nil {
		return workload.Authorities{}, err
	}
	etcd, err := m.Seed.authority("etcd/ca")
	return workload.Authorities{Cluster: cluster, Etcd: etcd}, err
}

func (m Machine) staticPod(component string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem,
			Name:      component + "-" + m.NodeName(),
			Labels:    map[string]string{"component": component, "tier": "control-plane"},
		},
		Spec: corev1.PodSpec{NodeName: m.NodeName()},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// joinEtcd gives the etcd pod the annotations by which the in-memory etcd knows its members and its leader.
func (m Machine) joinEtcd(ctx context.Context, store inmemory.Client, pod *corev1.Pod) error {
	var members corev1.PodList
	if err := store.List(ctx, &members, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": "etcd"}); err != nil {
		return fmt.Errorf("list etcd members: %w", err)
	}
	pod.Annotations = map[string]string{
		etcdv1.EtcdClusterIDAnnotationName: memberID(m.Seed.Endpoint),
		etcdv1.EtcdMemberIDAnnotationName:  memberID(pod.Name),
	}
	if len(members.Items) == 0 {
		pod.Annotations[etcdv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
	}
	return nil
}

// memberID is a number for a name, never 0.
func memberID(name string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return strconv.FormatUint(uint64(hash.Sum32())|1, 10)
}

// create creates an object, or leaves the one that is there: a machine that boots again finds its own.
func create(ctx context.Context, store inmemory.Client, object client.Object) error {
	if err := store.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
