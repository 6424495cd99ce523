package tests

import (
	"context"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"retrograde"
)

// follower reconciles the object "web" of the namespace "default". It counts what its cache shows.
type follower struct {
	capture       *retrograde.Capture
	client        client.Client
	present, gone atomic.Int64
}

func (f *follower) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	ctx, decision := f.capture.Decide(ctx, "follower")
	defer decision.End()
	read := retrograde.Object{Resource: "configmaps", Namespace: request.Namespace, Name: request.Name}
	var object corev1.ConfigMap
	switch err := f.client.Get(ctx, request.NamespacedName, &object); {
	case apierrors.IsNotFound(err):
		f.gone.Add(1)
	case err != nil:
		return ctrl.Result{}, err
	default:
		f.present.Add(1)
		read.UID, read.ResourceVersion = string(object.UID), object.ResourceVersion
	}
	decision.Read(read)
	return ctrl.Result{}, nil
}

// startFollower runs a controller until the returned function is called.
func startFollower(t *testing.T, server *rest.Config, capture *retrograde.Capture) (*follower, func()) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	// Several controllers of one process have one name.
	skip := true
	manager, err := newManager(server, capture, ctrl.Options{
		Scheme:     scheme.Scheme,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Logger:     log.Log,
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{capture: capture, client: manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(f); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	return f, func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}
}

// play runs one controller twice. Its second process asks an API server whose cache is behind. If the cache of the
// controller accepts any version for its first list, it sees a deleted object again.
func play(t *testing.T, acceptsAny bool) string {
	c := startCluster(t)
	folder := t.TempDir()
	const user = "system:serviceaccount:default:follower"
	config, capture := process(t, c.a, folder, "writer", "1")
	writing, err := newClient(config, capture)
	if err != nil {
		t.Fatal(err)
	}
	writer := writing.CoreV1().ConfigMaps("default")
	behind := kubernetes.NewForConfigOrDie(configOf(t, c.b, "observer")).CoreV1().ConfigMaps("default")
	ctx := t.Context()

	config, capture = process(t, c.a, folder, user, "first")
	first, stop := startFollower(t, config, capture)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Data: map[string]string{"password": "hunter2"}}
	if _, err := writer.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the object in the cache of the controller", func() bool { return first.present.Load() > 0 })
	until(t, "the object in the cache of server B", func() bool {
		_, err := behind.Get(ctx, "web", metav1.GetOptions{ResourceVersion: "0"})
		return err == nil
	})
	c.proxy.hold()
	if err := writer.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the deletion in the cache of the controller", func() bool { return first.gone.Load() > 0 })
	capture.Mark("server B is behind")
	stop()

	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, !acceptsAny)
	config, capture = process(t, c.b, folder, user, "second")
	second, stop := startFollower(t, config, capture)
	if acceptsAny {
		until(t, "the deleted object in the cache of the controller", func() bool { return second.present.Load() > 0 })
		c.proxy.release()
		until(t, "the deletion in the cache of the controller", func() bool { return second.gone.Load() > 0 })
	} else {
		// A watch from the most recent version waits for the cache of the server.
		c.proxy.release()
		if _, err := writer.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, "the new object in the cache of the controller", func() bool { return second.present.Load() > 0 })
	}
	stop()
	if err := capture.Close(); err != nil {
		t.Error(err)
	}
	return folder
}

// Pods of one service account may be replicas. The option says that the second process follows the first one.
var oneProcess = []string{"--same-process", "follower"}

func TestAControllerThatReadsStaleIsConvicted(t *testing.T) {
	program := checker(t)
	folder := play(t, true)
	report, err := exec.Command(program, append([]string{"check", folder}, oneProcess...)...).Output()
	exit, _ := err.(*exec.ExitError)
	if exit == nil || exit.ExitCode() != 1 || !strings.Contains(string(report), "VIOLATION  monotonic-reads: system:serviceaccount:default:follower") {
		t.Errorf("expected exit code 1 and a violation of monotonic-reads, found %v and\n%s", err, report)
	}
}

func TestAControllerThatReadsFreshIsNotConvicted(t *testing.T) {
	program := checker(t)
	folder := play(t, false)
	retrograde.Check{Program: program, Arguments: oneProcess}.Assert(t, folder)
}
