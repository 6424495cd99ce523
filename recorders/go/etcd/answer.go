package etcd

import (
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// nameOf returns a name, or the number that a later etcd may add. The checker does not judge the latter.
func nameOf(names []string, number int32) string {
	if number >= 0 && int(number) < len(names) {
		return names[number]
	}
	return strconv.Itoa(int(number))
}

// output returns an answer as the report has it, and the number of a granted lease. It is false for an answer of
// another type than the request asked for.
func output(asked asked, reply any) (to []byte, lease int64, ok bool) {
	var header *pb.ResponseHeader
	to = append(make([]byte, 0, 256), '{')
	switch reply := reply.(type) {
	case *pb.RangeResponse:
		header, ok = reply.GetHeader(), asked == askedRange
		to = append(appendFound(append(to, `"Range":`...), reply, 0), ',')
	case *pb.PutResponse:
		header, ok = reply.GetHeader(), asked == askedPut
		to = append(appendResults(to, false, []*pb.ResponseOp{{}}), ',')
	case *pb.DeleteRangeResponse:
		header, ok = reply.GetHeader(), asked == askedDelete
		deleted := &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: reply}}
		to = append(appendResults(to, false, []*pb.ResponseOp{deleted}), ',')
	case *pb.TxnResponse:
		header, ok = reply.GetHeader(), asked == askedTxn
		to = append(appendResults(to, !reply.GetSucceeded(), reply.GetResponses()), ',')
	case *pb.CompactionResponse:
		header, ok = reply.GetHeader(), asked == askedCompact
		to = append(to, `"Compact":{},`...)
	case *pb.LeaseGrantResponse:
		header, ok = reply.GetHeader(), asked == askedGrant
		lease = reply.GetID()
		to = append(to, `"LeaseGrant":{"LeaseID":0},`...)
	case *pb.LeaseRevokeResponse:
		header, ok = reply.GetHeader(), asked == askedRevoke
		to = append(to, `"LeaseRevoke":{},`...)
	}
	if asked == askedOther {
		to, ok = append(to[:0], '{'), true
		if reply, has := reply.(interface{ GetHeader() *pb.ResponseHeader }); has {
			header = reply.GetHeader()
		}
	}
	revision := header.GetRevision()
	if asked == askedCompact {
		revision = -1
	}
	member := ""
	if header.GetMemberId() != 0 {
		member = strconv.FormatUint(header.GetMemberId(), 16)
	}
	to = appendNumber(to, "Revision", revision)
	to = appendString(append(to, ','), "member-id", member)
	return append(to, '}'), lease, ok
}

// appendResults appends the results of a transaction's steps.
func appendResults(to []byte, failure bool, steps []*pb.ResponseOp) []byte {
	to = appendFlag(append(to, `"Txn":{`...), "Failure", failure)
	to = append(to, `,"Results":[`...)
	for at, step := range steps {
		if at > 0 {
			to = append(to, ',')
		}
		to = appendFound(to, step.GetResponseRange(), step.GetResponseDeleteRange().GetDeleted())
	}
	return append(to, "]}"...)
}

func appendFound(to []byte, found *pb.RangeResponse, deleted int64) []byte {
	to = append(to, `{"KVs":[`...)
	for at, pair := range found.GetKvs() {
		if at > 0 {
			to = append(to, ',')
		}
		to = append(appendPair(append(to, '{'), pair), '}')
	}
	to = appendNumber(append(to, "],"...), "Count", found.GetCount())
	to = appendNumber(append(to, ','), "Deleted", deleted)
	return append(to, '}')
}

func appendPair(to []byte, pair *mvccpb.KeyValue) []byte {
	to = appendKey(to, "Key", pair.GetKey())
	to = appendValue(append(to, ','), "Value", pair.GetValue())
	to = appendNumber(append(to, ','), "ModRevision", pair.GetModRevision())
	return appendNumber(append(to, ','), "Version", pair.GetVersion())
}
