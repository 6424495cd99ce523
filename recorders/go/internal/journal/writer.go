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
	var batch []queued
	var text []byte
	cut := false
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
		text = text[:0]
		from, size := 0, 0
		for at := range batch {
			text = batch[at].appendTo(text)
			size += batch[at].size
			batch[at].line = nil
			if len(text) >= flushBytes || size >= freeBytes || at == len(batch)-1 {
				j.send(file, text, batch[from:at+1], size, &cut)
				text, from, size = text[:0], at+1, 0
			}
		}
		if cap(text) > 4*flushBytes {
			text = nil
		}
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

// send writes encoded lines. After a failed write, lines may be cut off or missing, so the next write counts them.
func (j *Journal) send(file io.Writer, text []byte, lines []queued, size int, cut *bool) {
	if *cut {
		j.mu.Lock()
		marker := queued{at: j.clock.Now(), dropped: j.lost}
		j.mu.Unlock()
		text = append(marker.appendTo([]byte{'\n'}), text...)
	}
	_, err := file.Write(text)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.free(size)
	*cut = err != nil
	if err == nil {
		j.lost = 0
		return
	}
	for _, line := range lines {
		j.lost += max(line.dropped, 1)
		if line.dropped == 0 {
			j.dropped++
		}
	}
	if j.err == nil {
		j.err = err
	}
}

func (q *queued) appendTo(text []byte) []byte {
	if q.dropped > 0 {
		text = append(text, `{"kind":"dropped","at":`...)
		text = strconv.AppendInt(text, q.at, 10)
		text = append(text, `,"count":`...)
		text = strconv.AppendUint(text, q.dropped, 10)
		return append(text, "}\n"...)
	}
	before := len(text)
	text = q.line.AppendLine(text, q.at)
	if len(text) > before {
		text = append(text, '\n')
	}
	return text
}
