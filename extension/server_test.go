package extension_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/extension"
)

// service is a server of the hooks, as Cluster API talks to it.
type service struct {
	*WithT
	ctx     context.Context
	client  *http.Client
	address string
	catalog *runtimecatalog.Catalog
}

// serve runs the server over TLS, as the manager does, with objects that it can read.
func serve(t *testing.T, objects ...client.Object) *service {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	directory, roots := certificate(t)
	port := freePort(t)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:0"}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return reader, nil },
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(extension.SetupWithManager(mgr, extension.Options{
		Host: "127.0.0.1", Port: port, CertDir: directory, CertName: "tls.crt", KeyName: "tls.key",
	})).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		g.Expect(<-done).To(Succeed())
	})
	catalog := runtimecatalog.New()
	g.Expect(runtimehooksv1.AddToCatalog(catalog)).To(Succeed())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &service{
		WithT: g, ctx: t.Context(), catalog: catalog, address: fmt.Sprintf("https://127.0.0.1:%d", port),
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second},
	}
}

// certificate writes a certificate and its key into a directory, and returns who trusts it.
func certificate(t *testing.T) (string, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	directory, roots := t.TempDir(), x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, "tls.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(directory, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory, roots
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// call calls a hook as Cluster API's runtime client does.
func (s *service) call(hook runtimecatalog.Hook, name string, request, response any) {
	gvh, err := s.catalog.GroupVersionHook(hook)
	s.Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(request)
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(func(g Gomega) {
		post, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.address+runtimecatalog.GVHToPath(gvh, name), bytes.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		answer, err := s.client.Do(post)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = answer.Body.Close() }()
		g.Expect(answer.StatusCode).To(Equal(http.StatusOK))
		g.Expect(json.NewDecoder(answer.Body).Decode(response)).To(Succeed())
	}, 30*time.Second, 50*time.Millisecond).Should(Succeed())
}

func TestDiscovery(t *testing.T) {
	s := serve(t)
	response := &runtimehooksv1.DiscoveryResponse{}
	s.call(runtimehooksv1.Discovery, "", &runtimehooksv1.DiscoveryRequest{}, response)
	var names []string
	for _, handler := range response.Handlers {
		names = append(names, handler.Name+" "+handler.RequestHook.Hook)
	}
	slices.Sort(names)
	s.Expect(response.Status).To(Equal(runtimehooksv1.ResponseStatusSuccess))
	s.Expect(names).To(Equal([]string{"can-update-machine CanUpdateMachine", "can-update-machine-set CanUpdateMachineSet", "update-machine UpdateMachine"}))
}

func machine(change ...func(*v1beta1.ProxmoxMachine)) *v1beta1.ProxmoxMachine {
	object := &v1beta1.ProxmoxMachine{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ProxmoxMachine"},
		ObjectMeta: metav1.ObjectMeta{Name: "m1", Namespace: "default", Generation: 2},
		Spec: v1beta1.ProxmoxMachineSpec{
			Source: v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "ubuntu"}},
			CPU:    v1beta1.CPU{Sockets: 1, Cores: 2}, Memory: v1beta1.Memory{SizeMiB: 2048}, Tags: []string{"a"},
			Network: v1beta1.Network{Devices: []v1beta1.NetworkDevice{{Name: "net0", Bridge: "vmbr0"}}},
		},
	}
	for _, change := range change {
		change(object)
	}
	return object
}

func template(change ...func(*v1beta1.ProxmoxMachine)) *v1beta1.ProxmoxMachineTemplate {
	object := &v1beta1.ProxmoxMachineTemplate{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ProxmoxMachineTemplate"}}
	object.Spec.Template.Spec = machine(change...).Spec
	return object
}

// raw is an object as Cluster API sends it.
func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

func easy(m *v1beta1.ProxmoxMachine) {
	m.Spec.Tags, m.Spec.Description = nil, "of the new template"
	m.Spec.HighAvailability = v1beta1.HighAvailability{Enabled: ptr.To(true)}
}

func hard(m *v1beta1.ProxmoxMachine) { m.Spec.CPU.Cores = 8 }

func TestWhatCanBeUpdatedInPlace(t *testing.T) {
	s := serve(t)
	tests := []struct {
		name    string
		change  func(*v1beta1.ProxmoxMachine)
		covered bool
		why     string
	}{
		{name: "nothing", change: func(*v1beta1.ProxmoxMachine) {}, covered: true},
		{name: "what a VM follows", change: easy, covered: true},
		{name: "what takes a restart", change: hard, why: "not in place: cpu.cores"},
		{name: "both", change: func(m *v1beta1.ProxmoxMachine) { easy(m); hard(m) }, why: "not in place: cpu.cores"},
		{name: "what takes another VM", change: func(m *v1beta1.ProxmoxMachine) { m.Spec.Source.Template.Name = "debian" }, why: "not in place: source"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			request := &runtimehooksv1.CanUpdateMachineRequest{}
			request.Current.InfrastructureMachine, request.Desired.InfrastructureMachine = raw(t, machine()), raw(t, machine(test.change))
			response := &runtimehooksv1.CanUpdateMachineResponse{}
			s.call(runtimehooksv1.CanUpdateMachine, "can-update-machine", request, response)
			g.Expect(response.Status).To(Equal(runtimehooksv1.ResponseStatusSuccess))
			g.Expect(response.Message).To(HavePrefix(test.why))
			g.Expect(becomes(g, request.Current.InfrastructureMachine.Raw, request.Desired.InfrastructureMachine.Raw, response.InfrastructureMachinePatch)).To(Equal(test.covered))
			g.Expect(response.MachinePatch.IsDefined() || response.BootstrapConfigPatch.IsDefined()).To(BeFalse(), "they are not ours")

			ofSet := &runtimehooksv1.CanUpdateMachineSetRequest{}
			ofSet.Current.InfrastructureMachineTemplate, ofSet.Desired.InfrastructureMachineTemplate = raw(t, template()), raw(t, template(test.change))
			answer := &runtimehooksv1.CanUpdateMachineSetResponse{}
			s.call(runtimehooksv1.CanUpdateMachineSet, "can-update-machine-set", ofSet, answer)
			g.Expect(answer.Message).To(HavePrefix(test.why))
			g.Expect(becomes(g, ofSet.Current.InfrastructureMachineTemplate.Raw, ofSet.Desired.InfrastructureMachineTemplate.Raw, answer.InfrastructureMachineTemplatePatch)).To(Equal(test.covered))
		})
	}
}

// becomes reports whether the patch makes of one object the other, as Cluster API finds out.
func becomes(g Gomega, current, desired []byte, patch runtimehooksv1.Patch) bool {
	if patch.IsDefined() {
		g.Expect(patch.PatchType).To(Equal(runtimehooksv1.JSONMergePatchType))
		patched, err := jsonpatch.MergePatch(current, patch.Patch)
		g.Expect(err).NotTo(HaveOccurred())
		current = patched
	}
	return jsonpatch.Equal(current, desired)
}

func TestMachinesOfOtherProviders(t *testing.T) {
	s := serve(t)
	other := raw(t, map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ProxmoxMachine", "spec": map[string]any{}})
	request := &runtimehooksv1.CanUpdateMachineRequest{}
	request.Current.InfrastructureMachine, request.Desired.InfrastructureMachine = other, other
	response := &runtimehooksv1.CanUpdateMachineResponse{}
	s.call(runtimehooksv1.CanUpdateMachine, "can-update-machine", request, response)
	s.Expect(response.InfrastructureMachinePatch.IsDefined()).To(BeFalse())
	update := &runtimehooksv1.UpdateMachineRequest{Desired: runtimehooksv1.UpdateMachineRequestObjects{
		Machine: clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, InfrastructureMachine: other,
	}}
	answer := &runtimehooksv1.UpdateMachineResponse{}
	s.call(runtimehooksv1.UpdateMachine, "update-machine", update, answer)
	s.Expect(answer.Status).To(Equal(runtimehooksv1.ResponseStatusFailure))
	s.Expect(answer.Message).To(ContainSubstring("all that this extension updates"))
	broken := runtime.RawExtension{Raw: []byte(`{"apiVersion":"` + v1beta1.GroupVersion.String() + `","kind":"ProxmoxMachine","spec":{"tags":7}}`)}
	request.Current.InfrastructureMachine = broken
	s.call(runtimehooksv1.CanUpdateMachine, "can-update-machine", request, response)
	s.Expect(response.Message).To(Or(BeEmpty(), ContainSubstring("decode")))
}

func TestAnUpdateIsDoneWhenTheVMIsAsTheSpecSays(t *testing.T) {
	set := func(name string, status metav1.ConditionStatus, reason, message string, generation int64) func(*v1beta1.ProxmoxMachine) {
		return func(m *v1beta1.ProxmoxMachine) {
			conditions.Set(m, metav1.Condition{Type: name, Status: status, Reason: reason, Message: message})
			for i := range m.Status.Conditions {
				if m.Status.Conditions[i].Type == name {
					m.Status.Conditions[i].ObservedGeneration = generation
				}
			}
		}
	}
	runs := set(v1beta1.VirtualMachineReadyCondition, metav1.ConditionTrue, "Running", "", 2)
	isAsAsked := set(v1beta1.ConfigurationUpToDateCondition, metav1.ConditionTrue, "UpToDate", "", 2)
	tests := []struct {
		name   string
		state  []func(*v1beta1.ProxmoxMachine)
		waits  string
		behind bool
	}{
		{name: "done", state: []func(*v1beta1.ProxmoxMachine){runs, isAsAsked}},
		{name: "nothing is known", waits: "was not looked at yet"},
		{name: "the new spec was not seen", state: []func(*v1beta1.ProxmoxMachine){runs, isAsAsked}, behind: true, waits: "not seen with its new spec"},
		{
			name:  "the look was at the old spec",
			state: []func(*v1beta1.ProxmoxMachine){runs, set(v1beta1.ConfigurationUpToDateCondition, metav1.ConditionTrue, "UpToDate", "", 1)}, waits: "was not looked at yet (ConfigurationUpToDate)",
		},
		{
			name:  "it is being changed",
			state: []func(*v1beta1.ProxmoxMachine){runs, set(v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Configuring", "changing tags", 2)}, waits: "changing tags",
		},
		{
			name:  "somebody else changed it",
			state: []func(*v1beta1.ProxmoxMachine){runs, set(v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Drifted", "cores", 2)},
		},
		{
			name:  "the HA manager was not told",
			state: []func(*v1beta1.ProxmoxMachine){runs, isAsAsked, set(v1beta1.HighAvailabilityUpToDateCondition, metav1.ConditionFalse, "Forbidden", "Sys.Console", 2)}, waits: "Sys.Console",
		},
		{
			name:  "it is off, as asked",
			state: []func(*v1beta1.ProxmoxMachine){set(v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff", "", 2), isAsAsked},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			present := machine(test.state...)
			desired := machine(func(m *v1beta1.ProxmoxMachine) {
				if test.behind {
					m.Spec.Tags = []string{"b"}
				}
			})
			s := serve(t, present)
			request := &runtimehooksv1.UpdateMachineRequest{}
			request.Desired.InfrastructureMachine = raw(t, desired)
			response := &runtimehooksv1.UpdateMachineResponse{}
			s.call(runtimehooksv1.UpdateMachine, "update-machine", request, response)
			s.Expect(response.Status).To(Equal(runtimehooksv1.ResponseStatusSuccess), response.Message)
			s.Expect(response.RetryAfterSeconds > 0).To(Equal(test.waits != ""))
			s.Expect(strings.Contains(response.Message, test.waits)).To(BeTrue(), response.Message)
		})
	}
}

func TestAnUpdateOfAMachineThatIsGone(t *testing.T) {
	s := serve(t)
	request := &runtimehooksv1.UpdateMachineRequest{}
	request.Desired.InfrastructureMachine = raw(t, machine())
	response := &runtimehooksv1.UpdateMachineResponse{}
	s.call(runtimehooksv1.UpdateMachine, "update-machine", request, response)
	s.Expect(response.Status).To(Equal(runtimehooksv1.ResponseStatusFailure))
	s.Expect(response.Message).To(ContainSubstring("get ProxmoxMachine m1"))
}
