//! Incidents and traps on a real control plane: two API servers on an etcd, with clients of kube-rs that `KubeLayer`
//! records. Each scenario must have the verdict and the findings of `expected.rs`, and no other violation or suspect.
//!
//! The servers and clients are a separate program (`tests/cluster`). The folder `KUBEBUILDER_ASSETS` holds `etcd` and
//! `kube-apiserver`, as for envtest. Without them these tests are ignored; if `CI` is set they fail.
//! docs/compatibility.md explains how to get the binaries.

#[path = "../support/client_crate.rs"]
mod client_crate;
mod expected;

use expected::{EXPECTED, Expected};
use libtest_mimic::{Arguments, Failed, Trial};
use retrograde::check::{BrokenBy, Judgement, Kind};
use retrograde::explore::Boundary;
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{self, SourceRule};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

/// Parts of a scenario's evidence.
const VIEWS: [&str; 3] = ["all", "logs", "captures"];

const VARIABLE: &str = "KUBEBUILDER_ASSETS";

fn main() {
    let arguments = Arguments::from_args();
    let binaries = binaries();
    if let Err(missing) = &binaries {
        eprintln!("ignored: {missing}");
    }
    let ignored = binaries.is_err() && std::env::var_os("CI").is_none_or(|ci| ci.is_empty());
    let binaries: &'static _ = Box::leak(Box::new(binaries));
    let trials = EXPECTED.iter().map(|expected| {
        let title = format!("{} ({})", expected.scenario, expected.view);
        Trial::test(title, move || judge(binaries, expected)).with_ignored_flag(ignored)
    });
    let mut trials: Vec<Trial> = trials.collect();
    let boundaries = retrograde::explore::boundaries().unwrap_or_default();
    trials.extend(boundaries.into_iter().map(|boundary| {
        let title = format!("{} is answered as {} excludes", boundary.row, boundary.other);
        Trial::test(title, move || is_a_boundary(binaries, &boundary)).with_ignored_flag(ignored)
    }));
    trials.push(Trial::test("every view is known", || match EXPECTED.iter().find(|e| !VIEWS.contains(&e.view)) {
        Some(expected) => Err(format!("{}: no view {}", expected.scenario, expected.view).into()),
        None => Ok(()),
    }));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(Ok(folder)) = RECORDED.get()
        && !conclusion.has_failed()
    {
        // Only the evidence of failures is kept.
        let _ = std::fs::remove_dir_all(folder);
    }
    conclusion.exit();
}

/// The folder of the binaries.
fn binaries() -> Result<PathBuf, String> {
    let folder = std::env::var_os(VARIABLE).ok_or(format!("{VARIABLE} is not set"))?;
    // Cargo starts tests in the folder of the package.
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    let missing = ["etcd", "kube-apiserver"].into_iter().find(|name| !folder.join(name).is_file());
    missing.map_or(Ok(folder.clone()), |name| Err(format!("{VARIABLE} is {}: there is no {name}", folder.display())))
}

static RECORDED: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Runs all scenarios once.
fn recorded(binaries: &Path) -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join(format!("retrograde-control-plane-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let mut players = client_crate::cargo("run", "cluster")
        .arg("--")
        .args([binaries, &folder])
        // The program ends with its input, so also if this process is killed.
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let input = players.stdin.take();
    let status = players.wait().map_err(|error| error.to_string())?;
    drop(input);
    if status.success() { Ok(folder) } else { Err(format!("the control plane failed: {status}")) }
}

fn judge(binaries: &Result<PathBuf, String>, expected: &Expected) -> Result<(), Failed> {
    let binaries = binaries.as_ref().map_err(Failed::from)?;
    let folder = RECORDED.get_or_init(|| recorded(binaries)).as_ref().map_err(Failed::from)?;
    let folder = folder.join(expected.scenario);
    if let Ok(why) = std::fs::read_to_string(folder.join("failed")) {
        return Err(why.into());
    }
    let (history, judgement) = judged(&folder, expected.view)?;
    let mut report = String::new();
    if judgement.verdict.word() != expected.verdict {
        report += &format!("  {}, expected {}\n", judgement.verdict.word(), expected.verdict);
    }
    let due: BTreeSet<String> = expected.findings.iter().map(|finding| (*finding).to_owned()).collect();
    let grave = judgement.findings.iter().filter(|finding| finding.kind != Kind::Hazard);
    let found: BTreeSet<String> = grave.clone().map(|finding| line(&history, finding)).collect();
    report.extend(due.difference(&found).map(|line| format!("  not found: {line}\n")));
    report.extend(found.difference(&due).map(|line| format!("  not expected: {line}\n")));
    if report.is_empty() {
        return Ok(());
    }
    report.extend(grave.map(|finding| format!("  {}: {}\n", finding.rule, finding.summary)));
    Err(format!("{}\n{report}", folder.display()).into())
}

/// A server may answer the read of a boundary so, and the same answer to the other form of the read is a violation.
fn is_a_boundary(binaries: &Result<PathBuf, String>, boundary: &Boundary) -> Result<(), Failed> {
    let binaries = binaries.as_ref().map_err(Failed::from)?;
    let folder = RECORDED.get_or_init(|| recorded(binaries)).as_ref().map_err(Failed::from)?;
    let folder = folder.join("boundaries").join(format!("{}-not-{}", boundary.row, boundary.other));
    if let Ok(why) = std::fs::read_to_string(folder.join("failed")) {
        return Err(why.into());
    }
    let by_server = |folder: &Path, view: &str| -> Result<Vec<String>, Failed> {
        let (_, judgement) = judged(folder, view)?;
        let grave = judgement.findings.into_iter().filter(|finding| finding.kind == Kind::Violation);
        Ok(grave.filter(|finding| finding.broken_by == BrokenBy::Server).map(|finding| finding.summary).collect())
    };
    let found = [by_server(&folder, "all")?, by_server(&folder, "captures")?].concat();
    if !found.is_empty() {
        return Err(format!("{}: {found:?}", folder.display()).into());
    }
    // The twin: the captures with the other form in the place of the read.
    let twin = folder.join("twin");
    std::fs::create_dir_all(&twin)?;
    let captures = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let captures: Vec<PathBuf> = captures.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    let known = captures.iter().find_map(|path| known(&std::fs::read_to_string(path).ok()?)).unwrap_or_default();
    let query = |template: &str| template.replace("{known}", &known);
    let (read, other) = (query(boundary.query), query(boundary.other_query));
    for path in captures {
        let mut text = std::fs::read_to_string(&path)?;
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("reader")) {
            text = with_query(&text, &read, &other);
        }
        std::fs::write(twin.join(path.file_name().unwrap_or_default()), text)?;
    }
    match by_server(&twin, "captures")?.is_empty() {
        true => Err(format!("{}: no server is convicted of the answer to {}", twin.display(), boundary.other).into()),
        false => Ok(()),
    }
}

/// The version of the last list in a capture.
fn known(capture: &str) -> Option<String> {
    let lines = capture.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut lists = lines.filter(|line| line["body"]["items"].is_array());
    lists.next_back().and_then(|line| Some(line["body"]["metadata"]["resourceVersion"].as_str()?.to_owned()))
}

/// A capture whose reads have another query.
fn with_query(capture: &str, query: &str, other: &str) -> String {
    let with = |line: &str| -> String {
        let Ok(mut line) = serde_json::from_str::<serde_json::Value>(line) else { return line.to_owned() };
        if let Some(uri) = line.get("uri").and_then(|uri| uri.as_str()).map(str::to_owned) {
            let (path, found) = uri.split_once('?').unwrap_or((&uri, ""));
            if found == query {
                line["uri"] = format!("{path}?{other}").trim_end_matches('?').into();
            }
        }
        line.to_string()
    };
    capture.lines().map(|line| with(line) + "\n").collect()
}

fn line(history: &History, finding: &retrograde::check::Finding) -> String {
    let whom = match finding.broken_by {
        BrokenBy::Server => "server",
        BrokenBy::Client => "client",
        BrokenBy::Nobody => "nobody",
    };
    let client = history.client_name(finding.incarnation);
    format!("{} {} by {whom}: {client}", finding.kind_word(), finding.rule).trim_end().to_owned()
}

fn judged(folder: &Path, view: &str) -> Result<(History, Judgement), Failed> {
    let kept = |path: &PathBuf| match view {
        "logs" => path.extension().is_some_and(|extension| extension == "log"),
        "captures" => path.extension().is_some_and(|extension| extension == "jsonl"),
        _ => true,
    };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(kept).collect();
    paths.sort();
    let sources = ["audit-A.log:server=A,clock=host", "audit-B.log:server=B,clock=host"];
    let sources: Result<Vec<SourceRule>, _> = sources.into_iter().map(SourceRule::parse).collect();
    let inputs =
        ingest::inputs(&paths, &sources.map_err(Failed::from)?, &[]).map_err(|e| Failed::from(e.to_string()))?;
    let history = history::load(inputs, &retrograde::read_options(), &Domains::default(), &());
    if let Some(problem) = history.problems.first() {
        return Err(format!("{problem:?}").into());
    }
    let judgement = retrograde::judge(&history, &retrograde::Options::default());
    Ok((history, judgement))
}
