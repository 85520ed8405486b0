package pvesim

// TB is what Run needs of testing.TB.
type TB interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

// testSpeed is the speed of worlds made by Run: a clone takes 50 to 100 ms.
const testSpeed = 100

// Run serves a new world for one test and closes both at its end. It is 100 times as fast as real hosts unless an option
// says otherwise.
func Run(t TB, opts ...Option) *Server {
	t.Helper()
	w, err := NewWorld(append([]Option{WithSpeed(testSpeed)}, opts...)...)
	if err != nil {
		t.Fatalf("make a simulated Proxmox VE: %v", err)
		return nil
	}
	s, err := Serve(w, "")
	if err != nil {
		w.Close()
		t.Fatalf("serve a simulated Proxmox VE: %v", err)
		return nil
	}
	s.ownsIt = true
	t.Cleanup(s.Close)
	return s
}
