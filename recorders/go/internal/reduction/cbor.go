package reduction

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// cborMode reads CBOR as Kubernetes writes it: texts are byte strings, and each map is an object.
var cborMode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey:                cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:          deepest,
		MaxArrayElements:         1<<31 - 1,
		MaxMapPairs:              1 << 21,
		DefaultMapType:           reflect.TypeFor[map[string]any](),
		DefaultByteStringType:    reflect.TypeFor[string](),
		ByteStringToString:       cbor.ByteStringToStringAllowedWithExpectedLaterEncoding,
		FieldNameByteString:      cbor.FieldNameByteStringAllowed,
		ByteStringExpectedFormat: cbor.ByteStringExpectedBase64,
		UnrecognizedTagToAny:     cbor.UnrecognizedTagContentToAny,
		TimeTagToAny:             cbor.TimeTagToRFC3339Nano,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

// AppendCBOR appends a reduced body that is CBOR.
func (r *Reduction) AppendCBOR(to, body []byte) ([]byte, error) {
	text, err := fromCBOR(body)
	if err != nil {
		return to, err
	}
	return r.AppendJSON(to, text)
}

// AppendCBOREvent appends a reduced event of a watch: one item of a CBOR sequence.
func (r *Reduction) AppendCBOREvent(to, item []byte) ([]byte, error) {
	text, err := fromCBOR(item)
	if err != nil {
		return to, err
	}
	return r.AppendEvent(to, text)
}

func fromCBOR(body []byte) ([]byte, error) {
	var value any
	if err := cborMode.Unmarshal(body, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// CutCBOR returns the length of the first item of a CBOR sequence, or zero if the item is not complete.
func CutCBOR(text []byte) (int, error) {
	var item cbor.RawMessage
	rest, err := cborMode.UnmarshalFirst(text, &item)
	switch {
	case err == nil:
		return len(text) - len(rest), nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, nil
	}
	return 0, err
}
