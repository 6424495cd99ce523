//! Packed histories: judged like their evidence, and refused with a reason if they were altered.
#![cfg(feature = "container")]

use crate::support::container::{Chunk, HEADER, chunks, sealed};
use crate::support::draws::seeds;
use fastrand::Rng;
use retrograde::check::Judgement;
use retrograde::container::Refusal;
use retrograde::history::snapshot::{self, Packing, VERSION};
use retrograde::history::{Domains, History, load_each, sketch};
use retrograde::ingest::{self, Fields, FileId, InputFile, SourceRule};
use retrograde::report::{Format, Look, Part, Report};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Small, and one of each kind: requests with bodies and streams, a log, a cluster with members' logs.
const SMALL: [&str; 3] = [
    "histories/incidents/kubelet-restart/buggy",
    "histories/models/queue/violation.edn",
    "histories/rules/lost-write/violation.report",
];

fn fields() -> std::sync::Arc<Fields> {
    retrograde::read_options().fields
}

fn read(path: &Path) -> Vec<History> {
    let inputs = ingest::inputs(&[path.to_path_buf()], &[], &[]).unwrap();
    load(inputs)
}

fn load(inputs: Vec<InputFile>) -> Vec<History> {
    load_each(inputs, &retrograde::read_options(), &Domains::default(), &())
}

fn pack(histories: &[History], compress: bool) -> Vec<u8> {
    let packing = Packing { fields: &fields(), request: "", compress };
    snapshot::write(Vec::new(), histories, &packing).unwrap()
}

fn unpack(bytes: &[u8]) -> Result<Vec<History>, Refusal> {
    snapshot::read(&mut &*bytes, &fields(), None).map(|unpacked| unpacked.histories)
}

fn judge(histories: &[History]) -> Vec<Judgement> {
    histories.iter().map(|history| retrograde::judge(history, &retrograde::Options::default())).collect()
}

fn reported(histories: &[History], format: Format) -> String {
    let judgements = judge(histories);
    let parts = histories.iter().zip(&judgements).map(|(history, judgement)| Part::of(history, judgement));
    let report = Report { histories: parts.collect() };
    let mut out = Vec::new();
    report.write(format, Look::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn packed_evidence_is_judged_as_the_evidence_is() {
    let all = crate::support::committed::evidence();
    assert!(all.len() > 90, "{}", all.len());
    for path in all {
        let histories = read(&path);
        let again = unpack(&pack(&histories, true)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for format in [Format::Json, Format::Html] {
            assert!(reported(&histories, format) == reported(&again, format), "{} {format:?}", path.display());
        }
    }
}

#[test]
fn evidence_with_an_answer_whose_request_is_missing_is_packed() {
    let list = |version: u32| {
        format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"x","namespace":"default","uid":"u1","resourceVersion":"10"}}}}]}}"#
        )
    };
    let request = r#"{"kind":"request","id":2,"at":"2026-03-02T09:00:01Z","method":"GET","uri":"/api/v1/pods"}"#;
    let answer = |id: u32, version: u32| {
        let body = list(version);
        format!(r#"{{"kind":"response","id":{id},"at":"2026-03-02T09:00:02Z","status":200,"body":{body}}}"#)
    };
    let header = r#"{"kind":"capture","version":1,"client":"a","server":"A","clock":"c"}"#;
    let text = [header.to_owned(), answer(1, 20), request.to_owned(), answer(2, 21)].join("\n");
    let histories = load(vec![InputFile::in_memory(FileId(0), "a.jsonl", text.into_bytes())]);
    assert_eq!(histories[0].operations.len(), 1);
    let again = unpack(&pack(&histories, false)).expect("it is honest");
    assert_eq!((again[0].items.len(), judge(&again)[0].verdict.clone()), (2, judge(&histories)[0].verdict.clone()));
}

#[test]
fn packed_captures_are_judged_as_the_captures_are() {
    let named = std::env::var_os("RETROGRADE_CAPTURES").map(PathBuf::from);
    let captures = named.clone().unwrap_or_else(|| PathBuf::from("../shared/captures"));
    if named.is_none() && !captures.is_dir() {
        return eprintln!("skipped: there is no {} (RETROGRADE_CAPTURES names another folder)", captures.display());
    }
    let most = std::env::var("RETROGRADE_CAPTURES_BYTES").ok().and_then(|bytes| bytes.parse().ok()).unwrap_or(200_000);
    let (all, larger) = crate::support::committed::captures(&captures, most);
    assert!(!all.is_empty(), "{} holds no evidence", captures.display());
    for path in &all {
        let histories = read(path);
        let again = unpack(&pack(&histories, true)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(reported(&histories, Format::Json) == reported(&again, Format::Json), "{}", path.display());
    }
    println!("{} captures, {larger} larger than {most} bytes are left out (RETROGRADE_CAPTURES_BYTES)", all.len());
}

#[test]
fn packed_sketches_are_judged_as_the_sketches_are() {
    let sketches = crate::support::committed::sketches();
    assert!(sketches.len() > 200, "{}", sketches.len());
    for path in sketches {
        let made = sketch::evidence(&fs::read_to_string(&path).unwrap()).unwrap();
        let sources: Vec<SourceRule> = made.sources.iter().map(|s| SourceRule::parse(s).unwrap()).collect();
        let inputs = made.files.into_iter().enumerate().map(|(index, (name, content))| {
            let input = InputFile::in_memory(FileId(index as u32), &name, content.into_bytes());
            let source = sources.iter().find(|source| source.glob == name).cloned().unwrap_or_default();
            InputFile { source, ..input }
        });
        let histories = load(inputs.collect());
        let mut again = unpack(&pack(&histories, false)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Evidence in memory is in no file. Without it no further findings may appear.
        for (less, more) in judge(&again).iter().zip(judge(&histories)) {
            let proved = |judgement: &Judgement| {
                judgement.findings.iter().filter(|f| f.kind == retrograde::check::Kind::Violation).count()
            };
            assert!(proved(less) <= proved(&more), "{}", path.display());
        }
        for (unpacked, original) in again.iter_mut().zip(&histories) {
            unpacked.inputs.clone_from(&original.inputs);
        }
        assert!(reported(&histories, Format::Json) == reported(&again, Format::Json), "{}", path.display());
    }
}

#[test]
fn what_is_packed_again_is_the_same() {
    for path in SMALL {
        let first = pack(&read(Path::new(path)), false);
        assert!(pack(&unpack(&first).unwrap(), false) == first, "{path}");
    }
}

#[test]
fn an_event_of_a_request_that_is_no_watch_is_a_problem_and_packs() {
    let line = |kind: &str, rest: &str| format!("{{\"kind\":\"{kind}\",{rest}}}\n");
    let object = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"d","uid":"u","resourceVersion":"7"}}"#;
    let text = [
        line("capture", r#""version":1,"client":"c""#),
        line("request", r#""id":1,"at":"2026-03-02T09:00:00Z","method":"GET","uri":"/api/v1/configmaps""#),
        line("event", &format!(r#""id":1,"at":"2026-03-02T09:00:01Z","event":{{"type":"ADDED","object":{object}}}"#)),
        line("response", r#""id":1,"at":"2026-03-02T09:00:02Z","status":200"#),
    ];
    let histories = load(vec![InputFile::in_memory(FileId(0), "c.jsonl", text.concat().into_bytes())]);
    assert!(histories[0].streams.is_empty());
    let problem = &histories[0].problems[0];
    assert_eq!((problem.line, &*problem.expected), (3, "events of a watch only"));
    assert_eq!(unpack(&pack(&histories, false)).unwrap()[0].problems, histories[0].problems);
}

#[test]
fn evidence_that_is_gone_is_said_and_its_place_is_still_named() {
    let folder = std::env::temp_dir().join(format!("retrograde-gone-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for entry in fs::read_dir(SMALL[0]).unwrap().flatten() {
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    let histories = read(&folder);
    let packed = pack(&histories, true);
    fs::write(folder.join("audit-A.log"), "something else").unwrap();
    let again = unpack(&packed).unwrap();
    let judgements = judge(&again);
    let said = judgements[0].unchecked.iter().find(|text| text.contains("since they were packed")).expect("it is said");
    assert!(said.starts_with("1 of ") && said.contains("audit-A.log"), "{said}");
    let page = reported(&again, Format::Json);
    assert!(page.contains("audit-A.log") && page.contains("\"line\""), "{page}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let whole = pack(&read(Path::new(SMALL[1])), true);
    for length in 0..whole.len() {
        let refusal = unpack(&whole[..length]).expect_err("a part of a container");
        assert!(matches!(refusal, Refusal::CutOff), "{length}: {refusal}");
    }
    let longer = [&whole[..], b"\0"].concat();
    assert!(matches!(unpack(&longer), Err(Refusal::Damaged(_))));
}

#[test]
fn a_bit_that_flips_anywhere_is_noticed() {
    let whole = pack(&read(Path::new(SMALL[1])), true);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let refusal = unpack(&bytes).expect_err("a damaged container");
        assert!(!matches!(refusal, Refusal::Contradictory(_)), "bit {bit}: only checksums should be needed: {refusal}");
    }
}

#[test]
fn a_container_of_another_version_is_refused_and_says_which() {
    let parts = chunks(&pack(&read(Path::new(SMALL[1])), false)).unwrap();
    assert!(unpack(&sealed(&parts, VERSION)).is_ok());
    for (version, which) in (1..VERSION).map(|old| (old, "an older one")).chain([(VERSION + 1, "a later one")]) {
        let refusal = unpack(&sealed(&parts, version)).expect_err("another version").to_string();
        assert!(refusal.contains("a version that this retrograde does not read"), "{refusal}");
        assert!(
            refusal.contains(&format!("contents {version}, {which} than {VERSION}): pack the evidence again")),
            "{refusal}"
        );
    }
    let mut framing = sealed(&parts, VERSION);
    framing[8] += 1;
    assert!(matches!(unpack(&framing), Err(Refusal::Version(_))));
}

#[test]
fn other_fields_than_those_that_were_kept_are_a_reason_to_refuse() {
    let packed = pack(&read(Path::new(SMALL[0])), true);
    let refusal = snapshot::read(&mut &packed[..], &Fields::default(), None).expect_err("other fields");
    assert!(refusal.to_string().contains("pack the evidence again"), "{refusal}");
}

/// Changes chunks as somebody would who knows the format and means harm.
fn harm(chunks: &mut Vec<Chunk>, random: &mut Rng) {
    for _ in 0..=random.usize(..2) {
        let at = random.usize(..chunks.len().max(1));
        let other = random.usize(..chunks.len().max(1));
        let bytes = &mut chunks[at].bytes;
        let place = random.usize(..bytes.len().max(1));
        match random.usize(..20) {
            0 => chunks.swap(at, other),
            1 => drop(chunks.remove(at)),
            2 => {
                let copy = chunks[at].clone();
                chunks.insert(other, copy);
            }
            3 => chunks[at].last ^= 1,
            4 => bytes.truncate(place),
            // Lengths and numbers out of range: eight bytes, four, two.
            5 => drop(bytes.splice(place..place, [253, 255, 255, 255, 255, 255, 255, 255, 127])),
            6 => drop(bytes.splice(place..(place + 1).min(bytes.len()), [252, 255, 255, 255, 255])),
            7 => drop(bytes.splice(place..(place + 1).min(bytes.len()), [252, 0, 0, 0, 1])),
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = [0, 1, 2, 3, byte.wrapping_add(1), byte.wrapping_sub(1), 250, 255][random.usize(..8)];
                }
            }
        }
        if chunks.is_empty() {
            return;
        }
    }
}

#[test]
fn a_hostile_container_with_right_checksums_is_refused_or_judged_and_never_a_panic() {
    let drawn = seeds(100);
    let rounds = drawn.end - drawn.start;
    for (n, path) in SMALL.iter().enumerate() {
        let whole = chunks(&pack(&read(Path::new(path)), false)).unwrap();
        let mut random = Rng::with_seed(0x9e37_79b9_7f4a_7c15 ^ (drawn.start << 8) ^ n as u64);
        let mut judged = 0;
        for round in 0..rounds {
            let mut parts = whole.clone();
            harm(&mut parts, &mut random);
            let bytes = sealed(&parts, VERSION);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let histories = unpack(&bytes).ok()?;
                reported(&histories, Format::Json);
                Some(reported(&histories, Format::Human))
            }));
            match outcome {
                Ok(report) => judged += u64::from(report.is_some()),
                Err(_) => {
                    let kept = std::env::temp_dir().join(format!("retrograde-hostile-{n}-{round}.rgh"));
                    fs::write(&kept, &bytes).unwrap();
                    panic!("{path}, round {round}: see {}", kept.display());
                }
            }
        }
        // Otherwise the checks of row contents are not reached.
        assert!(judged > rounds / 30, "{path}: {judged} of {rounds}");
    }
}

/// Packs as if no fields were declared: declarations change, but stored content does not.
fn pack_without_fields(histories: &[History]) -> Vec<u8> {
    let packing = Packing { fields: &Fields::default(), request: "", compress: false };
    snapshot::write(Vec::new(), histories, &packing).unwrap()
}

/// Containers of this version must stay readable: a changed stored type needs another version.
#[test]
fn a_container_of_this_version_is_read_as_it_was_written() {
    let path = Path::new("tests/samples/histories.rgh");
    if std::env::var_os("UPDATE").is_some() {
        let mut histories: Vec<History> = SMALL.iter().flat_map(|path| read(Path::new(path))).collect();
        let identities = histories.iter_mut().flat_map(|history| &mut history.inputs);
        for input in identities {
            input.identity = ingest::Identity::of(input).map(|known| ingest::Identity { modified: 0, ..known });
        }
        fs::write(path, pack_without_fields(&histories)).unwrap();
    }
    let stored = fs::read(path).unwrap();
    let why = "a stored type changed: raise snapshot::VERSION, and write the sample anew with UPDATE=1";
    let unpacked = snapshot::read(&mut &stored[..], &Fields::default(), None);
    let histories = unpacked.unwrap_or_else(|error| panic!("{error}; {why}")).histories;
    assert_eq!(histories.len(), SMALL.len());
    // The manifest names the version of the program.
    let again = pack_without_fields(&histories);
    assert!(stored[..HEADER] == again[..HEADER], "{why}");
    assert!(chunks(&stored).unwrap()[1..] == chunks(&again).unwrap()[1..], "{why}");
}
