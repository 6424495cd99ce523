package etcd

import (
	"context"
	"io"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Unary records calls with one answer: Range, Put, DeleteRange, Txn, Compact, and grants and revocations of leases.
func (c *Client) Unary(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoker grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if !isRecorded(method) {
		return invoker(ctx, method, request, reply, connection, options...)
	}
	call := c.begin(method, request)
	err := invoker(ctx, method, request, reply, connection, options...)
	if err != nil {
		call.failed(err)
	} else {
		call.answer(reply)
	}
	return err
}

// Stream records watches, and reads that are answered in parts (RangeStream).
func (c *Client) Stream(ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn, method string, streamer grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := streamer(ctx, description, connection, method, options...)
	if err != nil {
		// No message was sent.
		return stream, err
	}
	switch method {
	case "/etcdserverpb.Watch/Watch":
		return &watchStream{ClientStream: stream, watches: newWatches(c)}, nil
	case rangeStream:
		return &readStream{ClientStream: stream, client: c}, nil
	}
	return stream, nil
}

const rangeStream = "/etcdserverpb.KV/RangeStream"

// isRecorded is true for a call that reads keys or may change them.
func isRecorded(method string) bool {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	switch service {
	case "etcdserverpb.KV", "v3lockpb.Lock":
		return true
	case "etcdserverpb.Lease":
		return name == "LeaseGrant" || name == "LeaseRevoke"
	case "v3electionpb.Election":
		return name == "Campaign" || name == "Proclaim" || name == "Resign"
	}
	return false
}

// watchStream is a stream of the watch service. It carries any number of watches.
type watchStream struct {
	grpc.ClientStream
	watches *watches
}

// SendMsg records a request before it is sent.
func (s *watchStream) SendMsg(message any) error {
	if request, ok := message.(*pb.WatchRequest); ok {
		s.watches.sent(request)
	} else {
		s.watches.unread()
	}
	return s.ClientStream.SendMsg(message)
}

// RecvMsg records a response after it was read.
func (s *watchStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	response, ok := message.(*pb.WatchResponse)
	switch {
	case err == io.EOF:
	case err != nil:
		s.watches.failed(status.Convert(err).Message())
	case ok:
		s.watches.received(response)
	default:
		s.watches.failed("a response that cannot be read")
	}
	return err
}

// readStream is a read whose answer comes in parts. It is recorded like a Range.
type readStream struct {
	grpc.ClientStream
	client *Client

	mu     sync.Mutex
	call   *call
	answer pb.RangeResponse
}

// SendMsg records the request before it is sent.
func (s *readStream) SendMsg(message any) error {
	s.mu.Lock()
	s.call = s.client.begin("/etcdserverpb.KV/Range", message)
	s.mu.Unlock()
	return s.ClientStream.SendMsg(message)
}

// RecvMsg records the answer after its last part was read. A read that the client gives up stays open.
func (s *readStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch response, ok := message.(*pb.RangeStreamResponse); {
	case s.call == nil:
	case err == io.EOF:
		s.call.answer(&s.answer)
		s.call = nil
	case err != nil:
		s.call.failed(err)
		s.call = nil
	case ok:
		s.add(response.GetRangeResponse())
	default:
		s.call = nil
	}
	return err
}

// add merges a part. Each has keys of its own; the last one has the revision and the count.
func (s *readStream) add(part *pb.RangeResponse) {
	s.answer.Kvs = append(s.answer.Kvs, part.GetKvs()...)
	s.answer.Count += part.GetCount()
	if header := part.GetHeader(); header != nil {
		s.answer.Header = header
	}
}
