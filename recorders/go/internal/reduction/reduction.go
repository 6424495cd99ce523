// Package reduction cuts bodies of Kubernetes down to identity, versions and the fields that rules read.
//
// It reads JSON, CBOR and the protobuf form of Kubernetes, and writes JSON. It never writes the content of a Secret.
package reduction

import (
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

// Of gives the reduction for a resource.
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

// bare keeps nothing beside identity, and entire keeps everything.
var bare, entire = &cut{}, &cut{whole: true}

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
