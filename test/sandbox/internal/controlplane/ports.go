package controlplane

import (
	"fmt"
	"net"
)

// Loopback is the only address that anything in the sandbox listens on.
const Loopback = "127.0.0.1"

// FreePorts returns n different TCP ports that are free on loopback right now. Each is kept busy until all are
// found, so that one call never returns a port twice.
func FreePorts(n int) ([]int, error) {
	if n == 0 {
		return nil, nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(Loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("find a free port: listening on %s, which is not TCP", listener.Addr())
	}
	others, err := FreePorts(n - 1)
	return append(others, address.Port), err
}
