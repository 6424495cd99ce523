package retrograde

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// TB is the part of testing.TB that [Assert] needs.
type TB interface {
	Helper()
	Name() string
	Logf(format string, values ...any)
	Errorf(format string, values ...any)
	Fatalf(format string, values ...any)
}

// Check is a run of the checker. The zero value is ready for use.
type Check struct {
	// Program is the path of the checker. If it is empty, the variable RETROGRADE_BIN has the path. Without that, the
	// program is "retrograde" in one of the folders of PATH.
	Program string
	// Arguments are options of "retrograde check", such as "--rules", "machines.toml".
	Arguments []string
	// Pages is the folder that keeps the pages of failed assertions. If it is empty, the variable
	// RETROGRADE_REPORT_DIR has the folder. Without that, it is "retrograde" in the folder for temporary files.
	Pages string
	// AllowUnknown lets an undecided verdict pass. Its report is logged.
	AllowUnknown bool
}

// Assert runs "retrograde check" over files and folders of evidence. Close or flush the recorders before.
//
// The test fails unless the verdict is "holds". It then prints the report for people, and the path of a page with a
// picture that is kept. A missing program, and evidence that cannot be judged, fail the test too.
func Assert(t TB, evidence ...string) {
	t.Helper()
	Check{}.Assert(t, evidence...)
}

// Exit codes of the checker.
const (
	exitHolds    = 0
	exitViolated = 1
	exitUnknown  = 3
)

// Assert is as the function of the same name, with the options of this check.
func (c Check) Assert(t TB, evidence ...string) {
	t.Helper()
	program, err := c.program()
	if err != nil {
		t.Fatalf("expected the program retrograde in RETROGRADE_BIN or in a folder of PATH, found none: %v", err)
		return
	}
	page, err := c.page(t.Name())
	if err != nil {
		t.Fatalf("expected a folder for the page of %s, found none: %v", t.Name(), err)
		return
	}
	arguments := append([]string{"check", "--report", "html=" + page}, c.Arguments...)
	command := exec.Command(program, append(append(arguments, "--"), evidence...)...)
	var report, problems bytes.Buffer
	command.Stdout, command.Stderr = &report, &problems
	code := exitHolds
	if err := command.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("expected a report of %s, found an error: %v", program, err)
			return
		}
		code = exit.ExitCode()
	}
	switch {
	case code == exitHolds, code == exitUnknown && c.AllowUnknown:
		t.Logf("%s", report.String())
		_ = os.Remove(page)
	case code == exitViolated, code == exitUnknown:
		t.Errorf("expected the verdict \"holds\" over %s, found another:\n%s\nThe page is %s", strings.Join(evidence, " "), report.String(), page)
	default:
		t.Fatalf("expected a report of %s, found exit code %d:\n%s", program, code, problems.String())
	}
}

func (c Check) program() (string, error) {
	if c.Program != "" {
		return c.Program, nil
	}
	if program := os.Getenv("RETROGRADE_BIN"); program != "" {
		return program, nil
	}
	return exec.LookPath("retrograde")
}

// page makes the path of a new page in the folder for pages.
func (c Check) page(test string) (string, error) {
	folder := c.Pages
	if folder == "" {
		folder = os.Getenv("RETROGRADE_REPORT_DIR")
	}
	if folder == "" {
		folder = filepath.Join(os.TempDir(), "retrograde")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	plain := strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\:*?"<>| =`, c) {
			return '-'
		}
		return c
	}, test)
	file, err := os.CreateTemp(folder, plain+"-*.html")
	if err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}
