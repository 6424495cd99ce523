package retrograde

import (
	"strconv"
	"sync/atomic"

	"retrograde/internal/journal"
	"retrograde/internal/reduction"
)

// exchange is a request with its answer. Its records have its number.
type exchange struct {
	capture   *Capture
	id        uint64
	uri       string
	decision  string
	reduction *reduction.Reduction
	// lost is true after a record was dropped.
	lost atomic.Bool
	// unreadable is true after an event could not be decoded or written. Only the journal's goroutine uses it.
	unreadable bool

	// asked and answered are the records of most exchanges.
	asked, answered record
}

// put queues a record, or counts it as dropped.
func (e *exchange) put(r *record, size, reserved int) {
	r.of = e
	if e.lost.Load() {
		e.capture.journal.Release(reserved)
		e.capture.journal.Drop()
		return
	}
	if !e.capture.journal.Put(r, size+len(r.text)+len(e.uri), reserved) {
		e.lost.Store(true)
	}
}

// recordKind is the kind of a line about an exchange.
type recordKind uint8

const (
	ofRequest recordKind = iota
	ofResponse
	ofEvent
	ofEnd
)

// record is a line about an exchange. The journal's goroutine decodes and reduces its body.
type record struct {
	of   *exchange
	kind recordKind
	// text is the method of a request, the audit id of a response, or the reason of an end.
	text   string
	detail string
	status int
	form   form
	packed bool
	// partial is true for a body that the client did not read to its end. It counts only if it is complete all the
	// same.
	partial bool
	body    []byte
}

// begin appends the members that all lines have.
func begin(to []byte, kind string, id uint64, at int64) []byte {
	to = append(to, `{"kind":"`...)
	to = append(to, kind...)
	to = append(to, '"')
	if id > 0 {
		to = append(to, `,"id":`...)
		to = strconv.AppendUint(to, id, 10)
	}
	to = append(to, `,"at":`...)
	return strconv.AppendInt(to, at, 10)
}

// AppendLine appends the record as a line of the capture format.
func (r *record) AppendLine(to []byte, at int64) []byte {
	if r.of.unreadable {
		return to
	}
	id := r.of.id
	switch r.kind {
	case ofRequest:
		to = begin(to, "request", id, at)
		to = journal.AppendText(append(to, `,"method":`...), r.text)
		to = journal.AppendText(append(to, `,"uri":`...), r.of.uri)
		if r.of.decision != "" {
			to = journal.AppendText(append(to, `,"decision":`...), r.of.decision)
		}
		to = r.appendBody(to)
	case ofResponse:
		to = begin(to, "response", id, at)
		to = strconv.AppendInt(append(to, `,"status":`...), int64(r.status), 10)
		if r.text != "" {
			to = journal.AppendText(append(to, `,"audit_id":`...), r.text)
		}
		to = r.appendBody(to)
	case ofEvent:
		before := len(to)
		to = append(begin(to, "event", id, at), `,"event":`...)
		reduced, err := r.form.appendEvent(r.of.reduction, to, r.body)
		if err != nil {
			// The watch stays open, so no event counts as absent.
			r.of.unreadable = true
			r.of.capture.journal.Note("expected a watch event in the answer to %s, found %w; the rest of the watch is not recorded", r.of.uri, err)
			return to[:before]
		}
		to = reduced
	case ofEnd:
		to = begin(to, "end", id, at)
		to = journal.AppendText(append(to, `,"reason":`...), r.text)
		if r.detail != "" {
			to = journal.AppendText(append(to, `,"error":`...), r.detail)
		}
	}
	return append(to, '}')
}

// Lose ends the exchange in the file, since a record of it is missing there.
func (r *record) Lose() {
	r.of.lost.Store(true)
	r.of.unreadable = true
}

// appendBody appends the reduced body, if there is one that can be read.
func (r *record) appendBody(to []byte) []byte {
	if len(r.body) == 0 || r.form == noForm {
		return to
	}
	body := r.body
	if r.packed {
		var err error
		if body, err = unpack(body); err != nil {
			r.of.capture.journal.Note("expected an answer to %s in its stated encoding, found %w; its body is not recorded", r.of.uri, err)
			return to
		}
	}
	if blank(body) {
		return to
	}
	before := len(to)
	reduced, err := r.form.appendBody(r.of.reduction, append(to, `,"body":`...), body)
	if err != nil {
		if r.kind == ofResponse && !r.partial {
			r.of.capture.journal.Note("expected a body of %s, found %w; it is not recorded", r.of.uri, err)
		}
		return to[:before]
	}
	return reduced
}
