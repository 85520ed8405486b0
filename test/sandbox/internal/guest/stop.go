package guest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/workload"
)

// PowerOff is what the cluster notices when the machine loses power: its Node is not heard of any more, and its API
// server and etcd member stop answering.
func (m Machine) PowerOff(ctx context.Context, cluster *workload.Cluster) error {
	if m.Seed.Role != Worker {
		cluster.Down(m.etcdPod())
	}
	return m.setReady(ctx, cluster, corev1.ConditionUnknown, "NodeStatusUnknown")
}

// PowerOn is what the cluster notices when a machine that was a Node before boots again.
func (m Machine) PowerOn(ctx context.Context, cluster *workload.Cluster) error {
	if m.Seed.Role != Worker {
		authorities, err := m.authorities()
		if err != nil {
			return err
		}
		if err := cluster.Up(authorities, m.etcdPod()); err != nil {
			return err
		}
	}
	return m.setReady(ctx, cluster, corev1.ConditionTrue, "KubeletReady")
}

// Remove takes the machine out of the cluster: what a cloud provider's node controller does when the machine is gone
// for good, plus the static pods that nobody else would take away.
func (m Machine) Remove(ctx context.Context, cluster *workload.Cluster) error {
	objects := []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.NodeName()}}}
	if m.Seed.Role != Worker {
		cluster.Down(m.etcdPod())
		for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			objects = append(objects, m.staticPod(component))
		}
	}
	var errs []error
	for _, object := range objects {
		if err := cluster.Store().Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete %T %s: %w", object, object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

func (m Machine) setReady(ctx context.Context, cluster *workload.Cluster, ready corev1.ConditionStatus, reason string) error {
	var node corev1.Node
	if err := cluster.Store().Get(ctx, client.ObjectKey{Name: m.NodeName()}, &node); err != nil {
		return client.IgnoreNotFound(err)
	}
	node.Status.Conditions = nodeConditions(ready, reason)
	if err := cluster.Store().Update(ctx, &node); err != nil {
		return fmt.Errorf("update node %s: %w", node.Name, err)
	}
	return nil
}
