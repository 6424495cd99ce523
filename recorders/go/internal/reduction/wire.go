package reduction

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errWire = errors.New("protobuf that is cut off or damaged")

// wire walks over the fields of a protobuf message.
type wire struct {
	rest []byte
	err  error

	// number, value and data are those of the present field. Only a field with a length has data.
	number int
	value  uint64
	data   []byte
}

// next moves to the next field. It is false at the end, and after an error.
func (w *wire) next() bool {
	if len(w.rest) == 0 || w.err != nil {
		return false
	}
	number, kind, length := protowire.ConsumeTag(w.rest)
	if length < 0 {
		return w.fail()
	}
	w.rest = w.rest[length:]
	w.number, w.value, w.data = int(number), 0, nil
	switch kind {
	case protowire.VarintType:
		w.value, length = protowire.ConsumeVarint(w.rest)
	case protowire.BytesType:
		w.data, length = protowire.ConsumeBytes(w.rest)
	default:
		length = protowire.ConsumeFieldValue(number, kind, w.rest)
	}
	if length < 0 {
		return w.fail()
	}
	w.rest = w.rest[length:]
	return true
}

func (w *wire) fail() bool {
	w.err = errWire
	return false
}
