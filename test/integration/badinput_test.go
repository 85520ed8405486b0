package integration_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// badCluster is something that keeps a cluster from becoming ready, what is said about it, and its cure.
type badCluster struct {
	name      string
	edit      func(*bench, *v1beta1.ProxmoxCluster)
	condition string
	reason    string
	message   []string
	cure      func(*bench, *v1beta1.ProxmoxCluster)
}

func TestBadClusters(t *testing.T) {
	t.Parallel()
	for _, row := range badClusters() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { row.edit(b, c) })
			b.says(cluster, row.condition, metav1.ConditionFalse, row.reason, row.message...)
			b.says(cluster, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
			b.Expect(cluster.Status.Initialization.Provisioned).To(BeNil())
			given := b.cluster("c2", func(c *v1beta1.ProxmoxCluster) { row.edit(b, c) })
			b.says(given, row.condition, metav1.ConditionFalse, row.reason)
			b.delete(given)
			row.cure(b, cluster)
			b.provisioned(cluster)
			b.says(cluster, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
			b.delete(cluster)
		})
	}
}

func badClusters() []badCluster {
	const available, refused = v1beta1.ProxmoxAvailableCondition, v1beta1.CredentialsRefusedReason
	return []badCluster{
		{
			"unreachable", func(b *bench, c *v1beta1.ProxmoxCluster) {
				c.Spec.Regions[0].Endpoints = []string{"https://127.0.0.1:1"}
			},
			available, v1beta1.UnreachableReason,
			[]string{"127.0.0.1:1", "spec.regions[].endpoints"},
			func(b *bench, c *v1beta1.ProxmoxCluster) {
				b.change(c, func() { c.Spec.Regions[0].Endpoints = []string{b.pve.URL} })
			},
		},
		{
			"down for a while", func(b *bench, _ *v1beta1.ProxmoxCluster) { b.pve.World.StopNode("pve1") },
			available, v1beta1.UnreachableReason,
			[]string{"spec.regions[].endpoints", "that Proxmox VE runs"},
			func(b *bench, _ *v1beta1.ProxmoxCluster) { b.pve.World.StartNode("pve1") },
		},
		{
			"untrusted", func(_ *bench, c *v1beta1.ProxmoxCluster) { c.Spec.Regions[0].TLS = v1beta1.RegionTLS{} },
			available, v1beta1.UnreachableReason,
			[]string{"certificate", "spec.regions[].tls.caBundle or fingerprints"},
			func(b *bench, c *v1beta1.ProxmoxCluster) {
				b.change(c, func() { c.Spec.Regions[0].TLS.CABundle = b.pve.CAPEM })
			},
		},
		{
			"another fingerprint", func(_ *bench, c *v1beta1.ProxmoxCluster) {
				c.Spec.Regions[0].TLS = v1beta1.RegionTLS{Fingerprints: []string{fingerprint("0F")}}
			},
			available, v1beta1.UnreachableReason,
			[]string{"fingerprint", "spec.regions[].tls.caBundle or fingerprints"},
			func(b *bench, c *v1beta1.ProxmoxCluster) {
				b.change(c, func() { c.Spec.Regions[0].TLS.Fingerprints = []string{b.fingerprint()} })
			},
		},
		{
			"bad token", func(b *bench, _ *v1beta1.ProxmoxCluster) {
				b.credentials(map[string]string{"tokenSecret": wrongSecret})
			},
			available, refused,
			[]string{"region", "credentials Secret"},
			mendCredentials,
		},
		{
			"no such user", func(b *bench, _ *v1beta1.ProxmoxCluster) { b.credentials(map[string]string{"tokenID": "nobody@pve!x"}) },
			available, refused,
			[]string{"credentials Secret"},
			mendCredentials,
		},
		{
			"token that is none", func(b *bench, _ *v1beta1.ProxmoxCluster) { b.credentials(map[string]string{"tokenID": "root@pam"}) },
			available, v1beta1.InvalidRegionReason,
			[]string{"home", "user@realm!name", "Secret c1-credentials"},
			mendCredentials,
		},
		{
			"credentials without a key", func(b *bench, _ *v1beta1.ProxmoxCluster) { b.credentials(map[string]string{"tokenSecret": ""}) },
			available, v1beta1.CredentialsNotFoundReason,
			[]string{"home", "c1-credentials", "tokenID and tokenSecret"},
			mendCredentials,
		},
		{
			"no credentials", func(b *bench, c *v1beta1.ProxmoxCluster) { c.Spec.Regions[0].CredentialsRef.Name = "later" },
			available, v1beta1.CredentialsNotFoundReason,
			[]string{"home", "/later of spec.regions[].credentialsRef does not exist", "create it"},
			func(b *bench, _ *v1beta1.ProxmoxCluster) {
				b.create(&corev1.Secret{ObjectMeta: b.meta("later"), StringData: b.token()})
			},
		},
		{
			"unknown node in a zone", func(_ *bench, c *v1beta1.ProxmoxCluster) {
				c.Spec.Regions[0].Zones = []v1beta1.Zone{{Name: "a", Nodes: []string{"pve1", "pve9"}}}
			},
			v1beta1.ZonesValidCondition, v1beta1.UnknownNodeReason,
			[]string{`spec.regions[home].zones[a].nodes`, `no node "pve9"`, "it has pve1, pve2, pve3"},
			func(b *bench, c *v1beta1.ProxmoxCluster) {
				b.change(c, func() { c.Spec.Regions[0].Zones[0].Nodes = []string{"pve1"} })
			},
		},
		{
			"no endpoint", func(_ *bench, c *v1beta1.ProxmoxCluster) { c.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{} },
			v1beta1.ControlPlaneEndpointSetCondition, v1beta1.WaitingForEndpointReason,
			[]string{"no control plane endpoint", "set spec.controlPlaneEndpoint"},
			func(b *bench, c *v1beta1.ProxmoxCluster) {
				b.change(c, func() { c.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{Host: "cp.example.com", Port: 6443} })
			},
		},
	}
}

// wrongSecret looks like a token's secret.
const wrongSecret = "00000000-1111-2222-3333-444444444444"

func (b *bench) token() map[string]string {
	return map[string]string{"tokenID": b.pve.Token.ID, "tokenSecret": string(b.pve.Token.Secret)}
}

// credentials changes keys of the credentials of every cluster; an empty value takes one away.
func (b *bench) credentials(changes map[string]string) {
	b.t.Helper()
	secrets := &corev1.SecretList{}
	b.Expect(b.client.List(b.ctx, secrets, client.InNamespace(b.namespace))).To(Succeed())
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if !strings.HasSuffix(secret.Name, "-credentials") {
			continue
		}
		for key, value := range changes {
			if secret.Data[key] = []byte(value); value == "" {
				delete(secret.Data, key)
			}
		}
		b.Expect(b.client.Update(b.ctx, secret)).To(Succeed())
	}
}

func mendCredentials(b *bench, _ *v1beta1.ProxmoxCluster) { b.credentials(b.token()) }

// fingerprint is that of the simulator's certificate.
func (b *bench) fingerprint() string {
	request, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.pve.URL+"/api2/json/version", nil)
	b.Expect(err).NotTo(HaveOccurred())
	answer, err := b.pve.Client().Do(request)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(answer.Body.Close()).To(Succeed())
	sum := sha256.Sum256(answer.TLS.PeerCertificates[0].Raw)
	octets := make([]string, len(sum))
	for i, octet := range sum {
		octets[i] = fmt.Sprintf("%02X", octet)
	}
	return strings.Join(octets, ":")
}

// badMachine is something that keeps a machine from running, what is said about it, and its cure.
type badMachine struct {
	name    string
	options []pvesim.Option
	edit    func(*bench, *v1beta1.ProxmoxMachine)
	reason  string
	message []string
	// cure makes the machine run after all; nil when only another machine helps.
	cure func(*bench, *v1beta1.ProxmoxMachine)
}

func TestBadMachines(t *testing.T) {
	t.Parallel()
	for _, row := range badMachines() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.options...)
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { row.edit(b, m) })
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, row.reason, row.message...)
			b.says(machine, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
			b.Expect(machine.Spec.ProviderID).To(BeEmpty())
			if row.cure != nil {
				b.quiet(machine)
				row.cure(b, machine)
				b.running(machine)
			}
			b.delete(machine)
			b.leavesNothing()
		})
	}
}

func badMachines() []badMachine {
	template := func(change func(*v1beta1.TemplateSource)) func(*bench, *v1beta1.ProxmoxMachine) {
		return func(_ *bench, m *v1beta1.ProxmoxMachine) { change(&m.Spec.Source.Template) }
	}
	add := func(spec pvesim.TemplateSpec) func(*bench, *v1beta1.ProxmoxMachine) {
		return func(b *bench, _ *v1beta1.ProxmoxMachine) {
			_, err := b.pve.World.AddTemplate(spec)
			b.Expect(err).NotTo(HaveOccurred())
		}
	}
	return []badMachine{
		{
			"no template of that name", nil, template(func(s *v1beta1.TemplateSource) { s.Name = "debian-13" }),
			"WaitingForCapacity",
			[]string{`no template that has the name "debian-13"`, "make one", "VM.Clone"},
			add(pvesim.TemplateSpec{Name: "debian-13", FirstVMID: 9100}),
		},
		{
			"no template with those tags", nil, template(func(s *v1beta1.TemplateSource) { s.Name, s.Tags = "", []string{"kubernetes", "v1.36"} }),
			"WaitingForCapacity",
			[]string{"no template that has the tags kubernetes, v1.36", "make one"},
			add(pvesim.TemplateSpec{Name: "other", Tags: []string{"v1.36", "kubernetes"}, FirstVMID: 9100}),
		},
		{
			"two templates of one name",
			[]pvesim.Option{pvesim.WithTemplates(
				pvesim.TemplateSpec{Name: "ubuntu-2404-k8s"}, pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", FirstVMID: 9100})},
			func(*bench, *v1beta1.ProxmoxMachine) {},
			"WaitingForCapacity",
			[]string{`templates 9001 and 9100 on the node all have the name "ubuntu-2404-k8s": rename all but one`},
			func(b *bench, _ *v1beta1.ProxmoxMachine) { b.ask(http.MethodDelete, "/nodes/pve1/qemu/9100", nil) },
		},
		{
			"unknown pool", nil, func(_ *bench, m *v1beta1.ProxmoxMachine) { m.Spec.Pool = "later" },
			"WaitingForCapacity",
			[]string{"pve1, pve2, pve3: pool later, which spec.pool names, does not exist: make it"},
			func(b *bench, _ *v1beta1.ProxmoxMachine) { b.pve.World.AddPool(pvesim.PoolSpec{ID: "later"}) },
		},
		{
			"unknown storage", nil, template(func(s *v1beta1.TemplateSource) { s.Storage = "later" }),
			"WaitingForCapacity",
			[]string{"storage later is not there, cannot be seen (Datastore.Audit) or does not take images"},
			func(b *bench, _ *v1beta1.ProxmoxMachine) {
				b.add(b.pve.World.AddStorage(pvesim.StorageSpec{ID: "later", Type: "nfs", Content: []string{"images"}}))
			},
		},
		{
			"storage that is full", nil, func(b *bench, m *v1beta1.ProxmoxMachine) {
				b.add(b.pve.World.AddStorage(pvesim.StorageSpec{ID: "tiny", Type: "nfs", Content: []string{"images"}, Total: proxmox.GiB(1).Bytes()}))
				m.Spec.Source.Template.Storage = "tiny"
			},
			"TaskFailed",
			[]string{"cloning the template failed", "it is tried again"},
			nil,
		},
		{
			"unknown storage for the seed", nil, func(_ *bench, m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "later" },
			"WaitingForCapacity",
			[]string{"later", "ISO"},
			func(b *bench, _ *v1beta1.ProxmoxMachine) {
				b.add(b.pve.World.AddStorage(pvesim.StorageSpec{ID: "later", Type: "nfs", Content: []string{"iso"}}))
			},
		},
		{
			"unknown allowed node", nil, func(_ *bench, m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{"pve4"} },
			"WaitingForCapacity",
			[]string{"3 hosts refused", "not in placement.allowedNodes"},
			nil,
		},
		{
			"more memory than any host has", nil, func(_ *bench, m *v1beta1.ProxmoxMachine) { m.Spec.Memory.SizeMiB = 1 << 20 },
			"WaitingForCapacity",
			[]string{"pve1, pve2, pve3: 131072 MiB of memory free of 1048576 asked"},
			nil,
		},
		{
			"empty address pool", nil, func(_ *bench, m *v1beta1.ProxmoxMachine) { m.Spec.Network.Devices[0].IPv4.PoolRef.Name = "empty" },
			"WaitingForAddresses",
			[]string{"IPAddressClaim m1-net0-ipv4 has no address from InClusterIPPool empty yet", "does the pool exist, and has it a free address?"},
			func(b *bench, m *v1beta1.ProxmoxMachine) { b.bind(m, "10.1.0.99") },
		},
		{
			"no bootstrap Secret", nil, func(b *bench, _ *v1beta1.ProxmoxMachine) {
				b.Expect(b.client.Delete(b.ctx, b.bootstrap())).To(Succeed())
			},
			"WaitingForBootstrapData",
			[]string{"Secret m1-bootstrap", "does not exist", "Delete the Machine"},
			func(b *bench, _ *v1beta1.ProxmoxMachine) {
				secret := b.bootstrap()
				secret.StringData = map[string]string{"value": "#cloud-config\n"}
				b.create(secret)
			},
		},
		{
			"empty bootstrap Secret", nil, func(b *bench, _ *v1beta1.ProxmoxMachine) { b.setBootstrap("value", "") },
			"WaitingForBootstrapData",
			[]string{"Secret m1-bootstrap", `no key "value"`},
			func(b *bench, _ *v1beta1.ProxmoxMachine) { b.setBootstrap("value", "#cloud-config\n") },
		},
		{
			"bootstrap data for another system", nil, func(b *bench, _ *v1beta1.ProxmoxMachine) { b.setBootstrap("format", "ignition") },
			"WaitingForBootstrapData",
			[]string{"Secret m1-bootstrap", `format "ignition"`, "use format cloud-config"},
			func(b *bench, _ *v1beta1.ProxmoxMachine) { b.setBootstrap("format", "cloud-config") },
		},
		{
			"token without rights", nil, func(b *bench, _ *v1beta1.ProxmoxMachine) {
				weak := b.pve.World.AddToken(pvesim.TokenSpec{User: "weak@pve", Name: "capve", Privileges: map[string][]string{
					"/": {"VM.Audit", "Sys.Audit", "Datastore.Audit", "Datastore.AllocateTemplate", "SDN.Use"},
				}})
				b.credentials(map[string]string{"tokenID": weak.ID, "tokenSecret": string(weak.Secret)})
			},
			"Forbidden",
			[]string{"VM.Clone", "grant"},
			mendMachineCredentials,
		},
	}
}

func mendMachineCredentials(b *bench, _ *v1beta1.ProxmoxMachine) { b.credentials(b.token()) }

func (b *bench) bootstrap() *corev1.Secret { return &corev1.Secret{ObjectMeta: b.meta("m1-bootstrap")} }

func (b *bench) setBootstrap(key, value string) {
	secret := b.bootstrap()
	b.change(secret, func() { secret.Data[key] = []byte(value) })
}

// bind gives the one claim of a machine an address, as an IPAM provider would: the address first.
func (b *bench) bind(machine *v1beta1.ProxmoxMachine, address string) {
	b.t.Helper()
	claim := &ipamv1.IPAddressClaim{ObjectMeta: b.meta(machine.Name + "-net0-ipv4")}
	b.get(b, claim)
	b.create(&ipamv1.IPAddress{ObjectMeta: b.meta(claim.Name), Spec: ipamv1.IPAddressSpec{
		ClaimRef: ipamv1.IPAddressClaimReference{Name: claim.Name}, PoolRef: claim.Spec.PoolRef,
		Address: address, Prefix: ptr.To[int32](16), Gateway: "10.1.0.1",
	}})
	b.updateStatus(claim, func() { claim.Status.AddressRef.Name = claim.Name })
}

func TestAddressesThatCannotBeAMachines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	for i, row := range []struct{ address, message string }{
		{"10.1.0.1", "10.1.0.1 is the gateway's own address: exclude it from pool empty"},
		{"10.1.0.0", "10.1.0.0 stands for the network 10.1.0.0/16: exclude it from pool empty"},
		{"10.1.255.255", "10.1.255.255 is the broadcast address of 10.1.0.0/16: exclude it from pool empty"},
		{"2001:db8::1", "2001:db8::1 is not an ipv4 address: check the family of pool empty"},
	} {
		machine := b.machine("c1", fmt.Sprintf("m%d", i), func(m *v1beta1.ProxmoxMachine) { m.Spec.Network.Devices[0].IPv4.PoolRef.Name = "empty" })
		b.says(machine, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, "WaitingForAddresses", "no address from InClusterIPPool empty yet")
		b.bind(machine, row.address)
		b.says(machine, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, "InvalidAddress", row.message)
		b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "InvalidAddress", row.message)
		b.delete(machine)
	}
	b.Expect(writes(b.requests())).To(BeEmpty())
}

// TestCapacityThatIsFreedIsUsed fills the one host, and deletes what fills it.
func TestCapacityThatIsFreedIsUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 1, Memory: 6144, Speed: 100}))
	b.provisioned(b.cluster("c1"))
	first := b.machine("c1", "m1")
	b.running(first)
	second := b.machine("c1", "m2")
	b.says(second, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForCapacity", "pve1: 2048 MiB of memory free of 4096 asked")
	b.Expect(b.pveVMs()).To(HaveLen(1))
	b.delete(first)
	b.running(second)
	b.delete(second)
	b.leavesNothing()
}

// TestProxmoxGoesAwayAndComesBack takes the credentials of a machine that runs away, and has it deleted meanwhile.
func TestProxmoxGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.credentials(map[string]string{"tokenSecret": wrongSecret})
	b.change(machine, func() { machine.Labels["look"] = "again" })
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionUnknown, v1beta1.CredentialsRefusedReason, "credentials Secret")
	b.Expect(machine.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.says(machine, clusterv1.DeletingCondition, metav1.ConditionTrue, v1beta1.CredentialsRefusedReason, "credentials Secret")
	b.credentials(b.token())
	b.gone(machine)
	b.leavesNothing()
}
