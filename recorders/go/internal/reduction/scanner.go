package reduction

import (
	"bytes"
	"encoding/json"
	"errors"
)

var (
	errCut     = errors.New("JSON that is cut off")
	errNoJSON  = errors.New("no JSON")
	errTwice   = errors.New("a member that stands twice in an object")
	errTooDeep = errors.New("JSON with more than 200 levels")
)

// deepest bounds the nesting of values. Objects of the API are much less deep.
const deepest = 200

// scanner walks over JSON without decoding it.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek returns the first byte of the next token, or zero at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) expect(c byte) error {
	switch s.peek() {
	case c:
		s.at++
		return nil
	case 0:
		return errCut
	}
	return errNoJSON
}

// plain marks the bytes of a string that stand for themselves.
var plain = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return table
}()

// str walks over a string and returns it with its quotes.
func (s *scanner) str() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	begin := s.at - 1
	text, at := s.text, s.at
	for {
		for at < len(text) && plain[text[at]] {
			at++
		}
		if at >= len(text) {
			return nil, errCut
		}
		switch text[at] {
		case '"':
			s.at = at + 1
			return text[begin:s.at], nil
		case '\\':
			length, err := escape(text[at:])
			if err != nil {
				return nil, err
			}
			at += length
		default:
			return nil, errNoJSON
		}
	}
}

// escape returns the length of an escape sequence.
func escape(text []byte) (int, error) {
	if len(text) < 2 {
		return 0, errCut
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
		if len(text) < 6 {
			return 0, errCut
		}
		for _, c := range text[2:6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return 0, errNoJSON
			}
		}
		return 6, nil
	}
	return 0, errNoJSON
}

// value walks over a value and returns its text.
func (s *scanner) value() ([]byte, error) {
	first := s.peek()
	begin := s.at
	var err error
	switch first {
	case '{', '[':
		err = s.nested()
	case '"':
		return s.str()
	case 0:
		return nil, errCut
	default:
		err = s.literal()
	}
	return s.text[begin:s.at], err
}

// nested walks over an object or a list.
func (s *scanner) nested() error {
	var open [deepest]byte
	depth := 0
	for {
		// A value begins here.
		switch c := s.peek(); c {
		case '{', '[':
			if depth == deepest {
				return errTooDeep
			}
			s.at++
			open[depth] = c
			depth++
			if s.peek() != c+2 {
				if c == '{' {
					if err := s.key(); err != nil {
						return err
					}
				}
				continue
			}
		case '"':
			if _, err := s.str(); err != nil {
				return err
			}
		case 0:
			return errCut
		default:
			if err := s.literal(); err != nil {
				return err
			}
		}
		// A value ended, or the end of an empty one is next.
		for more := false; !more; {
			switch c := s.peek(); {
			case c == ',':
				s.at++
				more = true
				if open[depth-1] == '{' {
					if err := s.key(); err != nil {
						return err
					}
				}
			case c == open[depth-1]+2:
				s.at++
				if depth--; depth == 0 {
					return nil
				}
			case c == 0:
				return errCut
			default:
				return errNoJSON
			}
		}
	}
}

// structural marks the bytes that matter outside of strings.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// pass walks over a value that is not kept. Inside of it, it looks only at brackets and quotes.
func (s *scanner) pass() error {
	if c := s.peek(); c != '{' && c != '[' {
		_, err := s.value()
		return err
	}
	text, at, depth := s.text, s.at, 0
	for at < len(text) {
		c := text[at]
		at++
		if !structural[c] {
			continue
		}
		switch c {
		case '"':
			length := behindQuote(text[at:])
			if length == 0 {
				return errCut
			}
			at += length
		case '{', '[':
			depth++
		default:
			if depth--; depth == 0 {
				s.at = at
				return nil
			}
		}
	}
	return errCut
}

// behindQuote returns the offset behind the quote that ends a string, or zero if there is none.
func behindQuote(text []byte) int {
	at := 0
	for {
		next := bytes.IndexByte(text[at:], '"')
		if next < 0 {
			return 0
		}
		at += next + 1
		escapes := 0
		for back := at - 2; back >= 0 && text[back] == '\\'; back-- {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

func (s *scanner) key() error {
	if _, err := s.str(); err != nil {
		return err
	}
	return s.expect(':')
}

// literal walks over a number, true, false or null.
func (s *scanner) literal() error {
	begin := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			goto end
		default:
			s.at++
		}
	}
end:
	word := s.text[begin:s.at]
	if string(word) == "null" || string(word) == "true" || string(word) == "false" || isNumber(word) {
		return nil
	}
	return errNoJSON
}

func isNumber(word []byte) bool {
	if len(word) == 0 {
		return false
	}
	for _, c := range word {
		if c < '0' || c > '9' {
			return (word[0] == '-' || word[0] >= '0' && word[0] <= '9') && json.Valid(word)
		}
	}
	return word[0] != '0' || len(word) == 1
}

// members calls take with each member of an object. The name is decoded; take must walk over the value.
func (s *scanner) members(take func(name []byte) error) error {
	return s.sequence('{', '}', func() error {
		name, err := s.str()
		if err != nil {
			return err
		}
		name = name[1 : len(name)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			var decoded string
			if err := json.Unmarshal(s.text[s.at-len(name)-2:s.at], &decoded); err != nil {
				return errNoJSON
			}
			name = []byte(decoded)
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return take(name)
	})
}

// elements calls take with each element of a list. It must walk over the element.
func (s *scanner) elements(take func() error) error {
	return s.sequence('[', ']', take)
}

func (s *scanner) sequence(open, end byte, take func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.peek() == end {
		s.at++
		return nil
	}
	for {
		if err := take(); err != nil {
			return err
		}
		switch s.peek() {
		case end:
			s.at++
			return nil
		case ',':
			s.at++
		case 0:
			return errCut
		default:
			return errNoJSON
		}
	}
}

// appendCompact appends a value without the space between its tokens, so that it stays on one line.
func appendCompact(to, value []byte) []byte {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(to, value...)
	}
	within := false
	for at := 0; at < len(value); at++ {
		c := value[at]
		switch {
		case within && c == '\\':
			to = append(to, c)
			at++
			c = value[at]
		case c == '"':
			within = !within
		case !within && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		to = append(to, c)
	}
	return to
}
