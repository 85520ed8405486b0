package integration_test

import (
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// destroyTaskFails has the task that destroys the VM fail: the machine stays until the VM is gone.
func destroyTaskFails(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.faults(pvesim.Fault{Method: http.MethodDelete, Path: pathVM, TaskError: "cannot remove disk: dataset is busy"})
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.says(machine, clusterv1.DeletingCondition, metav1.ConditionTrue, "TaskFailed", "dataset is busy")
	b.Consistently(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Finalizers).To(ContainElement(v1beta1.MachineFinalizer))
	}, time.Second, poll).Should(Succeed())
	b.pve.World.ClearFaults()
	b.gone(machine)
	b.leavesNothing()
}

// startedBeforeDestroy has somebody start the VM after we stopped it and before it is destroyed.
func startedBeforeDestroy(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	vm := b.vmOf(machine)
	b.faults(pvesim.Fault{Method: http.MethodDelete, Path: pathVM, Status: 500, Reason: "VM is running - destroy failed"})
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.sent(http.MethodDelete, "/qemu/"+vm.VMID.String())
	b.ask(http.MethodPost, "/nodes/"+string(vm.Node)+"/qemu/"+vm.VMID.String()+"/status/start", url.Values{})
	b.pve.World.ClearFaults()
	b.gone(machine)
	b.leavesNothing()
}

// deletionWithoutStatus deletes a machine that forgot its node, its VMID and its task.
func deletionWithoutStatus(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.sent(http.MethodPost, "/status/start")
	b.stop()
	b.get(b, machine)
	b.wipeStatus(machine)
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.startControllers()
	b.gone(machine)
	b.leavesNothing()
}

// deletedOnItsWay deletes a machine right after requests that make it.
func deletedOnItsWay(t *testing.T) {
	for name, request := range map[string]struct{ method, suffix string }{
		"upload": {http.MethodPost, "/upload"}, "clone": {http.MethodPost, "/clone"}, "resize": {http.MethodPut, "/resize"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1")
			b.sent(request.method, request.suffix)
			b.delete(machine)
			b.leavesNothing()
		})
	}
}

// failedLaunch deletes a machine whose every clone is refused.
func failedLaunch(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.faults(pvesim.Fault{Method: http.MethodPost, Path: pathClone, Status: 500, Reason: "not today"})
	machine := b.machine("c1", "m1")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "Error", "not today")
	claim, address := &ipamv1.IPAddressClaim{ObjectMeta: b.meta("m1-net0-ipv4")}, &ipamv1.IPAddress{ObjectMeta: b.meta("m1-net0-ipv4")}
	b.get(b, claim)
	b.get(b, address)
	b.delete(machine)
	b.gone(claim)
	if b.client.Get(b.ctx, client.ObjectKeyFromObject(address), address) == nil { // now it is the IPAM provider's alone
		b.Expect(address.Finalizers).NotTo(ContainElement(v1beta1.AddressClaimFinalizer))
	}
	b.leavesNothing()
}

// refusedClone has another manager make a VM at the reserved VMID, on the same host, right before our clone.
func refusedClone(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.holdClones()
	machine := b.machine("c1", "m1")
	reserved, foreign := b.losesVMID(machine)
	b.readyOnceItRuns(machine)
	b.Expect(machine.Spec.Reservation.VMID).NotTo(Equal(reserved.VMID))
	b.untouched(foreign)
	b.neverDestroys()
}

// lookAlike has a VM of somebody else with the machine's name and its template's tags.
func lookAlike(t *testing.T) {
	b := newBench(t)
	b.add(b.pve.World.AddVM(pvesim.VMSpec{VMID: 500, Node: "pve1", State: "running", Config: map[string]string{
		"name": "m1", "tags": "kubernetes;ubuntu;capve", "memory": "1024", "scsi0": "local-lvm:vm-500-disk-0,size=8G",
		"description": "Cluster API machine m1, managed by CAPVE.",
	}}))
	before, _ := b.pve.World.VM(500)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.readyOnceItRuns(machine)
	b.Expect(b.pveVMs()).To(HaveLen(2))
	b.delete(machine)
	b.untouched(before)
	b.Expect(b.pveVMs()).To(HaveLen(1))
	b.Expect(b.pve.World.Check()).To(BeEmpty())
}

// haManagedVM has high availability manage the VM before the machine is deleted.
func haManagedVM(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	vm := b.vmOf(machine)
	b.ask(http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {"vm:" + vm.VMID.String()}, "state": {"started"}})
	b.delete(machine)
	b.leavesNothing()
}

// clusterStaysAsItIs makes and deletes a machine, and looks whether that wrote its cluster.
func clusterStaysAsItIs(t *testing.T) {
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	b.quiet(cluster)
	version := cluster.ResourceVersion
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.delete(machine)
	b.get(b, cluster)
	b.Expect(cluster.ResourceVersion).To(Equal(version), "%s", pretty(cluster.Status))
}

// secretElsewhere has the Secret of the credentials in another namespace.
func secretElsewhere(t *testing.T) {
	b := newBench(t)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}
	b.create(other)
	b.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: other.Name}, StringData: b.token()})
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { c.Spec.Regions[0].CredentialsRef.Name = "elsewhere" })
	b.says(cluster, v1beta1.ProxmoxAvailableCondition, metav1.ConditionFalse, v1beta1.CredentialsNotFoundReason, b.namespace+"/elsewhere")
	b.Expect(b.requests()).To(BeEmpty())
}

// secretStays takes a cluster and a machine through their lives, and compares the Secrets that they read.
func secretStays(t *testing.T) {
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machine := b.machine("c1", "m1")
	credentials, bootstrap := &corev1.Secret{ObjectMeta: b.meta("c1-credentials")}, &corev1.Secret{ObjectMeta: b.meta("m1-bootstrap")}
	versions := func() []string {
		b.get(b, credentials)
		b.get(b, bootstrap)
		return []string{credentials.ResourceVersion, bootstrap.ResourceVersion}
	}
	before := versions()
	b.running(machine)
	b.delete(machine)
	b.delete(cluster)
	b.Expect(versions()).To(Equal(before))
}

// managerRole is the role that the manager is deployed with.
func managerRole(g Gomega) *rbacv1.ClusterRole {
	text, err := os.ReadFile("../../config/rbac/role.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	g.Expect(yaml.UnmarshalStrict(text, role)).To(Succeed())
	return role
}

func secretsAreNotCached(t *testing.T) {
	g := NewWithT(t)
	for _, rule := range managerRole(g).Rules {
		for _, resource := range rule.Resources {
			g.Expect(resource).NotTo(Equal("*"))
			if resource == "secrets" {
				g.Expect(rule.Verbs).To(Equal([]string{"get"}))
			}
		}
	}
}

// roleIsEnough has the controllers work with the rights that the manager is deployed with, and no others.
func roleIsEnough(t *testing.T) {
	b := newBench(t)
	b.stop()
	role := managerRole(b)
	role.Name = b.namespace
	role.Rules = append(role.Rules, // what the stand-in for the IPAM provider needs, which the manager must not
		rbacv1.PolicyRule{APIGroups: []string{ipamv1.GroupVersion.Group}, Resources: []string{"ipaddresses"}, Verbs: []string{"create", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{ipamv1.GroupVersion.Group}, Resources: []string{"ipaddressclaims/status"}, Verbs: []string{"update"}})
	b.create(role)
	b.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: b.namespace, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.namespace},
	})
	user, err := b.env.AddUser(envtest.User{Name: b.namespace}, nil)
	b.Expect(err).NotTo(HaveOccurred())
	env := *b.env
	env.config = user.Config()
	env.config.QPS = -1
	b.env = &env
	b.startControllers()
	b.provisioned(b.cluster("c1"))
	b.livesOnce(b.machine("c1", "m1"))
	b.Expect(b.log.String()).NotTo(ContainSubstring("is forbidden"))
}
