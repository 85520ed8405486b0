package pve

import "time"

// refusedPause is the time between polls with credentials that are refused: hosts ban who keeps on trying.
const refusedPause = time.Minute

// pace gives the time to the next poll: the interval, doubled with each failure in a row, up to a limit.
type pace struct {
	interval, limit time.Duration
	jitter          func(time.Duration) time.Duration
	failures        int
}

func newPace(interval, limit time.Duration, jitter func(time.Duration) time.Duration) *pace {
	return &pace{interval: interval, limit: max(interval, limit), jitter: jitter}
}

// next takes note of the last poll's outcome and returns how long to wait.
func (p *pace) next(err error) time.Duration {
	if err == nil {
		p.failures = 0
		return p.interval
	}
	p.failures++
	if ClassOf(err) == Unauthorized {
		return p.jitter(max(p.limit, refusedPause)) * 2 / 3
	}
	delay := p.interval
	for range p.failures {
		if delay >= p.limit/2 {
			return p.jitter(p.limit) * 2 / 3
		}
		delay *= 2
	}
	return p.jitter(delay) * 2 / 3
}
