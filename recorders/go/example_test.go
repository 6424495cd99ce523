package retrograde_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"retrograde"
)

// A client of Kubernetes is recorded. The server here is a stand-in with one list.
func ExampleCapture_Transport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"105"},"items":[]}`)
	}))
	defer server.Close()
	folder, err := os.MkdirTemp("", "retrograde")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)

	capture, err := retrograde.Create(filepath.Join(folder, "controller.jsonl"), retrograde.Subject{
		Client:      "system:serviceaccount:prod:controller",
		Incarnation: "pod-7f9c",
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: capture.Transport(nil)}
	response, err := client.Get(server.URL + "/api/v1/namespaces/prod/pods")
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	fmt.Println(capture.Close())
	// Output: <nil>
}

// The calls on a register are recorded. The checker knows this kind of object.
func ExampleRecorder() {
	folder, err := os.MkdirTemp("", "retrograde")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)

	recorder, err := retrograde.NewRecorder(filepath.Join(folder, "register.jsonl"), "register")
	if err != nil {
		panic(err)
	}
	client := recorder.Client("ann")
	write := client.Invoke(retrograde.Operation{Name: "write", Value: 7}) // before it is sent
	write.Done()                                                          // after it was answered
	read := client.Invoke(retrograde.Operation{Name: "read"})
	read.OK(7)
	fmt.Println(recorder.Close())
	// Output: <nil>
}

// A test ends with an assertion over its recordings.
func ExampleAssert() {
	_ = func(t *testing.T, capture *retrograde.Capture) {
		if err := capture.Close(); err != nil {
			t.Fatal(err)
		}
		retrograde.Assert(t, capture.Path(), "audit.log")
	}
}
