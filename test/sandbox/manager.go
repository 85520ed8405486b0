package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/controlplane"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/pki"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/process"
)

const (
	// managerUser is whom our manager logs in as. It has the rights of config/rbac and no others, so that a right that
	// is missing there is missing here too.
	managerUser = "capve-manager"
	// managerGrace is how long a manager may take to end.
	managerGrace = 15 * time.Second
)

// startIPAM starts the in-cluster IPAM provider. Its webhooks are left out: they only validate pools.
func (s *Sandbox) startIPAM(ctx context.Context) error {
	return s.print.Step("start the in-cluster IPAM provider", func(func(string)) error {
		health := address(s.ports.ipamHealth)
		started, err := s.startProcess(process.Command{
			Name: "ipam", Path: s.programs.ipam, Args: []string{
				"--kubeconfig=" + s.Kubeconfig(), "--leader-elect=false", "--webhook-port=0",
				"--health-probe-bind-address=" + health, "--diagnostics-address=0", "--insecure-diagnostics=true",
			},
		}, managerGrace)
		if err != nil {
			return err
		}
		return waitHealthy(ctx, started, health)
	})
}

// startManager starts our manager, the binary that ships, with the rights it ships with.
func (s *Sandbox) startManager(ctx context.Context) error {
	return s.print.Step("start our manager", func(func(string)) error {
		kubeconfig, certificates := s.path("manager.kubeconfig"), s.path("manager-webhooks")
		if err := errors.Join(
			s.grantManager(ctx), s.plane.WriteUserKubeconfig(kubeconfig, managerUser), s.writeWebhookCertificate(certificates),
		); err != nil {
			return err
		}
		health := address(s.ports.managerHealth)
		var env []string
		if s.options.RequestLog != "" {
			env = []string{"PVE_REQUEST_LOG=" + s.options.RequestLog}
		}
		started, err := s.startProcess(process.Command{
			Name: "manager", Path: s.programs.manager, Env: env, Args: []string{
				"--kubeconfig=" + kubeconfig, "--leader-elect=false",
				"--webhook-host=" + controlplane.Loopback, "--webhook-port=" + strconv.Itoa(s.ports.managerWebhooks),
				"--webhook-cert-dir=" + certificates, "--health-addr=" + health,
				"--diagnostics-address=" + address(s.ports.managerDiagnostics), "--insecure-diagnostics=true",
				"--runtime-extension-port=" + strconv.Itoa(s.ports.managerExtension),
			},
		}, managerGrace)
		if err != nil {
			return err
		}
		return waitHealthy(ctx, started, health)
	})
}

// registerExtension has Cluster API ask our manager whether it can update machines in place. What ships has a Service, and the
// CA from cert-manager's Secret.
func (s *Sandbox) registerExtension(ctx context.Context) error {
	return s.print.Step("register our runtime extension", func(func(string)) error {
		config := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "runtime-extension"}}
		config.Spec.ClientConfig = runtimev1.ClientConfig{URL: "https://" + address(s.ports.managerExtension), CABundle: s.authority.PEM()}
		if err := s.client.Create(ctx, config); err != nil {
			return fmt.Errorf("create ExtensionConfig %s: %w", config.Name, err)
		}
		return waitFor(ctx, func(ctx context.Context) error {
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
				return err
			}
			if len(config.Status.Handlers) == 0 {
				return fmt.Errorf("ExtensionConfig %s has no handlers yet: %v", config.Name, config.Status.Conditions)
			}
			return nil
		})
	})
}

// writeWebhookCertificate writes the certificate as controller-runtime's webhook server expects it.
func (s *Sandbox) writeWebhookCertificate(dir string) error {
	pair, err := s.authority.Issue(pki.Subject{CommonName: "capve-webhooks", Hosts: []string{controlplane.Loopback}})
	if err != nil {
		return err
	}
	return pair.WriteFiles(dir, "tls")
}

// grantManager gives the manager's user the ClusterRoles of config/rbac.
func (s *Sandbox) grantManager(ctx context.Context) error {
	for _, name := range []string{"role.yaml", "diagnostics.yaml"} {
		content, err := os.ReadFile(filepath.Join(s.builder.Config(), "rbac", name))
		if err != nil {
			return fmt.Errorf("read the manager's rights: %w", err)
		}
		for document := range strings.SplitSeq("\n"+string(content), "\n---") {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				return fmt.Errorf("parse %s: %w", name, err)
			}
			if role.Kind != "ClusterRole" {
				continue
			}
			if err := s.grant(ctx, role); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sandbox) grant(ctx context.Context, role rbacv1.ClusterRole) error {
	role.Name = "capve-" + role.Name
	if err := s.client.Create(ctx, &role); err != nil {
		return fmt.Errorf("create ClusterRole %s: %w", role.Name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerUser}},
	}
	if err := s.client.Create(ctx, binding); err != nil {
		return fmt.Errorf("create ClusterRoleBinding %s: %w", role.Name, err)
	}
	return nil
}

func address(port int) string { return net.JoinHostPort(controlplane.Loopback, strconv.Itoa(port)) }

// waitHealthy waits until a manager's /readyz answers.
func waitHealthy(ctx context.Context, started *process.Process, health string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client := &http.Client{Timeout: 5 * time.Second}
	return started.WaitReady(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %s", response.Status)
		}
		return nil
	})
}
