package tests

import (
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"retrograde"
	"retrograde/etcd"
)

// newClient makes a client of client-go that is recorded.
func newClient(config *rest.Config, capture *retrograde.Capture) (*kubernetes.Clientset, error) {
	config.Wrap(capture.Transport)
	return kubernetes.NewForConfig(config)
}

// newManager makes a manager of controller-runtime that is recorded, with its cache and all its clients.
func newManager(config *rest.Config, capture *retrograde.Capture, options ctrl.Options) (manager.Manager, error) {
	config.Wrap(capture.Transport)
	return ctrl.NewManager(config, options)
}

// newEtcdClient makes a client of etcd that is recorded.
func newEtcdClient(config clientv3.Config, recorder *etcd.Recorder, name string) (*clientv3.Client, error) {
	config.DialOptions = append(config.DialOptions, recorder.Client(name).DialOptions()...)
	return clientv3.New(config)
}

func TestThePageShowsHowClientsAreRecorded(t *testing.T) {
	source, err := os.ReadFile("install_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/record-go.md")
	if err != nil {
		t.Fatal(err)
	}
	_, functions, _ := strings.Cut(string(source), "// newClient makes")
	functions, _, _ = strings.Cut("// newClient makes"+functions, "\nfunc Test")
	for function := range strings.SplitSeq(functions, "\n\n") {
		if function = strings.TrimSpace(function); !strings.Contains(string(page), function) {
			t.Errorf("docs/record-go.md does not show\n%s", function)
		}
	}
}
