package retrograde

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"retrograde/internal/journal"
	"retrograde/internal/reduction"
)

// slowDisk is a file whose writes wait until the disk is released.
type slowDisk struct {
	released chan struct{}

	mu      sync.Mutex
	content bytes.Buffer
}

func (d *slowDisk) Write(text []byte) (int, error) {
	<-d.released
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.content.Write(text)
}

func (d *slowDisk) Close() error {
	return nil
}

func slowCapture(memory int, patience time.Duration) (*Capture, *slowDisk) {
	disk := &slowDisk{released: make(chan struct{})}
	lines := journal.New(disk, journal.NewClock(), journal.Options{Memory: memory, Patience: patience})
	return &Capture{fields: reduction.Shipped(), journal: lines}, disk
}

func TestASlowDiskDelaysTheClientOnceAndDroppedRecordsAreCounted(t *testing.T) {
	patience := 50 * time.Millisecond
	capture, disk := slowCapture(20_000, patience)
	list := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"105"},"items":[]}`)
	ask := func(uri string, content []byte) {
		_, _ = io.ReadAll(get(t, capture.Transport(answering(&pieces{rest: content, size: 500}, -1)), uri).Body)
	}
	begin := time.Now()
	ask("/api/v1/pods", list)
	var stream []byte
	for n := range 500 {
		stream = append(stream, podEvent(n)...)
	}
	ask(watchURI, stream)
	list = bytes.Replace(list, []byte("105"), []byte("1000"), 1)
	for range 100 {
		ask("/api/v1/pods", list)
	}
	if took := time.Since(begin); took > 10*patience {
		t.Errorf("the client waited %v for the disk", took)
	}
	close(disk.released)
	capture.Flush()
	ask("/api/v1/pods", list)
	if err := capture.Close(); err == nil || capture.Dropped() == 0 {
		t.Errorf("the capture does not say that records were dropped: %v", err)
	}
	lines := untimed(t, disk.content.Bytes())
	counted := 0.0
	for at, line := range lines {
		if line["kind"] == "dropped" {
			counted += line["count"].(float64)
		}
		// The watch is request 2. Nothing of it follows the dropped records.
		if counted > 0 && line["id"] == 2.0 {
			t.Errorf("line %d is about a watch with dropped events: %v", at+1, line)
		}
	}
	if counted != float64(capture.Dropped()) {
		t.Errorf("%d records were dropped, the file counts %v", capture.Dropped(), counted)
	}
	// The checker does not call this history consistent.
	file := filepath.Join(t.TempDir(), "client.jsonl")
	text := append(Subject{Client: "c"}.heading(), disk.content.Bytes()...)
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	report, code := check(t, file)
	if code != exitUnknown || !strings.Contains(report, "records that the recorder dropped") {
		t.Errorf("expected the verdict unknown because of dropped records, found exit code %d and\n%s", code, report)
	}
}

// check runs the checker, if there is one.
func check(t *testing.T, arguments ...string) (report string, code int) {
	t.Helper()
	program, err := Check{}.program()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("RETROGRADE_BIN is not set, and PATH has no retrograde")
		}
		t.Skip("skipped: RETROGRADE_BIN is not set, and PATH has no retrograde")
	}
	output, err := exec.Command(program, append([]string{"check"}, arguments...)...).CombinedOutput()
	exit, failed := err.(*exec.ExitError)
	if err != nil && !failed {
		t.Fatal(err)
	}
	if failed {
		code = exit.ExitCode()
	}
	return string(output), code
}

func TestAnAnswerThatDoesNotFitIsDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.jsonl")
	capture, err := Create(path, Subject{}, WithLimits(Limits{Memory: 10_000}))
	if err != nil {
		t.Fatal(err)
	}
	large := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"105","note":"` + strings.Repeat("x", 20_000) + `"},"items":[]}`)
	read, _ := io.ReadAll(get(t, capture.Transport(answering(&pieces{rest: large, size: 500}, -1)), "/api/v1/pods").Body)
	if !bytes.Equal(read, large) {
		t.Error("the client read another answer than the server sent")
	}
	lines := linesOf(t, capture)
	if len(lines) != 4 || lines[2]["count"] != 1.0 || lines[3]["status"] != 200.0 || lines[3]["body"] != nil {
		t.Errorf("expected one dropped body and an answer without it, found %s", asJSON(lines))
	}
}

// TestHelperProcess is the process that the next test kills. It is no test.
func TestHelperProcess(t *testing.T) {
	path := os.Getenv("RETROGRADE_TEST_CAPTURE")
	if path == "" {
		t.Skip("skipped: it runs as the process of another test")
	}
	capture, err := Create(path, Subject{Client: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		body := get(t, capture.Transport(answering(&pieces{rest: podEvent(n), size: 500}, -1)), watchURI).Body
		_, _ = io.ReadAll(body)
		if n < 1000 {
			continue
		}
		// A client that waits for its server leaves the recorder time to write.
		time.Sleep(time.Millisecond)
		if n == 1050 {
			if _, err := os.Stdout.WriteString("begun\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTheCaptureOfAKilledProcessIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.jsonl")
	command := exec.Command(os.Args[0], "-test.run=TestHelperProcess")
	command.Env = append(os.Environ(), "RETROGRADE_TEST_CAPTURE="+path)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(output, make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	lines := untimed(t, whole)
	if len(lines) < 4000 {
		t.Errorf("expected at least 4000 lines, found %d", len(lines))
	}
	for _, line := range lines {
		if line["kind"] == "dropped" {
			t.Errorf("records were dropped: %v", line)
		}
	}
}

// fullDisk fails each write while it is full.
type fullDisk struct {
	mu      sync.Mutex
	isFull  bool
	content bytes.Buffer
}

func (d *fullDisk) fill(isFull bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isFull = isFull
}

func (d *fullDisk) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isFull {
		return 0, errors.New("no space left on device")
	}
	return d.content.Write(text)
}

func (d *fullDisk) Close() error {
	return nil
}

func TestAWatchEndsInTheFileWithAnEventThatTheDiskRefused(t *testing.T) {
	disk := &fullDisk{}
	lines := journal.New(disk, journal.NewClock(), journal.Options{})
	capture := &Capture{fields: reduction.Shipped(), journal: lines}
	one := podEvent(1)
	stream := append(append(one, podEvent(2)...), podEvent(3)...)
	body := get(t, capture.Transport(answering(&pieces{rest: stream, size: len(one)}, -1)), watchURI).Body
	for _, isFull := range []bool{false, true, false} {
		disk.fill(isFull)
		if _, err := body.Read(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		capture.Flush()
	}
	_, _ = io.ReadAll(body)
	if err := capture.Close(); err == nil {
		t.Error("the refused event is no error of the capture")
	}
	var kinds []string
	for _, line := range untimed(t, disk.content.Bytes()) {
		kinds = append(kinds, line["kind"].(string))
	}
	all := strings.Join(kinds, " ")
	if rest, found := strings.CutPrefix(all, "request response event dropped"); !found || strings.Trim(rest, " dropped") != "" {
		t.Errorf("expected one event and dropped ones, found %s", all)
	}
}
