package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// disk is a file in memory. It can hold its writes, and fail them.
type disk struct {
	mu      sync.Mutex
	content bytes.Buffer
	fails   bool
	closed  bool

	held chan struct{}
}

func (d *disk) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = make(chan struct{})
}

func (d *disk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.held)
	d.held = nil
}

func (d *disk) fail(fails bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
}

func (d *disk) Write(text []byte) (int, error) {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	if held != nil {
		<-held
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails {
		half := len(text) / 2
		d.content.Write(text[:half])
		return half, errors.New("no space left on device")
	}
	return d.content.Write(text)
}

func (d *disk) Close() error {
	d.closed = true
	return nil
}

type line struct {
	Kind  string
	N     int
	Count int
}

func (d *disk) lines(t *testing.T) (lines []line, cut int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for text := range bytes.Lines(d.content.Bytes()) {
		var read line
		switch err := json.Unmarshal(text, &read); {
		case len(bytes.TrimSpace(text)) == 0:
		case err != nil:
			cut++
		default:
			lines = append(lines, read)
		}
	}
	return lines, cut
}

func numbered(n int) Text {
	return Text(fmt.Sprintf(`{"kind":"line","n":%d}`, n))
}

func TestLinesAreWrittenInTheirOrder(t *testing.T) {
	file := &disk{}
	j := New(file, NewClock(), Options{})
	for n := range 10_000 {
		if !j.Put(numbered(n), 100, 0) {
			t.Fatalf("line %d was dropped", n)
		}
	}
	if err := j.Close(); err != nil || !file.closed {
		t.Fatalf("the file is not closed: %v", err)
	}
	lines, _ := file.lines(t)
	if len(lines) != 10_000 {
		t.Fatalf("expected 10000 lines, found %d", len(lines))
	}
	for n, line := range lines {
		if line.N != n {
			t.Fatalf("line %d has the number %d", n, line.N)
		}
	}
}

func TestCallersWaitOnceForASlowDiskAndDroppedLinesAreCounted(t *testing.T) {
	file := &disk{}
	file.hold()
	patience := 20 * time.Millisecond
	j := New(file, NewClock(), Options{Memory: 20_000, Patience: patience})
	begin := time.Now()
	const lines = 1000
	dropped := 0
	for n := range lines {
		if !j.Put(numbered(n), 100, 0) {
			dropped++
		}
	}
	if took := time.Since(begin); took > 20*patience {
		t.Errorf("the callers waited %v for a disk that holds its writes", took)
	}
	if dropped == 0 || j.Dropped() != uint64(dropped) || j.Err() == nil {
		t.Fatalf("%d lines were dropped, %d counted, the error is %v", dropped, j.Dropped(), j.Err())
	}
	file.release()
	j.Flush()
	if !j.Put(numbered(lines), 100, 0) {
		t.Error("the line after the slow time was dropped")
	}
	_ = j.Close()
	found, _ := file.lines(t)
	counted := 0
	for at, line := range found {
		if line.Kind == "dropped" {
			counted += line.Count
			if at != len(found)-2 {
				t.Errorf("the dropped lines are counted in line %d of %d", at+1, len(found))
			}
		}
	}
	if counted != dropped || len(found) != lines+1-dropped+1 {
		t.Errorf("%d lines were dropped, the file counts %d and has %d lines", dropped, counted, len(found))
	}
}

func TestManyCallersDoNotWaitTogetherLongerThanOne(t *testing.T) {
	file := &disk{}
	file.hold()
	patience := 50 * time.Millisecond
	j := New(file, NewClock(), Options{Memory: 10_000, Patience: patience})
	var wait sync.WaitGroup
	var longest atomic.Int64
	for range 50 {
		wait.Go(func() {
			for n := range 20 {
				begin := time.Now()
				j.Put(numbered(n), 100, 0)
				took := int64(time.Since(begin))
				for old := longest.Load(); took > old && !longest.CompareAndSwap(old, took); old = longest.Load() {
				}
			}
		})
	}
	wait.Wait()
	if took := time.Duration(longest.Load()); took > 10*patience {
		t.Errorf("one caller waited %v", took)
	}
	file.release()
	_ = j.Close()
}

func TestARecordingThatMayHaveNoHoleEndsAtTheFirstDroppedLine(t *testing.T) {
	first, second := &disk{}, &disk{}
	first.hold()
	options := Options{Memory: 5_000, Patience: time.Millisecond, Stop: new(atomic.Bool)}
	j, other := New(first, NewClock(), options), New(second, NewClock(), options)
	other.Put(numbered(0), 100, 0)
	for n := range 100 {
		j.Put(numbered(n), 100, 0)
	}
	first.release()
	j.Flush()
	if j.Put(numbered(100), 100, 0) || other.Put(numbered(1), 100, 0) {
		t.Error("a line after the hole was recorded")
	}
	_, _ = j.Close(), other.Close()
	for at, file := range []*disk{first, second} {
		lines, _ := file.lines(t)
		counted, markers := 0, 0
		for _, line := range lines {
			if line.Kind == "dropped" {
				counted += line.Count
				markers++
			} else if markers > 0 {
				t.Errorf("a line follows the dropped ones: %v", line)
			}
		}
		if expected := []*Journal{j, other}[at].Dropped(); uint64(counted) != expected || markers == 0 || markers > 2 {
			t.Errorf("%d lines were dropped, and the file counts %d in %d lines", expected, counted, markers)
		}
	}
}

func TestLinesOfAFailedWriteAreCounted(t *testing.T) {
	file := &disk{}
	j := New(file, NewClock(), Options{})
	j.Put(numbered(0), 100, 0)
	j.Flush()
	file.fail(true)
	j.Put(numbered(1), 100, 0)
	j.Flush()
	file.fail(false)
	j.Put(numbered(2), 100, 0)
	if err := j.Close(); err == nil {
		t.Error("the failed write is no error of the journal")
	}
	lines, cut := file.lines(t)
	expected := []line{{Kind: "line", N: 0}, {Kind: "dropped", Count: 1}, {Kind: "line", N: 2}}
	if cut != 1 || fmt.Sprint(lines) != fmt.Sprint(expected) {
		t.Errorf("expected %v and one line that is cut off, found %v and %d", expected, lines, cut)
	}
}

func TestARecordingThatMayHaveNoHoleEndsAtAFailedWrite(t *testing.T) {
	file := &disk{}
	j := New(file, NewClock(), Options{Stop: new(atomic.Bool)})
	j.Put(numbered(0), 100, 0)
	j.Flush()
	file.fail(true)
	j.Put(numbered(1), 100, 0)
	j.Flush()
	file.fail(false)
	if j.Put(numbered(2), 100, 0) {
		t.Error("a line after the hole was recorded")
	}
	_ = j.Close()
	lines, cut := file.lines(t)
	counted := 0
	for _, line := range lines[1:] {
		if line.Kind != "dropped" {
			t.Errorf("a line follows the failed write: %v", line)
		}
		counted += line.Count
	}
	if cut != 1 || counted != 2 || j.Dropped() != 2 {
		t.Errorf("2 lines are missing, the file counts %d, the journal %d", counted, j.Dropped())
	}
}

// broken is a line that cannot be encoded.
type broken struct{ lost bool }

func (b *broken) AppendLine([]byte, int64) []byte { panic("no form") }

func (b *broken) Lose() { b.lost = true }

func TestALineThatCannotBeEncodedIsCounted(t *testing.T) {
	file := &disk{}
	j := New(file, NewClock(), Options{})
	var line broken
	j.Put(numbered(0), 100, 0)
	j.Put(&line, 100, 0)
	j.Put(numbered(2), 100, 0)
	if err := j.Close(); err == nil || !line.lost || j.Dropped() != 1 {
		t.Errorf("the journal does not say that a line is missing: %v", err)
	}
	counted := 0
	lines, _ := file.lines(t)
	for _, line := range lines {
		counted += line.Count
	}
	if counted != 1 || len(lines) != 3 {
		t.Errorf("expected two lines and one dropped one, found %v", lines)
	}
}

func TestReservedMemoryIsBounded(t *testing.T) {
	file := &disk{}
	j := New(file, NewClock(), Options{Memory: 1000})
	if !j.Reserve(900) || j.Reserve(200) {
		t.Fatal("the journal does not bound reserved memory")
	}
	j.Release(300)
	if !j.Reserve(200) {
		t.Error("released memory is not free")
	}
	if !j.Put(numbered(1), 0, 800) {
		t.Error("a line with reserved memory was dropped")
	}
	j.Flush()
	if !j.Reserve(1000) {
		t.Error("the memory of a written line is not free")
	}
	_ = j.Close()
}

func TestLinesAfterTheEndAreNotRecorded(t *testing.T) {
	file := &disk{}
	j := New(file, NewClock(), Options{})
	_ = j.Close()
	if j.Put(numbered(1), 100, 0) || j.Reserve(1) || j.Dropped() != 0 || file.content.Len() != 0 {
		t.Error("a line was recorded after the end")
	}
	j.Flush()
}
