package tests

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"retrograde"
)

// events returns the events of a capture as "TYPE KIND NAME VERSION", without bookmarks, and the whole text.
func events(t *testing.T, capture *retrograde.Capture) (told []string, text string) {
	t.Helper()
	content, err := os.ReadFile(capture.Path())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var read struct {
			Kind  string
			Event struct {
				Type   string
				Object struct {
					Kind     string
					Metadata struct{ Name, ResourceVersion string }
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		object := read.Event.Object
		if read.Kind == "event" && read.Event.Type != "BOOKMARK" {
			told = append(told, strings.Join([]string{read.Event.Type, object.Kind, object.Metadata.Name, object.Metadata.ResourceVersion}, " "))
		}
	}
	return told, string(content)
}

// write makes, changes and deletes a Secret and a pod. A second Secret and a second pod stay.
func write(t *testing.T, clients *kubernetes.Clientset) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []string{"first", "last"} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"copy": "hunter2"}},
			StringData: map[string]string{"password": "hunter2"},
		}
		if _, err := clients.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A", Value: "hunter2"}}}}},
		}
		if _, err := clients.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	labels := []byte(`{"metadata":{"labels":{"app":"web"}}}`)
	if _, err := clients.CoreV1().Secrets("default").Patch(ctx, "first", types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	for name, deleted := range map[string]error{
		"Secret": clients.CoreV1().Secrets("default").Delete(ctx, "first", metav1.DeleteOptions{}),
		"pod":    clients.CoreV1().Pods("default").Delete(ctx, "first", metav1.DeleteOptions{GracePeriodSeconds: &now}),
	} {
		if deleted != nil {
			t.Fatalf("the %s is not deleted: %v", name, deleted)
		}
	}
}

func TestInformersAndWatchesOfAllFormsAreRecordedAlike(t *testing.T) {
	program := checker(t)
	binaries := servers(t, "etcd", "kube-apiserver")
	etcd := startEtcd(t, binaries)
	server := startServer(t, binaries, etcd.URL)
	folder := t.TempDir()

	captures := map[string]*retrograde.Capture{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for name, contentType := range map[string]string{"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"} {
		config, capture := process(t, server, folder, name, "1")
		config.ContentType = contentType
		captures[name] = capture
		clients, err := newClient(config, capture)
		if err != nil {
			t.Fatal(err)
		}
		factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace("default"))
		pods, secrets := factory.Core().V1().Pods().Informer(), factory.Core().V1().Secrets().Informer()
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, secrets.HasSynced) {
			t.Fatal("the informers did not begin")
		}
	}
	config, capture := process(t, server, folder, "cbor", "1")
	captures["cbor"] = capture
	config.Wrap(capture.Transport)
	for _, resource := range []string{"pods", "secrets"} {
		watchAsCBOR(t, ctx, config, "/api/v1/namespaces/default/"+resource)
	}

	config, writing := process(t, server, folder, "writer", "1")
	clients, err := newClient(config, writing)
	if err != nil {
		t.Fatal(err)
	}
	write(t, clients)
	for name, capture := range captures {
		until(t, "all events for "+name, func() bool {
			capture.Flush()
			told, _ := events(t, capture)
			all := strings.Join(told, "\n")
			return strings.Contains(all, "DELETED Secret first") && strings.Contains(all, "DELETED Pod first")
		})
	}
	stop()
	time.Sleep(100 * time.Millisecond)
	var first map[string]bool
	for _, name := range []string{"json", "protobuf", "cbor"} {
		if err := captures[name].Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		told, text := events(t, captures[name])
		if !strings.Contains(text, `"reason":"closed"`) {
			t.Errorf("%s: the capture does not say that the client closed its watches", name)
		}
		set := map[string]bool{}
		for _, event := range told {
			set[event] = true
		}
		if first == nil {
			first = set
		}
		for event := range first {
			if len(set) != len(first) || !set[event] {
				t.Fatalf("%s: expected the events %v, found %v", name, first, set)
			}
		}
	}
	if err := writing.Close(); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(files) != 4 {
		t.Fatalf("expected four captures, found %v", files)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "aHVudGVyMg") {
			t.Errorf("%s has the content of a Secret or of a container", file)
		}
	}
	retrograde.Check{Program: program}.Assert(t, folder)
}

// watchAsCBOR lists and watches a resource in CBOR, until the context ends.
func watchAsCBOR(t *testing.T, ctx context.Context, config *rest.Config, path string) {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	get := func(query string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+path+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/cbor")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/cbor") {
			t.Fatalf("expected CBOR, found %s", kind)
		}
		return response
	}
	list := get("")
	if _, err := io.ReadAll(list.Body); err != nil {
		t.Fatal(err)
	}
	list.Body.Close()
	watch := get("?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	go func() {
		// The context ends the watch.
		_, _ = io.Copy(io.Discard, watch.Body)
		watch.Body.Close()
	}()
}
