//! A client's record beside its server's: every drawn history, judged from the server's log alone, and from both records with a
//! clock of its own for each client. More evidence takes no violation away, and makes no legal history one.

use retrograde::check::{Options, Verdict};
use retrograde::history::sketch::sketch_with;
use retrograde::model::Declarations;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Settings that say who recorded or by which clock, and evidence that only etcd has.
const FIXED: [&str; 5] = ["recorded", "level=", "level ", "clock", "etcd "];

fn drawn() -> Vec<PathBuf> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/rules");
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(&rules).filter(|path| path.is_dir());
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
fn a_clients_record_beside_the_servers_takes_no_violation_away_and_adds_none() {
    let (mut violated, mut legal) = (0, 0);
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
        let logged = verdict("recorded audit\nlevel response\n", &story);
        let both = verdict("recorded both\nlevel response\n", &with_clocks(&story));
        let (Some(logged), Some(both)) = (logged, both) else { continue };
        let name = file.file_name().unwrap().to_string_lossy();
        if logged == Verdict::Violated {
            assert_eq!(both, Verdict::Violated, "{}", file.display());
            violated += 1;
        } else if !name.starts_with("violation") {
            assert_ne!(both, Verdict::Violated, "{}", file.display());
            legal += 1;
        }
    }
    assert!(
        violated > 100 && legal > 200,
        "{violated} violated and {legal} legal histories can be recorded in both ways"
    );
}
