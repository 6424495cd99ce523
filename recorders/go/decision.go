package retrograde

import (
	"context"
	"strconv"

	"retrograde/internal/journal"
)

// Decision is one pass of a reconciler: what it read from a cache of its process, and what it sent because of that.
type Decision struct {
	capture *Capture
	id      string
	name    string
}

// Object is the identity of an object in a cache.
type Object struct {
	// Resource is the plural, such as "pods". Group is empty for the core group.
	Resource, Group string
	Namespace, Name string
	// UID and ResourceVersion are empty if the cache had no such object.
	UID, ResourceVersion string
}

type decisionKey struct{}

func decisionOf(ctx context.Context) string {
	id, _ := ctx.Value(decisionKey{}).(string)
	return id
}

// Decide begins a pass of a reconciler with this name. Requests with the returned context belong to the pass.
func (c *Capture) Decide(ctx context.Context, name string) (context.Context, *Decision) {
	d := &Decision{capture: c, id: name + "-" + strconv.FormatUint(c.next.Add(1), 10), name: name}
	d.put(&pass{of: d, phase: "begin"})
	return context.WithValue(ctx, decisionKey{}, d.id), d
}

// Read records that the pass read an object from a cache of its process.
func (d *Decision) Read(object Object) {
	d.put(&cacheRead{of: d, object: object})
}

// End ends the pass.
func (d *Decision) End() {
	d.put(&pass{of: d, phase: "end"})
}

func (d *Decision) put(line journal.Line) {
	d.capture.journal.Put(line, 2*len(d.id)+256, 0)
}

type pass struct {
	of    *Decision
	phase string
}

func (p *pass) AppendLine(to []byte, at int64) []byte {
	to = begin(to, "decision", 0, at)
	to = journal.AppendText(append(to, `,"id":`...), p.of.id)
	to = journal.AppendText(append(to, `,"name":`...), p.of.name)
	to = journal.AppendText(append(to, `,"phase":`...), p.phase)
	return append(to, '}')
}

type cacheRead struct {
	of     *Decision
	object Object
}

func (r *cacheRead) AppendLine(to []byte, at int64) []byte {
	to = begin(to, "read", 0, at)
	to = journal.AppendText(append(to, `,"decision":`...), r.of.id)
	for _, field := range [...]struct{ name, value string }{
		{"resource", r.object.Resource}, {"group", r.object.Group}, {"namespace", r.object.Namespace},
		{"name", r.object.Name}, {"uid", r.object.UID}, {"resourceVersion", r.object.ResourceVersion},
	} {
		if field.value != "" {
			to = append(journal.AppendText(append(to, ','), field.name), ':')
			to = journal.AppendText(to, field.value)
		}
	}
	return append(to, '}')
}
