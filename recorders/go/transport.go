package retrograde

import (
	"io"
	"net/http"
)

// longest is the most bytes of a body, or of an event of a watch. A longer one is dropped.
const longest = 64 << 20

// Transport wraps the transport of a Kubernetes client and records its requests. It fits rest.Config.Wrap:
//
//	config.Wrap(capture.Transport)
//
// Requests and answers pass unchanged. An answer is recorded as the client reads it: a list after its last byte, each
// event of a watch when its last byte was read. Requests for tokens, and those that upgrade the connection (exec,
// attach, port-forward, proxy), pass unrecorded.
//
// If rt is nil, the transport is http.DefaultTransport.
func (c *Capture) Transport(rt http.RoundTripper) http.RoundTripper {
	if rt == nil {
		rt = http.DefaultTransport
	}
	return &transport{capture: c, inner: rt}
}

type transport struct {
	capture *Capture
	inner   http.RoundTripper
}

// WrappedRoundTripper returns the wrapped transport. client-go asks for it.
func (t *transport) WrappedRoundTripper() http.RoundTripper {
	return t.inner
}

// RoundTrip sends the request by the wrapped transport.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	line, recorded := parseRequest(request.Method, request.URL)
	if !recorded {
		return t.inner.RoundTrip(request)
	}
	e := t.begin(request, line)
	response, err := t.inner.RoundTrip(request)
	if err != nil {
		e.put(&record{kind: ofEnd, text: "error", detail: err.Error()}, len(err.Error()), 0)
		return response, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols && response.Body != nil {
		e.receive(request, response, line)
	}
	return response, nil
}

// begin records a request before it is sent.
func (t *transport) begin(request *http.Request, line requestLine) *exchange {
	c := t.capture
	e := &exchange{
		capture:   c,
		id:        c.next.Add(1),
		uri:       request.URL.RequestURI(),
		decision:  decisionOf(request.Context()),
		reduction: c.fields.Of(line.plural, line.group),
	}
	method := request.Method
	if method == "" {
		method = http.MethodGet
	}
	asked := &e.asked
	*asked = record{kind: ofRequest, text: method}
	reserved := 0
	if request.GetBody != nil && request.Body != nil && request.Body != http.NoBody {
		asked.body, reserved = c.copyOf(request)
		asked.form = formOfRequest(request.Header.Get("Content-Type"))
	}
	e.put(asked, 0, reserved)
	return e
}

// copyOf returns a copy of a request's body, if that is in memory. Its size is reserved.
func (c *Capture) copyOf(request *http.Request) ([]byte, int) {
	size := request.ContentLength
	if size <= 0 || size > longest || !c.journal.Reserve(int(size)) {
		if size > 0 {
			c.journal.Drop()
		}
		return nil, 0
	}
	body, err := request.GetBody()
	if err != nil {
		c.journal.Release(int(size))
		return nil, 0
	}
	defer body.Close()
	content := make([]byte, size)
	if _, err := io.ReadFull(body, content); err != nil {
		c.journal.Release(int(size))
		return nil, 0
	}
	return content, int(size)
}
