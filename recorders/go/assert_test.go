package retrograde

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// witness is a test that notes what an assertion does with it.
type witness struct {
	logged, failed, fatal string
}

func (w *witness) Helper()      {}
func (w *witness) Name() string { return "TestOf/another one" }

func (w *witness) Logf(format string, values ...any)   { w.logged += fmt.Sprintf(format, values...) }
func (w *witness) Errorf(format string, values ...any) { w.failed += fmt.Sprintf(format, values...) }
func (w *witness) Fatalf(format string, values ...any) { w.fatal += fmt.Sprintf(format, values...) }

// recording writes calls on a register: two writes, and a read of a value.
func recording(t *testing.T, value int) string {
	t.Helper()
	recorder := newRecorder(t, "register")
	client := recorder.Client("ann")
	client.Invoke(Operation{Name: "write", Value: 1}).Done()
	client.Invoke(Operation{Name: "write", Value: 2}).Done()
	client.Invoke(Operation{Name: "read"}).OK(value)
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	return recorder.Path()
}

func pages(t *testing.T, folder string) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(folder, "*.html"))
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func TestAssertPassesAHistoryThatHolds(t *testing.T) {
	check(t, "--help")
	folder := t.TempDir()
	t.Setenv("RETROGRADE_REPORT_DIR", folder)
	var w witness
	Assert(&w, recording(t, 2))
	if w.failed+w.fatal != "" || !strings.Contains(w.logged, "HOLDS") || len(pages(t, folder)) != 0 {
		t.Errorf("expected a passed test without a page, found %+v", w)
	}
}

func TestAssertPrintsTheReportAndKeepsThePageOfAViolation(t *testing.T) {
	check(t, "--help")
	folder := t.TempDir()
	var w witness
	Check{Pages: folder}.Assert(&w, recording(t, 1))
	found := pages(t, folder)
	if !strings.Contains(w.failed, "VIOLATION") || len(found) != 1 || !strings.Contains(w.failed, found[0]) {
		t.Fatalf("expected the report and the path of one page, found %+v and %v", w, found)
	}
	page, err := os.ReadFile(found[0])
	if err != nil || !strings.Contains(string(page), "</html>") {
		t.Errorf("expected a page, found %.100s: %v", page, err)
	}
}

func TestAssertFailsForAnUndecidedHistory(t *testing.T) {
	check(t, "--help")
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, Subject{Client: "c"}.heading(), 0o666); err != nil {
		t.Fatal(err)
	}
	var strict, lenient witness
	Check{Pages: t.TempDir()}.Assert(&strict, empty)
	Check{Pages: t.TempDir(), AllowUnknown: true}.Assert(&lenient, empty)
	if strict.failed == "" || lenient.failed+lenient.fatal != "" {
		t.Errorf("expected a failed and a passed test, found %+v and %+v", strict, lenient)
	}
}

func TestAssertFailsWithoutAReport(t *testing.T) {
	check(t, "--help")
	var w witness
	Check{Pages: t.TempDir()}.Assert(&w, filepath.Join(t.TempDir(), "missing"))
	if w.fatal == "" {
		t.Errorf("expected a failed test, found %+v", w)
	}
}

func TestAssertFailsWithoutTheProgram(t *testing.T) {
	t.Setenv("RETROGRADE_BIN", "")
	t.Setenv("PATH", t.TempDir())
	var w witness
	Assert(&w, "evidence")
	if !strings.Contains(w.fatal, "RETROGRADE_BIN") {
		t.Errorf("expected a message with the variable, found %+v", w)
	}
}
