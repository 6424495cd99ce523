package reduction

import (
	"encoding/binary"
	"errors"
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
	tag, ok := w.varint()
	if !ok || tag>>3 == 0 || tag>>3 > 1<<29 {
		return w.fail()
	}
	w.number, w.value, w.data = int(tag>>3), 0, nil
	switch tag & 7 {
	case 0:
		if w.value, ok = w.varint(); !ok {
			return w.fail()
		}
	case 1:
		return w.take(8)
	case 2:
		length, ok := w.varint()
		if !ok || length > uint64(len(w.rest)) {
			return w.fail()
		}
		return w.take(int(length))
	case 5:
		return w.take(4)
	default:
		return w.fail()
	}
	return true
}

func (w *wire) varint() (uint64, bool) {
	value, length := binary.Uvarint(w.rest)
	if length <= 0 {
		return 0, false
	}
	w.rest = w.rest[length:]
	return value, true
}

func (w *wire) take(length int) bool {
	if length > len(w.rest) {
		return w.fail()
	}
	w.data, w.rest = w.rest[:length:length], w.rest[length:]
	return true
}

func (w *wire) fail() bool {
	w.err = errWire
	return false
}
