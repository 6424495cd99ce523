package retrograde

import (
	"fmt"
	"sync/atomic"

	"retrograde/internal/journal"
	"retrograde/internal/reduction"
)

// Capture is a file of requests, answers and watch events of one client, as the client sent and read them. The file
// has the capture format of the checker. Methods of a capture may be called from any goroutine.
//
// A line is queued before a request is sent and after an answer was read, and one goroutine writes the queue at once.
// So the file of a killed process has what was recorded until then. Its last line may be cut off.
//
// If the disk is slower than the client, the capture drops records and counts them. A line of the file has the number,
// and the checker's verdict is then "unknown" at best. An exchange with a dropped record gets no further records, so
// no event counts as missing.
type Capture struct {
	path    string
	fields  *reduction.Fields
	journal *journal.Journal
	next    atomic.Uint64
}

// Option changes a new capture.
type Option func(*settings) error

type settings struct {
	limits Limits
	fields *reduction.Fields
}

// WithLimits sets bounds of memory and time.
func WithLimits(limits Limits) Option {
	return func(s *settings) error {
		s.limits = limits
		return nil
	}
}

// WithFields keeps further fields of objects, for rules of your own. Each is a resource and a path, separated by a
// space, such as "machines.example.com spec.providerID". The fields of the shipped rules are kept too.
func WithFields(fields ...string) Option {
	return func(s *settings) (err error) {
		s.fields, err = reduction.Shipped().With(fields)
		return err
	}
}

// Create makes a capture in a new file. The folder is made if it is missing. The file must not exist: a recording is
// never overwritten.
func Create(path string, subject Subject, options ...Option) (*Capture, error) {
	settings := settings{fields: reduction.Shipped()}
	for _, option := range options {
		if err := option(&settings); err != nil {
			return nil, err
		}
	}
	file, err := journal.Create(path, subject.heading())
	if err != nil {
		return nil, fmt.Errorf("create a capture: %w", err)
	}
	lines := journal.New(file, journal.ProcessClock(), settings.limits.options())
	return &Capture{path: path, fields: settings.fields, journal: lines}, nil
}

// Path returns the path of the file.
func (c *Capture) Path() string {
	return c.path
}

// Mark records a note for pictures, such as a fault that a test injects. It is never evidence.
func (c *Capture) Mark(name string) {
	c.journal.Put(mark(name), len(name), 0)
}

// Flush waits until everything that was recorded before is in the file.
func (c *Capture) Flush() {
	c.journal.Flush()
}

// Err returns the first reason why the capture is incomplete, or nil. Examples are a full disk and an answer in an
// unknown encoding.
func (c *Capture) Err() error {
	return c.journal.Err()
}

// Dropped returns the number of records that the capture dropped.
func (c *Capture) Dropped() uint64 {
	return c.journal.Dropped()
}

// Close writes what is queued and closes the file. It waits at most ten seconds for the disk. Its error is that of
// Err. Requests after it pass unrecorded.
func (c *Capture) Close() error {
	return c.journal.Close()
}

type mark string

func (m mark) AppendLine(to []byte, at int64) []byte {
	to = begin(to, "mark", 0, at)
	to = append(to, `,"name":`...)
	return append(journal.AppendText(to, string(m)), '}')
}
