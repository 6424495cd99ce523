package etcd

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// message is one message of a call or of a watch stream, in testdata/etcd_exchanges.json. The Rust recorder of the
// checker is tested with the same file.
type message struct {
	// Path is the path of a call. It is empty for a message of the watch stream.
	Path string `json:"path,omitempty"`
	// Sent and Received are protobuf messages in hexadecimal digits. A call without both has no end.
	Sent     *string `json:"sent,omitempty"`
	Received *string `json:"received,omitempty"`
	// Code and Text are an error.
	Code string `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
}

// step is a message with its types.
type step struct {
	path           string
	sent, received proto.Message
	err            error
}

func header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 1, MemberId: 0xab12, Revision: revision, RaftTerm: 2}
}

func pair(key string, value string, created, revision, version int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: created, ModRevision: revision, Version: version}
}

func readOf(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func putOf(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

// calls are calls of all kinds.
func calls() []step {
	const kv, lease = "/etcdserverpb.KV/", "/etcdserverpb.Lease/"
	all := []byte{0}
	long, binary := "a value of more than twenty bytes", "\xff\x00"
	compare := func(target pb.Compare_CompareTarget, result pb.Compare_CompareResult) *pb.Compare {
		return &pb.Compare{Key: []byte("k"), Target: target, Result: result}
	}
	version, created, modified := compare(0, 0), compare(1, 1), compare(2, 2)
	version.TargetUnion = &pb.Compare_Version{Version: 3}
	created.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: 0}
	modified.TargetUnion = &pb.Compare_ModRevision{ModRevision: 9}
	valued, leased := compare(3, 3), compare(4, 0)
	valued.TargetUnion = &pb.Compare_Value{Value: []byte(long)}
	leased.TargetUnion, leased.RangeEnd = &pb.Compare_Lease{Lease: -7}, []byte("l")
	deletion := &pb.DeleteRangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}
	txn := &pb.TxnRequest{
		Compare: []*pb.Compare{version, created, modified, valued, leased},
		Success: []*pb.RequestOp{putOf(&pb.PutRequest{Key: []byte("k"), Value: []byte("v"), Lease: 7}),
			{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: deletion}}},
		Failure: []*pb.RequestOp{readOf(&pb.RangeRequest{Key: []byte("k"), Serializable: true})},
	}
	found := &pb.RangeResponse{Header: header(5), Kvs: []*mvccpb.KeyValue{pair("k", "v", 2, 4, 2), pair("\x80\xff", binary, 3, 3, 1)}, Count: 2}
	return []step{
		{kv + "Range", &pb.RangeRequest{Key: []byte("k")}, found, nil},
		{kv + "Range", &pb.RangeRequest{Key: all, RangeEnd: all, Limit: 2, Revision: 4, KeysOnly: true, CountOnly: true, Serializable: true}, &pb.RangeResponse{Header: header(6), Count: 9}, nil},
		{kv + "Range", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), SortTarget: pb.RangeRequest_VALUE}, found, nil},
		{kv + "Range", &pb.RangeRequest{Key: []byte("k"), SortOrder: pb.RangeRequest_DESCEND, Limit: 1}, found, nil},
		{kv + "Range", &pb.RangeRequest{Key: []byte("k"), MinModRevision: 3}, found, nil},
		{kv + "Range", &pb.RangeRequest{Key: []byte("k"), Revision: 1}, nil, status.Error(codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted")},
		{kv + "Put", &pb.PutRequest{Key: []byte("k"), Value: []byte(long), Lease: 7}, &pb.PutResponse{Header: header(7)}, nil},
		{kv + "Put", &pb.PutRequest{Key: []byte("\x80k\x01\"<"), Value: []byte(binary)}, &pb.PutResponse{Header: &pb.ResponseHeader{Revision: 8}}, nil},
		{kv + "Put", &pb.PutRequest{Key: []byte("k"), IgnoreValue: true}, &pb.PutResponse{Header: header(9)}, nil},
		{kv + "Put", &pb.PutRequest{Key: []byte("k")}, nil, status.Error(codes.Unavailable, "etcdserver: request timed out")},
		{kv + "Put", &pb.PutRequest{Key: []byte("without an end"), Value: []byte("v")}, nil, nil},
		{kv + "DeleteRange", deletion, &pb.DeleteRangeResponse{Header: header(10), Deleted: 3}, nil},
		{kv + "Txn", txn, &pb.TxnResponse{Header: header(11), Succeeded: true, Responses: []*pb.ResponseOp{
			{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{Header: header(11)}}},
			{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{Deleted: 1}}},
		}}, nil},
		{kv + "Txn", txn, &pb.TxnResponse{Header: header(11), Responses: []*pb.ResponseOp{
			{Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}},
		}}, nil},
		{kv + "Txn", &pb.TxnRequest{}, &pb.TxnResponse{Header: header(11), Succeeded: true}, nil},
		{kv + "Txn", &pb.TxnRequest{Success: []*pb.RequestOp{readOf(&pb.RangeRequest{Key: []byte("k"), Serializable: true})}}, &pb.TxnResponse{Header: header(11), Succeeded: true}, nil},
		{kv + "Txn", &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{}}}}}, &pb.TxnResponse{Header: header(12)}, nil},
		{kv + "Txn", &pb.TxnRequest{Success: []*pb.RequestOp{putOf(&pb.PutRequest{Key: []byte("k"), IgnoreLease: true})}}, &pb.TxnResponse{Header: header(13)}, nil},
		{kv + "Compact", &pb.CompactionRequest{Revision: 4, Physical: true}, &pb.CompactionResponse{Header: header(14)}, nil},
		{lease + "LeaseGrant", &pb.LeaseGrantRequest{TTL: 60}, &pb.LeaseGrantResponse{Header: header(14), ID: 77, TTL: 60}, nil},
		{lease + "LeaseGrant", &pb.LeaseGrantRequest{TTL: 60}, nil, status.Error(codes.DeadlineExceeded, "context deadline exceeded")},
		{lease + "LeaseRevoke", &pb.LeaseRevokeRequest{ID: 77}, &pb.LeaseRevokeResponse{Header: header(15)}, nil},
		{lease + "LeaseTimeToLive", &pb.LeaseTimeToLiveRequest{ID: 77}, &pb.LeaseTimeToLiveResponse{Header: header(15)}, nil},
		{"/etcdserverpb.Maintenance/Status", &pb.StatusRequest{}, &pb.StatusResponse{Header: header(15)}, nil},
	}
}

// stream are the messages of one watch stream.
func stream() []step {
	create := func(r *pb.WatchCreateRequest) step {
		return step{sent: &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}}
	}
	created := func(id int64) step {
		return step{received: &pb.WatchResponse{Header: header(3), WatchId: id, Created: true}}
	}
	put := func(pair, before *mvccpb.KeyValue) *mvccpb.Event {
		return &mvccpb.Event{Kv: pair, PrevKv: before}
	}
	gone := &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte("k"), ModRevision: 6}, PrevKv: pair("k", "w", 4, 5, 2)}
	return []step{
		create(&pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: 1, PrevKv: true, ProgressNotify: true}),
		create(&pb.WatchCreateRequest{Key: []byte("jobs/"), RangeEnd: []byte("jobs0"), Fragment: true}),
		create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("k")}),
		create(&pb.WatchCreateRequest{Key: []byte("k"), Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}}),
		created(0), created(1), created(2), created(3),
		{sent: &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}},
		{received: &pb.WatchResponse{Header: header(5), Events: []*mvccpb.Event{put(pair("k", "v", 4, 4, 1), nil), put(pair("k", "w", 4, 5, 2), pair("k", "v", 4, 4, 1))}}},
		{received: &pb.WatchResponse{Header: header(6), Events: []*mvccpb.Event{gone}}},
		{received: &pb.WatchResponse{Header: header(7), WatchId: 1, Fragment: true, Events: []*mvccpb.Event{put(pair("jobs/1", "v", 7, 7, 1), nil)}}},
		{received: &pb.WatchResponse{Header: header(7), WatchId: 1, Events: []*mvccpb.Event{put(pair("jobs/2", "a value of more than twenty bytes", 7, 7, 1), nil)}}},
		{received: &pb.WatchResponse{Header: header(7), WatchId: 3, Events: []*mvccpb.Event{gone}}},
		{received: &pb.WatchResponse{Header: header(8), WatchId: 2}},
		{received: &pb.WatchResponse{Header: header(8), WatchId: 1, Canceled: true, CompactRevision: 4}},
		{received: &pb.WatchResponse{Header: header(8), WatchId: 2, Canceled: true, CancelReason: "etcdserver: no leader"}},
		create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 9}),
		{err: status.Error(codes.Unavailable, "error reading from server: EOF")},
	}
}

func encoded(t *testing.T, m proto.Message) *string {
	t.Helper()
	if m == nil {
		return nil
	}
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	text := hex.EncodeToString(wire)
	return &text
}

func (s step) message(t *testing.T) message {
	t.Helper()
	m := message{Path: s.path, Sent: encoded(t, s.sent), Received: encoded(t, s.received)}
	if s.err != nil {
		m.Code, m.Text = status.Code(s.err).String(), status.Convert(s.err).Message()
	}
	return m
}

// UPDATE=1 writes the messages anew. Then the tests of the checker have to write the recording anew.
func TestMessagesOfTheRustRecorderAreTheseMessages(t *testing.T) {
	var all []message
	for _, step := range append(calls(), stream()...) {
		all = append(all, step.message(t))
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile("../testdata/etcd_exchanges.json", text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile("../testdata/etcd_exchanges.json")
	if err != nil || string(written) != string(text) {
		t.Errorf("expected testdata/etcd_exchanges.json as UPDATE=1 writes it, found another: %v", err)
	}
}

// script is a stream that sends nothing and receives messages one after the other.
type script struct {
	grpc.ClientStream
	rest []step
}

func (s *script) SendMsg(any) error {
	return nil
}

func (s *script) RecvMsg(into any) error {
	if len(s.rest) == 0 {
		return io.EOF
	}
	next := s.rest[0]
	s.rest = s.rest[1:]
	if next.err != nil {
		return next.err
	}
	proto.Merge(into.(proto.Message), next.received)
	return nil
}

func newRecorder(t *testing.T) *Recorder {
	t.Helper()
	recorder, err := Create(filepath.Join(t.TempDir(), "recording"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { recorder.Close() })
	return recorder
}

var errNoEnd = errors.New("no end")

// play sends a call through the interceptor.
func (s step) play(client *Client) {
	invoke := func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		switch {
		case s.err != nil:
			return s.err
		case s.received == nil:
			panic(errNoEnd)
		}
		proto.Merge(reply.(proto.Message), s.received)
		return nil
	}
	defer func() {
		// A call that panics has no end.
		_ = recover()
	}()
	reply := s.received
	if reply != nil {
		reply = reply.ProtoReflect().New().Interface()
	}
	_ = client.Unary(context.Background(), s.path, s.sent, reply, nil, invoke)
}

// recorded closes the recorder and returns the lines of its client, without their times.
func recorded(t *testing.T, recorder *Recorder) []map[string]any {
	t.Helper()
	if err := recorder.Close(); err != nil {
		t.Error(err)
	}
	var lines []map[string]any
	for _, name := range []string{"operations.json", "watch.json"} {
		text, err := os.ReadFile(filepath.Join(recorder.Folder(), "client-ann", name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			lines = append(lines, untimed(t, line))
		}
	}
	return lines
}

func untimed(t *testing.T, line string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "Call")
	delete(fields, "Return")
	if responses, ok := fields["Responses"].([]any); ok {
		for _, response := range responses {
			delete(response.(map[string]any), "Time")
		}
	}
	return fields
}

func TestRecordingAgreesWithTheRustRecorder(t *testing.T) {
	recorder := newRecorder(t)
	client := recorder.Client("ann")
	for _, call := range calls() {
		call.play(client)
	}
	var received []step
	for _, step := range stream() {
		if step.sent == nil {
			received = append(received, step)
		}
	}
	opened, err := client.Stream(t.Context(), nil, nil, "/etcdserverpb.Watch/Watch",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return &script{rest: received}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range stream() {
		if step.sent != nil {
			err = opened.SendMsg(step.sent)
		} else {
			_ = opened.RecvMsg(&pb.WatchResponse{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile("../testdata/etcd_recording.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var expected []map[string]any
	for line := range strings.Lines(string(golden)) {
		expected = append(expected, untimed(t, line))
	}
	found := recorded(t, recorder)
	for at := range max(len(expected), len(found)) {
		switch {
		case at >= len(found):
			t.Fatalf("line %d is missing: %v", at+1, expected[at])
		case at >= len(expected):
			t.Fatalf("line %d is not expected: %v", at+1, found[at])
		case !reflect.DeepEqual(expected[at], found[at]):
			t.Errorf("line %d: expected\n%v\nfound\n%v", at+1, expected[at], found[at])
		}
	}
}

func TestAReadInPartsIsRecordedLikeOneWhole(t *testing.T) {
	request := &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 3}
	parts := []step{
		{received: &pb.RangeStreamResponse{RangeResponse: &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{pair("k", "v", 2, 4, 2)}}}},
		{received: &pb.RangeStreamResponse{RangeResponse: &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{pair("k1", "w", 5, 5, 1)}}}},
		{received: &pb.RangeStreamResponse{RangeResponse: &pb.RangeResponse{Header: header(5), Count: 2}}},
	}
	whole := newRecorder(t)
	step{"/etcdserverpb.KV/Range", request, &pb.RangeResponse{
		Header: header(5), Kvs: []*mvccpb.KeyValue{pair("k", "v", 2, 4, 2), pair("k1", "w", 5, 5, 1)}, Count: 2,
	}, nil}.play(whole.Client("ann"))
	expected := recorded(t, whole)

	read := func(parts []step) []map[string]any {
		recorder := newRecorder(t)
		opened, err := recorder.Client("ann").Stream(t.Context(), nil, nil, rangeStream,
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return &script{rest: parts}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.SendMsg(request); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = opened.RecvMsg(&pb.RangeStreamResponse{})
		}
		return recorded(t, recorder)
	}
	if found := read(parts); !reflect.DeepEqual(expected, found) {
		t.Errorf("expected\n%v\nfound\n%v", expected, found)
	}
	broken := read(append(parts[:1:1], step{err: status.Error(codes.Unavailable, "error reading from server: EOF")}))
	output, _ := broken[1]["Output"].(map[string]any)
	if output["Error"] != "rpc error: code = Unavailable desc = error reading from server: EOF" {
		t.Errorf("expected the error of a read that broke off, found %v", broken)
	}
}
