//! Thousands of altered evidence folders. `verify` must never call the report of their check wrong, and a packed
//! folder must be judged like the unpacked one.
//!
//! It finds positions that reread to other text, proofs and verifiers with different definitions, and facts that a
//! container loses. `ALTERED_OUT` keeps the folders that fail.
#![cfg(feature = "cli")]

mod alteration;
mod folder;

use crate::support::draws::seeds;
use crate::support::reported::json_with_proofs;
use folder::Folder;
use retrograde::history::snapshot::{self, Packing};
use retrograde::history::{Domains, History, load_each};
use retrograde::ingest::{self, Identity, InputFile, ReadOptions, SourceRule};
use retrograde::verify::{self, Standing};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Search steps for each question, as on the command line.
const STEPS: u64 = 1_000_000;

/// Failures in the message.
const TOLD: usize = 20;

fn inputs(folder: &Folder, path: &Path) -> Vec<InputFile> {
    let sources: Vec<SourceRule> = folder.sources.iter().map(|said| SourceRule::parse(said).unwrap()).collect();
    ingest::inputs(&[path.to_owned()], &sources, &[]).unwrap()
}

fn load(inputs: Vec<InputFile>, options: &ReadOptions) -> Vec<History> {
    load_each(inputs, options, &Domains::default(), &())
}

/// Outcomes of all folders.
#[derive(Default)]
struct Outcomes {
    counts: BTreeMap<String, u64>,
    failures: Vec<String>,
}

impl Outcomes {
    /// Runs a check over each folder and counts the words that it returns, or collects its error.
    fn of(name: &str, default: u64, check: impl Fn(&Folder, &Path) -> Result<Vec<String>, String>) -> Outcomes {
        let all = folder::all();
        let path = std::env::temp_dir().join(format!("retrograde-altered-{name}-{}", std::process::id()));
        let mut outcomes = Outcomes::default();
        for seed in seeds(default) {
            let folder = alteration::folder(&all, seed);
            folder.write(&path);
            let outcome = catch_unwind(AssertUnwindSafe(|| check(&folder, &path)));
            let outcome = outcome.unwrap_or_else(|_| Err("it panicked".to_owned()));
            match outcome {
                Ok(words) => words.into_iter().for_each(|word| *outcomes.counts.entry(word).or_default() += 1),
                Err(why) => {
                    if let Some(out) = std::env::var_os("ALTERED_OUT") {
                        folder.write(&PathBuf::from(out).join(format!("{name}-{seed}")));
                    }
                    outcomes.failures.push(format!("RETROGRADE_SEEDS={seed}..{}: {why}", seed + 1));
                    if outcomes.failures.len() >= TOLD {
                        break;
                    }
                }
            }
        }
        let _ = std::fs::remove_dir_all(&path);
        println!("{:?}", outcomes.counts);
        outcomes
    }

    fn count(&self, word: &str) -> u64 {
        self.counts.get(word).copied().unwrap_or(0)
    }

    fn must_be_free_of_failures(&self) {
        assert!(self.failures.is_empty(), "{} failures:\n{}", self.failures.len(), self.failures.join("\n"));
    }
}

/// Checks a folder and verifies the report. Returns the verdicts and verification results, or the error.
fn verified(folder: &Folder, path: &Path) -> Result<Vec<String>, String> {
    let checking = ReadOptions { threads: 1, ..retrograde::read_options() };
    // Another machine with another memory limit may verify the report.
    let verifying = ReadOptions { threads: 2, block_bytes: 4096, ..retrograde::read_options() };
    let json = json_with_proofs(&load(inputs(folder, path), &checking));
    let saved: verify::Report = serde_json::from_slice(&json).map_err(|error| format!("no report: {error}"))?;
    let checks = verify::report(&saved, &inputs(folder, path), &verifying, None, STEPS);
    let mut words = vec!["folders".to_owned()];
    for (history, check) in saved.histories.iter().zip(&checks) {
        for (standing, text) in verify::standings(history, check) {
            if standing == Standing::Wrong {
                return Err(format!("{}: {text}", history.name));
            }
            words.push(format!("{standing:?}"));
        }
        words.push(history.verdict.clone());
    }
    Ok(words)
}

#[test]
fn a_report_of_packed_logs_that_were_cut_off_or_changed_anywhere_is_not_wrong_to_verify() {
    let whole = folder::recorded(Path::new("histories/incidents/kubelet-restart/buggy"));
    let path = std::env::temp_dir().join(format!("retrograde-altered-cut-{}", std::process::id()));
    let mut failures = Vec::new();
    for packed in alteration::PACKED {
        let logs: Vec<Vec<u8>> = whole.files.iter().map(|file| alteration::packed(&file.bytes, packed)).collect();
        for (cut, step) in (0..48).flat_map(|step| [(true, step), (false, step)]) {
            let mut folder = whole.clone();
            for (file, log) in folder.files.iter_mut().zip(&logs) {
                let at = log.len() - 1 - step * log.len() / 48;
                file.bytes.clone_from(log);
                match cut {
                    true => file.bytes.truncate(at),
                    false => file.bytes[at] ^= 4,
                }
            }
            folder.write(&path);
            failures.extend(verified(&folder, &path).err().map(|why| format!("{packed:?}, cut {cut}, {step}: {why}")));
        }
    }
    let _ = std::fs::remove_dir_all(&path);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn no_report_of_a_check_is_wrong_to_verify() {
    let outcomes = Outcomes::of("verify", 2000, verified);
    outcomes.must_be_free_of_failures();
    if outcomes.count("folders") < 1000 {
        return;
    }
    // Otherwise altered evidence is no evidence any more, and the test verifies nothing.
    for word in ["Confirmed", "Open", "violated", "unknown", "holds"] {
        assert!(outcomes.count(word) > outcomes.count("folders") / 20, "{word}: {:?}", outcomes.counts);
    }
}

#[test]
fn altered_evidence_is_judged_packed_as_it_is_unpacked() {
    let outcomes = Outcomes::of("pack", 500, |folder, path| {
        let options = ReadOptions { threads: 1, ..retrograde::read_options() };
        let mut files = inputs(folder, path);
        files.iter_mut().for_each(|file| file.identity = Identity::of(file));
        let histories = load(files, &options);
        // `pack` writes no file then.
        if histories.iter().all(History::is_empty) {
            return Ok(vec!["empty".to_owned()]);
        }
        let packing = Packing { fields: &options.fields, request: "", compress: false };
        let packed =
            snapshot::write(Vec::new(), &histories, &packing).map_err(|error| format!("not packed: {error}"))?;
        let again = snapshot::read(&mut &*packed, &options.fields, None)
            .map_err(|error| format!("what was packed is refused: {error}"))?;
        let [direct, packed] = [&histories, &again.histories].map(|histories| json_with_proofs(histories));
        match direct == packed {
            true => Ok(vec!["folders".to_owned()]),
            false => {
                let [direct, packed] = [direct, packed].map(|json| String::from_utf8_lossy(&json).into_owned());
                let differs = direct.lines().zip(packed.lines()).find(|(a, b)| a != b);
                Err(format!("the reports differ: {differs:?}"))
            }
        }
    });
    outcomes.must_be_free_of_failures();
    assert!(outcomes.count("folders") > outcomes.count("empty"), "{:?}", outcomes.counts);
}
