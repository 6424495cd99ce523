//! One test per recorded or drawn history under `histories/`: its expected findings, and no others.
//!
//! - `histories/rules/SLUG/*.sketch`: `violation*` must find SLUG, `fixed*` and `trap*` must find neither a violation nor a
//!   suspect.
//! - The same for operation logs (`*.edn`, `*.jsonl`, `*.log`), of which `unknown*` must be unknown.
//! - The same for reports of etcd's robustness suite: folders `violation*.report`, `fixed*.report`, `trap*.report`; in
//!   `unknown*.report` SLUG must leave something open, and nothing is violated.
//! - The same for folders of evidence as recorded; in `unknown*` SLUG must find a suspect, and nothing is violated.
//! - `histories/models/MODEL/`: operation logs of each provided model. The folder names the model. Without that name
//!   it must be inferred, or reported as open.
//! - `histories/corpus/ISSUE/*.sketch`: published bugs. The first line names the issue; `violation*` must have its
//!   stated findings, `fixed*` as above.
//! - `histories/rules-file/EXAMPLE/`: the worked examples of `docs/rules-file.md`: `violation*` must have a finding,
//!   `fixed*` none. As in `histories/rules/SLUG/`, `rules.toml` is the rules file of the folder.
//! - `histories/traps/*.sketch` and `histories/traps/*/`: correct histories that look like an anomaly, drawn or as
//!   recorded.
//! - `histories/incidents/INCIDENT/VARIANT/`: `story.sketch` with the evidence files that recorders would have
//!   written, and `expected.json`. A variant without `story.sketch` was recorded on real servers; its `expected.json`
//!   names the sources.
//!
//! `expected.json` beside operation logs and reports has their findings in full, and a trial of its own tests that each of
//! its entries is a case.
//!
//! Sketches carry their expectations in lines of the form `#= KIND RULE by WHOM: CLIENT`, and `#= verdict WORD`. `UPDATE=1`
//! writes expectations (and the incidents' evidence) anew.

#[path = "support/case_findings.rs"]
mod case_findings;
#[path = "support/expectation.rs"]
mod expectation;

use expectation::Expectation;
use libtest_mimic::{Arguments, Failed, Trial};
use retrograde::check::{Judgement, Kind, Options, RuleReport, Verdict, judge};
use retrograde::history::sketch;
use retrograde::history::{Domains, History, load, load_each};
use retrograde::ingest::{self, FileId, InputFile, SourceRule};
use retrograde::model::{Declarations, Log, Mistake, Model};
use retrograde::order::{Order, OrderOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories");
    let mut trials = Vec::new();
    for folder in folders(&root.join("rules")) {
        let slug = name(&folder);
        for file in files(&folder, "sketch") {
            let (slug, title) = (slug.clone(), format!("rules/{}/{}", name(&folder), name(&file)));
            trials.push(Trial::test(title, move || rule_sketch(&slug, &file)));
        }
        for file in logs(&folder) {
            let title = format!("rules/{}/{}", name(&folder), name(&file));
            trials.push(Trial::test(title, move || operation_log(&file, None)));
        }
        trials.extend(expected_entries(&folder));
        for inner in folders(&folder) {
            let slug = slug.clone();
            if inner.extension().is_some_and(|extension| extension == "report") {
                let title = format!("rules/{}/{}.report", name(&folder), name(&inner));
                trials.push(Trial::test(title, move || etcd_report(&slug, &inner)));
            } else {
                let title = format!("rules/{}/{}", name(&folder), name(&inner));
                trials.push(Trial::test(title, move || recorded_rule(&slug, &inner)));
            }
        }
    }
    for folder in folders(&root.join("models")) {
        trials.extend(expected_entries(&folder));
        for file in logs(&folder) {
            let (model, title) = (name(&folder), format!("models/{}/{}", name(&folder), name(&file)));
            trials.push(Trial::test(title, move || operation_log(&file, Some(&model))));
        }
    }
    for folder in folders(&root.join("corpus")) {
        for file in files(&folder, "sketch") {
            let title = format!("corpus/{}/{}", name(&folder), name(&file));
            trials.push(Trial::test(title, move || published(&file)));
        }
    }
    for folder in folders(&root.join("rules-file")) {
        for file in files(&folder, "sketch") {
            let title = format!("rules-file/{}/{}", name(&folder), name(&file));
            trials.push(Trial::test(title, move || worked(&file)));
        }
    }
    for file in files(&root.join("traps"), "sketch") {
        trials.push(Trial::test(format!("traps/{}", name(&file)), move || trap(&file)));
    }
    for folder in folders(&root.join("traps")) {
        trials.push(Trial::test(format!("traps/{}", name(&folder)), move || recorded_trap(&folder)));
    }
    for incident in folders(&root.join("incidents")) {
        for variant in folders(&incident) {
            let title = format!("incidents/{}/{}", name(&incident), name(&variant));
            trials.push(Trial::test(title, move || incident_variant(&variant)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn name(path: &Path) -> String {
    path.file_stem().map_or(String::new(), |n| n.to_string_lossy().into_owned())
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = entries(of).into_iter().filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

fn files(of: &Path, extension: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        entries(of).into_iter().filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    all.sort();
    all
}

fn logs(of: &Path) -> Vec<PathBuf> {
    ["edn", "jsonl", "log"].into_iter().flat_map(|extension| files(of, extension)).collect()
}

fn entries(of: &Path) -> Vec<PathBuf> {
    fs::read_dir(of).map_or_else(|_| Vec::new(), |dir| dir.flatten().map(|entry| entry.path()).collect())
}

fn read(path: &Path) -> Result<String, Failed> {
    fs::read_to_string(path).map_err(|error| Failed::from(format!("{}: {error}", path.display())))
}

fn judged(history: &History) -> Judgement {
    judged_by(history, Options::default().declarations)
}

fn judged_by(history: &History, declarations: Arc<Declarations>) -> Judgement {
    let order = Order::derive(history, &OrderOptions::default());
    judge(history, &order, &Options { declarations, ..Options::default() })
}

/// The packs, and the rules file beside a sketch.
fn declarations(file: &Path) -> Result<Arc<Declarations>, Failed> {
    let mut all = Declarations::shipped().clone();
    let rules = file.with_file_name("rules.toml");
    if rules.exists() {
        let told = |mistake: &Mistake| format!("{mistake}\n");
        let declared = Declarations::read(&rules.display().to_string(), &read(&rules)?);
        all.add(declared.map_err(|mistakes| Failed::from(mistakes.iter().map(told).collect::<String>()))?);
    }
    Ok(Arc::new(all))
}

/// Reads the evidence that recorders would have written of a sketch, so that rules can read bodies again.
fn recorded(text: &str, declarations: &Declarations) -> Result<History, String> {
    let made = sketch::evidence(text).map_err(|error| error.to_string())?;
    let sources: Vec<SourceRule> = made.sources.iter().map(|s| SourceRule::parse(s)).collect::<Result<_, _>>()?;
    let mut inputs = Vec::new();
    for (index, (name, content)) in made.files.into_iter().enumerate() {
        let mut input = InputFile::in_memory(FileId(index as u32), &name, content.into_bytes());
        input.source = sources.iter().find(|source| source.glob == name).cloned().unwrap_or_default();
        inputs.push(input);
    }
    Ok(load(inputs, &retrograde::read_options_for(declarations), &Domains::default(), &()))
}

/// Judges a sketch and compares. Returns its findings.
fn drawn(file: &Path) -> Result<Expectation, Failed> {
    let text = read(file)?;
    let declarations = declarations(file)?;
    let history =
        recorded(&text, &declarations).map_err(|error| Failed::from(format!("{}\n{error}", file.display())))?;
    let found = Expectation::of(&history, &judged_by(&history, declarations));
    if expectation::updating() {
        fs::write(file, found.write_into(&text))?;
        return Ok(found);
    }
    Expectation::in_sketch(&text).compare(&found)?;
    Ok(found)
}

fn rule_sketch(slug: &str, file: &Path) -> Result<(), Failed> {
    let found = drawn(file)?;
    if name(file).starts_with("violation") {
        if !found.names(slug) {
            return Err(format!("{slug} found nothing").into());
        }
        return Ok(());
    }
    found.is_harmless()
}

/// Judges an operation log and compares with the verdict in its name.
fn operation_log(file: &Path, model: Option<&str>) -> Result<(), Failed> {
    let inputs = ingest::inputs(&[file.to_path_buf()], &[], &[]).map_err(|e| Failed::from(e.to_string()))?;
    let mut histories = load_each(inputs, &retrograde::read_options(), &Domains::default(), &());
    let [history] = histories.as_mut_slice() else { return Err("one log is one history".into()) };
    if let Some(model) = model {
        match Model::of(Log { calls: history.calls(), names: &history.names }) {
            Ok(found) if found.name() == model => {}
            Err(open) if open.contains(model) => history.set_model(model),
            other => return Err(format!("taken for {other:?}").into()),
        }
    }
    let judgement = retrograde::judge(history, &retrograde::Options::default());
    case_findings::compare(file, history, &judgement)?;
    let kind = name(file).split('-').next().unwrap_or_default().to_owned();
    let expected = match kind.as_str() {
        "violation" => "violated",
        "fixed" | "trap" => "holds",
        _ => "unknown",
    };
    if judgement.verdict.word() != expected {
        return Err(format!("{:?}, expected {expected}", judgement.verdict).into());
    }
    let violations = judgement.findings.iter().filter(|finding| finding.kind_word() == "violation");
    match (kind.as_str(), violations.count()) {
        ("violation", 0) => Err("violated without a finding".into()),
        ("violation", _) | (_, 0) => Ok(()),
        (_, n) => Err(format!("{n} violations").into()),
    }
}

/// Judges an etcd report. Its rule must be violated, alone or with its causes; otherwise everything holds.
fn etcd_report(slug: &str, folder: &Path) -> Result<(), Failed> {
    let inputs = ingest::inputs(&[folder.to_path_buf()], &[], &[]).map_err(|e| Failed::from(e.to_string()))?;
    let histories = load_each(inputs, &retrograde::read_options(), &Domains::default(), &());
    let [history] = histories.as_slice() else { return Err("one report is one history".into()) };
    let judgement = judged(history);
    case_findings::compare(folder, history, &judgement)?;
    let found: Vec<_> = judgement.findings.iter().map(|f| (f.kind_word(), f.rule, f.summary.as_str())).collect();
    if name(folder).starts_with("violation") {
        let named = found.iter().any(|(kind, rule, _)| *kind == "violation" && *rule == slug);
        return if named { Ok(()) } else { Err(format!("{slug} found nothing; {found:?}").into()) };
    }
    if name(folder).starts_with("unknown") {
        let undecided = |rule: &RuleReport| rule.rule == slug && matches!(rule.verdict, Verdict::Unknown(_));
        let named = found.iter().all(|(kind, rule, _)| *kind == "suspect" && *rule == slug)
            && judgement.rules.iter().any(undecided);
        let open = judgement.verdict.word() == "unknown";
        return if named && open { Ok(()) } else { Err(format!("{slug} is not left open; {found:?}").into()) };
    }
    match (judgement.verdict.word(), found.is_empty()) {
        ("holds", true) => Ok(()),
        _ => Err(format!("{:?}; {found:?}", judgement.verdict).into()),
    }
}

/// A test that each entry of a folder's `expected.json` is a case in it.
fn expected_entries(folder: &Path) -> Option<Trial> {
    let (file, folder) = (folder.join(case_findings::FILE), folder.to_owned());
    let title = format!("{}/{}", name(&folder), case_findings::FILE);
    let test = move || match case_findings::of_folder(&folder)?.keys().find(|case| !folder.join(case).exists()) {
        Some(missing) => Err(format!("{missing} does not exist").into()),
        None => Ok(()),
    };
    file.exists().then(|| Trial::test(title, test))
}

/// A published bug names its issue first and has the findings of its sketch; its fix has none.
fn published(file: &Path) -> Result<(), Failed> {
    let text = read(file)?;
    let first = text.lines().next().unwrap_or_default();
    let names_issue = first
        .strip_prefix("# ")
        .and_then(|line| line.split_once('#'))
        .is_some_and(|(project, rest)| project.contains('/') && rest.starts_with(|c: char| c.is_ascii_digit()));
    if !names_issue {
        return Err(format!("the first line names no issue, as `# kubernetes/kubernetes#59848: ...`: {first}").into());
    }
    worked(file)
}

/// A `violation` must have a finding, a `fixed` none.
fn worked(file: &Path) -> Result<(), Failed> {
    let found = drawn(file)?;
    match name(file).starts_with("violation") {
        true if found.findings().next().is_none() => Err("nothing was found".into()),
        true => Ok(()),
        false => found.is_harmless(),
    }
}

fn trap(file: &Path) -> Result<(), Failed> {
    drawn(file)?.is_harmless()
}

/// As [`trap`], for evidence as recorded, which a sketch cannot express.
fn recorded_trap(folder: &Path) -> Result<(), Failed> {
    let judgement = recorded_in(folder)?;
    let alarm = judgement.findings.iter().find(|finding| finding.kind != Kind::Hazard);
    match alarm {
        Some(finding) => Err(format!("{}: {}", finding.rule, finding.summary).into()),
        // A rule cannot hold on evidence that is not understood.
        None if judgement.verdict != Verdict::Holds => Err(format!("{:?}", judgement.verdict).into()),
        None => Ok(()),
    }
}

/// As [`rule_sketch`], for evidence as recorded.
fn recorded_rule(slug: &str, folder: &Path) -> Result<(), Failed> {
    let (wanted, verdict) = match name(folder).split('-').next() {
        Some("violation") => (Kind::Violation, "violated"),
        Some("unknown") => (Kind::Suspect, "unknown"),
        _ => return recorded_trap(folder),
    };
    let judgement = recorded_in(folder)?;
    let found = judgement.findings.iter().any(|finding| finding.kind == wanted && finding.rule == slug);
    if found && judgement.verdict.word() == verdict {
        return Ok(());
    }
    let rules: Vec<&str> = judgement.findings.iter().map(|finding| finding.rule).collect();
    Err(format!("{:?}; {slug} is not among {rules:?}", judgement.verdict).into())
}

/// Findings in evidence as recorded. All files share one clock; each audit log is of its own server.
fn recorded_in(folder: &Path) -> Result<Judgement, Failed> {
    let named =
        files(folder, "log").into_iter().map(|log| format!("{}.log:server={},clock=wall", name(&log), name(&log)));
    let rules: Result<Vec<SourceRule>, _> = named.map(|rule| SourceRule::parse(&rule)).collect();
    let inputs = ingest::inputs(&[folder.to_path_buf()], &rules.map_err(Failed::from)?, &[]);
    let inputs = inputs.map_err(|e| Failed::from(e.to_string()))?;
    let history = load(inputs, &retrograde::read_options(), &Domains::default(), &());
    match history.problems.first() {
        Some(problem) => Err(format!("{problem:?}").into()),
        None => Ok(judged(&history)),
    }
}

fn incident_variant(folder: &Path) -> Result<(), Failed> {
    let expected_file = folder.join("expected.json");
    let expected =
        if expected_file.exists() { Expectation::from_json(&read(&expected_file)?)? } else { Expectation::default() };
    let story = folder.join("story.sketch");
    let sources = if story.exists() { evidence_of(&story, folder)? } else { expected.sources().to_vec() };
    let rules: Result<Vec<SourceRule>, _> = sources.iter().map(|source| SourceRule::parse(source)).collect();
    let inputs = ingest::inputs(&[folder.to_path_buf()], &rules.map_err(Failed::from)?, &[]);
    let history =
        load(inputs.map_err(|e| Failed::from(e.to_string()))?, &retrograde::read_options(), &Domains::default(), &());
    if let Some(problem) = history.problems.first() {
        return Err(format!("{problem:?}").into());
    }
    let found = Expectation::of(&history, &judged(&history));
    if expectation::updating() {
        fs::write(&expected_file, found.to_json(&sources))?;
        return Ok(());
    }
    expected.compare(&found)
}

/// Compares the files of a variant with the evidence of its story, or rewrites them. Returns the sources.
fn evidence_of(story: &Path, folder: &Path) -> Result<Vec<String>, Failed> {
    let made = sketch::evidence(&read(story)?).map_err(|error| Failed::from(error.to_string()))?;
    if expectation::updating() {
        for old in files(folder, "jsonl").into_iter().chain(files(folder, "log")) {
            fs::remove_file(old)?;
        }
        for (name, content) in &made.files {
            fs::write(folder.join(name), content)?;
        }
    }
    for (name, content) in &made.files {
        if read(&folder.join(name))? != *content {
            return Err(format!("{name} is not what story.sketch lowers to (UPDATE=1 writes it)").into());
        }
    }
    Ok(made.sources)
}
