package tests

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"retrograde"
)

// exchange is a request and its answer in ../testdata/exchanges.json.
type exchange struct {
	Name, Method, URI string
	Body, Answer      json.RawMessage
	Events            []json.RawMessage
	Status            int
	End               string
	Gzip              bool
}

func exchanges(t *testing.T) []exchange {
	t.Helper()
	text, err := os.ReadFile("../testdata/exchanges.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []exchange
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// encoding is a form of objects, as the serializers of Kubernetes write it.
type encoding struct {
	name, contentType string
	// object is false for an object that the form does not have.
	object func(t *testing.T, text []byte) ([]byte, bool)
	// event makes an event of a watch, with its frame.
	event func(t *testing.T, kind string, object []byte) []byte
}

var protobufs = encoding{
	name:        "protobuf",
	contentType: "application/vnd.kubernetes.protobuf",
	object: func(t *testing.T, text []byte) ([]byte, bool) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil, false
		}
		var encoded bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &encoded); err != nil {
			return nil, false
		}
		return encoded.Bytes(), true
	},
	event: func(t *testing.T, kind string, object []byte) []byte {
		event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
		encoded, err := event.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
	},
}

var cbors = encoding{
	name:        "CBOR",
	contentType: "application/cbor",
	object: func(t *testing.T, text []byte) ([]byte, bool) {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(text, &object.Object); err != nil || object.GetKind() == "" {
			return nil, false
		}
		var encoded bytes.Buffer
		if err := cbor.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &encoded); err != nil {
			t.Fatal(err)
		}
		return encoded.Bytes(), true
	},
	event: func(t *testing.T, kind string, object []byte) []byte {
		event := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
		var encoded bytes.Buffer
		if err := cbor.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(event, &encoded); err != nil {
			t.Fatal(err)
		}
		return encoded.Bytes()
	},
}

// recoded returns the exchange with its answer and its body in another form. It is false if the form does not have
// them.
func recoded(t *testing.T, e exchange, in encoding) (body, answer []byte, ok bool) {
	t.Helper()
	if len(e.Body) > 0 {
		if body, ok = in.object(t, e.Body); !ok {
			return nil, nil, false
		}
	}
	if len(e.Answer) > 0 {
		if answer, ok = in.object(t, e.Answer); !ok {
			return nil, nil, false
		}
	}
	for _, text := range e.Events {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(text, &event); err != nil {
			return nil, nil, false
		}
		object, ok := in.object(t, event.Object)
		if !ok {
			return nil, nil, false
		}
		answer = append(answer, in.event(t, event.Type, object)...)
	}
	return body, answer, true
}

type server struct {
	contentType string
	status      int
	content     []byte
}

func (s server) RoundTrip(request *http.Request) (*http.Response, error) {
	body := io.NopCloser(&slowly{s.content})
	header := http.Header{"Content-Type": {s.contentType}}
	return &http.Response{StatusCode: s.status, Header: header, Body: body, ContentLength: -1, Request: request}, nil
}

// slowly is read seven bytes at a time.
type slowly struct{ rest []byte }

func (s *slowly) Read(into []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, s.rest[:min(7, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

// recorded plays one exchange and returns its lines, without their times.
func recorded(t *testing.T, e exchange, contentType string, body, answer []byte) []map[string]any {
	t.Helper()
	capture, err := retrograde.Create(filepath.Join(t.TempDir(), "client.jsonl"), retrograde.Subject{Client: "c"})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(e.Method, "https://server"+e.URI, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := capture.Transport(server{contentType, max(e.Status, 200), answer}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if err := capture.Close(); err != nil {
		t.Errorf("%s: %v", e.Name, err)
	}
	text, err := os.ReadFile(capture.Path())
	if err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	for line := range strings.Lines(string(text)) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "at")
		lines = append(lines, fields)
	}
	return lines
}

// The recorder must write the same lines, whatever the form of the bodies. The JSON itself is compared with the Rust
// layer in the recorder's own tests.
func TestProtobufAndCBORAreRecordedLikeJSON(t *testing.T) {
	for _, in := range []encoding{protobufs, cbors} {
		compared := 0
		for _, e := range exchanges(t) {
			if e.Gzip || e.End != "" {
				continue
			}
			body, answer, ok := recoded(t, e, in)
			if !ok {
				continue
			}
			// The typed objects have defaults that the texts do not have. So JSON is made from them too.
			jsonBody, jsonAnswer, _ := recoded(t, e, jsons(in))
			contentType := in.contentType
			if len(e.Events) > 0 && in.name == "CBOR" {
				contentType = "application/cbor-seq"
			}
			expected := recorded(t, e, "application/json", jsonBody, jsonAnswer)
			found := recorded(t, e, contentType, body, answer)
			if len(expected) > 1 {
				compared++
			}
			for at := range max(len(expected), len(found)) {
				if at >= len(expected) || at >= len(found) || !reflect.DeepEqual(expected[at], found[at]) {
					t.Errorf("%s in %s: expected\n%s\nfound\n%s", e.Name, in.name, asJSON(expected), asJSON(found))
					break
				}
			}
		}
		t.Logf("%d exchanges in %s", compared, in.name)
		if compared < 20 {
			t.Errorf("expected at least 20 exchanges in %s, found %d", in.name, compared)
		}
	}
}

// jsons is JSON made from the same objects as a form.
func jsons(in encoding) encoding {
	return encoding{
		object: func(t *testing.T, text []byte) ([]byte, bool) {
			if in.name == "CBOR" {
				return text, true
			}
			object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
			if err != nil {
				return nil, false
			}
			encoded, err := json.Marshal(object)
			return encoded, err == nil
		},
		event: func(t *testing.T, kind string, object []byte) []byte {
			encoded, err := json.Marshal(map[string]any{"type": kind, "object": json.RawMessage(object)})
			if err != nil {
				t.Fatal(err)
			}
			return append(encoded, '\n')
		},
	}
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
