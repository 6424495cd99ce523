// Package reduction cuts bodies of Kubernetes down to identity, versions and the fields that rules read.
//
// It reads JSON, CBOR and the protobuf form of Kubernetes, and writes JSON. It never writes the content of a Secret.
package reduction

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"retrograde/internal/journal"
)

// Reduction is the kept part of bodies about one resource.
type Reduction struct {
	kept *cut
	// named are the kept paths, as JSON text. Objects of protobuf have fewer of them.
	named, namedOfProtobuf []byte
	// A namespace has finalizers in its spec. Finalizers hold a deletion back, so they are always kept.
	finalizersInSpec bool
	ofSecrets        bool
}

// Of returns the reduction for a resource.
func (f *Fields) Of(plural, group string) *Reduction {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := resource{plural, group}
	if made := f.made[name]; made != nil {
		return made
	}
	kept, paths := f.of(plural, group)
	made := &Reduction{
		kept:             kept,
		finalizersInSpec: name == resource{"namespaces", ""},
		ofSecrets:        name == resource{"secrets", ""},
	}
	if made.finalizersInSpec {
		paths = append([]string{"metadata.finalizers", "spec.finalizers"}, paths...)
	}
	made.named = journal.AppendText(nil, strings.Join(paths, " "))
	paths = slices.DeleteFunc(paths, func(path string) bool {
		steps, err := parsePath(path)
		return err != nil || !protobufShows(steps, name)
	})
	made.namedOfProtobuf = journal.AppendText(nil, strings.Join(paths, " "))
	if len(f.made) < maxResources {
		f.made[name] = made
	}
	return made
}

// maxResources bounds the memory for resources, whose names a caller may make up.
const maxResources = 4096

// Members of options, which describe a request and not an object. Clients send delete options without their kind.
var ofOptions = []string{"preconditions", "dryRun", "propagationPolicy", "gracePeriodSeconds", "orphanDependents"}

// Members of a Status, which describes an answer.
var ofStatus = []string{"code", "reason", "message", "details"}

const initialEventsEnd = "k8s.io/initial-events-end"

// bare keeps nothing beside identity.
var bare = &cut{}

// writer is one walk over a body.
type writer struct {
	scanner
	to        []byte
	reduction *Reduction
	named     []byte
	// withinSecrets is true within a list of Secrets.
	withinSecrets bool
}

// errFound ends a walk early.
var errFound = errors.New("found")

var errNoUTF8 = errors.New("JSON with bytes that are no UTF-8")

// AppendJSON appends a reduced body: an object, a list, a table, a status, options or a patch.
func (r *Reduction) AppendJSON(to, body []byte) ([]byte, error) {
	return r.whole(to, body, r.named, (*writer).body)
}

// AppendEvent appends a reduced event of a watch.
func (r *Reduction) AppendEvent(to, event []byte) ([]byte, error) {
	return r.whole(to, event, r.named, (*writer).event)
}

func (r *Reduction) whole(to, body, named []byte, walk func(*writer) error) ([]byte, error) {
	begin := len(to)
	w := writer{scanner: scanner{text: body}, to: to, reduction: r, named: named}
	err := walk(&w)
	if err == nil && w.peek() != 0 {
		err = errNoJSON
	}
	if err == nil && !utf8.Valid(w.to[begin:]) {
		err = errNoUTF8
	}
	if err != nil {
		return to, err
	}
	return w.to, nil
}

func (w *writer) body() error {
	switch w.peek() {
	case '{':
		return w.object()
	case '[':
		return w.list(w.step)
	}
	return w.null()
}

func (w *writer) event() error {
	w.to = append(w.to, '{')
	first := true
	err := w.members(func(name []byte) error {
		switch string(name) {
		case "type":
			w.name(&first, name)
			return w.copy()
		case "object":
			w.name(&first, name)
			return w.body()
		}
		return w.skip()
	})
	w.to = append(w.to, '}')
	return err
}

// object reduces an object of the API, a list, a status or options.
func (w *writer) object() error {
	kind, err := w.kind()
	if err != nil {
		return err
	}
	// Items of a list of Secrets do not repeat their kind. The fields of the resource itself are harmless.
	within := w.withinSecrets
	defer func() { w.withinSecrets = within }()
	isSecret := kind == "Secret" || kind == "SecretList" || within && !w.reduction.ofSecrets
	w.withinSecrets = within || kind == "SecretList"
	kept := w.reduction.kept
	if isSecret {
		kept = bare
	}
	var described []string
	switch kind {
	case "Status":
		described = ofStatus
	case "DeleteOptions", "":
		described = ofOptions
	}
	var seen seenNames
	first, hasUID := true, false
	w.to = append(w.to, '{')
	err = w.members(func(member []byte) error {
		name := known(member)
		part := kept.member(member)
		isOfSpec := (name == "spec" || name == "status") && w.peek() == '{'
		switch {
		case name == "kind", name == "apiVersion":
		case name == "metadata", name == "items", name == "rows", isOfSpec, name == "deleteOptions":
		case name == "status" && w.peek() == '"', name == "target" && kind == "Binding":
		case slices.Contains(described, name):
		case part != nil:
		default:
			return w.skip()
		}
		if !seen.add(member) {
			return errTwice
		}
		w.name(&first, member)
		switch {
		case name == "metadata":
			return w.metadata(part, &hasUID)
		case name == "items":
			return w.list(w.body)
		case name == "rows":
			return w.list(w.row)
		case isOfSpec:
			return w.part(name, part)
		case name == "deleteOptions":
			return w.body()
		case name == "kind", name == "apiVersion", name == "status", name == "target", slices.Contains(described, name):
			return w.copy()
		}
		return w.keep(part)
	})
	if hasUID {
		w.to = append(w.to, `,"recordedFields":`...)
		if isSecret {
			w.to = append(w.to, `""`...)
		} else {
			w.to = append(w.to, w.named...)
		}
	}
	w.to = append(w.to, '}')
	return err
}

// known returns the name of a member that the reduction knows, without a copy.
func known(name []byte) string {
	switch string(name) {
	case "kind":
		return "kind"
	case "apiVersion":
		return "apiVersion"
	case "metadata":
		return "metadata"
	case "spec":
		return "spec"
	case "status":
		return "status"
	case "items":
		return "items"
	}
	return string(name)
}

// kind looks ahead for the kind of an object. It is usually the first member.
func (w *writer) kind() (string, error) {
	ahead := scanner{text: w.text, at: w.at}
	var kind string
	err := ahead.members(func(name []byte) error {
		if string(name) != "kind" || ahead.peek() != '"' {
			return ahead.pass()
		}
		value, err := ahead.str()
		if err != nil {
			return err
		}
		if kind = string(value[1 : len(value)-1]); strings.IndexByte(kind, '\\') >= 0 {
			if err := json.Unmarshal(value, &kind); err != nil {
				return errNoJSON
			}
		}
		return errFound
	})
	if err == errFound {
		err = nil
	}
	return kind, err
}

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
			part = &cut{whole: true}
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
	first := true
	w.to = append(w.to, '{')
	err := w.members(func(name []byte) error {
		part := kept.member(name)
		switch {
		case string(name) == initialEventsEnd:
			part = &cut{whole: true}
		case part == nil && (kept == nil || !kept.keepsNames()):
			return w.skip()
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

// part reduces a spec or a status: its kept parts, and the field that selectors see.
func (w *writer) part(name string, kept *cut) error {
	selected := "nodeName"
	if name == "status" {
		selected = "phase"
	}
	first := true
	var seen seenNames
	w.to = append(w.to, '{')
	err := w.members(func(member []byte) error {
		part := kept.member(member)
		switch {
		case string(member) == selected && w.peek() == '"', w.reduction.finalizersInSpec && name == "spec" && string(member) == "finalizers":
			part = &cut{whole: true}
		case part == nil && (kept == nil || !kept.keepsNames()):
			return w.skip()
		}
		if !seen.add(member) {
			return errTwice
		}
		w.name(&first, member)
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
		first := true
		w.to = append(w.to, '{')
		err := w.members(func(name []byte) error {
			part := kept.member(name)
			if part == nil && !kept.keepsNames() {
				return w.skip()
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
