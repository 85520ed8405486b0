package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// logBook keeps what is logged.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBook) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text.WriteString(time.Now().Format("05.000 ") + prefix + " " + args + "\n")
	}, funcr.Options{Verbosity: 4}) // at 5, controller-runtime logs its queues while it changes them, which is a race
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// keepsSecrets checks, at the end of every test, that no secret is in what others read, and that nothing crashed.
func (b *bench) keepsSecrets() {
	ctx := context.WithoutCancel(b.ctx)
	var texts []string
	for _, list := range []client.ObjectList{
		&v1beta1.ProxmoxClusterList{}, &v1beta1.ProxmoxMachineList{}, &eventsv1.EventList{}, &corev1.EventList{},
	} {
		b.Expect(b.client.List(ctx, list, client.InNamespace(b.namespace))).To(Succeed())
		texts = append(texts, pretty(list))
	}
	requests, err := os.ReadFile(b.requestLog)
	b.Expect(err == nil || os.IsNotExist(err)).To(BeTrue())
	text := strings.Join(append(texts, string(requests), b.log.String()), "\n")
	for _, secret := range []string{string(b.pve.Token.Secret), bootstrapSecret} {
		b.Expect(strings.Contains(text, secret)).To(BeFalse(), "a secret is in a condition, an event, a request log or the log")
	}
	b.Expect(strings.Contains(b.log.String(), "panic")).To(BeFalse(), "a reconciler panicked: %s", b.log)
	if b.t.Failed() && os.Getenv("BENCH_DIR") != "" {
		_ = os.WriteFile(strings.TrimSuffix(b.requestLog, "jsonl")+"log", []byte(b.log.String()), 0o600)
	}
}

// says waits until a condition has a status and a reason, and its message all the parts.
func (b *bench) says(object conditioned, conditionType string, status metav1.ConditionStatus, reason string, parts ...string) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, object)
		condition := conditions.Get(object, conditionType)
		g.Expect(condition).NotTo(BeNil(), "%s", pretty(object.GetConditions()))
		g.Expect([]any{condition.Status, condition.Reason}).To(Equal([]any{status, reason}), "%s", pretty(object.GetConditions()))
		for _, part := range parts {
			g.Expect(condition.Message).To(ContainSubstring(part))
		}
	}, patience, poll).Should(Succeed())
}

type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
}

// quiet waits until an object does not change any more, so that nothing but a watch or a timer brings it further.
func (b *bench) quiet(object client.Object) {
	b.t.Helper()
	version, since := "", time.Now()
	b.Eventually(func() time.Duration {
		b.get(b, object)
		if object.GetResourceVersion() != version {
			version, since = object.GetResourceVersion(), time.Now()
		}
		return time.Since(since)
	}, patience, poll).Should(BeNumerically(">", 2*time.Second))
}

// change updates an object.
func (b *bench) change(object client.Object, change func()) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, object)
		change()
		g.Expect(b.client.Update(b.ctx, object)).To(Succeed())
	}, patience, poll).Should(Succeed())
}

// delete deletes an object and waits until it is gone.
func (b *bench) delete(object client.Object) {
	b.t.Helper()
	b.Expect(b.client.Delete(b.ctx, object)).To(Succeed())
	b.gone(object)
}

// atEachStep calls back each time that the machine is at a step it was not at before, until it is ready.
func (b *bench) atEachStep(machine *v1beta1.ProxmoxMachine, do func(reason string)) {
	b.t.Helper()
	seen := map[string]bool{}
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		condition := conditions.Get(machine, v1beta1.VirtualMachineReadyCondition)
		if condition != nil && !seen[condition.Reason] {
			seen[condition.Reason] = true
			do(condition.Reason)
		}
		g.Expect(conditions.IsTrue(machine, clusterv1.ReadyCondition)).To(BeTrue(), "%s", pretty(machine.Status))
	}, patience, poll/5).Should(Succeed())
}

// wipeStatus forgets all that the status of a machine says.
func (b *bench) wipeStatus(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.Expect(b.client.Status().Patch(b.ctx, machine, client.RawPatch("application/merge-patch+json", []byte(`{"status":null}`)))).To(Succeed())
}

// vmOf is the VM of a machine.
func (b *bench) vmOf(machine *v1beta1.ProxmoxMachine) pvesim.VM {
	b.t.Helper()
	for _, vm := range b.pveVMs() {
		if uuid := machine.Spec.Reservation.UUID; uuid != "" && strings.Contains(vm.Config["smbios1"], uuid) {
			return vm
		}
	}
	b.t.Fatalf("no VM has the UUID of %s: %s", machine.Name, pretty(b.pveVMs()))
	return pvesim.VM{}
}

// leavesNothing checks that Proxmox VE is as it was before, once its tasks are done.
func (b *bench) leavesNothing() {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		g.Expect(b.pveVMs()).To(BeEmpty())
		g.Expect(b.pve.World.Check()).To(BeEmpty())
	}, patience, poll).Should(Succeed())
}

// ask sends a request to Proxmox VE past the controllers, as an administrator would, and waits for its task.
func (b *bench) ask(method, path string, form url.Values) {
	b.t.Helper()
	target := b.pve.URL + "/api2/json" + path
	var body *strings.Reader
	if body = strings.NewReader(form.Encode()); method == http.MethodDelete {
		target, body = target+"?"+form.Encode(), strings.NewReader("")
	}
	request, err := http.NewRequestWithContext(b.ctx, method, target, body)
	b.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := b.pve.Client().Do(request)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(answer.Body.Close()).To(Succeed())
	b.Expect(answer.StatusCode).To(Equal(http.StatusOK), "%s %s: %s", method, path, answer.Status)
	b.Eventually(b.pve.World.RunningTasks, patience, poll).Should(BeZero())
}

// requests reads what the controllers sent to Proxmox VE so far.
func (b *bench) requests() []pve.RequestRecord {
	b.t.Helper()
	file, err := os.Open(b.requestLog)
	if os.IsNotExist(err) {
		return nil
	}
	b.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	var records []pve.RequestRecord
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var record pve.RequestRecord
		b.Expect(json.Unmarshal(lines.Bytes(), &record)).To(Succeed())
		records = append(records, record)
	}
	b.Expect(lines.Err()).NotTo(HaveOccurred())
	return records
}

// writes are the requests that change something.
func writes(records []pve.RequestRecord) []string {
	var result []string
	for _, record := range records {
		if record.Method != http.MethodGet {
			result = append(result, record.Method+" "+record.Path)
		}
	}
	return result
}

// own are the requests that are made for one machine: all but those that machines share.
func own(records []pve.RequestRecord) []string {
	var result []string
	for _, record := range records {
		if !slices.Contains(sharedEndpoints(), endpoint(record)) {
			result = append(result, record.Method+" "+record.Path)
		}
	}
	return result
}
