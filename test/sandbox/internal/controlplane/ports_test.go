package controlplane

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePorts(t *testing.T) {
	ports, err := FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
	}
	if len(seen) != 20 {
		t.Errorf("got %d ports, want 20", len(seen))
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(Loopback, strconv.Itoa(ports[0])))
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
