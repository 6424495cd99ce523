package reduction

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// shipped lists the fields that the rules of the program read: a resource, then a path, on each line. A test of the
// program keeps it equal to the program's own list.
//
//go:embed kept_fields.txt
var shipped string

// Fields are paths of objects that a recorder keeps beside their identity, by resource.
type Fields struct {
	declared []field

	mu   sync.Mutex
	made map[resource]*Reduction
}

type field struct {
	// plural is * for every resource.
	plural string
	// group counts only if isOpen is false.
	group  string
	isOpen bool
	path   string
	steps  []step
}

type resource struct{ plural, group string }

// Shipped are the fields that the rules of the program read.
var Shipped = sync.OnceValue(func() *Fields {
	fields, err := ParseFields(strings.Split(strings.TrimSpace(shipped), "\n"))
	if err != nil {
		panic(err) // a test reads the embedded file
	}
	return fields
})

// ParseFields reads lines of a resource and a path. A resource is a plural with its group, such as
// ippools.whereabouts.cni.cncf.io. A plural without a group stands for that plural in each group, and core for the
// group without a name.
func ParseFields(lines []string) (*Fields, error) {
	fields := &Fields{made: map[resource]*Reduction{}}
	for _, line := range lines {
		name, path, found := strings.Cut(line, " ")
		if !found || name == "" {
			return nil, fmt.Errorf("expected a resource and a path, found %q", line)
		}
		plural, group, hasGroup := strings.Cut(name, ".")
		if group == "core" {
			group = ""
		}
		steps, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		fields.declared = append(fields.declared, field{plural: plural, group: group, isOpen: !hasGroup, path: path, steps: steps})
	}
	return fields, nil
}

// identity are the members of metadata that a recorder always keeps.
var identity = []string{
	"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "finalizers", "labels", "ownerReferences", "generation", "continue",
	"remainingItemCount",
}

// of returns the kept parts of a resource, and their paths.
func (f *Fields) of(plural, group string) (*cut, []string) {
	all, paths := &cut{}, []string{}
	isSecret := plural == "secrets" && group == ""
	for _, field := range f.declared {
		if field.plural != "*" && (field.plural != plural || !field.isOpen && field.group != group) {
			continue
		}
		// Tools write arbitrary text into annotations, also the data of a Secret.
		if isSecret && !isIdentity(field.steps) {
			continue
		}
		all.keep(field.steps)
		paths = append(paths, field.path)
	}
	slices.Sort(paths)
	return all, slices.Compact(paths)
}

func isIdentity(steps []step) bool {
	return len(steps) > 1 && steps[0] == step{member: "metadata"} && slices.Contains(identity, steps[1].member)
}

// step is one step of a path: a member, or another step if the member is empty.
type step struct {
	member string
	other  otherStep
}

type otherStep uint8

const (
	each otherStep = iota + 1
	key
	jsonText
)

func parsePath(path string) ([]step, error) {
	var steps []step
	for rest := path; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "[*]"):
			steps, rest = append(steps, step{other: each}), rest[3:]
		case strings.HasPrefix(rest, ".json()"):
			steps, rest = append(steps, step{other: jsonText}), rest[7:]
		case strings.HasPrefix(rest, ".key()"):
			steps, rest = append(steps, step{other: key}), rest[6:]
		case strings.HasPrefix(rest, `["`):
			name, behind, found := strings.Cut(rest[2:], `"]`)
			if !found || name == "" {
				return nil, fmt.Errorf(`expected a path with "] after a quoted name, found %q`, path)
			}
			steps, rest = append(steps, step{member: name}), behind
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, fmt.Errorf("expected a path such as spec.ports[*].nodePort, found %q", path)
			}
			steps, rest = append(steps, step{member: rest[:end]}), rest[end:]
		}
	}
	if len(steps) == 0 || steps[0].member == "" {
		return nil, fmt.Errorf("expected a path that begins with a member, found %q", path)
	}
	return steps, nil
}

// cut is the kept part of a value, as a tree.
type cut struct {
	// whole keeps all of it.
	whole bool
	// each is the kept part of every element.
	each *cut
	// members are the kept parts of members.
	members map[string]*cut
}

func (c *cut) keep(steps []step) {
	switch {
	case len(steps) == 0 || steps[0].other == jsonText:
		// A text that holds JSON is kept whole.
		c.whole = true
	case steps[0].other == key:
	case steps[0].other == each:
		if c.each == nil {
			c.each = &cut{}
		}
		c.each.keep(steps[1:])
	default:
		if c.members == nil {
			c.members = map[string]*cut{}
		}
		next := c.members[steps[0].member]
		if next == nil {
			next = &cut{}
			c.members[steps[0].member] = next
		}
		next.keep(steps[1:])
	}
	// Named members together with every element: keep all.
	c.whole = c.whole || c.each != nil && len(c.members) > 0
}

// member returns the kept part of a member, or nil.
func (c *cut) member(name []byte) *cut {
	if c == nil || c.whole {
		return c
	}
	if member := c.members[string(name)]; member != nil {
		return member
	}
	return c.each
}

// element returns the kept part of an element, or nil.
func (c *cut) element() *cut {
	if c.whole {
		return c
	}
	return c.each
}

// keepsNames is true if no path leads below this value, so that the names of its members are kept.
func (c *cut) keepsNames() bool {
	return !c.whole && c.each == nil && len(c.members) == 0
}

// With returns these fields and further ones.
func (f *Fields) With(lines []string) (*Fields, error) {
	more, err := ParseFields(lines)
	if err != nil {
		return nil, err
	}
	more.declared = append(slices.Clone(f.declared), more.declared...)
	return more, nil
}
