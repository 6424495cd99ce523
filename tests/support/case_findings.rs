//! The findings of operation logs and etcd reports, with their summaries and the places of their facts. The file
//! `expected.json` of a folder has those of each case in it. A case without findings and open rules has no entry.

use super::expectation;
use libtest_mimic::Failed;
use retrograde::check::{Judgement, Verdict};
use retrograde::history::History;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// The name of the file with expectations.
pub const FILE: &str = "expected.json";

/// By case: lines of the form `KIND RULE by WHOM: SUMMARY [FILE:LINE, ...]`, and `unknown RULE`.
type Expected = BTreeMap<String, Vec<String>>;

/// The expectations of a folder.
pub fn of_folder(folder: &Path) -> Result<Expected, Failed> {
    let path = folder.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Expected::new()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

/// Compares the result of a case with the expected one, or writes it.
pub fn compare(case: &Path, history: &History, judgement: &Judgement) -> Result<(), Failed> {
    let folder = case.parent().unwrap_or(case);
    let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let found = lines(history, judgement);
    if expectation::updating() {
        // Tests run side by side and share the file.
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut all = of_folder(folder)?;
        all.remove(&name);
        if !found.is_empty() {
            all.insert(name, found);
        }
        let text = serde_json::to_string_pretty(&all).map_err(|error| Failed::from(error.to_string()))?;
        return match all.is_empty() {
            true => Ok(()),
            false => Ok(fs::write(folder.join(FILE), text + "\n")?),
        };
    }
    let expected = of_folder(folder)?.remove(&name).unwrap_or_default();
    let of = |one: &[String], other: &[String], word: &str| -> String {
        one.iter().filter(|line| !other.contains(line)).map(|line| format!("  {word}: {line}\n")).collect()
    };
    let difference = of(&expected, &found, "not found") + &of(&found, &expected, "not expected");
    match difference.is_empty() && expected.len() == found.len() {
        true => Ok(()),
        false => Err(format!("{}\n{difference}", folder.join(FILE).display()).into()),
    }
}

fn lines(history: &History, judgement: &Judgement) -> Vec<String> {
    let mut lines = Vec::new();
    for finding in &judgement.findings {
        let places = finding.certificate.facts.iter().map(|fact| {
            let file = Path::new(history.file_name(fact.position.file));
            format!("{}:{}", file.file_name().unwrap_or_default().to_string_lossy(), fact.position.line)
        });
        let places = places.collect::<Vec<_>>().join(", ");
        let (kind, rule, whom) = (finding.kind_word(), finding.rule, expectation::whom(finding));
        lines.push(format!("{kind} {rule} by {whom}: {} [{places}]", finding.summary));
    }
    let open = judgement.rules.iter().filter(|report| matches!(report.verdict, Verdict::Unknown(_)));
    lines.extend(open.map(|report| format!("unknown {}", report.rule)));
    lines
}
