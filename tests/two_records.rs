//! A second record of each request: every drawn history, judged from the server's log alone, from the clients' captures alone, and
//! from both; the latter with one clock, and with a clock of its own for each client.

use retrograde::check::{Options, Verdict};
use retrograde::history::sketch::sketch_with;
use retrograde::model::Declarations;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Settings that say who recorded or by which clock, and evidence that only etcd has.
const FIXED: [&str; 5] = ["recorded", "level=", "level ", "clock", "etcd "];

fn drawn() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories");
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = ["rules", "corpus"].into_iter().flat_map(|part| entries(&root.join(part)).collect::<Vec<_>>());
    let folders = folders.filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sketch"));
    files.sort();
    files
}

/// The verdict on a story; `None` if it cannot be recorded in this way.
fn verdict(head: &str, story: &str) -> Option<Verdict> {
    let declarations = Declarations::shipped();
    let history = sketch_with(&format!("{head}{story}"), &declarations.fields()).ok()?;
    let check = Options { declarations: std::sync::Arc::new(declarations.clone()), ..Options::default() };
    Some(retrograde::judge(&history, &retrograde::Options { check, ..Default::default() }).verdict)
}

/// Declares a clock for each client.
fn with_clocks(story: &str) -> String {
    let declared: BTreeSet<&str> =
        story.lines().filter_map(|line| line.strip_prefix("client ")?.split_whitespace().next()).collect();
    let acting = |line: &str| {
        let actor = line.split_whitespace().next()?.split(['@', '/']).next()?.to_owned();
        let is_setting = ["client", "server", "resource", "default", "column", "uids", "---"].contains(&actor.as_str());
        (!is_setting && line.starts_with(char::is_alphabetic)).then_some(actor)
    };
    let others: BTreeSet<String> =
        story.lines().filter_map(acting).filter(|actor| !declared.contains(actor.as_str())).collect();
    let mut text: String = others.iter().map(|name| format!("client {name} clock=of-{name}\n")).collect();
    for line in story.lines() {
        text += line;
        if let Some(name) = line.strip_prefix("client ").and_then(|rest| rest.split_whitespace().next()) {
            text += &format!(" clock=of-{name}");
        }
        text.push('\n');
    }
    text
}

#[test]
fn a_second_record_of_each_request_takes_no_violation_away_and_makes_no_legal_history_one() {
    let (mut logged_violated, mut captured_violated, mut legal) = (0, 0, 0);
    for file in drawn() {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = text.lines().map(|line| line.split(" #").next().unwrap()).filter(|line| !line.starts_with('#'));
        let story: String = lines.flat_map(|line| [line, "\n"]).collect();
        if story
            .lines()
            .any(|line| FIXED.iter().any(|word| line.starts_with(word) || line.contains(&format!(" {word}"))))
        {
            continue;
        }
        let both = "recorded both\nlevel response\n";
        let (one_clock, clocks) = (verdict(both, &story), verdict(both, &with_clocks(&story)));
        let (Some(one_clock), Some(clocks)) = (one_clock, clocks) else { continue };
        let shown = file.display();
        if verdict("recorded audit\nlevel response\n", &story) == Some(Verdict::Violated) {
            assert_eq!([&one_clock, &clocks], [&Verdict::Violated; 2], "logged: {shown}");
            logged_violated += 1;
        }
        if verdict("", &story) == Some(Verdict::Violated) {
            assert_eq!(one_clock, Verdict::Violated, "captured: {shown}");
            captured_violated += 1;
        }
        if !file.file_name().unwrap().to_string_lossy().starts_with("violation") {
            assert_ne!(one_clock, Verdict::Violated, "{shown}");
            assert_ne!(clocks, Verdict::Violated, "{shown}");
            legal += 1;
        }
    }
    let counts = (logged_violated, captured_violated, legal);
    assert!(counts.0 > 100 && counts.1 > 200 && counts.2 > 200, "{counts:?}");
}
