//! Short reports that are easily judged wrong, each beside the legal one that it is easily taken for. What holds has an order that
//! is verified, and the facts of what does not are.

use crate::{judge, shown};
use serde_json::{Value, json};

/// A report in the making: what each client recorded, and what each watch was told.
#[derive(Default)]
struct Written {
    clients: Vec<Vec<Value>>,
    watches: Vec<Value>,
}

impl Written {
    /// One more operation of a client: when it was sent, the request, the answer, and when it came.
    fn add(mut self, client: usize, call: i64, input: Value, output: Value, ret: i64) -> Written {
        self.clients.resize_with(self.clients.len().max(client + 1), Vec::new);
        let operation = json!({"ClientId": client, "Input": input, "Call": call, "Output": output, "Return": ret});
        self.clients[client].push(operation);
        self
    }

    /// Requests of one client after the other, from a time on.
    fn then(self, client: usize, from: i64, all: Vec<(Value, Value)>) -> Written {
        let add =
            |(written, at): (Written, i64), (input, output)| (written.add(client, at, input, output, at + 1), at + 2);
        all.into_iter().fold((self, from), add).0
    }

    /// A watch over every key from the first revision on.
    fn watch(mut self, responses: Value) -> Written {
        let request =
            json!({"Key": "", "Revision": 1, "WithPrefix": true, "WithProgressNotify": true, "WithPrevKV": false});
        self.watches.push(json!({"Request": request, "Responses": responses}));
        self
    }

    fn word(self) -> (&'static str, String) {
        let lines = |values: &[Value]| values.iter().map(|value| format!("{value}\n")).collect::<String>();
        let name = |at: usize, what: &str| format!("report/client-{}/{what}.json", at + 1);
        let count = self.clients.len();
        let operations = self.clients.iter().enumerate().map(|(at, all)| (name(at, "operations"), lines(all)));
        let watches = self.watches.iter().enumerate();
        let watches = watches.map(|(at, watch)| (name(count + at, "watch"), lines(std::slice::from_ref(watch))));
        let judgement = judge(operations.chain(watches).collect());
        (judgement.verdict.word(), shown(&judgement))
    }

    #[track_caller]
    fn is(self, word: &str) {
        let (found, shown) = self.word();
        assert_eq!(found, word, "{shown}");
    }
}

fn value(text: &str) -> Value {
    if text.is_empty() { json!({}) } else { json!({ "Value": text }) }
}

fn put(key: &str, text: &str, lease: i64) -> Value {
    json!({"Type": "put-operation", "Put": {"Key": key, "Value": value(text), "LeaseID": lease}})
}

fn delete(key: &str) -> Value {
    json!({"Type": "delete-operation", "Delete": {"Key": key}})
}

fn look(key: &str) -> Value {
    json!({"Type": "range-operation", "Range": {"Start": key}})
}

fn txn(conditions: Value, success: Value, failure: Value) -> Value {
    json!({"Type": "txn", "Txn": {"Conditions": conditions, "OperationsOnSuccess": success, "OperationsOnFailure": failure}})
}

fn plain(step: Value) -> Value {
    txn(json!(null), json!([step]), json!(null))
}

fn get(key: &str) -> Value {
    json!({"Type": "range", "Range": {"Start": key}})
}

/// Of everything, with more options.
fn list(options: Value) -> Value {
    let mut range = json!({"Start": "a", "End": "z"});
    range.as_object_mut().zip(options.as_object()).into_iter().for_each(|(range, more)| range.extend(more.clone()));
    json!({"Type": "range", "Range": range})
}

fn grant(lease: i64) -> Value {
    json!({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": lease}})
}

fn revoke(lease: i64) -> Value {
    json!({"Type": "leaseRevoke", "LeaseRevoke": {"LeaseID": lease}})
}

fn granted(revision: i64) -> Value {
    json!({"LeaseGrant": {"LeaseID": 0}, "Revision": revision})
}

fn revoked(revision: i64) -> Value {
    json!({"LeaseRevoke": {}, "Revision": revision})
}

fn pair(key: &str, text: &str, revision: i64, version: i64) -> Value {
    json!({"Key": key, "Value": value(text), "ModRevision": revision, "Version": version})
}

fn found(pairs: Value, count: usize, revision: i64) -> Value {
    json!({"Range": {"KVs": pairs, "Count": count}, "Revision": revision})
}

fn done(results: Value, revision: i64) -> Value {
    json!({"Txn": {"Failure": false, "Results": results}, "Revision": revision})
}

fn failed(results: Value, revision: i64) -> Value {
    json!({"Txn": {"Failure": true, "Results": results}, "Revision": revision})
}

/// The result of a put, or of a delete.
fn step(deleted: i64) -> Value {
    json!({"KVs": null, "Count": 0, "Deleted": deleted})
}

/// The answer to a plain put.
fn ok(revision: i64) -> Value {
    done(json!([step(0)]), revision)
}

fn lost() -> Value {
    json!({"Error": "context deadline exceeded", "Revision": 0})
}

fn event(key: &str, text: Option<&str>, revision: i64, is_create: bool) -> Value {
    let kind = if text.is_some() { "put-operation" } else { "delete-operation" };
    let mut event = json!({"Type": kind, "Key": key, "Value": value(text.unwrap_or("")), "Revision": revision});
    if is_create {
        event["IsCreate"] = json!(true);
    }
    event
}

fn told(time: i64, revision: i64, events: Value) -> Value {
    json!({"Events": events, "Revision": revision, "Time": time})
}

fn compact(revision: i64) -> Value {
    json!({"Type": "compact", "Compact": {"Revision": revision}})
}

fn compacted() -> Value {
    json!({"Compact": {}, "Revision": -1})
}

fn is_compacted() -> Value {
    json!({"ClientError": "mvcc: required revision has been compacted", "Revision": 0})
}

/// Two unanswered puts that differ in their leases alone, seen at revisions 2 and 3, and what came then, from time 20 on.
fn two_leases(first: i64, second: i64) -> Written {
    Written::default()
        .then(0, 1, vec![(grant(5), granted(1)), (grant(6), granted(1))])
        .add(1, 5, plain(put("a", "1", first)), lost(), 6)
        .add(2, 5, plain(put("a", "1", second)), lost(), 6)
}

#[test]
fn a_read_of_keys_in_a_transaction_shows_no_value_of_its_own_put() {
    let keys = json!({"Type": "range-operation", "Range": {"Start": "a", "KeysOnly": true}});
    let asked = |range: Value| txn(json!(null), json!([put("a", "1", 0), range]), json!(null));
    let answer = |text: &str| done(json!([step(0), {"KVs": [pair("a", text, 2, 1)], "Count": 1, "Deleted": 0}]), 2);
    Written::default().then(0, 1, vec![(asked(keys.clone()), answer(""))]).is("holds");
    Written::default().then(0, 1, vec![(asked(look("a")), answer("1"))]).is("holds");
    Written::default().then(0, 1, vec![(asked(look("a")), answer("2"))]).is("violated");
    Written::default().then(0, 1, vec![(asked(look("a")), answer(""))]).is("violated");
    Written::default().then(0, 1, vec![(asked(keys), answer("1"))]).is("violated");
}

#[test]
fn a_delete_of_one_key_removes_one_at_most() {
    let answered = |deleted: i64| {
        Written::default().then(
            0,
            1,
            vec![(plain(put("a", "1", 0)), ok(2)), (plain(delete("a")), done(json!([step(deleted)]), 3))],
        )
    };
    answered(1).is("holds");
    answered(2).is("violated");
    answered(-1).is("violated");
}

#[test]
fn a_read_finds_no_more_than_it_asked_for() {
    let of = |options: Value, pairs: Value| {
        let puts = vec![(plain(put("a", "1", 0)), ok(2)), (plain(put("b", "2", 0)), ok(3))];
        Written::default().then(0, 1, puts).then(0, 9, vec![(list(options), found(pairs, 2, 3))])
    };
    let both = || json!([pair("a", "1", 2, 1), pair("b", "2", 3, 1)]);
    of(json!({}), both()).is("holds");
    of(json!({"Limit": 2}), both()).is("holds");
    of(json!({"Limit": 1}), json!([pair("a", "1", 2, 1)])).is("holds");
    of(json!({"Limit": 1}), both()).is("violated");
    of(json!({"KeysOnly": true}), json!([pair("a", "", 2, 1), pair("b", "", 3, 1)])).is("holds");
    of(json!({"KeysOnly": true}), both()).is("violated");
    of(json!({"CountOnly": true}), json!([])).is("holds");
    of(json!({"CountOnly": true}), both()).is("violated");
    let in_txn = |limit: i64, pairs: Value| {
        let range = json!({"Type": "range-operation", "Range": {"Start": "a", "End": "z", "Limit": limit}});
        let result = json!([{"KVs": pairs, "Count": 2, "Deleted": 0}]);
        let puts = vec![(plain(put("a", "1", 0)), ok(2)), (plain(put("b", "2", 0)), ok(3))];
        Written::default().then(0, 1, puts).then(0, 9, vec![(plain(range), done(result, 3))])
    };
    in_txn(1, json!([pair("a", "1", 2, 1)])).is("holds");
    in_txn(1, both()).is("violated");
}

#[test]
fn a_fresh_store_is_compacted_through_less_than_nothing() {
    let of = |all: Vec<(Value, Value)>| {
        Written::default().then(0, 1, vec![(plain(put("a", "1", 0)), ok(2))]).then(0, 5, all)
    };
    of(vec![(compact(0), compacted())]).is("holds");
    of(vec![(compact(0), compacted()), (compact(0), is_compacted())]).is("holds");
    of(vec![(compact(0), compacted()), (compact(0), compacted())]).is("violated");
    of(vec![(compact(-1), is_compacted()), (compact(-5), is_compacted()), (compact(2), compacted())]).is("holds");
    of(vec![(compact(2), compacted()), (compact(-5), is_compacted()), (compact(0), is_compacted())]).is("holds");
    of(vec![(compact(-1), compacted())]).is("unknown");
}

#[test]
fn a_compaction_is_not_refused_as_done_before_anybody_asked_for_one() {
    let of = |all: Vec<(Value, Value)>| {
        Written::default().then(0, 1, vec![(plain(put("a", "1", 0)), ok(2))]).then(0, 5, all)
    };
    of(vec![(compact(2), compacted()), (compact(2), is_compacted())]).is("holds");
    of(vec![(compact(2), lost()), (compact(2), is_compacted())]).is("holds");
    of(vec![(compact(1), compacted()), (compact(2), is_compacted())]).is("violated");
    of(vec![(compact(2), is_compacted())]).is("violated");
    of(vec![(compact(2), is_compacted()), (compact(1), is_compacted())]).is("violated");
}

#[test]
fn a_member_that_answers_for_itself_may_be_behind_and_never_ahead() {
    let serializable = |revision: i64| list(json!({"Serializable": true, "Revision": revision}));
    let put =
        || Written::default().then(0, 5, vec![(plain(put("a", "1", 0)), ok(2)), (plain(put("a", "2", 0)), ok(3))]);
    put().then(1, 20, vec![(serializable(0), found(json!([pair("a", "1", 2, 1)]), 1, 2))]).is("holds");
    put().then(1, 1, vec![(serializable(0), found(json!([pair("a", "1", 2, 1)]), 1, 2))]).is("violated");
    let future = json!({"ClientError": "mvcc: required revision is a future revision", "Revision": 0});
    put().then(1, 20, vec![(serializable(3), future.clone())]).is("holds");
    put().then(1, 20, vec![(list(json!({"Revision": 3})), future)]).is("violated");
}

#[test]
fn one_answer_that_shows_one_key_in_two_ways_contradicts_itself() {
    let read = |second: &str| {
        let shown = |text: &str| json!({"KVs": [pair("a", text, 2, 1)], "Count": 1, "Deleted": 0});
        let looks = txn(json!(null), json!([look("a"), look("a")]), json!(null));
        let answer = done(json!([shown("1"), shown(second)]), 2);
        Written::default().then(0, 1, vec![(plain(put("a", "1", 0)), ok(2)), (looks, answer)])
    };
    read("1").is("holds");
    read("2").is("violated");
}

#[test]
fn an_answer_has_a_result_for_each_step() {
    let two = |results: Value| {
        Written::default().then(
            0,
            1,
            vec![(txn(json!(null), json!([put("a", "1", 0), look("a")]), json!(null)), done(results, 2))],
        )
    };
    let read = json!({"KVs": [pair("a", "1", 2, 1)], "Count": 1, "Deleted": 0});
    two(json!([step(0), read])).is("holds");
    two(json!([step(0)])).is("violated");
    two(json!([step(0), read, step(0)])).is("violated");
}
