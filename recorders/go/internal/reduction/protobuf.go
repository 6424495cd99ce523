package reduction

import (
	"bytes"
	"strings"
)

// envelope begins each object in the protobuf form of Kubernetes. A runtime.Unknown follows it.
var envelope = []byte("k8s\x00")

// AppendProtobuf appends a reduced body that is in the protobuf form of Kubernetes.
func (r *Reduction) AppendProtobuf(to, body []byte) ([]byte, error) {
	m := message{}
	if m.enveloped(body); m.err != nil {
		return to, m.err
	}
	return r.whole(to, m.to, r.namedOfProtobuf, (*writer).body)
}

// AppendProtobufEvent appends a reduced event of a watch: one frame without its length.
func (r *Reduction) AppendProtobufEvent(to, frame []byte) ([]byte, error) {
	m := message{}
	if m.event(frame); m.err != nil {
		return to, m.err
	}
	return r.whole(to, m.to, r.namedOfProtobuf, (*writer).event)
}

// message writes the identity of objects as JSON. The numbers of fields are those of generated.proto in
// k8s.io/apimachinery and k8s.io/api.
type message struct {
	encoder
	err error
}

func (m *message) fields(data []byte, take func(w *wire)) {
	w := wire{rest: data}
	for w.next() && m.err == nil {
		take(&w)
	}
	if m.err == nil {
		m.err = w.err
	}
}

// enveloped writes an object with its envelope.
func (m *message) enveloped(data []byte) {
	rest, found := bytes.CutPrefix(data, envelope)
	if !found {
		m.err = errWire
		return
	}
	var apiVersion, kind string
	var raw []byte
	m.fields(rest, func(w *wire) {
		switch w.number {
		case 1:
			m.fields(w.data, func(w *wire) {
				switch w.number {
				case 1:
					apiVersion = string(w.data)
				case 2:
					kind = string(w.data)
				}
			})
		case 2:
			raw = w.data
		}
	})
	m.object(apiVersion, kind, raw)
}

// object writes an object. Items of a list have a kind of their own, which protobuf does not repeat.
func (m *message) object(apiVersion, kind string, raw []byte) {
	m.open('{')
	m.text("kind", kind)
	m.text("apiVersion", apiVersion)
	switch {
	case kind == "Status":
		m.status(raw)
	case kind == "DeleteOptions":
		m.options(raw)
	case strings.HasSuffix(kind, "List"):
		m.items(contentOf(apiVersion, strings.TrimSuffix(kind, "List")), raw)
	default:
		m.content(contentOf(apiVersion, kind), raw)
		if kind == "Eviction" {
			m.evicted(raw)
		}
	}
	m.close('}')
}

// items writes a list. Metadata and items have the same numbers in all lists.
func (m *message) items(of shape, raw []byte) {
	m.fields(raw, func(w *wire) {
		if w.number == 1 {
			m.member("metadata")
			m.listMeta(w.data)
		}
	})
	m.member("items")
	m.open('[')
	m.fields(raw, func(w *wire) {
		if w.number == 2 {
			m.element()
			m.open('{')
			m.content(of, w.data)
			m.close('}')
		}
	})
	m.close(']')
}

// content writes the members of an object.
func (m *message) content(of shape, raw []byte) {
	m.fields(raw, func(w *wire) {
		if w.number == 1 {
			m.member("metadata")
			m.objectMeta(w.data)
		}
	})
	m.shaped(of, raw)
}

// evicted writes the options of an eviction.
func (m *message) evicted(raw []byte) {
	m.fields(raw, func(w *wire) {
		if w.number == 2 {
			m.member("deleteOptions")
			m.open('{')
			m.options(w.data)
			m.close('}')
		}
	})
}

type named struct {
	number int
	name   string
}

// each writes the texts of a message. An empty text is an absent one.
func (m *message) each(data []byte, names []named) {
	m.fields(data, func(w *wire) {
		for _, field := range names {
			if field.number == w.number {
				m.text(field.name, string(w.data))
			}
		}
	})
}

// repeated writes a member for a repeated field, if it stands at least once. The brackets are those of the member's value.
func (m *message) repeated(name string, data []byte, number int, brackets string, write func(w *wire)) {
	first := true
	m.fields(data, func(w *wire) {
		if w.number != number {
			return
		}
		if first {
			m.member(name)
			m.open(brackets[0])
		}
		first = false
		write(w)
	})
	if !first {
		m.close(brackets[1])
	}
}

// texts writes a repeated text.
func (m *message) texts(name string, data []byte, number int) {
	m.repeated(name, data, number, "[]", func(w *wire) {
		m.element()
		m.string(string(w.data))
	})
}

// event writes a watch event. Its object has an envelope of its own.
func (m *message) event(frame []byte) {
	if rest, found := bytes.CutPrefix(frame, envelope); found {
		// The frame is an object of its own: its content is the event.
		m.fields(rest, func(w *wire) {
			if w.number == 2 {
				frame = w.data
			}
		})
	}
	m.open('{')
	m.fields(frame, func(w *wire) {
		switch w.number {
		case 1:
			m.text("type", string(w.data))
		case 2:
			m.fields(w.data, func(w *wire) {
				if w.number == 1 {
					m.member("object")
					m.enveloped(w.data)
				}
			})
		}
	})
	m.close('}')
}
