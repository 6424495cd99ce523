// Package journal writes lines of evidence into a file, behind a queue of bounded memory.
//
// A caller puts a line into the queue and goes on. One goroutine encodes the lines and writes them. If the queue is
// full, the caller waits for a limited time. After that the journal drops the line and counts it. The count is a line
// of the file, at the place of the dropped lines. So a file that is cut off anywhere is a beginning of the recording.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [Options].
const (
	DefaultMemory   = 128 << 20
	DefaultPatience = 10 * time.Millisecond
)

// closePatience bounds the time for which Close waits for the disk.
const closePatience = 10 * time.Second

// Options bound what a journal costs its callers.
type Options struct {
	// Memory bounds the bytes of queued lines and of reserved buffers. Zero means DefaultMemory.
	Memory int
	// Patience bounds the time for which a caller waits for a full queue. Zero means DefaultPatience.
	Patience time.Duration
	// Stop is set with the first dropped line, and no line is written after it. Journals of one recording have one
	// Stop, if a recording with a hole would be wrong. Nil: the journal goes on after a dropped line.
	Stop *atomic.Bool
}

// Line is a line that is encoded later. If it has a method Lose, the writer calls it after a failed write.
type Line interface {
	// AppendLine appends the JSON object without a line end. It may append nothing.
	AppendLine(to []byte, at int64) []byte
}

// Journal is a queue of lines and the file behind it. Its methods may be called from any goroutine.
type Journal struct {
	clock    *Clock
	memory   int
	patience time.Duration
	stop     *atomic.Bool

	mu      sync.Mutex
	work    sync.Cond // signals the writer: there are lines, or the journal is closed
	idle    sync.Cond // signals Flush and Close: a batch was written
	room    chan struct{}
	queue   []queued
	held    int
	asleep  bool // the writer waits for work
	writing bool
	stalled bool
	closed  bool
	dropped uint64
	// isMarked is true after the first dropped line of a recording that ended with it. Close writes the number of the
	// later ones.
	isMarked bool
	later    uint64
	err      error

	ended chan struct{}
}

type queued struct {
	line Line
	at   int64
	size int
	// dropped is the number of lines that were dropped here. Such an entry has no line.
	dropped uint64
}

// overhead is the assumed size of a queue entry beside its content.
const overhead = 96

// New returns a journal that writes to a file and closes it at the end. The clock gives the times of lines.
func New(file io.WriteCloser, clock *Clock, options Options) *Journal {
	if options.Memory <= 0 {
		options.Memory = DefaultMemory
	}
	if options.Patience <= 0 {
		options.Patience = DefaultPatience
	}
	j := &Journal{clock: clock, memory: options.Memory, patience: options.Patience, stop: options.Stop, ended: make(chan struct{})}
	j.work.L, j.idle.L = &j.mu, &j.mu
	go j.write(file)
	return j
}

// Put queues a line with its time. It is false if the line was dropped. The size is that of the line's content beyond
// the bytes that the caller reserved. Reserved bytes pass to the journal. It releases them after the line was written.
func (j *Journal) Put(line Line, size, reserved int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	size += overhead
	if j.closed || j.isStopped() || !j.fits(size) {
		j.free(reserved)
		j.drop()
		return false
	}
	j.held += size
	j.queue = append(j.queue, queued{line: line, at: j.clock.Now(), size: size + reserved})
	if j.asleep {
		j.work.Signal()
	}
	return true
}

// Drop counts a line that the caller could not record.
func (j *Journal) Drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop()
}

// Reserve takes a part of the journal's memory for a buffer of the caller. It waits like Put.
func (j *Journal) Reserve(size int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || size > j.memory || !j.fits(size) {
		return false
	}
	j.held += size
	return true
}

// Release gives reserved memory back.
func (j *Journal) Release(size int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.free(size)
}

func (j *Journal) isStopped() bool {
	return j.stop != nil && j.stop.Load()
}

// fits waits for room, at most as long as a caller may be delayed. The lock is held at its begin and at its end.
func (j *Journal) fits(size int) bool {
	if j.held+size <= j.memory {
		return true
	}
	if j.stalled {
		return false
	}
	timer := time.NewTimer(j.patience)
	defer timer.Stop()
	for j.held+size > j.memory {
		if j.room == nil {
			j.room = make(chan struct{})
		}
		room := j.room
		j.mu.Unlock()
		late := false
		select {
		case <-room:
		case <-timer.C:
			late = true
		}
		j.mu.Lock()
		if late || j.closed || j.stalled {
			// Later callers do not wait until the disk has caught up.
			j.stalled = !j.closed && j.held+size > j.memory
			return !j.closed && !j.stalled
		}
	}
	return true
}

func (j *Journal) free(size int) {
	j.held -= size
	if j.held <= j.memory/2 {
		j.stalled = false
	}
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
}

// drop counts a line at its place in the queue.
func (j *Journal) drop() {
	if j.closed {
		// The recording ended before.
		return
	}
	j.dropped++
	if j.stop != nil {
		j.stop.Store(true)
		if j.isMarked {
			j.later++
			return
		}
		j.isMarked = true
	}
	if last := len(j.queue) - 1; last >= 0 && j.queue[last].dropped > 0 {
		j.queue[last].dropped++
		return
	}
	j.queue = append(j.queue, queued{at: j.clock.Now(), dropped: 1})
	if j.asleep {
		j.work.Signal()
	}
}

// countLost counts a line that the disk refused.
func (j *Journal) countLost() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dropped++
}

// Note keeps the first reason why the recording is incomplete.
func (j *Journal) Note(format string, values ...any) {
	j.note(fmt.Errorf(format, values...))
}

func (j *Journal) note(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// Err returns the first reason why the recording is incomplete, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil && j.dropped > 0 {
		return fmt.Errorf("the disk was slower than the client: %d records were dropped", j.dropped)
	}
	return j.err
}

// Dropped returns the number of dropped lines.
func (j *Journal) Dropped() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropped
}

// Flush waits until the lines that were queued before are written.
func (j *Journal) Flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for !j.closed && (len(j.queue) > 0 || j.writing) {
		j.idle.Wait()
	}
}

// Close writes the queued lines and closes the file. It waits for a slow disk, but not longer than ten seconds. Its
// error is that of Err.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.later > 0 {
		j.queue = append(j.queue, queued{at: j.clock.Now(), dropped: j.later})
		j.later = 0
	}
	j.closed = true
	j.work.Signal()
	j.idle.Broadcast()
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
	j.mu.Unlock()
	select {
	case <-j.ended:
	case <-time.After(closePatience):
		return errors.Join(j.Err(), errors.New("expected the recording on the disk within 10 s, found lines that are not written"))
	}
	return j.Err()
}

// Text is a line that is encoded already.
type Text []byte

// AppendLine appends the line.
func (t Text) AppendLine(to []byte, _ int64) []byte {
	return append(to, t...)
}

// AppendText appends a text as JSON.
func AppendText[T ~string | ~[]byte](to []byte, text T) []byte {
	for at := range len(text) {
		if c := text[at]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			encoded, err := json.Marshal(string(text))
			if err != nil {
				return append(to, `""`...)
			}
			return append(to, encoded...)
		}
	}
	to = append(to, '"')
	to = append(to, text...)
	return append(to, '"')
}
