package retrograde

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"retrograde/internal/journal"
)

// Recorder records calls on an object of your own, such as a register, a queue or a lock. The file is an operation
// log, and the checker looks for an order of the calls that explains every answer. Its methods may be called from any
// goroutine.
//
// A log with a hole would prove what did not happen. So the log ends before the first record that the disk was too
// slow for. The number of dropped records is in the file, and the checker's verdict is then "unknown" at best.
type Recorder struct {
	path    string
	journal *journal.Journal
	lanes   atomic.Uint64
}

// NewRecorder makes an operation log in a new file. The model is one that the checker knows, such as "register", "kv"
// or "queue". If it is empty, the names of the operations decide.
func NewRecorder(path, model string, options ...Option) (*Recorder, error) {
	var settings settings
	for _, option := range options {
		if err := option(&settings); err != nil {
			return nil, err
		}
	}
	heading := []byte(`{"kind":"operations","version":1,"clock":"recorder"`)
	if model != "" {
		heading = journal.AppendText(append(heading, `,"model":`...), model)
	}
	file, err := journal.Create(path, append(heading, "}\n"...))
	if err != nil {
		return nil, fmt.Errorf("create an operation log: %w", err)
	}
	bounds := settings.limits.options()
	bounds.Stop = new(atomic.Bool)
	return &Recorder{path: path, journal: journal.New(file, journal.ProcessClock(), bounds)}, nil
}

// Client returns a client with a name. It may make several calls at once.
func (r *Recorder) Client(name string) *Client {
	return &Client{recorder: r, name: name}
}

// Path returns the path of the file.
func (r *Recorder) Path() string {
	return r.path
}

// Flush waits until everything that was recorded before is in the file.
func (r *Recorder) Flush() {
	r.journal.Flush()
}

// Err returns the first reason why the log is incomplete, or nil.
func (r *Recorder) Err() error {
	return r.journal.Err()
}

// Close writes what is queued and closes the file. Calls without an end have an unknown outcome.
func (r *Recorder) Close() error {
	return r.journal.Close()
}

// Client makes calls that are recorded.
type Client struct {
	recorder *Recorder
	name     string

	mu sync.Mutex
	// idle are the processes of the client without an open call. A process does one thing at a time.
	idle []string
}

// Operation is a call: its name, and what the model of the object needs beside it. Key and Value are encoded as JSON.
type Operation struct {
	// Name is the function, such as "put".
	Name string
	// Key is the object, if the model has several.
	Key any
	// Value is the argument.
	Value any
}

// Call is an open call. One that never ends has an unknown outcome.
type Call struct {
	client  *Client
	process string
	members []byte
	ended   atomic.Bool
}

// Invoke records that a call begins. Call it before anything is sent.
func (c *Client) Invoke(operation Operation) *Call {
	c.mu.Lock()
	var process string
	if last := len(c.idle) - 1; last >= 0 {
		process, c.idle = c.idle[last], c.idle[:last]
	} else {
		process = c.name + "/" + strconv.FormatUint(c.recorder.lanes.Add(1), 10)
	}
	c.mu.Unlock()
	members := journal.AppendText([]byte(`,"op":`), operation.Name)
	members = c.recorder.member(members, "key", operation.Key)
	members = c.recorder.member(members, "value", operation.Value)
	call := &Call{client: c, process: process, members: members}
	call.put("invoke", nil)
	return call
}

// OK records the answer. Call it after the answer has arrived. A nil result means that the object has no value.
func (c *Call) OK(result any) {
	if c.ended.CompareAndSwap(false, true) {
		encoded, err := json.Marshal(result)
		if err != nil {
			c.client.recorder.journal.Note("expected a result that JSON can express, found %w", err)
			return
		}
		c.put("ok", append([]byte(`,"result":`), encoded...))
		c.client.rest(c.process)
	}
}

// Done records that a call without an answer succeeded.
func (c *Call) Done() {
	if c.ended.CompareAndSwap(false, true) {
		c.put("ok", nil)
		c.client.rest(c.process)
	}
}

// Failed records that the call certainly had no effect and never will. A timeout does not show that.
func (c *Call) Failed() {
	if c.ended.CompareAndSwap(false, true) {
		c.put("fail", nil)
		c.client.rest(c.process)
	}
}

func (c *Client) rest(process string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, process)
}

func (r *Recorder) member(to []byte, name string, value any) []byte {
	if value == nil {
		return to
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		r.journal.Note("expected a %s that JSON can express, found %w", name, err)
		return to
	}
	to = append(journal.AppendText(append(to, ','), name), ':')
	return append(to, encoded...)
}

// event is a line of an operation log.
type event struct {
	call   *Call
	kind   string
	result []byte
}

func (c *Call) put(kind string, result []byte) {
	c.client.recorder.journal.Put(&event{call: c, kind: kind, result: result}, len(c.members)+len(result)+64, 0)
}

func (e *event) AppendLine(to []byte, at int64) []byte {
	to = journal.AppendText(append(to, `{"process":`...), e.call.process)
	to = journal.AppendText(append(to, `,"type":`...), e.kind)
	to = append(to, e.call.members...)
	to = append(to, e.result...)
	to = strconv.AppendInt(append(to, `,"at":`...), at, 10)
	return append(to, '}')
}
