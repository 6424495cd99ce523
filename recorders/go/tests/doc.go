// Package tests runs the recorder with real clients and real servers. It is a module of its own, so that the recorder
// does not depend on client-go, controller-runtime and clientv3.
package tests
