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

// benchmark sends requests. After each batch it calls rest, whose time does not count.
func benchmark(b *testing.B, rt http.RoundTripper, size int, rest func()) {
	address, err := url.Parse("https://server/api/v1/namespaces/default/pods/web-0")
	if err != nil {
		b.Fatal(err)
	}
	request := &http.Request{Method: http.MethodGet, URL: address, Header: http.Header{}}
	buffer := make([]byte, size+512)
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
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
		if n%100 == 0 && rest != nil {
			b.StopTimer()
			rest()
			b.StartTimer()
		}
	}
}

// BenchmarkTransport compares a client with the recorder to the same client without it. The server is in memory, and
// each request reads one pod. "recorded" is the time of the client: between batches, the recorder's goroutine catches
// up. "saturated" is a client that never waits for its server, so that the slower one of the two goroutines counts.
func BenchmarkTransport(b *testing.B) {
	for _, size := range []int{500, 4 << 10} {
		server := &benchServer{header: http.Header{"Content-Type": {"application/json"}, "Audit-Id": {"a-1"}}, body: benchPod(size)}
		b.Run(fmt.Sprintf("bare/%d", len(server.body)), func(b *testing.B) {
			benchmark(b, server, len(server.body), func() {})
		})
		for _, name := range []string{"recorded", "saturated"} {
			b.Run(fmt.Sprintf("%s/%d", name, len(server.body)), func(b *testing.B) {
				capture, err := Create(filepath.Join(b.TempDir(), "client.jsonl"), Subject{}, WithLimits(Limits{Patience: time.Second}))
				if err != nil {
					b.Fatal(err)
				}
				rest := capture.Flush
				if name == "saturated" {
					rest = nil
				}
				benchmark(b, capture.Transport(server), len(server.body), rest)
				if err := capture.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
