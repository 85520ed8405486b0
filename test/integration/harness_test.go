package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/controllers"
	"github.com/capve/cluster-api-provider-proxmox/pkg/act"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// Patience of the assertions: they end at once when they hold. A machine takes 10 s to be ready, and a minute where ten times
// as much is to be done as there is CPU for.
const (
	patience = 4 * time.Minute
	poll     = 50 * time.Millisecond
)

// bench is one test's namespace, Proxmox VE and running controllers.
type bench struct {
	*WithT
	t         *testing.T
	ctx       context.Context
	env       *environment
	client    client.Client
	namespace string
	pve       *pvesim.Server
	// requestLog is the file of all requests that the controllers sent to Proxmox VE.
	requestLog string
	// log is what the controllers logged.
	log *logBook
	// stop stops the controllers.
	stop      func()
	addresses atomic.Int32
	// misfits are the requests that the test means not to fit Proxmox VE's API schema, by a part of what is wrong with them.
	misfits []string
}

// bootstrapSecret is in the bootstrap data of every machine, as a join token would be.
const bootstrapSecret = "abcdef.0123456789abcdef"

// newBench makes a namespace, a simulated Proxmox VE and controllers that work on them.
func newBench(t *testing.T, options ...pvesim.Option) *bench {
	t.Helper()
	env := apiServer(t)
	b := &bench{WithT: NewWithT(t), t: t, ctx: t.Context(), env: env, client: env.client, pve: pvesim.Run(t, options...), log: &logBook{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	b.Expect(b.client.Create(b.ctx, namespace)).To(Succeed())
	b.namespace = namespace.Name
	b.requestLog = filepath.Join(t.TempDir(), "requests.jsonl")
	if dir := os.Getenv("BENCH_DIR"); dir != "" {
		b.requestLog = filepath.Join(dir, b.namespace+".jsonl")
	}
	t.Cleanup(b.keepsSecrets)
	t.Cleanup(b.fitsSchema)
	b.startControllers()
	return b
}

// startControllers starts the controllers; they stop with the test, or before by stop.
func (b *bench) startControllers() {
	b.t.Helper()
	manager := b.startManager(func(*ctrl.Options) {})
	b.stop = func() {
		manager.stop()
		b.Expect(manager.err).NotTo(HaveOccurred())
	}
	b.t.Cleanup(func() { b.stop() })
}

// managerProcess is what would be a process of its own: it shares nothing with others but Kubernetes and Proxmox VE.
type managerProcess struct {
	// stop ends it, and waits until it has.
	stop func()
	// err is how it ended.
	err error
}

// startManager starts a manager with all controllers; it stops with the test, or before.
func (b *bench) startManager(edit func(*ctrl.Options)) *managerProcess {
	b.t.Helper()
	options := ctrl.Options{
		Scheme: b.env.scheme, Logger: b.log.logger(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	edit(&options)
	mgr, err := ctrl.NewManager(b.env.config, options)
	b.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(b.ctx)
	b.setUp(ctx, mgr)
	process, done := &managerProcess{}, make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	process.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case process.err = <-done:
		case <-time.After(patience):
			b.t.Error("the controllers do not stop")
		}
	})
	b.t.Cleanup(process.stop)
	return process
}

// lateAfter is how long requests whose answer was lost are reckoned with here, and those of managers before this one.
const lateAfter = 20 * time.Second

// setUp adds our controllers, and what stands in for an IPAM provider, to a manager.
func (b *bench) setUp(ctx context.Context, mgr ctrl.Manager) {
	b.t.Helper()
	observer, polling, err := observe.New(observe.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, RequestLog: b.requestLog,
		Logger: b.log.logger(), LateAfter: lateAfter,
	})
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(mgr.Add(polling)).To(Succeed())
	events := controllers.EventRecorder{Recorder: mgr.GetEventRecorder("capve")}
	machines := &controllers.MachineReconciler{
		Client: mgr.GetClient(), Observer: observer, Events: events,
		Actor: act.New(mgr.GetClient(), observer),
	}
	clusters := &controllers.ClusterReconciler{Client: mgr.GetClient(), Observer: observer, Events: events}
	b.Expect(machines.SetupWithManager(ctx, mgr, controllers.SetupOptions{Concurrency: 10})).To(Succeed())
	b.Expect(clusters.SetupWithManager(ctx, mgr, controllers.SetupOptions{Concurrency: 5})).To(Succeed())
	b.Expect(ctrl.NewControllerManagedBy(mgr).Named("pool").For(&ipamv1.IPAddressClaim{}).Complete(&pool{bench: b, client: mgr.GetClient()})).To(Succeed())
}

// pool stands in for an IPAM provider: it gives each claim on the pool `pool`, and on those of clusters, the next address of
// 10.1.0.0/16 or fd00::/64.
type pool struct {
	*bench
	client client.Client
}

func (p *pool) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &ipamv1.IPAddressClaim{}
	if err := p.client.Get(ctx, request.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !claim.DeletionTimestamp.IsZero() { // the in-cluster provider takes the address at once, too
		address := &ipamv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: claim.Namespace}}
		return ctrl.Result{}, client.IgnoreNotFound(p.client.Delete(ctx, address))
	}
	name := claim.Spec.PoolRef.Name
	if name != "pool" && !strings.HasSuffix(name, "-ipv4") && !strings.HasSuffix(name, "-ipv6") || claim.Status.AddressRef.Name != "" {
		return ctrl.Result{}, nil
	}
	number := p.addresses.Add(1)
	address := &ipamv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: claim.Namespace},
		Spec: ipamv1.IPAddressSpec{
			ClaimRef: ipamv1.IPAddressClaimReference{Name: claim.Name}, PoolRef: claim.Spec.PoolRef,
			Address: fmt.Sprintf("10.1.%d.%d", number/200, 10+number%200), Prefix: ptr.To[int32](16), Gateway: "10.1.0.1",
		},
	}
	if strings.HasSuffix(name, "-ipv6") {
		address.Spec.Address, address.Spec.Prefix, address.Spec.Gateway = fmt.Sprintf("fd00::%x", 10+number), ptr.To[int32](64), "fe80::1"
	}
	if err := p.client.Create(ctx, address); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	claim.Status.AddressRef.Name = address.Name
	return ctrl.Result{}, p.client.Status().Update(ctx, claim)
}

// cluster makes a Cluster, as Cluster API's core would leave it, with its ProxmoxCluster and credentials.
func (b *bench) cluster(name string, edit ...func(*v1beta1.ProxmoxCluster)) *v1beta1.ProxmoxCluster {
	b.t.Helper()
	b.create(&corev1.Secret{ObjectMeta: b.meta(name + "-credentials"), StringData: map[string]string{
		"tokenID": b.pve.Token.ID, "tokenSecret": string(b.pve.Token.Secret),
	}})
	owner := &clusterv1.Cluster{
		ObjectMeta: b.meta(name),
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: v1beta1.GroupVersion.Group, Kind: "ProxmoxCluster", Name: name,
		}},
	}
	b.create(owner)
	cluster := &v1beta1.ProxmoxCluster{
		ObjectMeta: b.owned(name, name, owner, clusterv1.GroupVersion.WithKind("Cluster")),
		Spec: v1beta1.ProxmoxClusterSpec{
			ControlPlaneEndpoint: v1beta1.APIEndpoint{Host: "10.1.255.254", Port: 6443},
			Regions: []v1beta1.Region{{
				Name: "home", Endpoints: []string{b.pve.URL}, TLS: v1beta1.RegionTLS{CABundle: b.pve.CAPEM},
				CredentialsRef: v1beta1.SecretReference{Name: name + "-credentials"},
			}},
		},
	}
	for _, change := range edit {
		change(cluster)
	}
	b.create(cluster)
	return cluster
}

// provisioned waits for a ProxmoxCluster and tells its Cluster, as Cluster API's core would.
func (b *bench) provisioned(cluster *v1beta1.ProxmoxCluster) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, cluster)
		g.Expect(ptr.Deref(cluster.Status.Initialization.Provisioned, false)).To(BeTrue(), "%s", pretty(cluster.Status))
	}, patience, poll).Should(Succeed())
	owner := &clusterv1.Cluster{ObjectMeta: b.meta(cluster.Name)}
	b.updateStatus(owner, func() { owner.Status.Initialization.InfrastructureProvisioned = ptr.To(true) })
}

// machine makes a Machine with bootstrap data, as Cluster API's core would leave it, and its ProxmoxMachine.
func (b *bench) machine(cluster, name string, edit ...func(*v1beta1.ProxmoxMachine)) *v1beta1.ProxmoxMachine {
	b.t.Helper()
	b.create(&corev1.Secret{ObjectMeta: b.meta(name + "-bootstrap"), StringData: map[string]string{
		"value": "#cloud-config\nruncmd: [\"kubeadm join --token " + bootstrapSecret + "\"]\n", "format": "cloud-config",
	}})
	owner := &clusterv1.Machine{
		ObjectMeta: b.owned(name, cluster, nil, clusterv1.GroupVersion.WithKind("Cluster")),
		Spec: clusterv1.MachineSpec{
			ClusterName: cluster, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(name + "-bootstrap")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: v1beta1.GroupVersion.Group, Kind: "ProxmoxMachine", Name: name},
		},
	}
	b.create(owner)
	machine := &v1beta1.ProxmoxMachine{
		ObjectMeta: b.owned(name, cluster, owner, clusterv1.GroupVersion.WithKind("Machine")), Spec: machineSpec(),
	}
	for _, change := range edit {
		change(machine)
	}
	b.create(machine)
	return machine
}

// machineSpec is the spec of a small machine.
func machineSpec() v1beta1.ProxmoxMachineSpec {
	return v1beta1.ProxmoxMachineSpec{
		Source: v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "ubuntu-2404-k8s"}},
		CPU:    v1beta1.CPU{Sockets: 1, Cores: 2}, Memory: v1beta1.Memory{SizeMiB: 4096},
		Disks: v1beta1.Disks{Boot: v1beta1.BootDisk{SizeGiB: 20}},
		Network: v1beta1.Network{Devices: []v1beta1.NetworkDevice{{
			Name: "net0", Bridge: "vmbr0", IPv4: v1beta1.IPv4Addressing{AddressSource: v1beta1.AddressSource{PoolRef: v1beta1.IPPoolReference{Name: "pool"}}},
		}}},
	}
}

// hasNode tells a Machine that its Node is there, as Cluster API's core would.
func (b *bench) hasNode(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	owner := &clusterv1.Machine{ObjectMeta: b.meta(machine.Name)}
	b.updateStatus(owner, func() { owner.Status.NodeRef.Name = machine.Name })
}

// running waits until a machine is ready.
func (b *bench) running(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(condition(machine, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionTrue), "%s", pretty(machine.Status))
		g.Expect(machine.Status.Initialization.Provisioned).To(HaveValue(BeTrue())) // it is patched after the conditions
	}, patience, poll).Should(Succeed())
}

// gone waits until an object is gone.
func (b *bench) gone(object client.Object) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		err := b.client.Get(b.ctx, client.ObjectKeyFromObject(object), object)
		object.SetManagedFields(nil)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "still there: %s", pretty(object))
	}, patience, poll).Should(Succeed())
}

func (b *bench) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: b.namespace}
}

func (b *bench) create(object client.Object) {
	b.t.Helper()
	b.Expect(b.client.Create(b.ctx, object)).To(Succeed())
}

func (b *bench) get(g Gomega, object client.Object) {
	b.t.Helper()
	g.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
}

func (b *bench) updateStatus(object client.Object, change func()) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, object)
		change()
		g.Expect(b.client.Status().Update(b.ctx, object)).To(Succeed())
	}, patience, poll).Should(Succeed())
}

// add fails the test when something could not be added to the simulated Proxmox VE.
func (b *bench) add(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// pveVMs are the VMs of the simulated Proxmox VE that are no templates.
func (b *bench) pveVMs() []pvesim.VM {
	var vms []pvesim.VM
	for _, vm := range b.pve.World.VMs() {
		if vm.Config["template"] != "1" {
			vms = append(vms, vm)
		}
	}
	return vms
}

func condition(object interface{ GetConditions() []metav1.Condition }, conditionType string) metav1.ConditionStatus {
	for _, condition := range object.GetConditions() {
		if condition.Type == conditionType {
			return condition.Status
		}
	}
	return ""
}

func pretty(value any) string {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// capiCRDs is the directory of Cluster API's CRDs in the module cache.
func capiCRDs() (string, error) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of Cluster API: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(output)), "core", "config", "crd", "bases")
	_, err = os.Stat(dir)
	return dir, err
}

// ipamCRDs returns the directory of the in-cluster IPAM provider's CRDs.
func ipamCRDs() (string, error) {
	output, err := exec.Command("go", "-C", "../sandbox/ipam", "mod", "download", "-json", "sigs.k8s.io/cluster-api-ipam-provider-in-cluster").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of the in-cluster IPAM provider: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		return "", err
	}
	dir := filepath.Join(module.Dir, "config", "crd", "bases")
	_, err = os.Stat(dir)
	return dir, err
}

// owned is the metadata of an object of a cluster; without an owner it is the Cluster's.
func (b *bench) owned(name, cluster string, owner client.Object, kind schema.GroupVersionKind) metav1.ObjectMeta {
	b.t.Helper()
	if owner == nil {
		object := &clusterv1.Cluster{ObjectMeta: b.meta(cluster)}
		b.get(b, object)
		owner = object
	}
	meta := b.meta(name)
	meta.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	meta.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID(),
	}}
	return meta
}
