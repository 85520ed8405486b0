package sandbox

import (
	"context"
	"os"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

func TestStart(t *testing.T) {
	s, err := Start(t.Context(), Options{Output: os.Stderr, Style: progress.Lines})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	_ = context.Background
}
