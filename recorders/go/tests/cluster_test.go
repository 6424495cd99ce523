package tests

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"retrograde"
)

// patience is the timeout for any condition on a busy machine.
const patience = 60 * time.Second

// cluster is an etcd with two API servers. B is behind a proxy that can hold etcd's watch responses.
type cluster struct {
	proxy *proxy
	a, b  *envtest.APIServer
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	binaries := servers(t, "etcd", "kube-apiserver")
	etcd := startEtcd(t, binaries)
	c := &cluster{proxy: newProxy(t, etcd.URL)}
	c.a = startServer(t, binaries, etcd.URL)
	c.b = startServer(t, binaries, c.proxy.address)
	return c
}

func startEtcd(t *testing.T, binaries string) *envtest.Etcd {
	t.Helper()
	etcd := &envtest.Etcd{Path: filepath.Join(binaries, "etcd"), StartTimeout: patience}
	// The data are not used after the test.
	etcd.Configure().Set("unsafe-no-fsync", "true")
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Stop() })
	return etcd
}

func startServer(t *testing.T, binaries string, etcd *url.URL) *envtest.APIServer {
	t.Helper()
	server := &envtest.APIServer{Path: filepath.Join(binaries, "kube-apiserver"), EtcdURL: etcd, StartTimeout: patience}
	// Both servers run on one host, so each would take the other's identity lease for its own.
	server.Configure().
		Set("feature-gates", "APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false,CBORServingAndStorage=true").
		Set("endpoint-reconciler-type", "none")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	return server
}

// process returns the configuration of a process of a user, and a new capture in a folder.
func process(t *testing.T, server *envtest.APIServer, folder, user, incarnation string) (*rest.Config, *retrograde.Capture) {
	t.Helper()
	config := configOf(t, server, user)
	capture, err := retrograde.Create(filepath.Join(folder, user+"-"+incarnation+".jsonl"),
		retrograde.Subject{Client: user, Incarnation: incarnation, Clock: "host"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { capture.Close() })
	return config, capture
}

func configOf(t *testing.T, server *envtest.APIServer, user string) *rest.Config {
	t.Helper()
	config, err := server.AddUser(envtest.User{Name: user, Groups: []string{"system:masters"}}, &rest.Config{QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	config.CAData = server.SecureServing.CA
	config.Host = server.SecureServing.URL("https", "/").String()
	return config
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("expected %s within %v", what, patience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
