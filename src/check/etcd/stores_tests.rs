//! Tests of what the data directories of members show without any client.

use super::tests::{judged, log_of, members};
use crate::ingest::etcd::fixture::{Message, Segment, put};
use crate::ingest::etcd::store_fixture::{Buckets, revision, store};

const THREE: [u64; 3] = [1, 2, 3];

fn wal(node: u64) -> &'static str {
    [
        "a/member/wal/0000000000000000-0000000000000000.wal",
        "b/member/wal/0000000000000000-0000000000000000.wal",
        "c/member/wal/0000000000000000-0000000000000000.wal",
    ][node as usize - 1]
}

fn db(node: u64) -> &'static str {
    ["a/member/snap/db", "b/member/snap/db", "c/member/snap/db"][node as usize - 1]
}

/// The log of a member: puts of one key to these texts, all committed, at the indices from 4 on.
fn logged(node: u64, texts: &[&str]) -> (&'static str, Vec<u8>) {
    (wal(node), log_of(node, &THREE, &puts(texts), texts.len() as u64))
}

fn puts(texts: &[&str]) -> Vec<Message> {
    texts.iter().map(|text| put("a", text.as_bytes())).collect()
}

/// A log that began before its first segment: one put at index 91.
fn late(node: u64) -> (&'static str, Vec<u8>) {
    (wal(node), Segment::by(0, node, 9).snapshot(90).entry(91, 2, &put("a", b"x")).commit(91).bytes)
}

/// The store of a member that has applied entries through `index`: puts of one key at these revisions.
fn stored(node: u64, index: u64, rows: &[(u64, &str)]) -> (&'static str, Vec<u8>) {
    compacted(node, index, rows, 0)
}

/// The same, compacted through a revision.
fn compacted(node: u64, index: u64, rows: &[(u64, &str)], through: u64) -> (&'static str, Vec<u8>) {
    let pair = |main: u64, text: &str| {
        let message = Message::default().bytes(1, b"a").number(2, 2).number(3, main).number(4, main - 1);
        message.bytes(5, text.as_bytes()).0
    };
    let rows = rows.iter().map(|(main, text)| (revision(*main, 0, false), pair(*main, text))).collect();
    let mut meta = std::collections::BTreeMap::from([(b"consistent_index".to_vec(), index.to_be_bytes().to_vec())]);
    if through > 0 {
        meta.insert(b"finishedCompactRev".to_vec(), revision(through, 0, false));
    }
    (db(node), store(&Buckets::from([("key", rows), ("meta", meta)]), 4))
}

/// `VERDICT: SUMMARY`
fn said(files: &[(&str, Vec<u8>)]) -> String {
    let judgement = judged(files);
    let found: Vec<String> = judgement
        .findings
        .iter()
        .map(|finding| format!("{} {}: {}", finding.kind_word(), finding.rule, finding.summary))
        .collect();
    format!("{}: {}", judgement.verdict.word(), found.join(" / "))
}

const ROWS: [(u64, &str); 3] = [(2, "1"), (3, "2"), (4, "3")];

#[test]
fn members_that_agree_hold() {
    let logs = [logged(1, &["1", "2", "3"]), logged(2, &["1", "2", "3"])];
    assert_eq!(said(&logs), "holds: ");
    assert_eq!(said(&logs[..1]), "unknown: ");
    assert_eq!(said(&[logs[0].clone(), stored(1, 6, &ROWS)]), "holds: ");
    // One member is behind the other, in its log and in its store.
    let behind = [logged(2, &["1", "2"]), stored(2, 5, &ROWS[..2])];
    assert_eq!(said(&[&logs[..1], &[stored(1, 6, &ROWS)], &behind].concat()), "holds: ");
    // A compaction removes rows, also that of the last revision.
    assert_eq!(said(&[logs[0].clone(), compacted(1, 6, &ROWS[1..], 3)]), "holds: ");
    assert_eq!(said(&[logs[0].clone(), compacted(1, 6, &ROWS[..2], 4)]), "holds: ");
}

#[test]
fn a_store_has_what_the_log_makes() {
    let log = || logged(1, &["1", "2", "3"]);
    let with = |index: u64, rows: &[(u64, &str)]| said(&[log(), stored(1, index, rows)]);
    let violated = |summary: &str| format!("violated: violation split-timeline: {summary}");
    assert_eq!(
        with(6, &[(2, "1"), (3, "other"), (4, "3")]),
        violated("The store of a has another content of revision 3 than the committed log.")
    );
    assert_eq!(
        with(6, &[(2, "1"), (4, "3")]),
        violated("The store of a lacks revision 3, which the committed log has.")
    );
    // An index that was saved without the revision of its entry.
    assert_eq!(
        with(6, &ROWS[..2]),
        violated("The last revision of the store of a is 3. It has applied the log through revision 4.")
    );
    assert_eq!(
        with(5, &ROWS),
        violated("The last revision of the store of a is 4. It has applied the log through revision 3.")
    );
    // A store that agrees with nothing may belong to another log.
    assert_eq!(with(6, &[(2, "7"), (3, "8"), (4, "9")]), "unknown: ");
}

#[test]
fn a_log_that_begins_on_a_backup_says_nothing_about_revisions() {
    let restored = |snapshot: bool| {
        let log = members(1, &THREE, &[]);
        let log = if snapshot { log.snapshot(3) } else { log };
        let log = (4..).zip(&puts(&["1", "5"])).fold(log, |log, (index, entry)| log.entry(index, 2, entry));
        said(&[(wal(1), log.commit(5).bytes), stored(1, 5, &[(2, "1"), (3, "2"), (4, "1"), (5, "5")])])
    };
    assert_eq!(restored(true), "unknown: ");
    assert!(restored(false).starts_with("violated"));
}

#[test]
fn stores_are_compared_where_the_log_has_lost_its_beginning() {
    let with = |a: (&'static str, Vec<u8>), b: (&'static str, Vec<u8>)| said(&[late(1), late(2), a, b]);
    let whole = || stored(1, 90, &ROWS);
    assert_eq!(with(whole(), stored(2, 90, &ROWS)), "holds: ");
    assert_eq!(with(whole(), stored(2, 89, &ROWS[..2])), "holds: ");
    assert_eq!(with(whole(), compacted(2, 90, &ROWS[2..], 4)), "holds: ");
    let violated = |summary: &str| format!("violated: violation split-timeline: {summary}");
    assert_eq!(
        with(whole(), stored(2, 90, &[(2, "1"), (3, "other"), (4, "3")])),
        violated("The stores of a and b have different contents of revision 3.")
    );
    assert_eq!(
        with(whole(), stored(2, 90, &[(2, "1"), (4, "3")])),
        violated("The store of b lacks revision 3, which the store of a has.")
    );
    assert_eq!(
        with(stored(1, 90, &[(2, "1"), (4, "3")]), stored(2, 90, &ROWS)),
        violated("The store of a lacks revision 3, which the store of b has.")
    );
    assert_eq!(
        with(whole(), stored(2, 90, &ROWS[..2])),
        violated(
            "The stores of a and b have applied the log through index 90. The last revision of one is 4, and that of the \
             other 3."
        )
    );
    // Below a compaction, only rows that are there count.
    assert!(with(whole(), compacted(2, 90, &[(3, "other"), (4, "3")], 3)).starts_with("violated"));
}
