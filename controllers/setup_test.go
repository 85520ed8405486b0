package controllers

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestALongOutageIsOverSoonAfterItEnds has passes fail for as long as an API server, or a region, may be away.
func TestALongOutageIsOverSoonAfterItEnds(t *testing.T) {
	limiter := SetupOptions{Concurrency: 1}.controller().RateLimiter
	request := reconcile.Request{}
	if first := limiter.When(request); first > time.Second {
		t.Errorf("after the first error the next pass is in %s", first)
	}
	for outage := time.Duration(0); outage < 24*time.Hour; {
		pause := limiter.When(request)
		if pause > 16*time.Second {
			t.Fatalf("after %s of errors the next pass is in %s", outage, pause)
		}
		outage += pause
	}
}
