// Package etcd records clients of etcd, by interceptors of gRPC.
//
// A recording is a folder in the form of a report of etcd's robustness suite. The checker reads it, alone or with the
// data directories of the members beside it.
//
//	recorder, err := etcd.Create("evidence/etcd")
//	config.DialOptions = append(config.DialOptions, recorder.Client("worker-1").DialOptions()...)
//
// The store must be empty when the recording begins, and every client that writes must be recorded: an earlier
// revision has no writer. If the recording does not show a change, the verdict is "unknown". To avoid that, let one
// client watch all keys from revision 1 on.
//
// A recording with a hole would prove what did not happen. So the recording ends, for all clients at once, before the
// first record that the disk was too slow for. The number of dropped records is in the files, and the verdict is then
// "unknown" at best.
package etcd
