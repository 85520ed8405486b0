package observe_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func TestARefusalNamesTheFieldAndTheRemedy(t *testing.T) {
	refused := func(status int, reason string, params map[string]string) error {
		return fmt.Errorf("configuring VM 101: %w", &pve.Error{Method: http.MethodPut, Path: "/nodes/pve1/qemu/101/config", Status: status, Reason: reason, Params: params})
	}
	const invalid = "Parameter verification failed."
	cases := []struct {
		name string
		err  error
		code string
		want string
	}{
		{
			"hugepages by a token", refused(500, "only root can set 'hugepages' config", nil), "RootOnly",
			"only root can set 'hugepages' config: no API token may do this, root's neither: put root@pam and its password into the region's credentials, or leave memory.hugepages out of the ProxmoxMachineTemplate",
		},
		{"a raw key by a token", refused(500, "only root can set 'args' config", nil), "RootOnly", "or leave rawConfig[args] out of the ProxmoxMachineTemplate"},
		{"what names no key", refused(400, invalid, map[string]string{"skiplock": "Only root may use this option."}), "RootOnly", "put root@pam and its password into the region's credentials"},
		{"a CPU type", refused(400, invalid, map[string]string{"cpu": "invalid format"}), "Error", "cpu: invalid format: correct cpu in the ProxmoxMachineTemplate"},
		{"a raw key and a device", refused(400, invalid, map[string]string{"kvm": "x", "net3": "y"}), "Error", ": correct rawConfig[kvm], network.devices in the ProxmoxMachineTemplate"},
		{"what is no config", &pve.Error{Method: http.MethodPost, Path: "/nodes/pve1/qemu/101/clone", Status: 400, Reason: invalid, Params: map[string]string{"newid": "x"}}, "Error", "newid: x"},
		{"a privilege", refused(403, "Permission check failed (/vms/101, VM.Config.CPU)", nil), "Forbidden", "grant this privilege to the token"},
		{"what is missing", refused(500, "storage 'nope' does not exist", nil), "Missing", "create it in Proxmox VE, or name another one"},
		{"anything else", errors.New("boom"), "Error", "boom"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reason := observe.Explain(c.err)
			if reason.Code != c.code || !strings.HasSuffix(reason.Message, c.want) && !strings.Contains(reason.Message, c.want) {
				t.Errorf("got %s: %s\nwant %s: …%s", reason.Code, reason.Message, c.code, c.want)
			}
		})
	}
}
