package retrograde

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"
)

// benchPod is a pod as an API server sends it, with managed fields and containers up to a size.
func benchPod(size int) []byte {
	containers := []any{}
	pod := func() []byte {
		text, err := json.Marshal(map[string]any{
			"kind": "Pod", "apiVersion": "v1",
			"metadata": map[string]any{
				"name": "web-0", "namespace": "default", "uid": "0d2c9a4e-0000-4000-8000-000000000001",
				"resourceVersion": "105", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": map[string]any{"app": "web"},
			},
			"spec":   map[string]any{"nodeName": "node-1", "containers": containers},
			"status": map[string]any{"phase": "Running", "podIP": "10.0.0.7"},
		})
		if err != nil {
			panic(err)
		}
		return text
	}
	text := pod()
	for len(text) < size {
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", len(containers)), "image": "registry.example.com/web:1", "env": []any{map[string]any{"name": "A", "value": "b"}}})
		text = pod()
	}
	return text
}

// benchServer answers each request with the same body, in memory.
type benchServer struct {
	header http.Header
	body   []byte
}

func (s *benchServer) RoundTrip(request *http.Request) (*http.Response, error) {
	body := io.NopCloser(bytes.NewReader(s.body))
	return &http.Response{StatusCode: http.StatusOK, Header: s.header, Body: body, ContentLength: int64(len(s.body)), Request: request}, nil
}

func benchmark(b *testing.B, rt http.RoundTripper, size int) {
	address, err := url.Parse("https://server/api/v1/namespaces/default/pods/web-0")
	if err != nil {
		b.Fatal(err)
	}
	request := &http.Request{Method: http.MethodGet, URL: address, Header: http.Header{}}
	buffer := make([]byte, size+512)
	b.ReportAllocs()
	for b.Loop() {
		response, err := rt.RoundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err = response.Body.Read(buffer); err != nil {
				break
			}
		}
		response.Body.Close()
	}
}

// BenchmarkTransport compares a client with the recorder to the same client without it. The server is in memory. Each
// request reads one pod. The time of a request includes that of the recorder's goroutine, if the latter is slower.
func BenchmarkTransport(b *testing.B) {
	for _, size := range []int{500, 4 << 10} {
		server := &benchServer{header: http.Header{"Content-Type": {"application/json"}, "Audit-Id": {"a-1"}}, body: benchPod(size)}
		b.Run(fmt.Sprintf("bare/%d", len(server.body)), func(b *testing.B) {
			benchmark(b, server, len(server.body))
		})
		b.Run(fmt.Sprintf("recorded/%d", len(server.body)), func(b *testing.B) {
			capture, err := Create(filepath.Join(b.TempDir(), "client.jsonl"), Subject{}, WithLimits(Limits{Patience: time.Second}))
			if err != nil {
				b.Fatal(err)
			}
			benchmark(b, capture.Transport(server), len(server.body))
			if err := capture.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(capture.Dropped()), "dropped")
		})
	}
}
