package etcd

import (
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/status"

	"retrograde/internal/journal"
)

// call is a call in progress. One that does not end has an unknown outcome.
type call struct {
	client *Client
	id     int64
	at     int64
	// input is the request of the report, as JSON.
	input []byte
	asked asked
}

// asked is the kind of a request.
type asked uint8

const (
	askedOther asked = iota
	askedRange
	askedPut
	askedDelete
	askedTxn
	askedCompact
	askedGrant
	askedRevoke
)

// begin records a call before it is sent.
func (c *Client) begin(method string, request any) *call {
	call := &call{client: c, id: int64(c.recorder.next.Add(1)), at: c.recorder.clock.Now()}
	call.input, call.asked = input(method, request)
	line := append(call.head(16), '}')
	c.operations.Put(journal.Text(line), len(line), 0)
	return call
}

// head returns the members that the begin and the end of a call have, with room for more bytes.
func (c *call) head(room int) []byte {
	line := append(make([]byte, 0, len(c.input)+room+80), '{')
	line = appendNumber(line, "ClientId", c.id)
	line = append(append(line, `,"Input":`...), c.input...)
	return appendNumber(append(line, ','), "Call", c.at)
}

// answer records the answer after it was read.
func (c *call) answer(reply any) {
	output, lease, ok := output(c.asked, reply)
	if !ok {
		c.ended([]byte(`{"Error":"an answer that cannot be read"}`))
		return
	}
	if c.asked == askedGrant {
		c.input = appendGrant(lease)
	}
	c.ended(output)
}

// failed records an error. Its text decides whether the call had no effect or an unknown outcome.
func (c *call) failed(err error) {
	failure := status.Convert(err)
	text := "rpc error: code = " + failure.Code().String() + " desc = " + failure.Message()
	c.ended(append(appendString([]byte{'{'}, "Error", text), '}'))
}

func (c *call) ended(output []byte) {
	returned := c.client.recorder.clock.Now()
	line := append(append(c.head(len(output)+64), `,"Output":`...), output...)
	line = append(appendNumber(append(line, ','), "Return", returned), '}')
	c.client.operations.Put(journal.Text(line), len(line), 0)
}

// input returns a request as the report has it. A request that a report cannot express is "other": it may change keys
// in any way.
func input(method string, request any) ([]byte, asked) {
	switch request := request.(type) {
	case *pb.RangeRequest:
		if !isSelective(request) {
			return append(appendRange(begun(`{"Type":"range","Range":`), request), '}'), askedRange
		}
	case *pb.PutRequest:
		if !request.GetIgnoreValue() && !request.GetIgnoreLease() {
			return one(func(to []byte) []byte { return appendPut(to, request) }), askedPut
		}
	case *pb.DeleteRangeRequest:
		return one(func(to []byte) []byte { return appendDelete(to, request) }), askedDelete
	case *pb.TxnRequest:
		if isExpressible(request) {
			return append(appendTxn(begun(`{"Type":"txn","Txn":`), request), '}'), askedTxn
		}
	case *pb.CompactionRequest:
		to := appendNumber(begun(`{"Type":"compact","Compact":{`), "Revision", request.GetRevision())
		return append(to, "}}"...), askedCompact
	case *pb.LeaseGrantRequest:
		return appendGrant(0), askedGrant
	case *pb.LeaseRevokeRequest:
		to := appendNumber(begun(`{"Type":"leaseRevoke","LeaseRevoke":{`), "LeaseID", request.GetID())
		return append(to, "}}"...), askedRevoke
	}
	name := method[strings.LastIndexByte(method, '/')+1:]
	return append(appendString(begun(`{"Type":"other",`), "Other", name), '}'), askedOther
}

// begun returns the beginning of a request, with room for a common one.
func begun(text string) []byte {
	return append(make([]byte, 0, 256), text...)
}

func appendGrant(lease int64) []byte {
	to := appendNumber(begun(`{"Type":"leaseGrant","LeaseGrant":{`), "LeaseID", lease)
	return append(to, "}}"...)
}

// one makes a transaction of one step.
func one(step func([]byte) []byte) []byte {
	return append(step(begun(`{"Type":"txn","Txn":{"OperationsOnSuccess":[`)), "]}}"...)
}

// isSelective is true if revisions, or a limit in another order than that of keys, exclude some of the keys.
func isSelective(r *pb.RangeRequest) bool {
	bounds := r.GetMinModRevision() | r.GetMaxModRevision() | r.GetMinCreateRevision() | r.GetMaxCreateRevision()
	return bounds != 0 || r.GetSortOrder() != pb.RangeRequest_NONE && r.GetLimit() > 0
}

// isExpressible is true if a report can express the whole transaction.
func isExpressible(txn *pb.TxnRequest) bool {
	steps, local := 0, 0
	for _, part := range [][]*pb.RequestOp{txn.GetSuccess(), txn.GetFailure()} {
		for _, step := range part {
			steps++
			switch request := step.GetRequest().(type) {
			case *pb.RequestOp_RequestRange:
				if isSelective(request.RequestRange) {
					return false
				}
				if request.RequestRange.GetSerializable() {
					local++
				}
			case *pb.RequestOp_RequestPut:
				if request.RequestPut.GetIgnoreValue() || request.RequestPut.GetIgnoreLease() {
					return false
				}
			case *pb.RequestOp_RequestDeleteRange:
			default:
				return false
			}
		}
	}
	// A member answers a transaction of serializable reads alone from its own state.
	return steps == 0 || local < steps
}

func appendRange(to []byte, r *pb.RangeRequest) []byte {
	isSorted := r.GetSortOrder() != pb.RangeRequest_NONE || r.GetSortTarget() != pb.RangeRequest_KEY
	to = appendKey(append(to, '{'), "Start", r.GetKey())
	to = appendKey(append(to, ','), "End", r.GetRangeEnd())
	to = appendNumber(append(to, ','), "Limit", r.GetLimit())
	to = appendFlag(append(to, ','), "KeysOnly", r.GetKeysOnly())
	to = appendNumber(append(to, ','), "Revision", r.GetRevision())
	to = appendFlag(append(to, ','), "CountOnly", r.GetCountOnly())
	to = appendFlag(append(to, ','), "Serializable", r.GetSerializable())
	to = appendFlag(append(to, ','), "Sorted", isSorted)
	return append(to, '}')
}

func appendPut(to []byte, r *pb.PutRequest) []byte {
	to = appendKey(append(to, `{"Type":"put-operation","Put":{`...), "Key", r.GetKey())
	to = appendValue(append(to, ','), "Value", r.GetValue())
	to = appendNumber(append(to, ','), "LeaseID", r.GetLease())
	return append(to, "}}"...)
}

func appendDelete(to []byte, r *pb.DeleteRangeRequest) []byte {
	to = appendKey(append(to, `{"Type":"delete-operation","Delete":{`...), "Key", r.GetKey())
	to = appendKey(append(to, ','), "End", r.GetRangeEnd())
	return append(to, "}}"...)
}

func appendTxn(to []byte, txn *pb.TxnRequest) []byte {
	to = append(to, `{"Conditions":[`...)
	for at, compare := range txn.GetCompare() {
		if at > 0 {
			to = append(to, ',')
		}
		to = appendCondition(to, compare)
	}
	to = appendSteps(append(to, `],"OperationsOnSuccess":[`...), txn.GetSuccess())
	to = appendSteps(append(to, `],"OperationsOnFailure":[`...), txn.GetFailure())
	return append(to, "]}"...)
}

func appendSteps(to []byte, steps []*pb.RequestOp) []byte {
	for at, step := range steps {
		if at > 0 {
			to = append(to, ',')
		}
		switch request := step.GetRequest().(type) {
		case *pb.RequestOp_RequestRange:
			to = append(appendRange(append(to, `{"Type":"range-operation","Range":`...), request.RequestRange), '}')
		case *pb.RequestOp_RequestPut:
			to = appendPut(to, request.RequestPut)
		case *pb.RequestOp_RequestDeleteRange:
			to = appendDelete(to, request.RequestDeleteRange)
		}
	}
	return to
}

func appendCondition(to []byte, compare *pb.Compare) []byte {
	number := max(compare.GetVersion(), compare.GetCreateRevision(), compare.GetModRevision(), compare.GetLease())
	if number == 0 {
		number = min(compare.GetVersion(), compare.GetCreateRevision(), compare.GetModRevision(), compare.GetLease())
	}
	to = appendKey(append(to, '{'), "Key", compare.GetKey())
	to = appendKey(append(to, ','), "End", compare.GetRangeEnd())
	to = appendString(append(to, ','), "Target", nameOf(targets, int32(compare.GetTarget())))
	to = appendString(append(to, ','), "Relation", nameOf(relations, int32(compare.GetResult())))
	to = appendNumber(append(to, ','), "Number", number)
	to = appendValue(append(to, ','), "Value", compare.GetValue())
	return append(to, '}')
}

var (
	targets   = []string{"version", "create", "mod", "value", "lease"}
	relations = []string{"=", ">", "<", "!="}
)
