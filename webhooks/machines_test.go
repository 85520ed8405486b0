package webhooks

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
