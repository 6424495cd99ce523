package etcd

import (
	"bytes"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"retrograde/internal/journal"
)

// watches are the watches of one stream. The server's answers name their ids, in the order of the requests.
type watches struct {
	client *Client

	mu sync.Mutex
	// asked are the requested watches in the order of the server's answers. Zero: not recorded.
	asked []int64
	// open are the numbers of watches in the recording, by the server's id.
	open map[int64]int64
	// fragments are the events of a revision that is split over responses, by the server's id.
	fragments map[int64][]*mvccpb.Event
	// lost is true after a request that could not be read.
	lost bool
}

// all is the id in a response for every watch of its stream.
const all = -1

func newWatches(c *Client) *watches {
	return &watches{client: c, open: map[int64]int64{}, fragments: map[int64][]*mvccpb.Event{}}
}

// sent records a message of the client, before it is sent.
func (w *watches) sent(request *pb.WatchRequest) {
	create := request.GetCreateRequest()
	if create == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		return
	}
	number := int64(0)
	// A report cannot express filters.
	if len(create.GetFilters()) == 0 {
		number = int64(w.client.recorder.next.Add(1))
		line := appendNumber([]byte{'{'}, "Watch", number)
		line = append(appendRequest(append(line, `,"Request":`...), create), '}')
		w.client.watches.Put(journal.Text(line), len(line), 0)
	}
	w.asked = append(w.asked, number)
}

// unread records a message of the client that cannot be read. Later ids can no longer be assigned.
func (w *watches) unread() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.lost = nil, true
}

// received records a message of the server, after it was read.
func (w *watches) received(response *pb.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := response.GetWatchId()
	if response.GetCreated() && len(w.asked) > 0 {
		if w.asked[0] != 0 {
			w.open[id] = w.asked[0]
		}
		w.asked = w.asked[1:]
	}
	revision := response.GetHeader().GetRevision()
	if isProgress(response) {
		for of, number := range w.open {
			if id == all || id == of {
				line := append([]byte(`"IsProgressNotify":true,`), appendNumber(nil, "Revision", revision)...)
				w.deliver(number, line)
			}
		}
		return
	}
	number, found := w.open[id]
	if !found {
		return
	}
	if events := response.GetEvents(); len(events) > 0 {
		events = append(w.fragments[id], events...)
		if response.GetFragment() {
			w.fragments[id] = events
		} else {
			delete(w.fragments, id)
			w.deliver(number, appendNumber(append(appendEvents(nil, events), ','), "Revision", revision))
		}
	}
	if response.GetCanceled() || response.GetCompactRevision() != 0 {
		delete(w.open, id)
		delete(w.fragments, id)
		switch reason := response.GetCancelReason(); {
		case response.GetCompactRevision() != 0:
			w.ended(number, "etcdserver: mvcc: required revision has been compacted")
		case reason != "":
			w.ended(number, reason)
		}
	}
}

// failed records that the stream ended with an error.
func (w *watches) failed(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, number := range w.open {
		w.ended(number, text)
	}
	clear(w.open)
	clear(w.fragments)
	w.asked = nil
}

func (w *watches) ended(number int64, text string) {
	w.deliver(number, appendString(nil, "Error", text))
}

// deliver records a response of a watch.
func (w *watches) deliver(number int64, members []byte) {
	line := appendNumber([]byte{'{'}, "Watch", number)
	line = append(append(line, `,"Responses":[{`...), members...)
	line = appendNumber(append(line, ','), "Time", w.client.recorder.clock.Now())
	line = append(line, "}]}"...)
	w.client.watches.Put(journal.Text(line), len(line), 0)
}

func isProgress(r *pb.WatchResponse) bool {
	other := r.GetCreated() || r.GetCanceled() || r.GetCompactRevision() != 0 || r.GetFragment()
	return !other && len(r.GetEvents()) == 0 && r.GetHeader().GetRevision() > 0
}

func appendRequest(to []byte, r *pb.WatchCreateRequest) []byte {
	key, end := r.GetKey(), r.GetRangeEnd()
	isAll := bytes.Compare(key, []byte{0}) <= 0 && bytes.Equal(end, []byte{0})
	isPrefix := isAll || len(end) > 0 && bytes.Equal(end, behind(key))
	if isAll {
		key = nil
	}
	if isPrefix {
		end = nil
	}
	to = appendKey(append(to, '{'), "Key", key)
	to = appendKey(append(to, ','), "End", end)
	to = appendNumber(append(to, ','), "Revision", r.GetStartRevision())
	to = appendFlag(append(to, ','), "WithPrefix", isPrefix)
	to = appendFlag(append(to, ','), "WithProgressNotify", r.GetProgressNotify())
	to = appendFlag(append(to, ','), "WithPrevKV", r.GetPrevKv())
	return append(to, '}')
}

// behind is one past the last key with a prefix, as clients compute it.
func behind(prefix []byte) []byte {
	for at := len(prefix) - 1; at >= 0; at-- {
		if prefix[at] < 0xff {
			end := bytes.Clone(prefix[:at+1])
			end[at]++
			return end
		}
	}
	return []byte{0}
}

func appendEvents(to []byte, events []*mvccpb.Event) []byte {
	to = append(to, `"Events":[`...)
	for at, event := range events {
		if at > 0 {
			to = append(to, ',')
		}
		to = appendEvent(to, event)
	}
	return append(to, ']')
}

func appendEvent(to []byte, event *mvccpb.Event) []byte {
	pair := event.GetKv()
	isDelete := event.GetType() == mvccpb.Event_DELETE
	kind := "put-operation"
	if isDelete {
		kind = "delete-operation"
	}
	to = appendString(append(to, '{'), "Type", kind)
	to = appendKey(append(to, ','), "Key", pair.GetKey())
	to = appendValue(append(to, ','), "Value", pair.GetValue())
	to = appendNumber(append(to, ','), "Revision", pair.GetModRevision())
	to = appendFlag(append(to, ','), "IsCreate", !isDelete && pair.GetCreateRevision() == pair.GetModRevision())
	if before := event.GetPrevKv(); before != nil {
		to = appendValue(append(to, `,"PrevValue":{`...), "Value", before.GetValue())
		to = appendNumber(append(to, ','), "ModRevision", before.GetModRevision())
		to = append(appendNumber(append(to, ','), "Version", before.GetVersion()), '}')
	}
	return append(to, '}')
}
