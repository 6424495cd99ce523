//! Whole recordings, built from small reports.

use super::*;
use crate::history::Symbol;
use crate::ingest::etcd::fixture::{Message, Segment, delete, put};
use crate::ingest::etcd::store_fixture::{self, Buckets};
use crate::ingest::{FileId, InputFile, ReadOptions, Time, etcd_reports};

type File = (&'static str, Vec<u8>);

fn recordings(files: &[File], options: &ReadOptions) -> Vec<Recording> {
    let inputs = files.iter().zip(0..).map(|((name, bytes), n)| InputFile::in_memory(FileId(n), name, &bytes[..]));
    load(etcd_reports(inputs.collect()).reports, options, &())
}

fn recording(files: &[File]) -> Recording {
    let mut found = recordings(files, &ReadOptions { threads: 1, ..ReadOptions::default() });
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// The problems of a recording, as `path: expected / found`.
fn problems(recording: &Recording) -> Vec<String> {
    let shown = |p: &crate::ingest::Problem| format!("{}:{}: {} / {}", p.path, p.line, p.expected, p.found);
    recording.problems.iter().map(shown).collect()
}

fn the_problem(files: &[File]) -> String {
    let recording = recording(files);
    let mut problems = problems(&recording);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let counted: u64 = recording.files.iter().map(|file| file.problems).sum();
    assert!(counted == 1 || recording.problems[0].file.is_none(), "{problems:?}");
    problems.remove(0)
}

/// An operation with its request and its answer.
fn operation(call: i64, request: &str, answer: &str) -> String {
    let returned = call + 5;
    format!(r#"{{"ClientId":4,"Input":{{{request}}},"Call":{call},"Output":{{{answer}}},"Return":{returned}}}"#) + "\n"
}

const PUT: &str = r#""Type":"txn","Txn":{"Conditions":[{"Key":"a","ExpectedRevision":0,"ExpectedVersion":3}],"OperationsOnSuccess":[{"Type":"put-operation","Put":{"Key":"a","Value":{"Value":"abcdefghijklmnopqrstuvwxyz"},"LeaseID":9}}],"OperationsOnFailure":[{"Type":"range-operation","Range":{"Start":"a","End":""}},{"Type":"delete-operation","Delete":{"Key":"b"}}]}"#;
const RANGE: &str = r#""Type":"range","Range":{"Start":"a","End":"b","Limit":2,"KeysOnly":true,"Revision":7}"#;
const FOUND: &str = r#""Range":{"KVs":[{"Key":"a","Value":{"Hash":2965113986},"ModRevision":5,"Version":3}],"Count":4},"Revision":8,"member-id":"ca50e9357181d758""#;

fn done(revision: i64) -> String {
    format!(
        r#""Txn":{{"Failure":false,"Results":[{{"KVs":null,"Count":0,"Deleted":0}}]}},"ClientError":"","Revision":{revision},"Error":"""#
    )
}

fn puts(revisions: &[i64]) -> Vec<u8> {
    revisions.iter().map(|revision| operation(revision * 10, PUT, &done(*revision))).collect::<String>().into_bytes()
}

#[test]
fn requests_and_answers_become_rows() {
    let text = operation(10, PUT, &(done(7) + ",\"MemberID\":18446744073709551615")) + &operation(20, RANGE, FOUND);
    let report = recording(&[("r/client-3/operations.json", text.into_bytes())]);
    assert!(problems(&report).is_empty());
    let name = |symbol: Symbol| report.texts.get(symbol).to_owned();
    let [write, read] = &report.operations[..] else { panic!("{:?}", report.operations) };
    assert_eq!((write.call, write.returned, write.revision, write.stream), (Time(10), Time(15), 7, 4));
    assert_eq!((write.member, read.member), (u64::MAX, 0xca50_e935_7181_d758));
    let Request::Txn(txn) = write.request else { panic!("{write:?}") };
    let [condition] = txn.conditions.of(&report.requests.conditions) else { panic!("{txn:?}") };
    assert_eq!((condition.target, condition.number, name(condition.keys.key)), (Target::Version, 3, "a".to_owned()));
    let [Step::Put { key, value, lease: 9, .. }] = *txn.success.of(&report.requests.steps) else { panic!("{txn:?}") };
    assert_eq!((name(key), report.values.get(value)), ("a".to_owned(), Value::Hash(2_965_113_986)));
    assert!(matches!(txn.failure.of(&report.requests.steps), [Step::Range(_), Step::Delete(_)]));
    let Request::Range(range) = read.request else { panic!("{read:?}") };
    assert_eq!((name(range.keys.key), name(range.keys.end)), ("a".to_owned(), "b".to_owned()));
    assert_eq!((range.limit, range.revision, range.keys_only), (2, 7, true));
    let [result] = read.results.of(&report.results) else { panic!("{read:?}") };
    let [pair] = result.pairs.of(&report.pairs) else { panic!("{result:?}") };
    // The put has the whole value and the read its hash: both are one value.
    assert_eq!((pair.key, pair.value, pair.revision, pair.version, result.count), (key, value, 5, 3, 4));
}

#[test]
fn the_layout_of_the_files_does_not_matter() {
    let text = operation(10, PUT, &done(7)) + &operation(20, RANGE, FOUND);
    let pretty: String = text
        .lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            value["Metadata"] = value["Output"].clone();
            serde_json::to_string_pretty(&value).unwrap() + "\n"
        })
        .collect();
    let rows = |text: &str| {
        let report = recording(&[("r/client-3/operations.json", text.as_bytes().to_vec())]);
        let operations = report.operations.iter().map(|o| Operation { position: Default::default(), ..*o });
        format!("{:?} {:?}", operations.collect::<Vec<_>>(), report.pairs)
    };
    assert_eq!(rows(&text), rows(&pretty));
}

#[test]
fn clients_come_by_number_with_their_own_rows() {
    let watch = br#"{"Request":{"Key":"a","Revision":3,"WithPrefix":true,"WithPrevKV":true},"Responses":[{"Events":[{"Type":"put-operation","Key":"a","Value":{"Value":"1"},"Revision":3,"IsCreate":true},{"Type":"delete-operation","Key":"a","Value":{},"Revision":4,"PrevValue":{"Value":{"Value":"1"},"ModRevision":3,"Version":1}}],"Revision":4,"Time":50},{"Revision":9,"Time":60,"Error":"gone"}]}
{"Request":{"Key":"b"}}"#;
    let report = recording(&[
        ("r/client-10/operations.json", puts(&[4])),
        ("r/client-10/watch.json", watch.to_vec()),
        ("r/client-2/operations.json", puts(&[2, 3])),
        ("r/traffic.json", b"{\"expectuniquerevision\":true}".to_vec()),
    ]);
    assert!(problems(&report).is_empty());
    let [two, ten] = &report.clients[..] else { panic!("{:?}", report.clients) };
    assert_eq!((&*two.name, two.operations.clone(), two.watches.clone()), ("client-2", 0..2, 0..0));
    assert_eq!((&*ten.name, ten.operations.clone(), ten.watches.clone()), ("client-10", 2..3, 0..2));
    assert_eq!(report.operations_of(ten)[0].revision, 4);
    assert!(report.unique_revisions);
    let [watch, silent] = report.watches_of(ten) else { panic!() };
    assert_eq!(
        (watch.revision, watch.prefix, watch.previous, watch.progress, silent.responses.len),
        (3, true, true, false, 0)
    );
    let [response, end] = watch.responses.of(&report.responses) else { panic!("{watch:?}") };
    assert_eq!((report.texts.get(end.error), end.events.len, end.line), ("another error", 0, 1));
    let [created, deleted] = response.events.of(&report.events) else { panic!("{response:?}") };
    assert_eq!((created.create, created.delete, created.revision), (true, false, 3));
    let previous = deleted.previous.unwrap();
    assert_eq!((deleted.delete, previous.value, previous.revision, previous.version), (true, created.value, 3, 1));
}

#[test]
fn outcomes_say_what_is_known_of_an_effect() {
    let failed = |error: &str| operation(10, PUT, &format!(r#""Txn":null,"Revision":0,"Error":"{error}""#));
    let compact = r#""Type":"compact","Compact":{"Revision":4}"#;
    let text = failed("context deadline exceeded")
        + &failed("etcdserver: too many requests")
        + &operation(20, compact, r#""Compact":{},"Revision":-1,"Error":"""#)
        + &operation(
            30,
            compact,
            r#""Compact":null,"ClientError":"mvcc: required revision has been compacted","Revision":0,"Error":"""#,
        )
        + &operation(40, r#""Type":"defragment","Defragment":{}"#, r#""Defragment":{},"Revision":17,"Error":"""#)
        + &operation(
            50,
            r#""Type":"leaseGrant","LeaseGrant":{"LeaseID":77}"#,
            r#""LeaseGrant":{"LeaseID":0},"Revision":4,"Error":"""#,
        );
    let report = recording(&[("r/client-1/operations.json", text.into_bytes())]);
    assert!(problems(&report).is_empty(), "{:?}", problems(&report));
    let outcomes: Vec<_> = report.operations.iter().map(|o| (o.outcome, o.returned, o.revision)).collect();
    let expected = [
        (Outcome::Unknown, Time::UNKNOWN, 0),
        (Outcome::Refused, Time::UNKNOWN, 0),
        (Outcome::Answered, Time(25), 0),
        (Outcome::Compacted, Time(35), 0),
        (Outcome::Answered, Time(45), 0),
        (Outcome::Answered, Time(55), 4),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(report.texts.get(report.operations[0].error), "context deadline exceeded");
}

#[test]
fn answers_that_no_etcd_gives_are_problems() {
    let backwards = operation(10, PUT, &done(7)).replace("\"Return\":15", "\"Return\":9");
    for (text, expected) in [
        (
            operation(10, PUT, &done(0)),
            "a revision above 0, and not above 2^60, in an answer / txn answered at revision 0",
        ),
        (
            operation(10, PUT, &done(-3)),
            "a revision above 0, and not above 2^60, in an answer / txn answered at revision -3",
        ),
        (
            operation(10, PUT, &done(i64::MAX)),
            "a revision above 0, and not above 2^60, in an answer / txn answered at revision 9223372036854775807",
        ),
        (backwards, "an answer after its request / sent at 10 ns, answered at 9 ns"),
        (operation(-10, PUT, &done(7)), "a time since the suite began / a request sent at -10 ns"),
        (operation(10, PUT, r#""Txn":null,"Revision":7"#), "the answer to a transaction / an answer without it"),
        (operation(10, RANGE, r#""Revision":7"#), "the answer to a range / an answer without it"),
        (
            operation(10, r#""Type":"txn","Txn":null"#, &done(7)),
            "a request with its content / a request of type txn without it",
        ),
        (operation(10, r#""Type":"moveLeader""#, &done(7)), "a request of a known type / a type of 10 characters"),
        (operation(10, &PUT.replace("put-op", "new-op"), &done(7)), "a step of a known type / a type of 13 characters"),
    ] {
        let text = text + &operation(100, PUT, &done(9));
        let found = the_problem(&[("r/client-1/operations.json", text.into_bytes())]);
        assert_eq!(found, format!("r/client-1/operations.json:1: {expected}"));
    }
    // Old reports invent a return for a failed operation.
    let failed =
        operation(10, PUT, r#""Txn":null,"Revision":0,"Error":"EOF""#).replace("\"Return\":15", "\"Return\":9");
    assert!(problems(&recording(&[("r/client-1/operations.json", failed.into_bytes())])).is_empty());
}

#[test]
fn responses_that_no_etcd_gives_are_problems() {
    let watch =
        |response: &str| format!(r#"{{"Request":{{"Key":"a"}},"Responses":[{response},{{"Revision":9,"Time":60}}]}}"#);
    let event = |revision: i64, kind: &str| {
        format!(r#"{{"Events":[{{"Type":"{kind}","Key":"a","Revision":{revision}}}],"Time":1}}"#)
    };
    for (text, expected) in [
        (watch(r#"{"Revision":4,"Time":-5}"#), "a time since the suite began / a response received at -5 ns"),
        (
            watch(&event(0, "put-operation")),
            "an event with a revision above 0, and not above 2^60 / an event of revision 0",
        ),
        (watch(&event(4, "lock-operation")), "an event of a known type / a type of 14 characters"),
    ] {
        let files = [("r/client-1/operations.json", puts(&[2])), ("r/client-1/watch.json", text.into_bytes())];
        assert_eq!(the_problem(&files), format!("r/client-1/watch.json:1: {expected}"));
        assert_eq!(recording(&files).responses.len(), 1);
    }
}

const WAL: &str = "r/server-a/member/wal/0000000000000000-0000000000000000.wal";
const SECOND: &str = "r/server-a/member/wal/0000000000000001-0000000000000003.wal";

fn first_segment() -> Segment {
    Segment::after(0).snapshot(0).entry(1, 2, &put("a", b"1")).entry(2, 2, &put("b", b"2")).commit(2)
}

fn log_of(files: &[File]) -> (Log, Vec<String>) {
    let report = recording(files);
    let member = report.members.first().cloned().unwrap_or_default();
    assert_eq!(member.name, "a");
    (member.log.unwrap(), problems(&report))
}

fn indices(log: &Log) -> Vec<(u64, u64)> {
    log.entries.iter().map(|entry| (entry.index, entry.term)).collect()
}

#[test]
fn segments_make_one_log() {
    let first = first_segment();
    let second = Segment::after(first.crc).entry(3, 2, &delete("a")).commit(3).allocated(4096);
    let client = ("r/client-1/operations.json", puts(&[2]));
    // An archive may hold files in any order.
    for files in [
        [client.clone(), (WAL, first.bytes.clone()), (SECOND, second.bytes.clone())],
        [(SECOND, second.bytes.clone()), (WAL, first.bytes.clone()), client.clone()],
    ] {
        let (log, problems) = log_of(&files);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(indices(&log), [(1, 2), (2, 2), (3, 2)]);
        assert_eq!((log.node, log.cluster, log.commit, log.after, log.torn, log.broken), (7, 9, 3, 0, false, false));
    }
    let (log, problems) = log_of(&[client.clone(), (SECOND, second.bytes.clone())]);
    assert!(problems.is_empty(), "old segments are removed: {problems:?}");
    assert_eq!((indices(&log), log.after), (vec![(3, 2)], 2));
}

#[test]
fn logs_with_holes_say_so_and_keep_what_stands_in_front() {
    let first = first_segment();
    let next = |crc| Segment::after(crc).entry(3, 2, &delete("a")).commit(3);
    let client = ("r/client-1/operations.json", puts(&[2]));
    let third = "r/server-a/member/wal/0000000000000002-0000000000000003.wal";
    let mut torn = first.bytes.clone();
    torn.truncate(torn.len() - 3);
    let mut damaged = first.bytes.clone();
    let value = damaged.iter().rposition(|byte| *byte == b'2').unwrap();
    damaged[value] ^= 1;
    for (a, name, b, kept, expected) in [
        (
            first.bytes.clone(),
            third,
            next(first.crc).bytes,
            2,
            "the next segment of the log / segment 2 after segment 0",
        ),
        (
            first.bytes.clone(),
            SECOND,
            next(17).bytes,
            2,
            "the next segment of the log / a segment that continues another one",
        ),
        (torn, SECOND, next(first.crc).bytes, 2, "a complete segment / a truncated record"),
        (
            first.bytes.clone(),
            SECOND,
            Segment::by(first.crc, 8, 9).entry(3, 2, &delete("a")).bytes,
            2,
            "segments of one member's log / member 8 of cluster 9",
        ),
        (
            first.bytes.clone(),
            SECOND,
            Segment::after(first.crc).entry(4, 2, &delete("a")).bytes,
            2,
            "the next entry of the log / entry 4 after entry 2",
        ),
    ] {
        let (log, problems) = log_of(&[client.clone(), (WAL, a), (name, b)]);
        assert_eq!((log.entries.len(), log.broken), (kept, true), "{expected}");
        assert!(problems.len() == 1 && problems[0].ends_with(expected), "{problems:?} instead of {expected}");
    }
    let (log, problems) = log_of(&[client, (WAL, damaged)]);
    assert!(log.broken && problems.len() == 2, "{problems:?}");
}

#[test]
fn only_the_last_segment_may_be_torn() {
    let mut torn = first_segment().bytes;
    torn.truncate(torn.len() - 3);
    let (log, problems) = log_of(&[("r/client-1/operations.json", puts(&[2])), (WAL, torn)]);
    assert_eq!((log.entries.len(), log.torn, log.broken, problems), (2, true, false, Vec::new()));
}

#[test]
fn an_entry_takes_the_place_of_those_behind_it() {
    let entry = |segment: Segment, index, term| segment.entry(index, term, &put("a", b"1"));
    let segment = entry(entry(entry(Segment::after(0), 1, 2), 2, 2), 3, 2).commit(1);
    let (log, problems) = log_of(&[("r/client-1/operations.json", puts(&[2])), (WAL, entry(segment, 2, 3).bytes)]);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((indices(&log), log.overwritten.len()), (vec![(1, 2), (2, 3)], 0));
    // A committed entry must not be replaced; that it was replaced is kept as a fact.
    let segment = entry(entry(entry(Segment::after(0), 1, 2), 2, 2), 3, 2).commit(2);
    let (log, _) = log_of(&[("r/client-1/operations.json", puts(&[2])), (WAL, entry(segment, 2, 3).bytes)]);
    let [overwritten] = log.overwritten[..] else { panic!("{:?}", log.overwritten) };
    assert_eq!((overwritten.old.index, overwritten.old.term, overwritten.new.term), (2, 2, 3));
}

#[test]
fn a_snapshot_that_was_received_stands_for_entries() {
    let segment = first_segment().snapshot(9).entry(10, 2, &delete("b")).commit(10);
    let (log, problems) = log_of(&[("r/client-1/operations.json", puts(&[2])), (WAL, segment.bytes)]);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(indices(&log), [(1, 2), (2, 2), (10, 2)]);
}

fn store() -> Vec<u8> {
    let pair = Message::default().bytes(1, b"a").number(2, 2).number(3, 2).number(4, 1).bytes(5, b"1");
    store_fixture::store(
        &Buckets::from([
            ("key", [(store_fixture::revision(2, 0, false), pair.0)].into()),
            ("meta", [(b"consistent_index".to_vec(), 5u64.to_be_bytes().to_vec())].into()),
        ]),
        4,
    )
}

#[test]
fn a_store_shares_names_and_values_with_the_clients() {
    let client = operation(10, &PUT.replace("abcdefghijklmnopqrstuvwxyz", "1"), &done(2)).into_bytes();
    let report = recording(&[("r/client-1/operations.json", client), ("r/server-a/member/snap/db", store())]);
    assert!(problems(&report).is_empty(), "{:?}", problems(&report));
    let store = report.members[0].store.as_ref().unwrap();
    let [revision] = store.revisions[..] else { panic!("{store:?}") };
    assert_eq!((report.texts.get(revision.key), &*report.values.shown(revision.value)), ("a", "1"));
    assert_eq!((revision.main, revision.version, store.consistent_index, revision.position.line), (2, 1, 5, 1));
    let Request::Txn(txn) = report.operations[0].request else { panic!() };
    let Step::Put { key, value, .. } = txn.success.of(&report.requests.steps)[0] else { panic!() };
    assert_eq!((revision.key, revision.value), (key, value));
}

#[test]
fn copies_that_etcd_keeps_beside_are_not_used() {
    let report = recording(&[
        ("r/client-1/operations.json", puts(&[2])),
        ("r/server-a/member/snap/0000000000000009.snap.db", store()),
        ("r/server-a/member/snap/db", store()),
        ("r/server-a/member/snap/db.tmp.123", store()),
        (WAL, first_segment().bytes),
        ("r/server-a/member/wal/0000000000000000-0000000000000000.wal.broken", first_segment().bytes),
    ]);
    assert!(problems(&report).is_empty(), "{:?}", problems(&report));
    let ignored: Vec<&str> = report
        .files
        .iter()
        .filter(|file| file.ignored.is_some())
        .map(|file| file.path.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(ignored, ["0000000000000009.snap.db", "db.tmp.123", "0000000000000000-0000000000000000.wal.broken"]);
    assert_eq!(report.members.len(), 1);
    assert!(report.members[0].log.is_some() && report.members[0].store.is_some());
}

#[test]
fn what_no_file_shows_by_itself_is_a_problem_of_the_report() {
    let wal = |node, cluster| Segment::by(0, node, cluster).entry(1, 2, &put("a", b"1")).commit(1).bytes;
    let member = |name| format!("r/server-{name}/member/wal/0000000000000000-0000000000000000.wal");
    let (a, b): (&'static str, &'static str) = (member("a").leak(), member("b").leak());
    let client =
        |n: u32, revisions: &[i64]| -> File { (format!("r/client-{n}/operations.json").leak(), puts(revisions)) };
    let answered = operation(10, RANGE, FOUND).into_bytes();
    for (files, expected) in [
        (vec![(a, wal(7, 9))], "r:0: a report with the operations of its clients / no client-*/operations.json"),
        (
            vec![client(1, &[2]), (a, wal(7, 9)), (b, wal(8, 10))],
            "members of one cluster / a member of cluster a among members of cluster 9",
        ),
        (vec![client(1, &[2]), (a, wal(7, 9)), (b, wal(7, 9))], "each member once / member 7 again"),
        (vec![client(1, &[2, 3]), client(2, &[2, 3, 4])], "each client once / a copy of client-1"),
        (vec![client(1, &[2]), ("r/client-2/operations.json", Vec::new())], "the record of an etcd client / empty"),
        (vec![client(1, &[2, 2])], "each operation once / a copy of line 1"),
        (
            vec![("r/client-1/operations.json", answered), (a, wal(7, 9))],
            "the logs of members that answered / logs of other members, such as 7",
        ),
    ] {
        let found = the_problem(&files);
        assert!(found.ends_with(expected), "{found} instead of {expected}");
    }
    let copied = recording(&[client(1, &[2, 3]), client(2, &[2, 3])]);
    assert_eq!((copied.operations.len(), copied.clients[1].operations.len()), (2, 0));
}

#[test]
fn members_of_another_cluster_are_no_evidence_and_where_no_one_knows_which_it_is_none_are() {
    let wal = |node, cluster| Segment::by(0, node, cluster).entry(1, 2, &put("a", b"1")).commit(1).bytes;
    let member = |name| format!("r/server-{name}/member/wal/0000000000000000-0000000000000000.wal");
    let (a, b): (&'static str, &'static str) = (member("a").leak(), member("b").leak());
    let answered = |by: &str| {
        let found = FOUND.replace("ca50e9357181d758", by);
        ("r/client-1/operations.json", operation(10, RANGE, &found).into_bytes())
    };
    let logged = |by: &str| {
        let recording = recording(&[answered(by), (a, wal(7, 9)), (b, wal(8, 10))]);
        recording.members.iter().map(|member| member.log.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(logged("7"), [true, false]);
    assert_eq!(logged("8"), [false, true]);
    assert_eq!(logged("6"), [false, false]);
}

#[test]
fn each_report_is_a_recording_and_so_is_each_cluster_of_data_directories() {
    let wal = |node, cluster| Segment::by(0, node, cluster).entry(1, 2, &put("a", b"1")).bytes;
    let name =
        |folder: &str| -> &'static str { format!("{folder}/member/wal/0000000000000000-0000000000000000.wal").leak() };
    let files = [
        ("x/one/client-1/operations.json", puts(&[2])),
        ("x/one/history.html", b"<html>".to_vec()),
        ("x/one/etcd0/member/snap/db", store()),
        ("x/two/client-1/operations.json", puts(&[2])),
        ("y/a/member/snap/db", store()),
        (name("y/a"), wal(1, 5)),
        (name("y/b"), wal(2, 5)),
        (name("y/c"), wal(1, 6)),
        (name("y/monday/a"), wal(1, 5)),
        ("y/notes.txt", b"text".to_vec()),
    ];
    let found = recordings(&files, &ReadOptions::default());
    let shown: Vec<(&str, usize, Vec<&str>)> = found
        .iter()
        .map(|r| (&*r.name, r.files.len(), r.members.iter().map(|member| &*member.name).collect()))
        .collect();
    let expected = [
        ("x/one", 4, vec!["etcd0"]),
        ("x/two", 1, vec![]),
        ("y/a", 3, vec!["a", "b"]),
        ("y/c", 1, vec!["c"]),
        ("y/monday/a", 1, vec!["a"]),
    ];
    assert_eq!(shown, expected);
    assert!(found.iter().all(|recording| recording.problems.is_empty() && !recording.is_empty()));
    assert!(found[0].files.iter().any(|file| file.path == "y/notes.txt"), "what is no evidence is listed");
    for recording in &found {
        for (at, (input, file)) in recording.inputs.iter().zip(&recording.files).enumerate() {
            assert_eq!((input.id, &input.shown), (FileId(at as u32), &file.path));
        }
    }
}

#[test]
fn rows_are_the_same_for_every_number_of_threads_and_size_of_block() {
    let watch = br#"{"Request":{"Key":"a","Revision":3,"WithPrefix":true},"Responses":[{"Events":[{"Type":"put-operation","Key":"x","Value":{"Value":"1"},"Revision":3,"IsCreate":true}],"Revision":4,"Time":50}]}"#;
    let files = [
        ("r/client-1/operations.json", puts(&(2..60).collect::<Vec<_>>())),
        ("r/client-1/watch.json", [&watch[..], b"\n", watch].concat()),
        ("r/client-2/operations.json", puts(&(60..90).collect::<Vec<_>>())),
        (WAL, first_segment().bytes),
        ("r/server-a/member/snap/db", store()),
    ];
    let shown = |threads, block_bytes| {
        let options = ReadOptions { threads, block_bytes, ..ReadOptions::default() };
        let r = recordings(&files, &options).remove(0);
        format!("{:?}", (r.operations, r.requests, r.results, r.pairs, r.watches, r.responses, r.events, r.members))
    };
    let first = shown(1, 1 << 20);
    for (threads, block_bytes) in [(1, 64), (2, 300), (4, 1)] {
        assert_eq!(shown(threads, block_bytes), first, "{threads} threads, blocks of {block_bytes}");
    }
}

#[test]
fn each_pair_has_its_own_key_and_value_whatever_was_seen_at_its_revision_before() {
    // Clients that agree, one that does not, and revisions that share a slot of the cache.
    let pair_of = |client: u64, n: u64| {
        let other = client == 3 && n.is_multiple_of(7);
        let (key, value) = (format!("k{}", (n + u64::from(other)) % 10), (n / 3 + u64::from(client == 4)).to_string());
        (key, value, 2 + (n % 1_000) * if n.is_multiple_of(5) { 1 << 18 } else { 1 })
    };
    let text = |client: u64| {
        let pairs = |from: u64| {
            let pairs = (from..from + 100).map(|n| {
                let (key, value, revision) = pair_of(client, n);
                format!(r#"{{"Key":"{key}","Value":{{"Value":"{value}"}},"ModRevision":{revision},"Version":1}}"#)
            });
            pairs.collect::<Vec<_>>().join(",")
        };
        let list = |n: u64| {
            let answer = format!(r#""Range":{{"KVs":[{}],"Count":100}},"Revision":999999999"#, pairs(100 * n));
            operation(10 * n as i64 + 10, r#""Type":"range","Range":{"Start":"a","End":"z"}"#, &answer)
        };
        (0..30).map(list).collect::<String>().into_bytes()
    };
    let names = ["r/client-1/operations.json", "r/client-2/operations.json", "r/client-3/operations.json"];
    let files: Vec<File> =
        (1..).zip(names).chain([(4, "r/client-4/operations.json")]).map(|(n, name)| (name, text(n))).collect();
    for threads in [1, 2] {
        let report = recordings(&files, &ReadOptions { threads, ..ReadOptions::default() }).remove(0);
        let shown = |pair: &Pair| (report.texts.get(pair.key), report.values.shown(pair.value), pair.revision as u64);
        let expected = (1..5).flat_map(|client| (0..3_000).map(move |n| pair_of(client, n)));
        assert_eq!(report.pairs.len(), 12_000);
        for (pair, wanted) in report.pairs.iter().zip(expected) {
            assert_eq!(shown(pair), (&*wanted.0, wanted.1.into(), wanted.2), "{threads} threads");
        }
    }
}

#[test]
fn what_was_written_as_it_went_is_put_together_whatever_is_missing_at_the_end() {
    let begun = |id: u32, call: u32| format!(r#"{{"ClientId":{id},"Input":{{{RANGE}}},"Call":{call}}}"#) + "\n";
    let ended = |id: u32, call: u32| {
        format!(r#"{{"ClientId":{id},"Input":{{{RANGE}}},"Call":{call},"Output":{{{FOUND}}},"Return":99}}"#) + "\n"
    };
    let operations = begun(1, 10) + &begun(2, 10) + &ended(2, 10) + &begun(3, 20) + &ended(1, 10);
    let request =
        |number: u32, key: &str| format!(r#"{{"Request":{{"Key":"{key}","Revision":2}},"Watch":{number}}}"#) + "\n";
    let event = |number: u32, key: &str, revision: u32| {
        let event = format!(r#"{{"Type":"put-operation","Key":"{key}","Value":{{}},"Revision":{revision}}}"#);
        // Fields come in any order.
        let response = format!(r#""Responses":[{{"Events":[{event}],"Time":7}}]"#);
        let number = format!(r#""Watch":{number}"#);
        if revision.is_multiple_of(2) {
            format!("{{{response},{number}}}\n")
        } else {
            format!("{{{number},{response}}}\n")
        }
    };
    let whole =
        r#"{"Responses":[{"IsProgressNotify":true,"Revision":9,"Time":9}],"Request":{"Key":"w"}}"#.to_owned() + "\n";
    let watches = request(5, "a")
        + &event(5, "a", 2)
        + &request(6, "b")
        + &event(6, "b", 3)
        + &whole
        + &event(5, "a", 4)
        + &event(6, "b", 6);
    for (threads, block_bytes) in [(1, 1 << 20), (2, 64), (2, 200)] {
        let options = ReadOptions { threads, block_bytes, ..ReadOptions::default() };
        let files = [
            ("r/client-1/operations.json", operations.clone().into_bytes()),
            ("r/client-1/watch.json", watches.clone().into_bytes()),
        ];
        let report = recordings(&files, &options).remove(0);
        assert_eq!(problems(&report), Vec::<String>::new());
        let rows: Vec<_> = report.operations.iter().map(|o| (o.stream, o.outcome)).collect();
        assert_eq!(rows, [(2, Outcome::Answered), (1, Outcome::Answered), (3, Outcome::Unknown)]);
        let events_of = |watch: &Watch| {
            let events = watch.responses.of(&report.responses).iter().flat_map(|r| r.events.of(&report.events));
            (report.texts.get(watch.key).to_owned(), events.map(|event| event.revision).collect::<Vec<_>>())
        };
        let watches: Vec<_> = report.watches.iter().map(events_of).collect();
        assert_eq!(watches, [("a".into(), vec![2, 4]), ("b".into(), vec![3, 6]), ("w".into(), vec![])]);
        assert_eq!(report.watches[2].responses.len, 1);
    }
    let orphan = (request(6, "a") + &event(5, "a", 2)).into_bytes();
    assert_eq!(
        the_problem(&[("r/client-1/watch.json", orphan)]),
        "r/client-1/watch.json:2: a watch with its request / a part of watch 5 without its request"
    );
}
