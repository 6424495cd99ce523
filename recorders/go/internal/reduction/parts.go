package reduction

import (
	"bytes"
	"slices"

	"retrograde/internal/journal"
)

func (w *writer) metadata(kept *cut, hasUID *bool) error {
	if w.peek() != '{' {
		return w.null()
	}
	var seen seenNames
	first := true
	w.to = append(w.to, '{')
	err := w.members(func(name []byte) error {
		isIdentity := slices.Contains(identity, string(name))
		part := kept.member(name)
		mark := len(w.to)
		switch {
		case isIdentity:
			part = entire
		case string(name) == "annotations" && w.peek() == '{':
		case part == nil && (kept == nil || !kept.keepsNames()):
			return w.skip()
		}
		if !seen.add(name) {
			return errTwice
		}
		*hasUID = *hasUID || string(name) == "uid"
		wasFirst := first
		w.name(&first, name)
		switch {
		case string(name) == "annotations" && w.peek() == '{' && (part == nil || !part.whole):
			begin := len(w.to)
			err := w.annotations(part)
			if part == nil && len(w.to)-begin == len("{}") {
				w.to, first = w.to[:mark], wasFirst
			}
			return err
		case part == nil:
			return w.null()
		}
		return w.keep(part)
	})
	w.to = append(w.to, '}')
	return err
}

// annotations keeps declared annotations, and the mark of the end of initial events.
func (w *writer) annotations(kept *cut) error {
	return w.kept(kept, nil, func(name []byte) bool { return string(name) == initialEventsEnd })
}

// part reduces a spec or a status: its kept parts, and the field that selectors see.
func (w *writer) part(name string, kept *cut) error {
	selected := "nodeName"
	if name == "status" {
		selected = "phase"
	}
	return w.kept(kept, &seenNames{}, func(member []byte) bool {
		return string(member) == selected && w.peek() == '"' ||
			w.reduction.finalizersInSpec && name == "spec" && string(member) == "finalizers"
	})
}

// kept reduces an object to its declared members and to those that isKept tells. With seen, a member that stands twice is
// an error.
func (w *writer) kept(kept *cut, seen *seenNames, isKept func(name []byte) bool) error {
	first := true
	w.to = append(w.to, '{')
	err := w.members(func(name []byte) error {
		part := kept.member(name)
		switch {
		case isKept != nil && isKept(name):
			part = entire
		case part == nil && (kept == nil || !kept.keepsNames()):
			return w.skip()
		}
		if seen != nil && !seen.add(name) {
			return errTwice
		}
		w.name(&first, name)
		if part == nil {
			return w.null()
		}
		return w.keep(part)
	})
	w.to = append(w.to, '}')
	return err
}

func (w *writer) row() error {
	w.to = append(w.to, '{')
	first := true
	if w.peek() != '{' {
		w.to = append(w.to, '}')
		return w.skip()
	}
	err := w.members(func(name []byte) error {
		if string(name) != "object" {
			return w.skip()
		}
		w.name(&first, name)
		return w.body()
	})
	w.to = append(w.to, '}')
	return err
}

// step reduces a step of a JSON patch. Only steps on identity and version have conditions.
func (w *writer) step() error {
	if w.peek() != '{' {
		w.to = append(w.to, `{"op":null,"path":null}`...)
		return w.skip()
	}
	op, path, value := []byte("null"), []byte("null"), []byte(nil)
	err := w.members(func(name []byte) error {
		text, err := w.value()
		switch string(name) {
		case "op":
			op = text
		case "path":
			path = text
		case "value":
			value = text
		}
		return err
	})
	w.to = appendCompact(append(w.to, `{"op":`...), op)
	w.to = appendCompact(append(w.to, `,"path":`...), path)
	if last, found := bytes.CutPrefix(path, []byte(`"/metadata/`)); found && value != nil {
		if slices.Contains(identity, string(bytes.TrimSuffix(last, []byte{'"'}))) {
			w.to = appendCompact(append(w.to, `,"value":`...), value)
		}
	}
	w.to = append(w.to, '}')
	return err
}

// keep copies the kept part of any value.
func (w *writer) keep(kept *cut) error {
	if kept.whole {
		return w.copy()
	}
	switch w.peek() {
	case '[':
		element := kept.element()
		return w.list(func() error {
			if element == nil {
				return w.null()
			}
			return w.keep(element)
		})
	case '{':
		return w.kept(kept, nil, nil)
	}
	return w.null()
}

// list reduces each element. Another value than a list becomes an empty one.
func (w *writer) list(reduce func() error) error {
	w.to = append(w.to, '[')
	if w.peek() != '[' {
		w.to = append(w.to, ']')
		return w.skip()
	}
	first := true
	err := w.elements(func() error {
		if !first {
			w.to = append(w.to, ',')
		}
		first = false
		return reduce()
	})
	w.to = append(w.to, ']')
	return err
}

func (w *writer) name(first *bool, name []byte) {
	if !*first {
		w.to = append(w.to, ',')
	}
	*first = false
	w.to = append(journal.AppendText(w.to, name), ':')
}

func (w *writer) copy() error {
	value, err := w.value()
	w.to = appendCompact(w.to, value)
	return err
}

func (w *writer) skip() error {
	return w.pass()
}

// null replaces a value.
func (w *writer) null() error {
	w.to = append(w.to, "null"...)
	return w.skip()
}

// seenNames are the members that were kept of one object. A second one of the same name would make the line unreadable.
type seenNames struct {
	names [16][]byte
	count int
}

func (s *seenNames) add(name []byte) bool {
	for _, seen := range s.names[:s.count] {
		if bytes.Equal(seen, name) {
			return false
		}
	}
	if s.count < len(s.names) {
		s.names[s.count] = name
		s.count++
	}
	return true
}
