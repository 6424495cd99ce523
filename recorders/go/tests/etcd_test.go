package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retrograde"
	"retrograde/etcd"
)

// member is an etcd that can be frozen, killed and started again on its data.
type member struct {
	program, folder, client, peer string
	process                       *exec.Cmd
}

func startMember(t *testing.T) *member {
	t.Helper()
	m := &member{program: filepath.Join(servers(t, "etcd"), "etcd"), folder: t.TempDir(), client: freeAddress(t), peer: freeAddress(t)}
	m.start(t)
	t.Cleanup(m.kill)
	return m
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (m *member) start(t *testing.T) {
	t.Helper()
	client, peer := "http://"+m.client, "http://"+m.peer
	m.process = exec.Command(m.program, "--data-dir="+m.folder, "--log-level=error",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	m.process.Stderr = os.Stderr
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "an etcd that listens", func() bool {
		connection, err := net.Dial("tcp", m.client)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}

func (m *member) kill() {
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
}

// traffic are recorded clients that run through restarts of etcd.
type traffic struct {
	recorder *etcd.Recorder
	address  string
	answered atomic.Int64
	head     atomic.Int64
	seen     [5]atomic.Int64
}

func (tr *traffic) client(t *testing.T, name string) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Endpoints: []string{tr.address}, DialTimeout: patience, Logger: zap.NewNop()}
	client, err := newEtcdClient(config, tr.recorder, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// ask sends requests until the context ends.
func (tr *traffic) ask(ctx context.Context, client *clientv3.Client, number int) {
	dice := rand.New(rand.NewPCG(uint64(number), 1))
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s/%d", []string{"jobs", "locks"}[dice.IntN(2)], dice.IntN(6))
		value := fmt.Sprintf("%d-%d", number, n)
		if dice.IntN(8) == 0 {
			value += "-and-a-long-tail-behind-it"
		}
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := tr.one(call, client, dice, key, value)
		cancel()
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		tr.answered.Add(1)
		time.Sleep(4 * time.Millisecond)
	}
}

func (tr *traffic) one(ctx context.Context, client *clientv3.Client, dice *rand.Rand, key, value string) error {
	switch dice.IntN(14) {
	case 12, 13:
		return readInParts(ctx, client)
	case 0, 1, 2:
		_, err := client.Put(ctx, key, value)
		return err
	case 3, 4:
		answer, err := client.Get(ctx, "jobs/", clientv3.WithPrefix(), clientv3.WithLimit(int64(3*dice.IntN(3))))
		if err == nil {
			tr.raise(answer.Header.Revision)
		}
		return err
	case 5, 6:
		found, err := client.Get(ctx, key)
		if err != nil {
			return err
		}
		revision := int64(0)
		if len(found.Kvs) > 0 {
			revision = found.Kvs[0].ModRevision
		}
		_, err = client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
			Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
		return err
	case 7:
		_, err := client.Delete(ctx, key)
		return err
	case 8:
		lease, err := client.Grant(ctx, 3600)
		if err != nil {
			return err
		}
		if _, err := client.Put(ctx, key, value, clientv3.WithLease(lease.ID)); err != nil {
			return err
		}
		if dice.IntN(2) == 0 {
			_, err = client.Revoke(ctx, lease.ID)
		}
		return err
	case 9:
		if old := tr.head.Load() - int64(dice.IntN(20)); old > 1 {
			_, err := client.Get(ctx, "jobs/", clientv3.WithPrefix(), clientv3.WithRev(old))
			return err
		}
		return nil
	case 10:
		_, err := client.Get(ctx, key, clientv3.WithSerializable())
		return err
	default:
		_, err := client.Get(ctx, "locks/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err
	}
}

// readInParts reads keys by RangeStream. etcd before 3.7 refuses that.
func readInParts(ctx context.Context, client *clientv3.Client) error {
	parts, err := client.GetStream(ctx, "jobs/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for part := range parts {
		if err := part.Err(); err != nil && status.Code(err) != codes.Unimplemented {
			return err
		}
	}
	return nil
}

func (tr *traffic) raise(revision int64) {
	for old := tr.head.Load(); revision > old && !tr.head.CompareAndSwap(old, revision); old = tr.head.Load() {
	}
}

// watched are the options of the watches.
var watched = [5][]clientv3.OpOption{
	{clientv3.WithPrefix(), clientv3.WithPrevKV()},
	{clientv3.WithPrefix(), clientv3.WithFragment()},
	{clientv3.WithPrefix()},
	{clientv3.WithRange("locks/3")},
	{clientv3.WithPrevKV()},
}

var watchedKeys = [5]string{"", "", "jobs/", "jobs/3", "locks/1"}

// watch watches from the first revision on. The client resumes by itself after a broken stream.
func (tr *traffic) watch(ctx context.Context, client *clientv3.Client, number int) {
	options := append([]clientv3.OpOption{clientv3.WithRev(1), clientv3.WithProgressNotify()}, watched[number]...)
	for response := range client.Watch(clientv3.WithRequireLeader(ctx), watchedKeys[number], options...) {
		if response.Err() != nil {
			return
		}
		tr.seen[number].Store(response.Header.Revision)
	}
}

func TestClientsOfAnEtcdThatIsKilledTwiceSawOneHistory(t *testing.T) {
	program := checker(t)
	server := startMember(t)
	folder := filepath.Join(t.TempDir(), "recording")
	recorder, err := etcd.Create(folder)
	if err != nil {
		t.Fatal(err)
	}
	tr := &traffic{recorder: recorder, address: server.client}
	asking, stopAsking := context.WithCancel(t.Context())
	watching, stopWatching := context.WithCancel(t.Context())
	defer stopWatching()
	defer stopAsking()
	var askers, watchers sync.WaitGroup
	for number := range 8 {
		client := tr.client(t, fmt.Sprintf("asks-%d", number))
		askers.Go(func() { tr.ask(asking, client, number) })
	}
	for number := range watched {
		client := tr.client(t, fmt.Sprintf("watches-%d", number))
		watchers.Go(func() { tr.watch(watching, client, number) })
	}
	for kill := range 2 {
		goal := int64(300 * (kill + 1))
		until(t, "answered calls", func() bool { return tr.answered.Load() > goal })
		// A frozen server leaves calls without an answer.
		if err := server.process.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		server.kill()
		time.Sleep(150 * time.Millisecond)
		server.start(t)
	}
	until(t, "answered calls", func() bool { return tr.answered.Load() > 900 })
	stopAsking()
	askers.Wait()
	last := tr.client(t, "last")
	var head int64
	until(t, "the last revision", func() bool {
		call, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answer, err := last.Get(call, "jobs/")
		if err == nil {
			head = answer.Header.Revision
		}
		return err == nil
	})
	// Every change reaches the watches of all keys.
	until(t, "all events", func() bool { return tr.seen[0].Load() >= head && tr.seen[1].Load() >= head })
	stopWatching()
	watchers.Wait()
	if err := recorder.Close(); err != nil {
		t.Error(err)
	}
	unanswered := openCalls(t, folder)
	t.Logf("%d answered calls, %d with an error or without an end, head %d", tr.answered.Load(), unanswered, head)
	if unanswered == 0 {
		t.Error("the calls that were open when etcd was killed have answers")
	}
	retrograde.Check{Program: program}.Assert(t, folder)

	// The same recording without one delivered event is no history.
	tampered := filepath.Join(t.TempDir(), "tampered")
	if err := os.CopyFS(tampered, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	dropEvent(t, filepath.Join(tampered, "client-watches-0", "watch.json"))
	report, err := exec.Command(program, "check", tampered).Output()
	if exit, _ := err.(*exec.ExitError); exit == nil || exit.ExitCode() != 1 || !bytes.Contains(report, []byte("VIOLATION  watch-gap")) {
		t.Errorf("expected a violation of watch-gap, found %v and\n%s", err, report)
	}
}

// dropEvent removes the event in the middle of a file of watches.
func dropEvent(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte{'\n'})
	for at := len(lines) / 2; at < len(lines); at++ {
		if bytes.Contains(lines[at], []byte(`"Events"`)) {
			if err := os.WriteFile(file, bytes.Join(append(lines[:at:at], lines[at+1:]...), nil), 0o666); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s has no event in its second half", file)
}

// openCalls counts the calls whose outcome is an error, or that have no end.
func openCalls(t *testing.T, folder string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "client-*", "operations.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("expected operations of clients, found none: %v", err)
	}
	open := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ended := map[int]bool{}
		begun := 0
		for line := range bytes.Lines(text) {
			var call struct {
				ClientId int
				Output   *struct{ Error string }
			}
			if err := json.Unmarshal(line, &call); err != nil {
				t.Fatal(err)
			}
			if call.Output == nil {
				begun++
			} else if call.Output.Error == "" || strings.Contains(call.Output.Error, "Unimplemented") {
				ended[call.ClientId] = true
			}
		}
		open += begun - len(ended)
	}
	return open
}
