package tests

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between an API server and etcd. It can hold the responses of watches; other calls pass.
type proxy struct {
	address *url.URL

	mu   sync.Mutex
	open chan struct{}
}

func newProxy(t *testing.T, etcd *url.URL) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: &url.URL{Scheme: "http", Host: listener.Addr().String()}, open: make(chan struct{})}
	close(p.open)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	handler := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) { request.SetURL(etcd) },
		// gRPC needs each message at once.
		FlushInterval: -1,
		Transport:     &http.Transport{Protocols: &protocols},
		ModifyResponse: func(response *http.Response) error {
			if response.Request.URL.Path == "/etcdserverpb.Watch/Watch" {
				response.Body = &heldBody{ReadCloser: response.Body, proxy: p, ended: response.Request.Context().Done()}
			}
			return nil
		},
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{Handler: handler, Protocols: &protocols}
	go server.Serve(listener)
	t.Cleanup(func() {
		p.release()
		server.Close()
	})
	return p
}

// hold holds the responses of watches from now on.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// release sends the held responses in their order, and holds no more.
func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

type heldBody struct {
	io.ReadCloser
	proxy *proxy
	ended <-chan struct{}
}

func (b *heldBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.proxy.mu.Lock()
	open := b.proxy.open
	b.proxy.mu.Unlock()
	select {
	case <-open:
	case <-b.ended:
	}
	return n, err
}
