package etcd

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"retrograde"
)

// A recording with a hole must not look like one without.
func TestARecordingEndsAtItsFirstDroppedRecord(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "recording")
	recorder, err := CreateWithin(folder, retrograde.Limits{Memory: 2000, Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := recorder.Client("ann"), recorder.Client("bob")
	put := func(client *Client, key string, revision int64) {
		step{"/etcdserverpb.KV/Put", &pb.PutRequest{Key: []byte(key), Value: []byte("v")}, &pb.PutResponse{Header: header(revision)}, nil}.play(client)
	}
	put(bob, "k", 2)
	put(ann, "k", 3)
	recorder.Flush()
	// This key does not fit.
	put(ann, strings.Repeat("k", 3000), 4)
	put(ann, "k", 5)
	put(bob, "k", 6)
	if err := recorder.Close(); err == nil {
		t.Error("the recording does not say that records were dropped")
	}
	dropped := map[string]int{"ann": 4, "bob": 2}
	for _, name := range []string{"ann", "bob"} {
		text, err := os.ReadFile(filepath.Join(folder, "client-"+name, "operations.json"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		count := 0
		for _, line := range lines[2:] {
			var last struct {
				Kind  string
				Count int
			}
			if err := json.Unmarshal([]byte(line), &last); err != nil || last.Kind != "dropped" {
				t.Errorf("%s: expected one call and the number of dropped records, found\n%s", name, text)
			}
			count += last.Count
		}
		if count != dropped[name] {
			t.Errorf("%s: expected %d dropped records, found\n%s", name, dropped[name], text)
		}
	}
	program := os.Getenv("RETROGRADE_BIN")
	if program == "" {
		if program, err = exec.LookPath("retrograde"); err != nil && os.Getenv("CI") == "" {
			t.Skip("skipped: RETROGRADE_BIN is not set, and PATH has no retrograde")
		}
	}
	report, _ := exec.Command(program, "check", folder).CombinedOutput()
	if !strings.HasPrefix(string(report), "UNKNOWN") || !strings.Contains(string(report), "records that the recorder dropped") {
		t.Errorf("expected the verdict unknown because of dropped records, found\n%s", report)
	}
}
