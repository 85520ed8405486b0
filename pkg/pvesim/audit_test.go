package pvesim_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestOnlyAuditorsSeeHowLargeANodeIs asks with a token that may audit one node of three, as recorded on Proxmox VE 8.4.
func TestOnlyAuditorsSeeHowLargeANodeIs(t *testing.T) {
	t.Parallel()
	server := pvesim.Run(t)
	token := server.World.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "t1", Privileges: map[string][]string{"/nodes/pve1": {"Sys.Audit"}}})
	for _, path := range []string{"/nodes", "/cluster/resources?type=node"} {
		for node, size := range nodeSizes(t, server, token, path) {
			if shown := size != 0; shown != (node == "pve1") {
				t.Errorf("%s: maxmem of %s is %d", path, node, size)
			}
		}
	}
}

func nodeSizes(t *testing.T, server *pvesim.Server, token pvesim.Token, path string) map[string]int64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api2/json"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", token.Header())
	client := &http.Client{Transport: server.World.Transport("pve1")}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var list struct {
		Data []struct {
			Node   string `json:"node"`
			MaxMem int64  `json:"maxmem"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil || len(list.Data) != 3 {
		t.Fatalf("%s: %d nodes, %v", path, len(list.Data), err)
	}
	sizes := map[string]int64{}
	for _, entry := range list.Data {
		sizes[entry.Node] = entry.MaxMem
	}
	return sizes
}
