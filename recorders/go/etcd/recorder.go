package etcd

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"google.golang.org/grpc"

	"retrograde"
	"retrograde/internal/journal"
)

// Recorder records clients of etcd into one folder. Its methods may be called from any goroutine.
type Recorder struct {
	folder string
	bounds journal.Options
	clock  *journal.Clock
	next   atomic.Uint64

	mu      sync.Mutex
	clients map[string]*Client
}

// memory is the default bound for the waiting lines of one file. A client has two files.
const memory = 32 << 20

// Create makes a recording in a new or empty folder.
func Create(folder string) (*Recorder, error) {
	return CreateWithin(folder, retrograde.Limits{Memory: memory})
}

// CreateWithin is as Create, with bounds for each file.
func CreateWithin(folder string, limits retrograde.Limits) (*Recorder, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("create a recording of etcd: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("create a recording of etcd: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("create a recording of etcd: expected an empty folder, found files in %s", folder)
	}
	bounds := journal.Options{Memory: limits.Memory, Patience: limits.Patience, Stop: new(atomic.Bool)}
	return &Recorder{folder: folder, bounds: bounds, clock: journal.ProcessClock(), clients: map[string]*Client{}}, nil
}

// Client returns the client with a name. The same name continues the same client.
func (r *Recorder) Client(name string) *Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	folder := folderName(name)
	client := r.clients[folder]
	if client == nil {
		lines := func(name string) *journal.Journal {
			return journal.New(journal.Later(filepath.Join(r.folder, folder, name)), r.clock, r.bounds)
		}
		client = &Client{recorder: r, operations: lines("operations.json"), watches: lines("watch.json")}
		r.clients[folder] = client
	}
	return client
}

// Folder returns the folder of the recording.
func (r *Recorder) Folder() string {
	return r.folder
}

// Flush waits until everything that was recorded before is in the files.
func (r *Recorder) Flush() {
	for _, journal := range r.journals() {
		journal.Flush()
	}
}

// Err returns the first reason why the recording is incomplete, or nil.
func (r *Recorder) Err() error {
	for _, journal := range r.journals() {
		if err := journal.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close writes what is queued and closes the files. Its error is that of Err. Calls after it are not recorded.
func (r *Recorder) Close() error {
	for _, journal := range r.journals() {
		// Err has the first error of all.
		_ = journal.Close()
	}
	return r.Err()
}

func (r *Recorder) journals() []*journal.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*journal.Journal
	for _, client := range r.clients {
		all = append(all, client.operations, client.watches)
	}
	return all
}

// folderName is the folder of a client: its name in characters that every file system accepts.
func folderName(name string) string {
	count := 0
	folder := strings.Map(func(c rune) rune {
		if count++; count > 100 {
			return -1
		}
		if unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("-_.", c) {
			return c
		}
		return '_'
	}, name)
	if folder != name {
		// A hash keeps names with the same replacement apart.
		hash := fnv.New32a()
		hash.Write([]byte(name))
		folder = fmt.Sprintf("%s-%08x", folder, hash.Sum32())
	}
	return "client-" + folder
}

// Client is a client of etcd. It may have any number of calls at once.
type Client struct {
	recorder            *Recorder
	operations, watches *journal.Journal
}

// DialOptions returns the interceptors as options of a connection, for clientv3.Config. The client's own retries are
// outside of them, so each attempt is a call of its own.
func (c *Client) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(c.Unary),
		grpc.WithChainStreamInterceptor(c.Stream),
	}
}
