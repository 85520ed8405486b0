package controlplane

import (
	"fmt"
	"net"
)

// Loopback is the only address that anything in the sandbox listens on.
const Loopback = "127.0.0.1"

// FreePorts returns n different TCP ports that are free on loopback right now. The listeners that found them are
// closed together, so that one call never returns a port twice.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		listener, err := net.Listen("tcp", net.JoinHostPort(Loopback, "0"))
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = listener.Close() }()
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("find a free port: listening on %s, which is not TCP", listener.Addr())
		}
		ports = append(ports, address.Port)
	}
	return ports, nil
}
