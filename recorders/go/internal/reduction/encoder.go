package reduction

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"retrograde/internal/journal"
)

// encoder writes JSON, member by member.
type encoder struct {
	to []byte
	// comma is true if a member or an element stands before the next one.
	comma bool
}

func (e *encoder) open(bracket byte) {
	e.to = append(e.to, bracket)
	e.comma = false
}

func (e *encoder) close(bracket byte) {
	e.to = append(e.to, bracket)
	e.comma = true
}

func (e *encoder) element() {
	if e.comma {
		e.to = append(e.to, ',')
	}
	e.comma = true
}

func (e *encoder) member(name string) {
	e.element()
	e.string(name)
	e.to = append(e.to, ':')
}

func (e *encoder) string(text string) {
	e.comma = true
	if !utf8.ValidString(text) {
		// The encoder of JSON replaces bytes that are no UTF-8.
		encoded, _ := json.Marshal(text)
		e.to = append(e.to, encoded...)
		return
	}
	e.to = journal.AppendText(e.to, text)
}

// text writes a member, unless the text is empty.
func (e *encoder) text(name, text string) {
	if text != "" {
		e.member(name)
		e.string(text)
	}
}

func (e *encoder) integer(number int64) {
	e.comma = true
	e.to = strconv.AppendInt(e.to, number, 10)
}

func (e *encoder) boolean(flag bool) {
	e.comma = true
	e.to = strconv.AppendBool(e.to, flag)
}

func (e *encoder) number(name string, number int64) {
	e.member(name)
	e.integer(number)
}

func (e *encoder) flag(name string, flag bool) {
	e.member(name)
	e.boolean(flag)
}

func (e *encoder) moment(name string, seconds int64) {
	e.member(name)
	e.to = append(e.to, '"')
	e.to = time.Unix(seconds, 0).UTC().AppendFormat(e.to, time.RFC3339)
	e.to = append(e.to, '"')
}
