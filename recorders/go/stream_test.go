package retrograde

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"retrograde/internal/journal"
	"retrograde/internal/reduction"
)

type nowhere struct{}

func (nowhere) Write(text []byte) (int, error) { return len(text), nil }
func (nowhere) Close() error                   { return nil }

// The client reads what the server sends, whatever that is, and the recorder goes on.
func FuzzAnswersPassUnchanged(f *testing.F) {
	f.Add(podEvent(1), uint8(3), uint8(0))
	f.Add([]byte{0, 0, 0, 2, 0x0a, 0x00, 0xff}, uint8(1), uint8(1))
	f.Add([]byte("\xa1\x44type\x45ADDED\xa1"), uint8(2), uint8(2))
	f.Add([]byte("\x1f\x8b\x08"), uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, sent []byte, size, form uint8) {
		lines := journal.New(nowhere{}, journal.NewClock(), journal.Options{})
		capture := &Capture{fields: reduction.Shipped(), journal: lines}
		header := http.Header{"Content-Type": {[]string{"application/json", "application/vnd.kubernetes.protobuf", "application/cbor-seq", ""}[form%4]}}
		if form%8 == 3 {
			header.Set("Content-Encoding", "gzip")
		}
		for _, uri := range []string{watchURI, "/api/v1/pods"} {
			server := roundTripper(func(request *http.Request) (*http.Response, error) {
				body := &pieces{rest: bytes.Clone(sent), size: max(int(size), 1)}
				return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body, ContentLength: -1, Request: request}, nil
			})
			body := get(t, capture.Transport(server), uri).Body
			read, err := io.ReadAll(body)
			if err != nil || !bytes.Equal(read, sent) {
				t.Fatalf("the client read %q: %v", read, err)
			}
			body.Close()
		}
		capture.Close()
	})
}
