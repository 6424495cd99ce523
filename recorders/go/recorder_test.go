package retrograde

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func newRecorder(t *testing.T, model string) *Recorder {
	t.Helper()
	recorder, err := NewRecorder(filepath.Join(t.TempDir(), "calls.jsonl"), model)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { recorder.Close() })
	return recorder
}

func TestCallsOfARegisterAreChecked(t *testing.T) {
	recorder := newRecorder(t, "register")
	var register struct {
		sync.Mutex
		value int
	}
	var wait sync.WaitGroup
	for number, name := range []string{"ann", "bob", "cleo"} {
		client := recorder.Client(name)
		wait.Go(func() {
			for n := range 100 {
				write := client.Invoke(Operation{Name: "write", Value: 1000*number + n})
				register.Lock()
				register.value = 1000*number + n
				register.Unlock()
				write.Done()
				read := client.Invoke(Operation{Name: "read"})
				register.Lock()
				value := register.value
				register.Unlock()
				read.OK(value)
			}
		})
	}
	wait.Wait()
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	if report, code := check(t, recorder.Path()); code != exitHolds {
		t.Errorf("expected a history that holds, found exit code %d and\n%s", code, report)
	}
}

func TestAStaleReadIsConvicted(t *testing.T) {
	recorder := newRecorder(t, "kv")
	client := recorder.Client("ann")
	client.Invoke(Operation{Name: "put", Key: "k", Value: "old"}).Done()
	client.Invoke(Operation{Name: "put", Key: "k", Value: "new"}).Done()
	client.Invoke(Operation{Name: "put", Key: "k", Value: "refused"}).Failed()
	client.Invoke(Operation{Name: "get", Key: "k"}).OK("old")
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	report, code := check(t, recorder.Path())
	if code != exitViolated || !strings.Contains(report, "linearizability") {
		t.Errorf("expected a violation of linearizability, found exit code %d and\n%s", code, report)
	}
}

func TestACallWithoutAnEndMayHaveHappened(t *testing.T) {
	for _, value := range []string{"old", "new"} {
		recorder := newRecorder(t, "kv")
		client := recorder.Client("ann")
		client.Invoke(Operation{Name: "put", Key: "k", Value: "old"}).Done()
		client.Invoke(Operation{Name: "put", Key: "k", Value: "new"})
		client.Invoke(Operation{Name: "get", Key: "k"}).OK(value)
		if err := recorder.Close(); err != nil {
			t.Fatal(err)
		}
		if report, code := check(t, recorder.Path()); code != exitHolds {
			t.Errorf("expected a history that holds, found exit code %d and\n%s", code, report)
		}
	}
}
