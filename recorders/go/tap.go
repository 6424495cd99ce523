package retrograde

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// receive records an answer as the client reads it.
func (e *exchange) receive(request *http.Request, response *http.Response, line requestLine) {
	t := &tapped{ReadCloser: response.Body, request: request.Context()}
	r := &t.receiver
	*r = receiver{
		exchange: e,
		status:   response.StatusCode,
		auditID:  response.Header.Get("Audit-Id"),
		form:     formOf(response.Header.Get("Content-Type")),
		isWatch:  line.isWatch && response.StatusCode/100 == 2,
		left:     response.ContentLength,
	}
	switch encoding := strings.ToLower(strings.TrimSpace(response.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		r.packed = true
	default:
		r.form = noForm
	}
	if r.form == noForm {
		e.capture.journal.Note("expected JSON, protobuf or CBOR in the answer to %s, found %s %s; its body is not recorded",
			e.uri, response.Header.Get("Content-Type"), response.Header.Get("Content-Encoding"))
	} else if r.isWatch {
		// The stream begins. If no event can be read, the request stays without an answer.
		e.put(&record{kind: ofResponse, status: r.status, text: r.auditID}, 0, 0)
		if r.packed {
			r.unpacked = unpackEvents(r)
		}
	}
	if response.Body == http.NoBody || response.ContentLength == 0 || request.Method == http.MethodHead {
		r.end(io.EOF)
		return
	}
	response.Body = t
}

// tapped is the body of an answer. The client reads and closes it, perhaps from two goroutines.
type tapped struct {
	io.ReadCloser
	request context.Context

	mu       sync.Mutex
	receiver receiver
	// hasEnded is true after the end of the answer.
	hasEnded bool
}

// Read reads the answer and records what was read.
func (t *tapped) Read(into []byte) (int, error) {
	n, err := t.ReadCloser.Read(into)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hasEnded {
		return n, err
	}
	if n > 0 {
		t.receiver.data(into[:n])
	}
	switch {
	case err == nil && t.receiver.left != 0:
	case err == nil || err == io.EOF:
		t.end(io.EOF)
	case t.request.Err() != nil:
		t.end(errClosed)
	default:
		t.end(err)
	}
	return n, err
}

// Close closes the answer. If it was not read to its end, the client gave it up.
func (t *tapped) Close() error {
	t.mu.Lock()
	t.end(errClosed)
	t.mu.Unlock()
	return t.ReadCloser.Close()
}

func (t *tapped) end(why error) {
	if !t.hasEnded {
		t.hasEnded = true
		t.receiver.end(why)
		// The client may keep the body.
		t.receiver = receiver{}
	}
}

var errClosed = errors.New("closed by the client")

// receiver collects the bytes of one answer, or the events of a watch.
type receiver struct {
	exchange *exchange
	status   int
	auditID  string
	// form is noForm if the body is not recorded, or no longer.
	form    form
	packed  bool
	isWatch bool
	// left is the number of bytes that the server still sends, or negative if it did not tell.
	left int64
	// rest are the bytes that are not yet recorded: a body, or the beginning of an event.
	rest []byte
	// reserved is the part of the journal's memory that rest has.
	reserved int
	// unpacked receives the packed bytes of a watch.
	unpacked *unpacker
}

// data takes bytes that the client read.
func (r *receiver) data(read []byte) {
	if r.left > 0 {
		r.left = max(r.left-int64(len(read)), 0)
	}
	switch {
	case r.unpacked != nil:
		// Its goroutine uses the other fields until the end of the answer.
		r.unpacked.write(read)
	case r.form == noForm:
	case r.isWatch:
		r.events(read)
	default:
		r.keep(read)
	}
}

// events records the complete events of a watch.
func (r *receiver) events(read []byte) {
	stream := read
	if len(r.rest) > 0 {
		if !r.keep(read) {
			return
		}
		stream = r.rest
	}
	at := 0
	for {
		event, length, err := r.form.next(stream[at:])
		if err != nil {
			r.exchange.capture.journal.Note("expected a watch event in the answer to %s, found %w; the rest of the watch is not recorded", r.exchange.uri, err)
			r.giveUp()
			return
		}
		if length == 0 {
			break
		}
		at += length
		if r.form == jsonForm {
			event = bytes.TrimSpace(event)
		}
		if len(event) > 0 {
			r.exchange.put(&record{kind: ofEvent, form: r.form, body: bytes.Clone(event)}, len(event), 0)
		}
	}
	if len(r.rest) > 0 {
		r.rest = append(r.rest[:0], r.rest[at:]...)
	} else if at < len(stream) {
		r.keep(stream[at:])
	}
}

// keep appends bytes to the rest. It is false if they do not fit into the memory of the capture.
func (r *receiver) keep(read []byte) bool {
	need := len(r.rest) + len(read)
	if need > longest {
		r.drop()
		return false
	}
	if need > cap(r.rest) {
		size := max(need, 2*cap(r.rest), 512)
		if !r.isWatch && r.left >= 0 {
			size = min(need+int(min(r.left, longest)), longest)
		}
		if !r.exchange.capture.journal.Reserve(size - r.reserved) {
			r.drop()
			return false
		}
		r.reserved = size
		larger := make([]byte, len(r.rest), size)
		copy(larger, r.rest)
		r.rest = larger
	}
	r.rest = append(r.rest, read...)
	return true
}

// drop gives the body up because it is too large, and counts it.
func (r *receiver) drop() {
	r.exchange.capture.journal.Drop()
	r.giveUp()
}

// giveUp stops recording the content of this answer. A watch stays open, so that no event counts as absent.
func (r *receiver) giveUp() {
	r.exchange.capture.journal.Release(r.reserved)
	r.form, r.rest, r.reserved = noForm, nil, 0
}

// end records how the answer ended: io.EOF, errClosed, or the error of the connection.
func (r *receiver) end(why error) {
	if r.unpacked != nil {
		// The events that were read before come first.
		r.unpacked.finish()
	}
	if r.isWatch {
		if r.form == noForm {
			return
		}
		r.exchange.capture.journal.Release(r.reserved)
		r.exchange.put(ended(why), 64, 0)
		return
	}
	if why != io.EOF && why != errClosed {
		r.exchange.capture.journal.Release(r.reserved)
		r.exchange.put(ended(why), 64, 0)
		return
	}
	answer := &r.exchange.answered
	*answer = record{
		kind: ofResponse, status: r.status, text: r.auditID, form: r.form, packed: r.packed, body: r.rest,
		partial: why == errClosed,
	}
	if answer.partial && r.form == protobufForm {
		// A message that is cut between two of its fields looks complete.
		answer.form = noForm
	}
	r.exchange.put(answer, 0, r.reserved)
}

func ended(why error) *record {
	switch why {
	case io.EOF:
		return &record{kind: ofEnd, text: "eof"}
	case errClosed:
		return &record{kind: ofEnd, text: "closed"}
	}
	return &record{kind: ofEnd, text: "error", detail: why.Error()}
}
