//! The readers of logs and stores against files of a real etcd. Skipped without `etcd` on the PATH.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use retrograde::history::etcd::{Log, Recording, Request, Step, Target, load};
use retrograde::ingest::{self, ReadOptions};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An etcd of one member, requested over its HTTP gateway.
struct Etcd(crate::support::etcd::Etcd);

impl Etcd {
    /// `None`: no etcd is installed.
    fn start(name: &str) -> Option<Etcd> {
        // On a busy machine a request may wait for the disk. etcd's limit is five seconds and two election timeouts.
        let patient = ["--snapshot-count=20", "--heartbeat-interval=500", "--election-timeout=5000"];
        let etcd = Etcd(crate::support::etcd::Etcd::start(name, &patient)?);
        let begin = Instant::now();
        while etcd.try_ask("/v3/kv/range", &json!({"key": text("x")})).is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60), "etcd does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(etcd)
    }

    fn ask(&self, path: &str, request: &Value) -> Value {
        match self.answer(path, request) {
            Ok((head, body)) if head.contains(" 200 ") => serde_json::from_str(&body).expect("JSON"),
            answer => panic!("no answer to {path}: {answer:?}"),
        }
    }

    fn try_ask(&self, path: &str, request: &Value) -> Option<Value> {
        let (head, body) = self.answer(path, request).ok()?;
        head.contains(" 200 ").then(|| serde_json::from_str(&body).ok()).flatten()
    }

    /// Head and body of an answer.
    fn answer(&self, path: &str, request: &Value) -> std::io::Result<(String, String)> {
        let body = request.to_string();
        let mut stream = TcpStream::connect(self.0.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Ok((head.to_owned(), body.to_owned()))
    }

    /// Stops it cleanly, so that its store is complete, or kills it.
    fn stop(&mut self, in_order: bool) -> PathBuf {
        if in_order {
            self.0.stop()
        } else {
            self.0.kill()
        }
        self.0.data()
    }
}

fn text(text: &str) -> String {
    STANDARD.encode(text)
}

fn read(path: &Path) -> Recording {
    let files = ingest::inputs(&[path.to_owned()], &[], &[]).expect("the files are there");
    let mut found = load(ingest::etcd_reports(files).reports, &ReadOptions::default(), &());
    assert_eq!(found.len(), 1);
    let recording = found.remove(0);
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    recording
}

fn log(recording: &Recording) -> &Log {
    recording.members[0].log.as_ref().expect("a log")
}

/// The proposals about keys as text, one a line.
fn proposals(recording: &Recording) -> Vec<String> {
    let name = |symbol| recording.texts.get(symbol).to_owned();
    let step = |step: &Step| match *step {
        Step::Put { key, value, lease, .. } => {
            format!("put {}={} lease {lease}", name(key), recording.values.shown(value))
        }
        Step::Delete(keys) => format!("delete {} {}", name(keys.key), name(keys.end)),
        Step::Range(range) => format!("get {}", name(range.keys.key)),
        Step::Txn(_) => "txn".to_owned(),
        Step::Nothing => "nothing".to_owned(),
    };
    let steps = |steps: &[Step]| steps.iter().map(step).collect::<Vec<_>>().join("; ");
    let shown = |request: &Request| match request {
        Request::Txn(txn) => {
            let conditions = txn.conditions.of(&recording.requests.conditions).iter();
            let conditions: Vec<String> = conditions
                .map(|c| {
                    assert_eq!(c.target, Target::ModRevision);
                    format!("if {} at {} ", name(c.keys.key), c.number)
                })
                .collect();
            let (done, otherwise) =
                (txn.success.of(&recording.requests.steps), txn.failure.of(&recording.requests.steps));
            let otherwise = if otherwise.is_empty() { String::new() } else { format!(" else {}", steps(otherwise)) };
            Some(format!("{}{}{otherwise}", conditions.concat(), steps(done)))
        }
        Request::LeaseGrant { lease, ttl } => Some(format!("grant {lease} for {ttl}")),
        Request::LeaseRevoke { lease } => Some(format!("revoke {lease}")),
        Request::Compact { revision } => Some(format!("compact {revision}")),
        _ => None,
    };
    log(recording).entries.iter().filter_map(|entry| shown(&entry.request)).collect()
}

/// The live keys as text: key, value, revisions, version, lease.
fn stored(recording: &Recording) -> Vec<String> {
    let store = recording.members[0].store.as_ref().expect("a store");
    let mut last = std::collections::BTreeMap::new();
    for revision in &store.revisions {
        last.insert(recording.texts.get(revision.key), revision);
    }
    let line = |(key, r): (&str, &&retrograde::history::etcd::StoredRevision)| {
        let value = recording.values.shown(r.value);
        format!(
            "{key}={value} created {} changed {} version {} lease {}",
            r.create_revision, r.mod_revision, r.version, r.lease
        )
    };
    last.iter().filter(|(_, revision)| !revision.tombstone).map(|(key, revision)| line((key, revision))).collect()
}

/// The live keys from etcd's answer.
fn answered(etcd: &Etcd) -> Vec<String> {
    let all = etcd.ask("/v3/kv/range", &json!({"key": STANDARD.encode([0]), "range_end": STANDARD.encode([0])}));
    let bytes = |value: &Value| {
        String::from_utf8(STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64")).expect("text")
    };
    let number = |value: &Value| value.as_str().unwrap_or("0").to_owned();
    let pairs = all["kvs"].as_array().cloned().unwrap_or_default();
    let line = |pair: &Value| {
        let (created, changed) = (number(&pair["create_revision"]), number(&pair["mod_revision"]));
        let (version, lease) = (number(&pair["version"]), number(&pair["lease"]));
        let (key, value) = (bytes(&pair["key"]), bytes(&pair["value"]));
        format!("{key}={value} created {created} changed {changed} version {version} lease {lease}")
    };
    pairs.iter().map(line).collect()
}

#[test]
fn what_etcd_logged_and_stored_is_what_was_asked() {
    let Some(mut etcd) = Etcd::start("small") else { return };
    let mut expected = Vec::new();
    let put = |key: &str, value: &str, lease: i64| json!({"key": text(key), "value": text(value), "lease": lease});
    for n in 0..70 {
        let (key, value) = (format!("key-{}", n % 9), (1000 + n).to_string());
        etcd.ask("/v3/kv/put", &put(&key, &value, 0));
        expected.push(format!("put {key}={value} lease 0"));
    }
    etcd.ask("/v3/lease/grant", &json!({"ID": 77, "TTL": 3600}));
    expected.push("grant 77 for 3600".to_owned());
    etcd.ask("/v3/lease/grant", &json!({"ID": 78, "TTL": 3600}));
    expected.push("grant 78 for 3600".to_owned());
    etcd.ask("/v3/kv/put", &put("leased", "3600", 77));
    expected.push("put leased=3600 lease 77".to_owned());
    etcd.ask("/v3/kv/put", &put("ended", "1", 78));
    expected.push("put ended=1 lease 78".to_owned());
    etcd.ask("/v3/lease/revoke", &json!({"ID": 78}));
    expected.push("revoke 78".to_owned());
    etcd.ask("/v3/kv/deleterange", &json!({"key": text("key-3"), "range_end": text("key-5")}));
    expected.push("delete key-3 key-5".to_owned());
    let read = json!({"requestRange": {"key": text("key-1")}});
    let write = |n: u32| json!({"requestPut": put(&format!("made-{n}"), "-7", 0)});
    for (revision, failed) in [(0, false), (9999, true)] {
        let compare = json!({"key": text("absent"), "target": "MOD", "modRevision": revision, "result": "EQUAL"});
        let delete = json!({"requestDeleteRange": {"key": text("key-0")}});
        let answer = etcd.ask(
            "/v3/kv/txn",
            &json!({"compare": [compare], "success": [write(1), write(2)], "failure": [delete, read]}),
        );
        assert_eq!(answer["succeeded"] != true, failed);
        let made = "put made-1=-7 lease 0; put made-2=-7 lease 0";
        expected.push(format!("if absent at {revision} {made} else delete key-0 ; get key-1"));
    }
    etcd.ask("/v3/kv/compaction", &json!({"revision": 40, "physical": true}));
    expected.push("compact 40".to_owned());
    let state = answered(&etcd);
    assert_eq!(state.len(), 9, "{state:?}");
    let revision = etcd.ask("/v3/kv/range", &json!({"key": text("x")}))["header"]["revision"].clone();
    let data = etcd.stop(true);
    let recording = self::read(&data);
    assert_eq!(proposals(&recording), expected);
    assert_eq!(stored(&recording), state);
    let (log, store) = (log(&recording), recording.members[0].store.as_ref().unwrap());
    assert_eq!(
        log.entries.iter().map(|entry| entry.index).collect::<Vec<_>>(),
        (1..=log.entries.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!((log.after, log.torn, log.broken, log.overwritten.len()), (0, false, false, 0));
    assert_eq!((store.compaction_begun, store.compaction_done), (40, 40));
    assert_eq!(Some(store.revisions.last().unwrap().main.to_string().as_str()), revision.as_str());
    assert!(store.consistent_index <= log.entries.last().unwrap().index && store.consistent_index >= log.commit - 1);
    let parts = |folder: &str| std::fs::read_dir(data.join(folder)).unwrap().count();
    assert!(parts("member/snap") > 1, "etcd took no snapshot: the test lost its point");
    // Reading must not change the files.
    let again = self::read(&data);
    assert_eq!((proposals(&again), stored(&again)), (expected, state));
}

#[test]
fn a_log_of_several_segments_is_one_and_a_killed_member_loses_nothing_that_was_answered() {
    let Some(mut etcd) = Etcd::start("large") else { return };
    let mut expected = Vec::new();
    for n in 0..70 {
        let value = char::from(b'a' + n % 26).to_string().repeat(1_000_000);
        etcd.ask("/v3/kv/put", &json!({"key": text("large"), "value": text(&value)}));
        expected.push(format!("put large=#{:08x} lease 0", fnv(value.as_bytes())));
    }
    let data = etcd.stop(false);
    let segments = std::fs::read_dir(data.join("member/wal")).unwrap().flatten();
    let segments = segments.filter(|entry| entry.file_name().to_string_lossy().ends_with(".wal")).count();
    assert!(segments > 1, "etcd cut no segment: the test lost its point");
    let recording = read(&data);
    assert_eq!(proposals(&recording), expected);
    let [kept] = &stored(&recording)[..] else { panic!("{:?}", stored(&recording)) };
    assert!(expected.iter().any(|put| put.contains(kept.split(' ').next().unwrap())), "{kept}");
}

/// FNV-1a of 32 bits.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
