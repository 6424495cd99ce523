package retrograde

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exchangeCase is a request and its answer in testdata/exchanges.json. The Rust layer of the checker is tested with
// the same file.
type exchangeCase struct {
	Name, Method, URI string
	Body, Answer      json.RawMessage
	Events            []json.RawMessage
	Status            int
	ContentType       string `json:"content_type"`
	AuditID           string `json:"audit_id"`
	Gzip              bool
	// End is refused, error, closed or empty.
	End string
}

func exchangeCases(t testing.TB) []exchangeCase {
	t.Helper()
	text, err := os.ReadFile("testdata/exchanges.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []exchangeCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// textOf returns a text as it is, and any other value as JSON on one line.
func textOf(t testing.TB, value json.RawMessage) []byte {
	t.Helper()
	if len(value) == 0 {
		return nil
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return []byte(text)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes()
}

func (e *exchangeCase) content(t testing.TB) []byte {
	t.Helper()
	plain := textOf(t, e.Answer)
	for _, event := range e.Events {
		plain = append(append(plain, textOf(t, event)...), '\n')
	}
	if !e.Gzip {
		return plain
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// pieces is a body that is read in pieces of a size, and that ends with an error if it has one.
type pieces struct {
	rest []byte
	size int
	err  error
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n := copy(into, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) Close() error {
	return nil
}

var errBroken = errors.New("connection reset")

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}

// answer makes the server's answer.
func (e *exchangeCase) answer(t testing.TB, size int) roundTripper {
	return func(request *http.Request) (*http.Response, error) {
		if e.End == "refused" {
			return nil, errors.New("no connection")
		}
		body := &pieces{rest: e.content(t), size: size}
		if e.End == "error" {
			body.err = errBroken
		}
		header := http.Header{}
		header.Set("Content-Type", "application/json")
		if e.ContentType != "" {
			header.Set("Content-Type", e.ContentType)
		}
		if e.AuditID != "" {
			header.Set("Audit-Id", e.AuditID)
		}
		if e.Gzip {
			header.Set("Content-Encoding", "gzip")
		}
		status := max(e.Status, 0)
		if status == 0 {
			status = http.StatusOK
		}
		return &http.Response{StatusCode: status, Header: header, Body: body, ContentLength: -1, Request: request}, nil
	}
}

// play sends the request through the capture. It reads the answer as the exchange says, and returns it.
func (e *exchangeCase) play(t testing.TB, capture *Capture, size int) []byte {
	t.Helper()
	request, err := http.NewRequest(e.Method, "https://server"+e.URI, bytes.NewReader(textOf(t, e.Body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer hunter2")
	response, err := capture.Transport(e.answer(t, size)).RoundTrip(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var read io.Reader = response.Body
	if e.End == "closed" {
		read = io.LimitReader(read, int64(len(e.content(t))))
	}
	content, err := io.ReadAll(read)
	if (err != nil) != (e.End == "error") {
		t.Errorf("%s: the answer ends with %v", e.Name, err)
	}
	return content
}

// newCapture makes a capture in a folder of the test.
func newCapture(t testing.TB, options ...Option) *Capture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "client.jsonl")
	capture, err := Create(path, Subject{Client: "system:node:n1", Incarnation: "1"}, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { capture.Close() })
	return capture
}

// linesOf closes a capture and returns its lines without their times.
func linesOf(t testing.TB, capture *Capture) []map[string]any {
	t.Helper()
	capture.Close()
	text, err := os.ReadFile(capture.Path())
	if err != nil {
		t.Fatal(err)
	}
	return untimed(t, text)
}

func untimed(t testing.TB, text []byte) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range bytes.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		delete(fields, "at")
		lines = append(lines, fields)
	}
	return lines
}

// The error texts of the two languages differ.
func withoutError(line map[string]any) map[string]any {
	delete(line, "error")
	return line
}

func TestCaptureAgreesWithTheRustLayer(t *testing.T) {
	golden, err := os.ReadFile("testdata/capture.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	expected := untimed(t, golden)
	for _, size := range []int{1, 7, 100, 1 << 20} {
		capture := newCapture(t)
		for _, e := range exchangeCases(t) {
			read := e.play(t, capture, size)
			if e.End != "refused" && !bytes.Equal(read, e.content(t)) {
				t.Errorf("%s: the client read another answer than the server sent", e.Name)
			}
		}
		found := linesOf(t, capture)
		for at := range max(len(expected), len(found)) {
			switch {
			case at >= len(found):
				t.Fatalf("line %d is missing: %v", at+1, expected[at])
			case at >= len(expected):
				t.Fatalf("line %d is not expected: %v", at+1, found[at])
			case !reflect.DeepEqual(withoutError(expected[at]), withoutError(found[at])):
				t.Fatalf("pieces of %d bytes, line %d: expected\n%s\nfound\n%s", size, at+1, asJSON(expected[at]), asJSON(found[at]))
			}
		}
	}
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// captured plays all exchanges, and returns the content of their capture.
func captured(t *testing.T) []byte {
	t.Helper()
	capture := newCapture(t)
	for _, e := range exchangeCases(t) {
		e.play(t, capture, 100)
	}
	capture.Close()
	text, err := os.ReadFile(capture.Path())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCaptureHasNothingOfSecretsAndHeaders(t *testing.T) {
	text := captured(t)
	for _, secret := range []string{"hunter2", "aHVudGVyMg", "Bearer"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the capture has %s", secret)
		}
	}
}

// The program must say the same about the capture of the Rust layer and about this one. The exchanges are no history
// of one server, so there are violations to compare.
func TestTheCheckerSaysTheSameAboutBothCaptures(t *testing.T) {
	text := captured(t)
	golden, err := os.ReadFile("testdata/capture.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	// The golden file has no times. Those of the capture make it comparable.
	var timed []byte
	ours, theirs := bytes.Split(text, []byte{'\n'}), bytes.Split(golden, []byte{'\n'})
	for at, line := range theirs {
		if found := regexp.MustCompile(`"at":\d+`).Find(ours[at]); found != nil {
			line = slices.Concat([]byte{'{'}, found, []byte{','}, line[1:])
		}
		timed = append(append(timed, line...), '\n')
	}
	var reports [2]string
	for at, content := range [][]byte{text, timed} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("client.jsonl", content, 0o666); err != nil {
			t.Fatal(err)
		}
		report, code := check(t, "client.jsonl")
		if code != exitViolated || strings.Contains(report, "could not be used") {
			t.Errorf("expected exit code 1 and no problems, found %d and\n%s", code, report)
		}
		reports[at], _, _ = strings.Cut(report, "Read  ")
		_, findings, _ := strings.Cut(report, "\nIs what each client saw")
		reports[at] += findings
	}
	if reports[0] != reports[1] {
		t.Errorf("the reports differ:\n%s\n%s", reports[0], reports[1])
	}
}
