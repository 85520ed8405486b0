package cloudinit_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// bootstrapData is what a kubeadm bootstrap provider makes, cut down: a template that refers to the instance-id.
const bootstrapData = `## template: jinja
#cloud-config
write_files:
- path: /run/kubeadm/kubeadm-join-config.yaml
  owner: root:root
  permissions: '0640'
  content: |
    nodeRegistration:
      kubeletExtraArgs:
      - name: provider-id
        value: proxmox://{{ ds.meta_data.instance_id }}
runcmd:
- kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml
`

// run runs the real cloud-init, and skips the test where there is none.
func run(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("cloud-init")
	if err != nil {
		t.Skip("cloud-init is not installed: `apt-get install cloud-init` to have it judge the seeds")
	}
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("cloud-init %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCloudInitRendersTheInstanceIDIntoUserData(t *testing.T) {
	seed, err := cloudinit.NewSeed("worker-1", uuid, network.Config{}, bootstrapData)
	if err != nil {
		t.Fatal(err)
	}
	rendered := renderedBy(t, seed)
	if want := "value: proxmox://" + string(uuid); !strings.Contains(rendered, want) {
		t.Errorf("user-data lacks %q:\n%s", want, rendered)
	}
	verdict := run(t, "schema", "--config-file", write(t, "cloud-config", []byte(rendered)))
	if !strings.Contains(verdict, "Valid") {
		t.Errorf("cloud-init says of the user-data: %s", verdict)
	}
}

// renderedBy has cloud-init render the user-data of a seed with its meta-data.
func renderedBy(t *testing.T, seed cloudinit.Seed) string {
	t.Helper()
	var meta map[string]string
	if err := yaml.Unmarshal([]byte(seed.MetaData), &meta); err != nil {
		t.Fatal(err)
	}
	instance, err := json.Marshal(map[string]any{"ds": map[string]any{"meta_data": map[string]string{"instance_id": meta["instance-id"]}}})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, "devel", "render", "--instance-data", write(t, "instance-data.json", instance), write(t, "user-data", []byte(seed.UserData)))
}
