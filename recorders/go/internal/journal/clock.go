package journal

import (
	"sync"
	"time"
)

// Clock is a monotonic clock in nanoseconds since 1970. An earlier reading is earlier in every goroutine.
type Clock struct {
	begin time.Time
	epoch int64
}

// ProcessClock is the clock of all recordings of this process. So their times compare, even if the clock of the machine is
// set meanwhile.
var ProcessClock = sync.OnceValue(NewClock)

// NewClock returns a clock that begins at the present time of the machine.
func NewClock() *Clock {
	begin := time.Now()
	return &Clock{begin: begin, epoch: begin.UnixNano()}
}

// Now returns the present time.
func (c *Clock) Now() int64 {
	return c.epoch + int64(time.Since(c.begin))
}
