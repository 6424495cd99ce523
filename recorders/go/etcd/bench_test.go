package etcd

import (
	"context"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// BenchmarkUnary is the time of a client for a read of one key. The server is in memory. Between batches, the
// recorder's goroutine catches up.
func BenchmarkUnary(b *testing.B) {
	const path = "/etcdserverpb.KV/Range"
	request := &pb.RangeRequest{Key: []byte("jobs/7")}
	invoke := func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		answer := reply.(*pb.RangeResponse)
		answer.Header, answer.Count = header(7), 1
		answer.Kvs = []*mvccpb.KeyValue{pair("jobs/7", "a value", 3, 7, 2)}
		return nil
	}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := invoke(b.Context(), path, request, &pb.RangeResponse{}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("recorded", func(b *testing.B) {
		recorder, err := Create(filepath.Join(b.TempDir(), "recording"))
		if err != nil {
			b.Fatal(err)
		}
		client := recorder.Client("ann")
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			if err := client.Unary(b.Context(), path, request, &pb.RangeResponse{}, nil, invoke); err != nil {
				b.Fatal(err)
			}
			if n%100 == 0 {
				b.StopTimer()
				recorder.Flush()
				b.StartTimer()
			}
		}
		if err := recorder.Close(); err != nil {
			b.Fatal(err)
		}
	})
}
