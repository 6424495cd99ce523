//! Copies of a recording that no correct etcd can produce.

use retrograde::check::Judgement;
use retrograde::history::{self, Domains};
use retrograde::ingest::{FileId, InputFile};
use serde_json::{Value, json};
use std::path::Path;

/// A recording, line by line.
#[derive(Clone)]
pub struct Report {
    files: Vec<(String, Vec<Value>)>,
}

/// A rule, and the tampering that violates it; the text describes the tampering.
pub type Tampering = (&'static str, fn(&mut Report) -> String);

pub const TAMPERINGS: &[Tampering] = &[
    ("lost-write", lost_write),
    ("stale-consistent-read", stale_read),
    ("watch-gap", dropped_event),
    ("watch-reorder", swapped_pair),
    ("revision-reuse", repeated_revision),
];

impl Report {
    pub fn read(folder: &Path) -> Report {
        let mut files = Vec::new();
        for client in std::fs::read_dir(folder).expect("a folder").flatten() {
            for file in std::fs::read_dir(client.path()).expect("a client's folder").flatten() {
                let text = std::fs::read_to_string(file.path()).expect("a text");
                let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
                let name = format!("{}/{}", client.file_name().display(), file.file_name().display());
                files.push((name, lines));
            }
        }
        files.sort_by(|a, b| a.0.cmp(&b.0));
        Report { files }
    }

    pub fn judged(&self) -> Judgement {
        let inputs = (0..).zip(&self.files).map(|(at, (name, lines))| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            InputFile::in_memory(FileId(at), name, text.into_bytes())
        });
        let history = history::load(inputs.collect(), &retrograde::read_options(), &Domains::default(), &());
        retrograde::judge(&history, &retrograde::Options::default())
    }

    fn lines(&mut self, file: &'static str) -> impl Iterator<Item = &mut Value> {
        self.files.iter_mut().filter(move |(name, _)| name.ends_with(file)).flat_map(|(_, lines)| lines)
    }

    /// Answered operations, by call time.
    fn answered(&mut self) -> Vec<&mut Value> {
        let answered = |line: &&mut Value| line["Output"]["Revision"].as_i64().is_some_and(|revision| revision > 0);
        let mut found: Vec<&mut Value> = self.lines("operations.json").filter(answered).collect();
        found.sort_by_key(|line| line["Call"].as_i64());
        found
    }

    /// Lines of watches with events.
    fn deliveries(&mut self) -> impl Iterator<Item = &mut Value> {
        self.lines("watch.json").filter(|line| line["Responses"][0]["Events"].is_array())
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// The key of a plain put.
fn put_key(line: &Value) -> Option<&str> {
    let steps = line["Input"]["Txn"]["OperationsOnSuccess"].as_array()?;
    let plain = line["Input"]["Txn"]["Conditions"].as_array().is_none_or(Vec::is_empty);
    let [step] = &steps[..] else { return None };
    plain.then(|| step["Put"]["Key"].as_str()).flatten()
}

fn get_key(line: &Value) -> Option<&str> {
    let range = &line["Input"]["Range"];
    let plain = range["End"] == "" && range["Revision"] == 0 && range["Serializable"] == false;
    plain.then(|| range["Start"].as_str()).flatten()
}

/// An acknowledged put that the store lost: no watch delivers it, and a read does not find the key.
fn lost_write(report: &mut Report) -> String {
    let mut lost = None;
    let mut answered = report.answered();
    for at in 0..answered.len() {
        let revision = number(&answered[at]["Output"]["Revision"]);
        let Some(key) = put_key(answered[at]).map(str::to_owned) else { continue };
        let shows = |line: &&Value| {
            let pairs = line["Output"]["Range"]["KVs"].as_array().map_or(&[][..], Vec::as_slice);
            pairs.iter().any(|pair| pair["Key"] == key.as_str() && pair["ModRevision"] == revision)
        };
        let text = |line: &&mut Value| line["Output"].to_string();
        let reads = answered.iter().map(|line| &**line).filter(shows).count();
        let mentions =
            answered.iter().filter(|line| text(line).contains(&format!("\"ModRevision\":{revision},"))).count();
        // Only that one read may contain the revision.
        if reads == 1 && mentions == 1 {
            let read = answered.iter_mut().find(|line| shows(&&***line) && get_key(line).is_some());
            let Some(read) = read else { continue };
            read["Output"]["Range"] = json!({"KVs": [], "Count": 0, "Deleted": 0});
            lost = Some((key, revision));
            break;
        }
    }
    let (key, revision) = lost.expect("a put that one client read");
    for line in report.deliveries() {
        let events = line["Responses"][0]["Events"].as_array_mut().expect("events");
        events.retain(|event| event["Revision"] != revision);
        let next = |event: &Value| event["PrevValue"]["ModRevision"] == revision;
        for event in events.iter_mut().filter(|event| next(event)) {
            event.as_object_mut().expect("an event").remove("PrevValue");
            event["IsCreate"] = json!(event["Type"] == "put-operation");
        }
    }
    format!("the put of {key} at revision {revision} is lost")
}

/// A read whose answer predates a write that completed before the read was sent.
fn stale_read(report: &mut Report) -> String {
    let mut answered = report.answered();
    for at in 0..answered.len() {
        let Some(key) = get_key(answered[at]).map(str::to_owned) else { continue };
        let (call, revision) = (number(&answered[at]["Call"]), number(&answered[at]["Output"]["Revision"]));
        // An earlier answer of the same read, with another state of the key.
        let (found, old) = (answered[at]["Output"]["Range"].clone(), |line: &&&mut Value| {
            get_key(line) == Some(&key) && number(&line["Output"]["Revision"]) < revision
        });
        let before = answered.iter().filter(old).rfind(|line| line["Output"]["Range"] != found);
        let Some(before) = before.map(|line| line["Output"].clone()) else { continue };
        let done = |line: &&mut Value| {
            put_key(line) == Some(&key)
                && number(&line["Return"]) < call
                && number(&line["Output"]["Revision"]) > number(&before["Revision"])
        };
        if answered.iter().any(done) {
            answered[at]["Output"] = before;
            return format!("the read of {key} at revision {revision} is answered from the past");
        }
    }
    panic!("no read behind a write")
}

/// An event that a watch omits although it continues.
fn dropped_event(report: &mut Report) -> String {
    let line = report.deliveries().find(|line| line["Responses"][0]["Events"].as_array().is_some_and(|e| e.len() == 1));
    let line = line.expect("a single event");
    let revision = number(&line["Responses"][0]["Events"][0]["Revision"]);
    line["Responses"] = json!([]);
    format!("a watch does not deliver revision {revision}")
}

/// Two events of one watch in reverse order.
fn swapped_pair(report: &mut Report) -> String {
    for (_, lines) in report.files.iter_mut().filter(|(name, _)| name.ends_with("watch.json")) {
        let single = |line: &Value| line["Responses"][0]["Events"].as_array().is_some_and(|events| events.len() == 1);
        let next = |a: &Value, b: &Value| single(a) && single(b) && a["Watch"] == b["Watch"];
        if let Some(at) = (1..lines.len()).find(|at| next(&lines[at - 1], &lines[*at])) {
            let events = |line: &Value| line["Responses"][0]["Events"].clone();
            let (first, second) = (events(&lines[at - 1]), events(&lines[at]));
            let revision = number(&first[0]["Revision"]);
            let later = lines[at]["Responses"][0]["Revision"].clone();
            lines[at - 1]["Responses"][0]["Events"] = second;
            lines[at - 1]["Responses"][0]["Revision"] = later;
            lines[at]["Responses"][0]["Events"] = first;
            return format!("a watch delivers revision {revision} behind the next one");
        }
    }
    panic!("no two single events")
}

/// An acknowledged put with the revision of another one.
fn repeated_revision(report: &mut Report) -> String {
    let mut puts: Vec<&mut Value> = report.answered().into_iter().filter(|line| put_key(line).is_some()).collect();
    let key = |line: &Value| put_key(line).map(str::to_owned);
    let at = (1..puts.len()).find(|at| key(puts[at - 1]) != key(puts[*at])).expect("two puts");
    let revision = puts[at - 1]["Output"]["Revision"].clone();
    puts[at]["Output"]["Revision"] = revision.clone();
    format!("two puts are acknowledged at revision {revision}")
}
