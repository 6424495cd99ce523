package journal

import (
	"io"
	"strconv"
	"time"
)

// Sizes from which on the journal writes encoded lines without waiting for more: of the lines themselves, and of the
// memory that they held.
const (
	flushBytes = 128 << 10
	freeBytes  = 1 << 20
)

// lull is the time for which lines gather.
const lull = 500 * time.Microsecond

// write writes batches of lines until the journal is closed.
func (j *Journal) write(file io.WriteCloser) {
	defer close(j.ended)
	w := writer{journal: j, file: file}
	var batch []queued
	for {
		j.mu.Lock()
		j.writing = false
		j.idle.Broadcast()
		for len(j.queue) == 0 && !j.closed {
			j.asleep = true
			j.work.Wait()
			j.asleep = false
		}
		if len(j.queue) == 0 {
			j.mu.Unlock()
			j.note(file.Close())
			return
		}
		j.writing = true
		batch, j.queue = j.queue, batch[:0]
		j.mu.Unlock()
		w.batch(batch)
		clear(batch)
		j.rest()
	}
}

// rest lets lines gather for a moment, so that not every line wakes the writer.
func (j *Journal) rest() {
	j.mu.Lock()
	j.writing = false
	j.idle.Broadcast()
	hurries := j.closed || j.held > j.memory/4
	j.mu.Unlock()
	if !hurries {
		time.Sleep(lull)
	}
}

// writer encodes lines and writes them. Only one goroutine uses it.
type writer struct {
	journal *Journal
	file    io.Writer
	text    []byte
	// cut is true after a failed write that left an incomplete line.
	cut bool
	// lost is the number of lines that are missing and not yet counted in the file.
	lost uint64
	// failed is true after the first failed write.
	failed bool
}

// batch encodes and writes lines. It writes long batches in several pieces, so that callers get memory back.
func (w *writer) batch(lines []queued) {
	from, size := 0, 0
	for at := range lines {
		w.encode(&lines[at])
		size += lines[at].size
		if len(w.text) >= flushBytes || size >= freeBytes || at == len(lines)-1 {
			w.send(lines[from : at+1])
			w.journal.Release(size)
			from, size = at+1, 0
		}
	}
	if cap(w.text) > 4*flushBytes {
		w.text = nil
	}
}

// send writes the encoded lines. If that fails, lines may be cut off or missing, and the next write counts them. A
// recording that may have no hole gets only the count.
func (w *writer) send(lines []queued) {
	text := w.text
	w.text = w.text[:0]
	stop := w.journal.stop
	if w.failed && stop != nil {
		w.lose(lines)
		text = nil
	}
	if w.lost > 0 {
		begin := []byte(nil)
		if w.cut {
			begin = []byte{'\n'}
		}
		text = append(appendDropped(begin, w.journal.clock.Now(), w.lost), text...)
	}
	written, err := w.file.Write(text)
	if written > 0 {
		w.cut = text[written-1] != '\n'
	}
	if err == nil {
		w.lost = 0
		return
	}
	w.failed = true
	w.journal.note(err)
	if stop != nil {
		stop.Store(true)
	}
	w.lose(lines)
}

// lose counts lines that are not in the file, and tells those that have to know.
func (w *writer) lose(lines []queued) {
	for at := range lines {
		w.lost += max(lines[at].dropped, 1)
		if lines[at].dropped > 0 {
			continue
		}
		w.journal.countLost()
		if line, ok := lines[at].line.(interface{ Lose() }); ok {
			line.Lose()
		}
	}
}

// encode appends a line to the text. A line that cannot be encoded is lost, and the client goes on.
func (w *writer) encode(line *queued) {
	before := len(w.text)
	defer func() {
		if cause := recover(); cause != nil {
			w.text = w.text[:before]
			w.journal.Note("a record could not be encoded: %v", cause)
			w.lose([]queued{*line})
		}
	}()
	if line.dropped > 0 {
		w.text = appendDropped(w.text, line.at, line.dropped)
		return
	}
	w.text = line.line.AppendLine(w.text, line.at)
	if len(w.text) > before {
		w.text = append(w.text, '\n')
	}
}

func appendDropped(text []byte, at int64, count uint64) []byte {
	text = append(text, `{"kind":"dropped","at":`...)
	text = strconv.AppendInt(text, at, 10)
	text = append(text, `,"count":`...)
	text = strconv.AppendUint(text, count, 10)
	return append(text, "}\n"...)
}
