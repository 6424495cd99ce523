package reduction

import "strings"

// shape says which fields of a protobuf message are written as JSON, by their numbers. Other fields are passed over.
type shape map[int]member

type member struct {
	// name is that of the member in JSON. A nested message without a name adds its members to the outer object.
	name string
	form memberForm
	// isList is true for a repeated field.
	isList bool
	// of is the shape of a nested message.
	of shape
	// keepsZero is true for a field that JSON shows with an empty value too.
	keepsZero bool
}

type memberForm uint8

const (
	text memberForm = iota
	number
	flag
	nested
)

// kind is a kind of the API whose content has fields that rules read or selectors see.
type kind struct {
	plural, group string
	content       shape
}

func texts(name string) member { return member{name: name, isList: true} }

func list(name string, of shape) member {
	return member{name: name, form: nested, isList: true, of: of}
}

func part(name string, of shape) member { return member{name: name, form: nested, of: of} }

// reference is the shape of an ObjectReference.
var reference = shape{
	1: {name: "kind"}, 2: {name: "namespace"}, 3: {name: "name"}, 4: {name: "uid"}, 5: {name: "apiVersion"},
	6: {name: "resourceVersion"}, 7: {name: "fieldPath"},
}

// phase is the shape of a status whose first field is its phase.
var phase = part("status", shape{1: {name: "phase"}})

// kinds has the kinds by the group and the name. The numbers are those of generated.proto in k8s.io/api. A test with
// the generated types of k8s.io/api covers each of them.
var kinds = map[string]kind{
	"/Pod": {"pods", "", shape{
		2: part("spec", shape{
			1: list("volumes", shape{2: part("", shape{
				10: part("persistentVolumeClaim", shape{1: {name: "claimName", keepsZero: true}}),
			})}),
			10: {name: "nodeName"},
			11: {name: "hostNetwork", form: flag},
		}),
		3: part("status", shape{1: {name: "phase"}, 6: {name: "podIP"}, 12: list("podIPs", shape{1: {name: "ip", keepsZero: true}})}),
	}},
	"/Namespace": {"namespaces", "", shape{2: part("spec", shape{1: texts("finalizers")}), 3: phase}},
	"/Node": {"nodes", "", shape{
		2: part("spec", shape{7: texts("podCIDRs")}),
		3: part("status", shape{
			3: {name: "phase"},
			4: list("conditions", shape{1: {name: "type", keepsZero: true}, 2: {name: "status", keepsZero: true}}),
		}),
	}},
	"/PersistentVolume":      {"persistentvolumes", "", shape{2: part("spec", shape{4: part("claimRef", reference)}), 3: phase}},
	"/PersistentVolumeClaim": {"persistentvolumeclaims", "", shape{2: part("spec", shape{3: {name: "volumeName"}}), 3: phase}},
	"/Service": {"services", "", shape{
		2: part("spec", shape{
			1:  list("ports", shape{2: {name: "protocol"}, 5: {name: "nodePort", form: number}}),
			18: texts("clusterIPs"),
		}),
		3: part("status", shape{}),
	}},
	"/Binding":          {"", "", shape{2: part("target", reference)}},
	"autoscaling/Scale": {"", "autoscaling", shape{2: part("spec", shape{}), 3: part("status", shape{})}},
	"apps/ReplicaSet": {"replicasets", "apps", shape{
		2: part("spec", shape{1: {name: "replicas", form: number, keepsZero: true}}),
		3: part("status", shape{}),
	}},
	"coordination.k8s.io/Lease": {"leases", "coordination.k8s.io", shape{2: part("spec", shape{
		1: {name: "holderIdentity", keepsZero: true},
		2: {name: "leaseDurationSeconds", form: number, keepsZero: true},
	})}},
	"networking.k8s.io/IPAddress": {"ipaddresses", "networking.k8s.io", shape{2: part("spec", shape{
		1: part("parentRef", shape{3: {name: "namespace"}, 4: {name: "name"}}),
	})}},
}

// contentOf returns the shape of a kind, or nil.
func contentOf(apiVersion, name string) shape {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	return kinds[group+"/"+name].content
}

// protobufShows is true for a path that the JSON made from protobuf has, if the object has it.
func protobufShows(steps []step, of resource) bool {
	if steps[0].member == "metadata" {
		return len(steps) > 1 && !steps[1].isOneOf("managedFields", "generateName", "selfLink")
	}
	for _, kind := range kinds {
		if kind.plural == of.plural && kind.group == of.group {
			return kind.content.shows(steps)
		}
	}
	return false
}

func (s step) isOneOf(names ...string) bool {
	for _, name := range names {
		if s.member == name {
			return true
		}
	}
	return false
}

// shows is true if a path ends at a text, a number or a flag of the shape, or at a list of them.
func (s shape) shows(steps []step) bool {
	for _, field := range s {
		if field.name == "" {
			if field.of.shows(steps) {
				return true
			}
			continue
		}
		if field.name != steps[0].member {
			continue
		}
		rest := steps[1:]
		if field.isList && len(rest) > 0 && rest[0].other == each {
			rest = rest[1:]
		}
		if field.form == nested {
			return len(rest) > 0 && field.of.shows(rest)
		}
		return len(rest) == 0
	}
	return false
}

// shaped writes the fields of a message that its shape has.
func (m *message) shaped(s shape, data []byte) {
	var lists []int
	m.fields(data, func(w *wire) {
		field, found := s[w.number]
		switch {
		case !found:
		case field.isList:
			lists = add(lists, w.number)
		case field.form == nested && field.name == "":
			m.shaped(field.of, w.data)
		case field.form == nested || field.keepsZero || w.value != 0 || len(w.data) > 0:
			m.member(field.name)
			m.plain(field, w)
		}
	})
	for _, number := range lists {
		field := s[number]
		m.member(field.name)
		m.open('[')
		m.fields(data, func(w *wire) {
			if w.number == number {
				m.element()
				m.plain(field, w)
			}
		})
		m.close(']')
	}
}

func add(numbers []int, number int) []int {
	for _, known := range numbers {
		if known == number {
			return numbers
		}
	}
	return append(numbers, number)
}

// plain writes a value.
func (m *message) plain(field member, w *wire) {
	switch field.form {
	case nested:
		m.open('{')
		m.shaped(field.of, w.data)
		m.close('}')
	case number:
		m.integer(int64(w.value))
	case flag:
		m.boolean(w.value != 0)
	default:
		m.string(string(w.data))
	}
}
