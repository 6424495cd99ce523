// Package retrograde records what clients of Kubernetes saw, for the checker of the same name.
//
// The checker reads the recording afterwards, and decides whether one history explains what each client saw. Nothing
// of the recorder changes, delays or fails a request.
//
//   - [Create] makes a [Capture]. [Capture.Transport] wraps the transport of a client, such as that of client-go and
//     controller-runtime (rest.Config.Wrap).
//   - [NewRecorder] records calls on any object, such as a queue or a lock of your own.
//   - Package retrograde/etcd has interceptors for clients of etcd.
//   - [Assert] runs the checker in a test, and fails the test unless the verdict is "holds".
//
// A recording has identities, versions, labels and the fields that the checker's rules read. It has no data of
// Secrets, no tokens and no headers.
package retrograde
