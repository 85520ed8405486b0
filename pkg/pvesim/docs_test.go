package pvesim_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestACloneIsMadeAlthoughItsAnswerIsLost(t *testing.T) {
	pve := pvesim.Run(t, pvesim.WithVersion(pvesim.V84)) // HTTPS on 127.0.0.1, until the test ends
	lost := pvesim.Fault{Method: "POST", Path: "/nodes/{node}/qemu/{vmid}/clone", When: pvesim.DropReply}
	if err := pve.World.AddFault(lost); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"newid": {"100"}, "name": {"web"}}
	if _, err := pve.Client().PostForm(pve.URL+"/api2/json/nodes/pve1/qemu/9001/clone", form); err == nil {
		t.Error("the answer is not lost")
	}
	if err := pve.World.AwaitTasks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if vm, _ := pve.World.VM(100); vm.Config["name"] != "web" || len(pve.World.Check()) > 0 {
		t.Errorf("VM 100 is %+v, broken: %v", vm, pve.World.Check())
	}
}

// TestTheDocsShowTheTestAbove keeps docs/pvesim.md true: its first Go block is a test of this file.
func TestTheDocsShowTheTestAbove(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/pvesim.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(docs)
	if len(block) != 2 || !strings.Contains(string(source), string(block[1])) {
		t.Error("the first Go block of docs/pvesim.md is not a test of docs_test.go: copy it from there")
	}
}
