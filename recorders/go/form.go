package retrograde

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"retrograde/internal/reduction"
)

// form is the form of a body.
type form uint8

const (
	noForm form = iota
	jsonForm
	protobufForm
	cborForm
)

// formOf returns the form that a Content-Type names. A server that names none sends JSON.
func formOf(contentType string) form {
	kind := strings.ToLower(contentType)
	switch {
	case kind == "" || strings.Contains(kind, "json"):
		return jsonForm
	case strings.HasPrefix(kind, "application/vnd.kubernetes.protobuf"):
		return protobufForm
	case strings.Contains(kind, "cbor"):
		return cborForm
	}
	return noForm
}

// formOfRequest returns the form of a request body. Clients send JSON under the name of YAML too.
func formOfRequest(contentType string) form {
	if form := formOf(contentType); form != noForm {
		return form
	}
	return jsonForm
}

func (f form) appendBody(r *reduction.Reduction, to, body []byte) ([]byte, error) {
	switch f {
	case protobufForm:
		return r.AppendProtobuf(to, body)
	case cborForm:
		return r.AppendCBOR(to, body)
	}
	return r.AppendJSON(to, body)
}

func (f form) appendEvent(r *reduction.Reduction, to, event []byte) ([]byte, error) {
	switch f {
	case protobufForm:
		return r.AppendProtobufEvent(to, event)
	case cborForm:
		return r.AppendCBOREvent(to, event)
	}
	return r.AppendEvent(to, event)
}

// next cuts the first event off a stream. It returns the event and the length with its frame, or zero if the event is
// not complete.
func (f form) next(stream []byte) (event []byte, length int, err error) {
	switch f {
	case protobufForm:
		if len(stream) < 4 {
			return nil, 0, nil
		}
		told := binary.BigEndian.Uint32(stream)
		if told > longest {
			return nil, 0, fmt.Errorf("a frame of %d bytes", told)
		}
		size := int(told)
		if len(stream) < 4+size {
			return nil, 0, nil
		}
		return stream[4 : 4+size], 4 + size, nil
	case cborForm:
		length, err := reduction.CutCBOR(stream)
		return stream[:length], length, err
	}
	end := bytes.IndexByte(stream, '\n')
	return stream[:max(end, 0)], end + 1, nil
}

// unpack decodes gzip.
func unpack(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(reader, longest+1))
	if err == nil && len(plain) > longest {
		err = fmt.Errorf("more than %d bytes", longest)
	}
	return plain, err
}

// blank is true for a body of spaces.
func blank(body []byte) bool {
	for _, c := range body {
		if c > ' ' {
			return false
		}
	}
	return true
}
