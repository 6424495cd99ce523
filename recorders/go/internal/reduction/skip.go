package reduction

import (
	"bytes"
	"encoding/json"
)

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
