//! Records puts, a watch and reads of etcd as gRPC messages, in memory, and finds a stale read.
//!
//! ```console
//! $ cargo run --example record_etcd
//! ```
//!
//! The messages are the bytes of protocol buffers, as any client sends and reads them. With the crate etcd-client nothing
//! is written by hand: `EtcdLayer::new(recorder.client(name), Body::new)` records its channel (docs/guide-ci.md).

use retrograde::record::{EtcdClient, EtcdRecorder};
use retrograde::{Options, judge};
use std::error::Error;

/// A field of a message, and a number below 128 in one. Your client has generated code, such as `encode_to_vec` of prost.
fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2, content.len() as u8], content].concat()
}

fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// `ResponseHeader`: the revision of the store when it answered.
fn header(revision: u8) -> Vec<u8> {
    bytes(1, &number(3, revision))
}

/// `KeyValue`: the key `k`, which revision 2 created, as it was at a revision.
fn key_value(revision: u8, value: &[u8]) -> Vec<u8> {
    [bytes(1, b"k"), number(2, 2), number(3, revision), number(4, revision - 1), bytes(5, value)].concat()
}

/// Puts `k`: the request before it is sent, the answer after it was read.
fn put(client: &EtcdClient, value: &[u8], revision: u8) {
    let call = client.call("/etcdserverpb.KV/Put", &[bytes(1, b"k"), bytes(2, value)].concat());
    call.answer(&header(revision));
}

/// Reads `k`. A call without `answer`, such as one that timed out, has an unknown outcome.
fn read(client: &EtcdClient, (revision, value): (u8, &[u8])) {
    let call = client.call("/etcdserverpb.KV/Range", &bytes(1, b"k"));
    call.answer(&[header(revision), bytes(2, &key_value(revision, value)), number(4, 1)].concat());
}

/// Two puts and a watch of all keys, then a read that answers as told. Returns the verdict and the findings.
pub fn recorded(answer: (u8, &[u8])) -> Result<Vec<String>, Box<dyn Error>> {
    let recorder = EtcdRecorder::new();
    let (ann, bob) = (recorder.client("ann"), recorder.client("bob"));
    let watch = recorder.client("watcher").watches();
    // All keys ("\0" to "\0") from revision 1 on: this watch shows retrograde every change.
    watch.sent(&bytes(1, &[bytes(1, b"\0"), bytes(2, b"\0"), number(3, 1)].concat()));
    watch.received(&[header(1), number(3, 1)].concat());
    for (revision, value) in [(2, b"1"), (3, b"2")] {
        put(&ann, value, revision);
        watch.received(&[header(revision), bytes(11, &bytes(2, &key_value(revision, value)))].concat());
    }
    read(&bob, answer);
    // A recorder that writes into a folder (`EtcdRecorder::in_folder`) can fail.
    if let Some(error) = recorder.error() {
        return Err(error.into());
    }

    // In a test, `assert_consistent!(recorder)` does the rest and panics with the report.
    let history = recorder.history();
    let judgement = judge(&history, &Options::default());
    let mut lines = vec![format!("verdict: {}", judgement.verdict.word())];
    for finding in &judgement.findings {
        lines.push(format!("{}: {}", finding.rule, finding.summary));
        let facts = finding.certificate.facts.iter();
        lines.extend(facts.map(|fact| format!("  {} [{}]", fact.says, fact.place(&history))));
    }
    Ok(lines)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("bob reads the second put:\n{}\n", recorded((3, b"2"))?.join("\n"));
    println!("bob reads the first put, after the second one was answered:\n{}", recorded((2, b"1"))?.join("\n"));
    Ok(())
}
