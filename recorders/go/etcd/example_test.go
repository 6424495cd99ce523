package etcd_test

import (
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retrograde/etcd"
)

// The connection of a client is recorded. clientv3.Config takes the same options as DialOptions.
func ExampleClient_DialOptions() {
	folder, err := os.MkdirTemp("", "retrograde")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)

	recorder, err := etcd.Create(filepath.Join(folder, "recording"))
	if err != nil {
		panic(err)
	}
	options := append(recorder.Client("worker-1").DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	connection, err := grpc.NewClient("localhost:2379", options...)
	if err != nil {
		panic(err)
	}
	connection.Close()
	fmt.Println(recorder.Close())
	// Output: <nil>
}
