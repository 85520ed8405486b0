package webhooks

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// TestWhatIsWrongAlreadyMayStay has what was wrong before an update, of an object that was made before there was a check for it,
// stand in the way of nothing else.
func TestWhatIsWrongAlreadyMayStay(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	old := &v1beta1.ProxmoxMachine{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: v1beta1.ProxmoxMachineSpec{CPU: v1beta1.CPU{Sockets: 1, Cores: 2, VCPUs: 3}}}
	validator := machineValidator{}
	_, err := validator.ValidateCreate(t.Context(), old)
	g.Expect(err).To(MatchError(ContainSubstring("spec.cpu.vcpus: Invalid value: 3: vcpus must not be more than sockets times cores")))

	reserved := old.DeepCopy()
	reserved.Spec.Reservation.UUID = "01234567-89ab-cdef-0123-456789abcdef"
	_, err = validator.ValidateUpdate(t.Context(), old, reserved)
	g.Expect(err).NotTo(HaveOccurred(), "the provider writes its reservation")

	worse := old.DeepCopy()
	worse.Spec.CPU.VCPUs = 4
	_, err = validator.ValidateUpdate(t.Context(), old, worse)
	g.Expect(err).To(MatchError(ContainSubstring("spec.cpu.vcpus: Invalid value: 4")))
}

// TestWhatIsWrongWithATemplateMayStay has a template, with labels that cannot be and more vCPUs than CPUs, take an owner.
func TestWhatIsWrongWithATemplateMayStay(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	old := &v1beta1.ProxmoxMachineTemplate{}
	old.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "not a value"}
	old.Spec.Template.Spec.CPU = v1beta1.CPU{Sockets: 1, Cores: 2, VCPUs: 3}
	validator := machineTemplates()
	_, err := validator.ValidateCreate(t.Context(), old)
	g.Expect(err).To(MatchError(And(ContainSubstring("spec.template.metadata.labels"), ContainSubstring("spec.template.spec.cpu.vcpus"))))

	ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update}})
	owned := old.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "Cluster", Name: "c1"}}
	_, err = validator.ValidateUpdate(ctx, old, owned)
	g.Expect(err).NotTo(HaveOccurred())

	owned.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "another value"}
	_, err = validator.ValidateUpdate(ctx, old, owned)
	g.Expect(err).To(MatchError(ContainSubstring("another value")))
}
