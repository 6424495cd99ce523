//! Reports of etcd's robustness suite, in every layout that the suite has had.

use super::*;
use crate::ingest::etcd::watch::Part;

/// A part of a watch as text.
pub(super) fn shown(part: &Part<'_>) -> String {
    match part {
        Part::Begin => "watch".to_owned(),
        Part::Number(number) => format!("number {number}"),
        Part::Request(request) => format!("of {:?} from {}", &*request.key, request.revision),
        Part::Response(response) => {
            let events: Vec<String> = response
                .events
                .iter()
                .map(|event| format!("{}@{} line {}", &*event.key, event.revision, event.place.0))
                .collect();
            let time = response.time.map_or_else(|| "no time".to_owned(), |time| time.to_string());
            format!("at {time}: {}", events.join(", "))
        }
    }
}

fn operation(call: i64, revision: i64) -> String {
    format!(
        r#"{{"ClientId":3,"Input":{{"Type":"txn","Range":null,"Txn":{{"Conditions":null,"OperationsOnSuccess":[{{"Type":"put-operation","Put":{{"Key":"a","Value":{{"Value":"1"}},"LeaseID":0}}}}],"OperationsOnFailure":null}}}},"Call":{call},"Output":{{"Txn":{{"Failure":false,"Results":[{{"KVs":null,"Count":0,"Deleted":0}}]}},"ClientError":"","Revision":{revision},"Error":""}},"Return":{},"Metadata":{{"deep":[[{{}}]]}}}}"#,
        call + 5
    )
}

fn client_watch() -> String {
    r#"{"Request":{"Key":"","Revision":2,"WithPrefix":true,"WithProgressNotify":true,"WithPrevKV":true},"Responses":[{"Events":[{"Type":"put-operation","Key":"a","Value":{"Value":"1"},"Revision":2,"IsCreate":true},{"Type":"delete-operation","Key":"\u003ca","Value":{},"Revision":3,"PrevValue":{"Value":{"Hash":7},"ModRevision":2,"Version":1}}],"Revision":3,"Time":100},{"IsProgressNotify":true,"Revision":4,"Time":200},{"Revision":9,"Time":300,"Error":"etcdserver: mvcc: required revision has been compacted"}]}"#.to_owned()
}

/// Indents as Go's encoder does.
fn indented(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn operations_are_read_one_a_line_indented_and_put_together_by_hand() {
    let (a, b) = (operation(10, 2), operation(20, 3));
    let expected = ["txn 10 2", "txn 20 3"];
    let spaced = format!("{}\n\n{}\n", indented(&a), indented(&b));
    let cases = [
        format!("{a}\n{b}\n"),
        format!("{}\n{}\n", indented(&a), indented(&b)),
        spaced,
        format!("{a}{b}"),
        format!("{}{}", indented(&a), indented(&b)),
    ];
    for text in cases {
        let (records, summary, problems) = read_one(&text);
        assert_eq!(records, expected, "{text}");
        assert_eq!((summary.format, summary.records, summary.lines), (Some("etcd-operations"), 2, 2), "{text}");
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn the_parts_of_a_watch_have_places_of_their_own() {
    let compact = ["watch", "of \"\" from 2", "at 100: a@2 line 0, <a@3 line 0", "at 200:", "at 300:"];
    let (records, summary, _) = read_one(client_watch() + "\n");
    assert_eq!(
        (records, summary.format, summary.records),
        (compact.map(str::to_owned).to_vec(), Some("etcd-watches"), 1)
    );
    let text = indented(&client_watch());
    let (records, reading) = read_all(&[input(&text)], &ReadOptions { block_bytes: 1 << 20, ..small() });
    assert!(reading.problems.is_empty());
    let line_of = |needle: &str| {
        let object = text[..text.find(needle).unwrap()].rfind('{').unwrap();
        text[..object].matches('\n').count()
    };
    for (position, shown) in &records {
        let bytes = &text.as_bytes()[position.offset as usize..];
        assert_eq!(bytes[0], b'{', "{shown}");
        assert_eq!(position.line as usize, 1 + text[..position.offset as usize].matches('\n').count(), "{shown}");
    }
    let (_, first) = &records[2];
    let lines = (line_of("\"Key\": \"a\""), line_of("\"Key\": \"<a\""));
    assert_eq!(*first, format!("at 100: a@2 line {}, <a@3 line {}", lines.0, lines.1));
    let texts = reread(&input(&text), &records.iter().map(|(position, _)| *position).collect::<Vec<_>>());
    assert!(texts.iter().all(Option::is_some));
    assert_eq!(texts[3].as_deref().map(|text| text.contains("IsProgressNotify")), Some(true));
}

#[test]
fn a_watch_that_was_told_nothing_is_a_watch() {
    let text = "{\"Request\":{\"Key\":\"a\",\"Revision\":7}}\n{\"Request\":{\"Key\":\"b\"},\"Responses\":null}\n";
    let (records, _, problems) = read_one(text);
    assert_eq!(records, ["watch", "of \"a\" from 7", "watch", "of \"b\" from 0"]);
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_report_cut_off_anywhere_keeps_what_is_whole() {
    let text = format!("{}\n{}\n", indented(&operation(10, 2)), indented(&operation(20, 3)));
    let first = indented(&operation(10, 2)).len();
    for length in 1..text.trim_end().len() {
        let (records, summary, problems) = read_forced(&text[..length], Format::EtcdOperations);
        let whole = usize::from(length >= first);
        assert_eq!(records.len(), whole, "cut off at {length}");
        let rest = length != first && length != first + 1;
        assert_eq!((problems.len(), summary.problems), (usize::from(rest), u64::from(rest)), "cut off at {length}");
    }
}

#[test]
fn a_watch_cut_off_keeps_its_responses() {
    let text = indented(&client_watch());
    let end = text.find("\"Time\": 200").unwrap() + 40;
    let (records, _, problems) = read_forced(&text[..end], Format::EtcdWatches);
    assert_eq!(records.len(), 4, "{records:?}");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].1.starts_with("a watch of an etcd client / a line cut off after"), "{problems:?}");
    for length in 1..text.len() {
        let (records, _, problems) = read_forced(&text[..length], Format::EtcdWatches);
        assert!(records.len() <= 5 && problems.len() == 1, "cut off at {length}");
    }
}

fn read_forced(text: &str, format: Format) -> (Vec<String>, FileSummary, Vec<(u32, String)>) {
    read_input(&InputFile { format: Some(format), ..input(text) })
}

#[test]
fn no_bit_of_a_report_makes_it_panic_and_each_value_is_accounted_for() {
    let text = format!("{}\n{}\n", indented(&operation(10, 2)), indented(&client_watch()));
    for format in [Format::EtcdOperations, Format::EtcdWatches] {
        for at in 0..text.len() {
            for bit in [0, 1, 5, 7] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let file = InputFile { format: Some(format), ..input(bytes) };
                let (_, reading) = read_all(&[file], &small());
                let summary = &reading.files[0];
                assert_eq!(summary.records + summary.problems, summary.lines, "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn numbers_that_etcd_cannot_have_are_problems() {
    for (from, to, found) in [
        ("\"Revision\":2", "\"Revision\":9223372036854775808", "another value: a whole number where i64"),
        ("\"Revision\":2", "\"Revision\":1e3", "a number where i64"),
        ("\"Revision\":2", "\"Revision\":\"2\"", "a string where i64"),
        ("\"Call\":10", "\"Call\":10,\"Call\":11", "duplicate field"),
    ] {
        let (records, _, problems) = read_one(operation(10, 2).replace(from, to) + "\n" + &operation(20, 3));
        assert_eq!((records.len(), problems.len()), (1, 1), "{to}: {problems:?}");
        assert!(problems[0].1.contains(found), "{problems:?}");
    }
}

#[test]
fn binary_files_are_recognised_and_read_from_files_streams_and_memory() {
    use crate::ingest::etcd::fixture::{Segment, put};
    let segment = Segment::after(0).entry(1, 2, &put("a", b"1")).commit(1).allocated(1 << 20).bytes;
    let folder = Folder::new("etcd-member");
    let plain = folder.file("0.wal", &segment);
    let mut expected = None;
    let mut compressed = vec![plain, input(&segment)];
    #[cfg(feature = "compress")]
    compressed.push(folder.file("0.wal.zst", zstd::encode_all(&segment[..], 0).unwrap()));
    for file in compressed {
        let (records, reading) = read_all(std::slice::from_ref(&file), &small());
        let summary = &reading.files[0];
        assert_eq!((summary.format, summary.records, summary.bytes), (Some("etcd-log"), 5, segment.len() as u64));
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        let records: Vec<_> = records.into_iter().map(|(at, text)| (at.line, at.offset, text)).collect();
        assert_eq!(*expected.get_or_insert_with(|| records.clone()), records);
    }
}

#[cfg(feature = "compress")]
#[test]
fn a_binary_file_that_would_fill_the_memory_is_a_problem() {
    use crate::ingest::etcd::fixture::{Segment, put};
    let segment = Segment::after(0).entry(1, 2, &put("a", &vec![b'x'; 100_000])).bytes;
    let folder = Folder::new("etcd-large");
    let file = folder.file("0.wal.zst", zstd::encode_all(&segment[..], 0).unwrap());
    let (_, reading) = read_all(&[file], &small());
    assert_eq!(reading.problems.len(), 1, "{:?}", reading.problems);
    assert!(reading.problems[0].expected.contains("without compression"), "{:?}", reading.problems);
}
