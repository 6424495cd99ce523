package retrograde

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const watchURI = "/api/v1/pods?watch=1&resourceVersion=105"

func podEvent(n int) []byte {
	return fmt.Appendf(nil, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-%d","namespace":"default","uid":"u%d","resourceVersion":"%d"},"spec":{},"status":{}}}`+"\n", n, n, 106+n)
}

// kindsOf returns the kinds of a capture's lines so far, without the heading.
func kindsOf(t *testing.T, capture *Capture) []string {
	t.Helper()
	capture.Flush()
	text, err := os.ReadFile(capture.Path())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, line := range untimed(t, text)[1:] {
		kinds = append(kinds, line["kind"].(string))
	}
	return kinds
}

func expectKinds(t *testing.T, capture *Capture, expected ...string) {
	t.Helper()
	if found := kindsOf(t, capture); fmt.Sprint(found) != fmt.Sprint(expected) {
		t.Errorf("expected the lines %v, found %v", expected, found)
	}
}

// answering returns a transport that answers with a body.
func answering(body io.ReadCloser, length int64) roundTripper {
	return func(request *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body, ContentLength: length, Request: request}, nil
	}
}

func get(t *testing.T, rt http.RoundTripper, uri string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := rt.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestEventsAreRecordedWhenTheClientReadsThem(t *testing.T) {
	capture := newCapture(t)
	one := podEvent(1)
	stream := append(one, podEvent(2)...)
	body := get(t, capture.Transport(answering(&pieces{rest: stream, size: len(one)}, -1)), watchURI).Body
	expectKinds(t, capture, "request", "response")
	buffer := make([]byte, 4096)
	for _, expected := range [][]string{{"event"}, {"event", "event"}} {
		if _, err := body.Read(buffer); err != nil {
			t.Fatal(err)
		}
		expectKinds(t, capture, append([]string{"request", "response"}, expected...)...)
	}
	if _, err := body.Read(buffer); err != io.EOF {
		t.Fatal(err)
	}
	expectKinds(t, capture, "request", "response", "event", "event", "end")
}

func TestAnAnswerIsCompleteWithItsLengthOrItsLastBracket(t *testing.T) {
	text := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	for _, length := range []int64{int64(len(text)), -1} {
		capture := newCapture(t)
		body := get(t, capture.Transport(answering(&pieces{rest: text, size: 1000}, length)), "/api/v1/pods").Body
		if _, err := io.ReadFull(body, make([]byte, len(text))); err != nil {
			t.Fatal(err)
		}
		body.Close()
		lines := linesOf(t, capture)
		if last := lines[len(lines)-1]; last["body"] == nil {
			t.Errorf("expected the body of an answer with length %d, found %v", length, last)
		}
	}
	capture := newCapture(t)
	body := get(t, capture.Transport(answering(&pieces{rest: text, size: 10}, -1)), "/api/v1/pods").Body
	if _, err := body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	body.Close()
	lines := linesOf(t, capture)
	if last := lines[len(lines)-1]; last["kind"] != "response" || last["body"] != nil {
		t.Errorf("expected an answer without a body, found %v", last)
	}
	if capture.Err() != nil {
		t.Errorf("an answer that the client gave up is an error: %v", capture.Err())
	}
}

// podServer is an API server with watches that stay open.
func podServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(request.URL.RawQuery, "watch=1") {
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"105"},"items":[]}`))
			return
		}
		for n := range 3 {
			_, _ = w.Write(podEvent(n))
			w.(http.Flusher).Flush()
		}
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAWatchThatTheClientCancelsIsClosed(t *testing.T) {
	server := podServer(t)
	for _, cancels := range []bool{true, false} {
		capture := newCapture(t)
		client := &http.Client{Transport: capture.Transport(nil)}
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+watchURI, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(io.Discard, response.Body)
		}()
		for len(kindsOf(t, capture)) < 5 {
			time.Sleep(time.Millisecond)
		}
		if cancels {
			cancel()
		} else {
			response.Body.Close()
		}
		<-done
		cancel()
		response.Body.Close()
		lines := linesOf(t, capture)
		if last := lines[len(lines)-1]; last["reason"] != "closed" {
			t.Errorf("expected the end of a watch that the client closed, found %v", last)
		}
	}
}

func TestManyClientsAreRecordedAtOnce(t *testing.T) {
	server := podServer(t)
	capture := newCapture(t)
	client := &http.Client{Transport: capture.Transport(&http.Transport{MaxConnsPerHost: 20})}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			for range 20 {
				response, err := client.Get(server.URL + "/api/v1/pods")
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.ReadAll(response.Body)
				response.Body.Close()
			}
		})
	}
	wait.Wait()
	asked := map[any]int{}
	for _, line := range linesOf(t, capture)[1:] {
		if asked[line["id"]]++; line["kind"] == "response" && line["body"] == nil {
			t.Errorf("an answer has no body: %v", line)
		}
	}
	if len(asked) != 400 {
		t.Fatalf("expected 400 requests, found %d", len(asked))
	}
	for id, lines := range asked {
		if lines != 2 {
			t.Errorf("request %v has %d lines", id, lines)
		}
	}
}

func TestRequestBodiesPassAndAreRecorded(t *testing.T) {
	capture := newCapture(t)
	var sent []byte
	server := roundTripper(func(request *http.Request) (*http.Response, error) {
		sent, _ = io.ReadAll(request.Body)
		return answering(&pieces{rest: []byte(`{}`), size: 9}, -1)(request)
	})
	text := `{"kind":"Pod","metadata":{"name":"a"}}`
	for _, inMemory := range []bool{true, false} {
		request, err := http.NewRequest(http.MethodPost, "https://server/api/v1/namespaces/default/pods", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if !inMemory {
			request.GetBody = nil
		}
		response, err := capture.Transport(server).RoundTrip(request)
		if err != nil || string(sent) != text {
			t.Fatalf("the server got %q: %v", sent, err)
		}
		_, _ = io.ReadAll(response.Body)
	}
	lines := linesOf(t, capture)
	if lines[1]["body"] == nil || lines[3]["body"] != nil {
		t.Errorf("expected the body of the first request alone, found %v", lines)
	}
}

func TestDecisionsHaveTheirReadsAndRequests(t *testing.T) {
	capture := newCapture(t)
	ctx, decision := capture.Decide(t.Context(), "reconciler")
	decision.Read(Object{Resource: "pods", Namespace: "default", Name: "web-0", UID: "u", ResourceVersion: "7"})
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, "https://server/api/v1/namespaces/default/pods/web-0", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := capture.Transport(answering(http.NoBody, 0)).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	decision.End()
	lines := linesOf(t, capture)
	begun := lines[1]["id"]
	if begun == nil || lines[2]["decision"] != begun || lines[3]["decision"] != begun || lines[5]["id"] != begun {
		t.Errorf("expected a read and a request of one decision, found %s", asJSON(lines))
	}
}

func TestFurtherFieldsAreKept(t *testing.T) {
	capture := newCapture(t, WithFields("pods spec.priorityClassName", "machines.example.com spec.providerID"))
	text := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u"},"spec":{"priorityClassName":"low","more":1}}`)
	body := get(t, capture.Transport(answering(&pieces{rest: text, size: 1000}, -1)), "/api/v1/namespaces/default/pods/a").Body
	_, _ = io.ReadAll(body)
	lines := linesOf(t, capture)
	pod := asJSON(lines[2]["body"])
	if !strings.Contains(pod, `"spec":{"priorityClassName":"low"}`) || !strings.Contains(pod, "spec.nodeName spec.priorityClassName") {
		t.Errorf("expected a further field, found %s", pod)
	}
	if _, err := Create(capture.Path()+"2", Subject{}, WithFields("pods")); err == nil {
		t.Error("a field without a path was accepted")
	}
}

func TestACaptureIsNeverOverwritten(t *testing.T) {
	capture := newCapture(t)
	if _, err := Create(capture.Path(), Subject{}); err == nil {
		t.Error("a second capture was made in the file of the first one")
	}
}

func TestWatchesOfDamagedFramesStayOpen(t *testing.T) {
	for form, stream := range map[string][]byte{
		"application/vnd.kubernetes.protobuf;stream=watch": {0, 0, 0, 3, 0xff, 0xff, 0xff},
		"application/vnd.kubernetes.protobuf":              {0xff, 0xff, 0xff, 0xff, 0xff},
		"application/cbor-seq":                             {0xff, 0xff},
	} {
		capture := newCapture(t)
		server := roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := answering(io.NopCloser(bytes.NewReader(stream)), -1)(request)
			response.Header.Set("Content-Type", form)
			return response, err
		})
		_, _ = io.ReadAll(get(t, capture.Transport(server), watchURI).Body)
		expectKinds(t, capture, "request", "response")
		if capture.Err() == nil {
			t.Errorf("%s: the capture does not say that an event is missing", form)
		}
	}
}

func TestRequestsAfterTheEndOfTheCapturePass(t *testing.T) {
	server := podServer(t)
	capture := newCapture(t)
	client := &http.Client{Transport: capture.Transport(nil)}
	watch, err := client.Get(server.URL + watchURI)
	if err != nil {
		t.Fatal(err)
	}
	if err := capture.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Body.Read(make([]byte, 1<<16)); err != nil {
		t.Error(err)
	}
	watch.Body.Close()
	list, err := client.Get(server.URL + "/api/v1/pods")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(list.Body); err != nil || len(text) == 0 {
		t.Errorf("the client read %q: %v", text, err)
	}
	list.Body.Close()
	if err := capture.Err(); err != nil {
		t.Errorf("a request after the end is an error of the capture: %v", err)
	}
}
