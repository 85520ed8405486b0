package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// parsed parses the flags of up.
func parsed(t *testing.T, args ...string) *upFlags {
	t.Helper()
	t.Setenv(tokenVariable, "")
	var flags upFlags
	command := &cobra.Command{Use: "up"}
	flags.register(command)
	if err := command.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return &flags
}

func TestDefaults(t *testing.T) {
	options, cluster, err := parsed(t).options()
	if err != nil {
		t.Fatal(err)
	}
	if options.Remote != nil || options.Speed != 1 || options.PVEVersion != "9.2" {
		t.Errorf("got %+v", options)
	}
	if cluster.ControlPlaneReplicas != 1 || cluster.WorkerReplicas != 0 || cluster.Host != "" {
		t.Errorf("got %+v", cluster)
	}
}

func TestRealProxmox(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	options, cluster, err := parsed(t, "--pve-url=https://pve1:8006", "--pve-token=capi@pve!t1=s3cret", "--pve-ca="+ca,
		"--endpoint=[fd00::5]:6443", "--template-tags=a,b", "--bridge=vmbr7").options()
	if err != nil {
		t.Fatal(err)
	}
	remote := options.Remote
	if remote.URL.String() != "https://pve1:8006" || remote.TokenID != "capi@pve!t1" || string(remote.TokenSecret) != "s3cret" || string(remote.Authority) != "PEM" {
		t.Errorf("got %+v", remote)
	}
	if cluster.Host != "fd00::5" || cluster.Port != 6443 || fmt.Sprint(cluster.Tags) != "[a b]" || cluster.Bridge != "vmbr7" {
		t.Errorf("got %+v", cluster)
	}
}

func TestTokenFromTheEnvironment(t *testing.T) {
	flags := parsed(t, "--pve-url=https://pve1:8006")
	t.Setenv(tokenVariable, "capi@pve!t1=s3cret")
	remote, err := flags.remote()
	if err != nil || string(remote.TokenSecret) != "s3cret" {
		t.Errorf("got %+v, %v", remote, err)
	}
}

func TestBadFlags(t *testing.T) {
	token := "--pve-token=capi@pve!t1=s3cret"
	for flag, args := range map[string][]string{
		"--pve-version":       {"--pve-version=7"},
		"--speed":             {"--speed=0"},
		"--pve-url":           {"--pve-url=http://pve1:8006", token},
		"--pve-url: \"pve1\"": {"--pve-url=pve1", token},
		"--pve-token":         {"--pve-url=https://pve1:8006"},
		"--pve-token: give":   {"--pve-url=https://pve1:8006", "--pve-token=root@pam=secret"},
		"--pve-ca":            {"--pve-url=https://pve1:8006", token, "--pve-ca=/does/not/exist"},
		"--endpoint":          {"--pve-url=https://pve1:8006", token},
		"is no port":          {"--pve-url=https://pve1:8006", token, "--endpoint=a:99999"},
	} {
		_, _, err := parsed(t, args...).options()
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%q: got %v, want it to name %s", args, err, flag)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: the error tells the secret: %v", args, err)
		}
	}
}

func TestCommands(t *testing.T) {
	var names []string
	for _, command := range newCommand().Commands() {
		names = append(names, command.Name())
	}
	if got := strings.Join(names, " "); got != "down kubeconfig status up" {
		t.Errorf("got %s", got)
	}
}

func TestNothingRuns(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, want := range map[string]string{"down": "is not running", "status": "capve sandbox up"} {
		var out strings.Builder
		command := newCommand()
		command.SetOut(&out)
		command.SetArgs([]string{name})
		if err := command.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %q, %v", name, out.String(), err)
		}
	}
	command := newCommand()
	command.SetArgs([]string{"kubeconfig"})
	if err := command.ExecuteContext(t.Context()); err == nil {
		t.Error("there is a kubeconfig of nothing")
	}
}
