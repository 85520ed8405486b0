package soak_test

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// The ways in which a request to Proxmox VE goes wrong.
const (
	before   = "before"
	after    = "after"
	lost     = "lost"
	hang     = "hang"
	taskFail = "task"
)

// fault is one of them.
type fault struct {
	way string
	pvesim.Fault
}

// faults are before a request has its effect, after it, in place of its answer; and those of the task that it starts.
var faults = []fault{
	{before, pvesim.Fault{Status: 500, Reason: "got timeout"}},
	{before, pvesim.Fault{Status: 595, Reason: "No route to host"}},
	{before, pvesim.Fault{Status: 596, Reason: "Connection timed out", Delay: pvesim.Duration(30 * time.Second)}},
	{before, pvesim.Fault{Status: 401, Reason: "No ticket"}},
	{before, pvesim.Fault{Status: 503, Reason: "Service Unavailable"}},
	{after, pvesim.Fault{When: pvesim.AfterEffect, Status: 500, Reason: "got timeout"}},
	{after, pvesim.Fault{When: pvesim.AfterEffect, Status: 596, Reason: "Connection timed out", Delay: pvesim.Duration(30 * time.Second)}},
	{after, pvesim.Fault{When: pvesim.AfterEffect, Status: 502, Reason: "Bad Gateway"}},
	{lost, pvesim.Fault{When: pvesim.DropReply}},
	{lost, pvesim.Fault{When: pvesim.DropReply}},
	{hang, pvesim.Fault{Hang: true}},
	{hang, pvesim.Fault{When: pvesim.AfterEffect, Hang: true}},
	{taskFail, pvesim.Fault{TaskError: "unexpected trouble"}},
	{taskFail, pvesim.Fault{When: pvesim.AfterEffect, TaskError: "unexpected trouble"}},
}

// letRequest lets a request on, and draws whether and how it goes wrong.
func (s *simulation) letRequest(t *ticket) {
	way := ""
	if !s.calm && s.random.IntN(1000) < s.setting.pveFaults {
		drawn := faults[s.random.IntN(len(faults))]
		drawn.Nth, way = 1, drawn.way
		s.must(s.world.AddFault(drawn.Fault))
		s.trace.add("fault", "%s %d %s: %s", way, drawn.Status, drawn.TaskError, t.label)
	}
	s.trace.add("asks", "%s", t.label)
	s.seeFirst(t)
	s.gate.let(t, verdict{})
	s.settle()
	s.watchIdentities()
	s.watchWall(t)
	if way == "" {
		return
	}
	if s.world.Faults()[0].Struck > 0 {
		s.figures.struck.add(t.what, way)
		s.trouble()
	}
	s.world.ClearFaults()
}
