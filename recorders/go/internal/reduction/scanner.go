package reduction

import (
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
