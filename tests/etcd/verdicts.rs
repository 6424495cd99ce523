//! Short reports that are easily misjudged, each with the similar legal one. The order of a history that holds is
//! verified, and so are the facts of the others.

use crate::etcd::{judge, shown};
use serde_json::{Value, json};

/// A report under construction: the operations of each client, and the responses of each watch.
#[derive(Default)]
struct Written {
    clients: Vec<Vec<Value>>,
    watches: Vec<Value>,
}

impl Written {
    /// Adds an operation of a client: call time, request, answer, return time.
    fn add(mut self, client: usize, call: i64, input: Value, output: Value, ret: i64) -> Written {
        self.clients.resize_with(self.clients.len().max(client + 1), Vec::new);
        let operation = json!({"ClientId": client, "Input": input, "Call": call, "Output": output, "Return": ret});
        self.clients[client].push(operation);
        self
    }

    /// Consecutive requests of one client, from a time on.
    fn then(self, client: usize, from: i64, all: Vec<(Value, Value)>) -> Written {
        let add =
            |(written, at): (Written, i64), (input, output)| (written.add(client, at, input, output, at + 1), at + 2);
        all.into_iter().fold((self, from), add).0
    }

    /// A watch on every key from the first revision.
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

/// A list of everything, with options.
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

/// The result of a put or a delete.
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

#[test]
fn of_two_ends_of_a_lease_at_one_revision_the_first_answered_one_made_it() {
    let removed = |watched: bool| {
        let report = Written::default()
            // Found nothing to delete; it comes first in the files.
            .then(0, 20, vec![(revoke(5), revoked(3))])
            .then(1, 1, vec![(grant(5), granted(1)), (plain(put("a", "1", 5)), ok(2)), (revoke(5), revoked(3))])
            .then(1, 9, vec![(grant(5), granted(3))]);
        let events = json!([event("a", Some("1"), 2, true), event("a", None, 3, false)]);
        if watched { report.watch(json!([told(8, 3, events)])) } else { report }
    };
    removed(true).is("holds");
    removed(false).is("holds");
    // Without the second grant there is nothing to revoke.
    Written::default()
        .then(0, 20, vec![(revoke(5), revoked(3))])
        .then(1, 1, vec![(grant(5), granted(1)), (plain(put("a", "1", 5)), ok(2)), (revoke(5), revoked(3))])
        .watch(json!([told(8, 3, json!([event("a", Some("1"), 2, true), event("a", None, 3, false)]))]))
        .is("violated");
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
fn the_branch_that_was_taken_says_what_a_key_is_attached_to() {
    let either = |put_on_failure: Value| {
        txn(json!([{"Key": "a", "ExpectedRevision": 0}]), json!([put("a", "1", 5)]), json!([put_on_failure]))
    };
    let begun = || Written::default().then(0, 1, vec![(grant(5), granted(1)), (grant(6), granted(1))]);
    let shown = |revision: i64| found(json!([pair("a", "1", 2, 1)]), 1, revision);
    begun()
        .then(0, 5, vec![(either(put("a", "2", 6)), ok(2)), (revoke(6), revoked(2)), (get("a"), shown(2))])
        .is("holds");
    begun()
        .then(0, 5, vec![(either(put("a", "2", 6)), ok(2)), (revoke(5), revoked(2)), (get("a"), shown(2))])
        .is("violated");
    begun()
        .then(
            0,
            5,
            vec![(either(put("a", "2", 6)), ok(2)), (revoke(5), revoked(3)), (get("a"), found(json!([]), 0, 3))],
        )
        .is("holds");
    // The other branch.
    begun()
        .then(0, 5, vec![(plain(put("a", "0", 0)), ok(2)), (either(put("a", "2", 6)), failed(json!([step(0)]), 3))])
        .then(0, 9, vec![(revoke(5), revoked(3)), (revoke(6), revoked(4)), (get("a"), found(json!([]), 0, 4))])
        .is("holds");
    // The answer is lost.
    begun()
        .then(1, 5, vec![(either(put("a", "2", 6)), lost())])
        .then(0, 9, vec![(get("a"), shown(2)), (revoke(6), revoked(2)), (get("a"), shown(2))])
        .is("holds");
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

fn compact(revision: i64) -> Value {
    json!({"Type": "compact", "Compact": {"Revision": revision}})
}

fn compacted() -> Value {
    json!({"Compact": {}, "Revision": -1})
}

fn is_compacted() -> Value {
    json!({"ClientError": "mvcc: required revision has been compacted", "Revision": 0})
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
    // The compacting client has no record: it may be missing.
    of(vec![(compact(2), is_compacted())]).is("unknown");
    of(vec![(compact(2), is_compacted()), (compact(1), is_compacted())]).is("unknown");
    // Whichever client compacted, this request would be refused.
    of(vec![(compact(2), is_compacted()), (compact(2), compacted())]).is("violated");
}

/// Two unanswered puts that differ only in their leases, at revisions 2 and 3, and the requests from time 20 on.
fn two_leases(first: i64, second: i64) -> Written {
    Written::default()
        .then(0, 1, vec![(grant(5), granted(1)), (grant(6), granted(1))])
        .add(1, 5, plain(put("a", "1", first)), lost(), 6)
        .add(2, 5, plain(put("a", "1", second)), lost(), 6)
}

#[test]
fn requests_that_differ_in_their_leases_are_told_apart_by_what_ends() {
    let seen = |more: Value| {
        let mut events = vec![told(8, 2, json!([event("a", Some("1"), 2, true)]))];
        events.extend(more.as_array().into_iter().flatten().cloned());
        Value::Array(events)
    };
    let gone = json!([told(40, 3, json!([event("a", None, 3, false)]))]);
    let absent = || found(json!([]), 0, 3);
    let there = |revision: i64| found(json!([pair("a", "1", 2, 1)]), 1, revision);
    for (with, without) in [(5, 6), (6, 5), (6, 0)] {
        // The end of one lease deleted the key, whether or not a read asked for it.
        let removed = |all: Vec<(Value, Value)>| two_leases(with, without).then(0, 20, all).watch(seen(gone.clone()));
        removed(vec![(revoke(with), revoked(3)), (get("a"), absent())]).is("holds");
        removed(vec![(get("a"), there(2)), (revoke(with), lost()), (get("a"), absent())]).is("holds");
        removed(vec![(get("a"), absent())]).is("holds");
        // The key stayed after that lease ended, so it had the other one.
        let stayed = |all: Vec<(Value, Value)>| two_leases(with, without).then(0, 20, all).watch(seen(json!([])));
        stayed(vec![(revoke(with), revoked(2)), (get("a"), there(2))]).is("holds");
    }
    // Neither request fits both ends.
    let never = |all: Vec<(Value, Value)>| {
        let (word, shown) = two_leases(5, 6).then(0, 20, all).watch(seen(json!([]))).word();
        assert_ne!(word, "holds", "{shown}");
    };
    never(vec![(revoke(5), revoked(2)), (revoke(6), revoked(2)), (get("a"), there(2))]);
}

#[test]
fn a_grant_whose_number_nobody_recorded_may_be_of_any_lease() {
    let used = |first: Vec<(Value, Value)>| {
        Written::default().then(0, 1, first).then(0, 9, vec![(plain(put("a", "1", 5)), ok(2)), (grant(5), granted(2))])
    };
    // The key is deleted with a second lease, so the second grant is possible.
    let used_and_over = |first: Vec<(Value, Value)>| {
        let over = vec![(plain(put("a", "1", 5)), ok(2)), (revoke(5), revoked(3)), (grant(5), granted(3))];
        Written::default().then(0, 1, first).then(0, 9, over)
    };
    used_and_over(Vec::new()).is("violated");
    used_and_over(vec![(grant(5), granted(1))]).is("holds");
    for answer in [lost(), granted(1)] {
        used_and_over(vec![(grant(0), answer.clone())]).is("unknown");
        used(vec![(grant(0), answer)]).is("violated");
    }
    // A request after the use explains nothing.
    used_and_over(Vec::new()).then(0, 30, vec![(grant(0), granted(3))]).is("violated");
}

#[test]
fn a_lease_is_not_granted_while_a_key_is_attached_to_it() {
    let begun = || Written::default().then(0, 1, vec![(grant(5), granted(1)), (plain(put("a", "1", 5)), ok(2))]);
    let there = |revision: i64| found(json!([pair("a", "1", 2, 1)]), 1, revision);
    begun().then(0, 9, vec![(grant(5), granted(2)), (get("a"), there(2))]).is("violated");
    begun().then(0, 9, vec![(revoke(5), revoked(3)), (grant(5), granted(3))]).is("holds");
    // The put has no answer.
    let unanswered = || {
        let begun = Written::default().then(0, 1, vec![(grant(5), granted(1))]);
        begun.add(1, 5, plain(put("a", "1", 5)), lost(), 6)
    };
    let again = || vec![(get("a"), there(2)), (grant(5), granted(2))];
    let (word, shown) = unanswered().then(0, 9, again()).word();
    assert_ne!(word, "holds", "{shown}");
    unanswered().add(2, 5, plain(put("a", "1", 0)), lost(), 6).then(0, 9, again()).is("holds");
    // Without a key the lease may have ended unobserved.
    let detached = vec![(plain(put("a", "2", 0)), ok(3)), (grant(5), granted(3))];
    let (word, shown) = begun().then(0, 9, detached).word();
    assert_ne!(word, "violated", "{shown}");
}

#[test]
fn a_put_behind_a_condition_needs_its_lease_too() {
    let create = |lease: i64| {
        txn(json!([{"Key": "a", "ExpectedRevision": 0}]), json!([put("a", "1", lease)]), json!([put("a", "2", 6)]))
    };
    let begun = |all: Vec<(Value, Value)>| {
        Written::default()
            .then(0, 1, vec![(grant(5), granted(1)), (grant(6), granted(1)), (revoke(6), revoked(1))])
            .then(0, 9, all)
    };
    begun(vec![(create(5), ok(2))]).is("holds");
    begun(vec![(revoke(5), revoked(1)), (create(5), ok(2))]).is("violated");
    begun(vec![(create(5), ok(2)), (create(5), failed(json!([step(0)]), 3))]).is("violated");
}

#[test]
fn a_delete_of_a_range_removed_as_many_keys_as_it_says() {
    let steps = json!([put("a", "1", 0), put("b", "1", 0), put("c", "1", 0)]);
    let range = json!({"Type": "delete-operation", "Delete": {"Key": "a", "End": "z"}});
    let answered = |deleted: i64| {
        let three = (txn(json!(null), steps.clone(), json!(null)), done(json!([step(0), step(0), step(0)]), 2));
        let removed = (plain(range.clone()), done(json!([step(deleted)]), 3));
        Written::default().then(0, 1, vec![three, removed, (list(json!({})), found(json!([]), 0, 3))])
    };
    answered(3).is("holds");
    let (word, shown) = answered(2).word();
    assert_ne!(word, "holds", "{shown}");
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
fn an_unanswered_transaction_may_delete_one_key_twice() {
    let twice = txn(json!(null), json!([delete("a"), delete("a")]), json!(null));
    let then = |revision: i64| {
        let (first, after) = (Written::default().then(0, 1, vec![(plain(put("a", "1", 0)), ok(2))]), get("a"));
        first.add(1, 5, twice.clone(), lost(), 6).then(0, 20, vec![(after, found(json!([]), 0, revision))])
    };
    then(3).is("holds");
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
fn a_key_that_is_found_behind_the_end_of_its_lease_was_kept() {
    let begun = || {
        Written::default().then(
            0,
            1,
            vec![(grant(5), granted(1)), (plain(put("a", "1", 5)), ok(2)), (revoke(5), revoked(3))],
        )
    };
    begun().then(0, 9, vec![(get("a"), found(json!([pair("a", "1", 2, 1)]), 1, 3))]).is("violated");
    begun().then(0, 9, vec![(get("a"), found(json!([]), 0, 3))]).is("holds");
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

#[test]
fn conditions_on_the_creation_of_a_key_and_on_ranges_are_decided() {
    let of = |condition: Value, answer: Value| {
        let puts =
            vec![(plain(put("a", "1", 0)), ok(2)), (plain(put("a", "2", 0)), ok(3)), (plain(put("b", "1", 0)), ok(4))];
        let asked = txn(json!([condition]), json!([put("c", "3", 0)]), json!(null));
        Written::default().then(0, 1, puts).then(0, 9, vec![(asked, answer)])
    };
    let created = |number: i64| json!({"Key": "a", "Target": "create", "Relation": "=", "Number": number});
    of(created(2), ok(5)).is("holds");
    of(created(2), failed(json!([]), 4)).is("violated");
    of(created(3), ok(5)).is("violated");
    of(created(3), failed(json!([]), 4)).is("holds");
    let changed =
        |end: &str, number: i64| json!({"Key": "a", "End": end, "Target": "mod", "Relation": ">", "Number": number});
    of(changed("z", 2), ok(5)).is("holds");
    of(changed("z", 3), ok(5)).is("violated");
    of(changed("z", 3), failed(json!([]), 4)).is("holds");
    of(changed("a", 0), ok(5)).is("violated");
}
