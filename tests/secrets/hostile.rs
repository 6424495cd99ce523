//! Hostile names: no output may interpret them.

use crate::secrets::REPORTS;
use crate::support::folder::Folder;
use std::fs;
use std::process::Command;

/// Control characters of both sets, direction marks, noncharacters, and markup, links and mentions of every format.
const NAME: &str =
    "eve\u{1b}[2J\u{9b}31m\u{202e}\u{fffe}\u{ffff}</details>]]><b>\"'`|@team https://evil.example/x www.evil.example";

fn audit() -> String {
    let line = |at: u32, version: u32| {
        serde_json::json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": format!("{NAME}{at}"),
            "stage": "ResponseComplete", "requestURI": "/api/v1/namespaces/d/pods/p", "verb": "get",
            "user": {"username": NAME}, "userAgent": NAME, "sourceIPs": [NAME],
            "objectRef": {"resource": "pods", "apiVersion": "v1", "name": NAME, "namespace": "d"},
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": format!("2026-03-02T00:00:0{at}.000000Z"),
            "stageTimestamp": format!("2026-03-02T00:00:0{at}.001000Z"),
            "responseObject": {"kind": "Pod", "apiVersion": "v1", "metadata": {
                "name": NAME, "namespace": "d", "uid": NAME, "resourceVersion": version.to_string(),
                "creationTimestamp": "2026-03-01T08:00:00Z",
            }},
        })
        .to_string()
            + "\n"
    };
    line(0, 105) + &line(1, 109) + &line(2, 102)
}

fn assert_harmless(text: &str, of: &str) {
    for (at, c) in text.char_indices().filter(|(_, c)| *c != '\n') {
        let direction =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        let none = u32::from(c) & 0xfffe == 0xfffe;
        assert!(
            !c.is_control() && !direction && !none,
            "{of}: {c:?} behind {:?}",
            &text[..at].chars().rev().take(80).collect::<String>()
        );
    }
}

/// Every text of a document.
fn texts(value: &serde_json::Value) -> Vec<&str> {
    match value {
        serde_json::Value::String(text) => vec![text],
        serde_json::Value::Array(all) => all.iter().flat_map(texts).collect(),
        serde_json::Value::Object(all) => {
            all.iter().flat_map(|(name, value)| [vec![name.as_str()], texts(value)].concat()).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn no_output_has_characters_that_act_or_markup_out_of_names() {
    let (evidence, to) = (Folder::new(), Folder::new());
    let name = if cfg!(unix) { "a\u{1b}]0;x\u{7}\u{9b}\u{202e}.log" } else { "a.log" };
    fs::write(evidence.path(name), audit()).unwrap();
    let path = evidence.root().display().to_string();
    let cache = to.path(if cfg!(unix) { "cache\u{1b}[2J\u{202e}" } else { "cache" });
    let mut check = vec!["check".to_owned(), path.clone(), "--cache".into(), "--timings".into()];
    check.extend(REPORTS.into_iter().flat_map(|kind| ["--report".to_owned(), format!("{kind}={}", to.text(kind))]));
    let commands = [
        check.clone(),
        vec!["show".to_owned(), path.clone(), "--verbose".into()],
        vec!["show".to_owned(), path.clone(), "--key".into(), NAME.to_owned()],
        vec!["explain".to_owned(), path.clone(), "--client".into(), "eve".into()],
        vec!["verify".to_owned(), to.text("json"), path.clone()],
        vec!["pack".to_owned(), path.clone(), "-o".into(), to.path(name).display().to_string()],
        // No file is packed, and the message names the inputs.
        vec!["pack".to_owned(), to.text("json"), "-o".into(), to.text("none.rgh")],
        vec!["check".to_owned(), evidence.path("none\u{1b}[2J").display().to_string()],
    ];
    let run = |arguments: &[String]| {
        let output = Command::new(env!("CARGO_BIN_EXE_retrograde"))
            .args(arguments)
            .env("RETROGRADE_CACHE_DIR", &cache)
            .output()
            .unwrap();
        assert_harmless(&String::from_utf8(output.stdout).unwrap(), &format!("{arguments:?}"));
        let told = String::from_utf8(output.stderr).unwrap();
        assert_harmless(&told, &format!("{arguments:?}, standard error"));
        told
    };
    commands.iter().for_each(|arguments| drop(run(arguments)));
    // Messages name an invalid container, and a cache folder that cannot be created, by their paths.
    for entry in fs::read_dir(&cache).unwrap().flatten() {
        fs::write(entry.path(), "no container").unwrap();
    }
    assert!(run(&check).contains("is of no use"));
    fs::remove_dir_all(&cache).unwrap();
    fs::write(&cache, "a file in its place").unwrap();
    assert!(run(&check).contains("--cache could not keep"));

    let written = |kind: &str| String::from_utf8_lossy(&fs::read(to.text(kind)).unwrap()).into_owned();
    for kind in REPORTS.into_iter().filter(|kind| *kind != "perfetto") {
        assert_harmless(&written(kind), kind);
    }
    let trace = written("perfetto");
    assert!(!trace.contains('\u{202e}') && !trace.contains("\u{1b}[") && trace.contains("u{202e}"));
    // Decoded text of viewers is harmless too; programs receive names unchanged.
    let sarif: serde_json::Value = serde_json::from_str(&written("sarif")).unwrap();
    texts(&sarif).into_iter().for_each(|text| assert_harmless(text, "sarif"));
    let page = written("html");
    let data = page.split_once("type=\"application/json\">").unwrap().1;
    let data: serde_json::Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    texts(&data).into_iter().for_each(|text| assert_harmless(text, "html"));
    let json: serde_json::Value = serde_json::from_str(&written("json")).unwrap();
    assert!(texts(&json).contains(&NAME));

    let junit = written("junit");
    let report = quick_junit::Report::deserialize_from_str(&junit).expect("JUnit XML");
    assert_eq!(report.test_suites.len(), 1);

    // Outside of code, Markdown must have neither links nor mentions.
    let mut fence = None;
    for line in written("markdown").lines() {
        let run = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) => fence = (line.trim_end() != "`".repeat(open)).then_some(open),
            None if run >= 3 => fence = Some(run),
            None => {
                let bare = without_code(line);
                for link in ["//", "www.", "@"] {
                    assert!(!bare.contains(link), "{line}");
                }
            }
        }
    }
}

/// A line of Markdown without its code.
fn without_code(line: &str) -> String {
    let mut bare = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`').filter(|_| !rest.starts_with("<details>")) {
        let run = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        bare.push_str(&rest[..at]);
        if bare.ends_with('\\') {
            rest = &rest[at + 1..];
            continue;
        }
        let mark = "`".repeat(run);
        let inside = &rest[at + run..];
        let end = inside
            .match_indices(&mark)
            .map(|(end, _)| end)
            .find(|end| !inside[..*end].ends_with('`') && !inside[end + run..].starts_with('`'));
        let end = end.unwrap_or_else(|| panic!("code that does not end: {line}"));
        rest = &inside[end + run..];
    }
    let mut html = rest;
    while let Some((before, after)) = html.split_once("<code>") {
        bare.push_str(before);
        html = after.split_once("</code>").expect("code that ends").1;
    }
    bare + html
}
