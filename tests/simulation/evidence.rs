//! More evidence never weakens a verdict.
//!
//! Folders grow file by file, in all forms of evidence: audit logs of every level, rotated or merged, captures whole
//! or reduced by a recorder. Each cluster makes about ten folders.

use crate::simulation::cluster::Cluster;
use crate::simulation::fault::Fault;
use crate::simulation::{describe, load};
use crate::support::dice::Dice;
use crate::support::draws::seeds;
use retrograde::check::{Judgement, Kind, Verdict};
use retrograde::history::History;
use serde_json::{Value, json};

type File = (String, String);

/// The audit logs of all servers in one file, in time order, as exports of clouds and log stores are.
pub fn merged(files: &[File]) -> Vec<File> {
    let (audit, mut others): (Vec<_>, Vec<_>) = files.iter().cloned().partition(|(name, _)| name.starts_with("audit"));
    let time = |line: &&str| line.split("\"stageTimestamp\":\"").nth(1).map(|rest| rest[..27].to_owned());
    let mut lines: Vec<&str> = audit.iter().flat_map(|(_, content)| content.lines()).collect();
    lines.sort_by_key(time);
    others.insert(0, ("merged.log".to_owned(), lines.join("\n") + "\n"));
    others
}

/// A folder at one moment, and its judgement.
struct Stage {
    history: History,
    judgement: Judgement,
}

impl Stage {
    fn of(folder: &[File], shared_clock: bool) -> Stage {
        let history = load(folder, shared_clock);
        let judgement = retrograde::judge(&history, &retrograde::Options::default());
        Stage { history, judgement }
    }

    /// Whether it reports the fault: by a finding of one of its rules, or by an obligation that such a rule left
    /// open.
    fn tells(&self, fault: Fault) -> bool {
        let must = fault.rules().0;
        let found = |f: &retrograde::check::Finding| f.kind != Kind::Hazard && must.contains(&f.rule);
        self.judgement.findings.iter().any(found)
    }
}

/// The loss of a judgement by one more file, as a message. `adds_nothing`: the file has no evidence beyond the others.
fn weaker(before: &Stage, after: &Stage, fault: Fault, adds_nothing: bool) -> Option<&'static str> {
    let [former, latter] = [&before.judgement.verdict, &after.judgement.verdict];
    let holds = *latter == Verdict::Holds;
    if holds && *former == Verdict::Violated {
        Some("takes a violation away")
    } else if holds && fault != Fault::None && before.tells(fault) {
        Some("takes away what was said of a real fault")
    } else if adds_nothing && former != latter {
        Some("changes the verdict though it tells nothing new")
    } else {
        None
    }
}

#[test]
fn no_file_that_is_added_weakens_a_verdict() {
    let (mut weakened, mut folders) = (Vec::new(), 0);
    for seed in seeds(12) {
        let mut dice = Dice::new(seed + 7);
        let fault = if dice.one_in(6) { Fault::None } else { Fault::ALL[dice.roll(Fault::ALL.len() as u64) as usize] };
        let cluster = Cluster::new(seed, fault);
        let shared = cluster.shared_clock();
        let recording = cluster.run(120 + dice.roll(160));
        let fault = if recording.injected { fault } else { Fault::None };
        let mut rest: Vec<File> = recording.files.into_iter().map(|file| in_some_form(file, &mut dice)).collect();
        if dice.one_in(4) {
            rest = merged(&rest);
        }
        rest = rest.into_iter().flat_map(|file| rotated(file, &mut dice)).collect();
        let mut folder: Vec<File> = Vec::new();
        let mut before: Option<Stage> = None;
        while !rest.is_empty() {
            let adds_nothing = !folder.is_empty() && dice.one_in(5);
            let file = match adds_nothing {
                true => of_nothing_else(&folder, &mut dice),
                false => rest.swap_remove(dice.roll(rest.len() as u64) as usize),
            };
            let name = file.0.clone();
            folder.push(file);
            folders += 1;
            let after = Stage::of(&folder, shared);
            if let Some(before) = &before
                && let Some(how) = weaker(before, &after, fault, adds_nothing)
            {
                let names: Vec<&str> = folder.iter().map(|(name, _)| &name[..]).collect();
                let [former, latter] = [before, &after].map(|stage| describe(&stage.history, &stage.judgement));
                let verdicts = (&before.judgement.verdict, &after.judgement.verdict);
                write_out(&folder);
                let what = format!("{fault:?}, seed {seed}: {name} {how}, {verdicts:?}, of {names:?}");
                weakened.push(format!("{what}\n{former}---- after\n{latter}"));
            }
            before = Some(after);
        }
    }
    println!("{folders} folders");
    assert!(weakened.is_empty(), "{} of {folders} folders:\n{}", weakened.len(), weakened.join("\n"));
}

/// Writes a folder to `SIMULATION_OUT` for inspection.
fn write_out(folder: &[File]) {
    let Some(out) = std::env::var_os("SIMULATION_OUT").map(std::path::PathBuf::from) else { return };
    for (name, content) in folder {
        let path = out.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// A file without new evidence: a copy of a file, or another client's traffic elsewhere.
fn of_nothing_else(folder: &[File], dice: &mut Dice) -> File {
    let number = folder.len();
    let (name, content) = &folder[dice.roll(folder.len() as u64) as usize];
    if name.starts_with("captures") && dice.one_in(2) {
        return (format!("captures/again-{number}.jsonl"), content.clone());
    }
    let lines = [
        json!({"kind": "capture", "version": 1, "client": format!("stranger-{number}"), "server": "elsewhere"}),
        json!({"kind": "request", "id": 1, "at": "2026-01-01T00:00:00.000000Z", "method": "GET",
            "uri": "/apis/example.com/v1/namespaces/far/gadgets/one", "user_agent": "stranger/v1"}),
        json!({"kind": "response", "id": 1, "at": "2026-01-01T00:00:00.001000Z", "status": 404}),
    ];
    (format!("captures/stranger-{number}.jsonl"), lines.map(|line| line.to_string() + "\n").concat())
}

/// An audit log rotated by its server: the second part continues the first.
fn rotated((name, content): File, dice: &mut Dice) -> Vec<File> {
    let Some(start) = name.strip_suffix(".log").filter(|_| dice.one_in(4)) else { return vec![(name, content)] };
    let lines: Vec<&str> = content.lines().collect();
    let (old, new) = lines.split_at(dice.roll(lines.len() as u64 + 1) as usize);
    let part = |name: String, lines: &[&str]| (name, lines.iter().map(|line| format!("{line}\n")).collect());
    // `load` derives the server from the name of the file, and a rotated part belongs to the same server.
    [part(format!("{start}.old.log"), old), part(name.clone(), new)]
        .into_iter()
        .filter(|f: &File| !f.1.is_empty())
        .collect()
}

/// An audit log under a policy of some level, or a capture of some recorder.
fn in_some_form((name, content): File, dice: &mut Dice) -> File {
    let audit = name.starts_with("audit");
    let left: &[&str] = match (audit, dice.roll(4)) {
        (true, 0) => &["requestObject", "responseObject"],
        (true, 1) => &["responseObject"],
        _ => &[],
    };
    let cut = !audit && dice.one_in(4);
    if left.is_empty() && !cut {
        return (name, content);
    }
    let line = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        left.iter().for_each(|body| drop(event.as_object_mut().unwrap().remove(*body)));
        if cut {
            [&["body"][..], &["event", "object"]].into_iter().for_each(|path| cut_to_identity(&mut event, path));
        }
        event.to_string() + "\n"
    };
    (name, content.lines().map(line).collect())
}

/// Reduces the object at a path, or the items of a list there, to its identity, as a recorder without declared fields
/// does.
fn cut_to_identity(line: &mut Value, path: &[&str]) {
    let Some(body) = path.iter().try_fold(line, |value, name| value.get_mut(*name)) else { return };
    if let Some(items) = body.get_mut("items").and_then(Value::as_array_mut) {
        return items.iter_mut().for_each(|item| cut_to_identity(item, &[]));
    }
    let Some(object) = body.as_object_mut().filter(|object| object.contains_key("metadata")) else { return };
    let more = object.keys().any(|key| !matches!(&**key, "kind" | "apiVersion" | "metadata" | "status"));
    if more {
        object.retain(|key, _| matches!(&**key, "kind" | "apiVersion" | "metadata"));
        object.insert("recordedFields".to_owned(), json!(""));
    }
}
