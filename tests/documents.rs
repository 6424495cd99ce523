//! Pages and folders agree with the code: rules with their histories and pages, incidents with their tables.

use retrograde::check::registry::find;
use retrograde::check::{Group, Kind, RULES};
use retrograde::explore::{PROTOCOLS, fixes, shipped};
use retrograde::history;
use retrograde::ingest::{self, SourceRule};
use retrograde::model::Model;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names(folder: &str, suffix: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).map(|dir| dir.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let name = |path: PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    entries.into_iter().filter_map(|e| name(e.path()).strip_suffix(suffix).map(str::to_owned)).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Markdown pages inside a folder, with those of its folders, by their paths from the root.
fn pages_below(folder: &str) -> Vec<String> {
    let mut pages = Vec::new();
    for name in names(folder, "") {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            pages.extend(pages_below(&path));
        } else if path.ends_with(".md") {
            pages.push(path);
        }
    }
    pages
}

/// The targets of the links in a page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

fn slugs() -> BTreeSet<String> {
    RULES.iter().map(|rule| rule.slug.to_owned()).collect()
}

#[test]
fn every_rule_has_drawn_histories() {
    let expected = slugs();
    assert_eq!(names("histories/rules", ""), expected);
    for slug in expected {
        let operations = find(&slug).is_some_and(|rule| rule.group == Group::Operations);
        // Rules on etcd alone have reports of its robustness suite.
        let forms = if operations { ["edn", "report"] } else { ["sketch", "report"] };
        let folder = root().join("histories/rules").join(&slug);
        let both =
            |form: &&str| ["violation", "fixed"].iter().all(|kind| folder.join(format!("{kind}.{form}")).exists());
        assert!(forms.iter().any(both), "{slug}: neither {forms:?} both ways");
    }
}

#[test]
fn every_model_has_histories_of_both_kinds_and_a_place_on_its_page() {
    let models: BTreeSet<String> = Model::ALL.into_iter().map(|model| model.name().to_owned()).collect();
    assert_eq!(names("histories/models", ""), models);
    let page = read(&root().join("docs/linearizability.md"));
    for model in models {
        let files = names(&format!("histories/models/{model}"), "");
        for kind in ["violation", "fixed"] {
            assert!(files.iter().any(|file| file.starts_with(&format!("{kind}."))), "{model}/{kind}");
        }
        assert!(page.contains(&format!("| `{model}` |")), "{model}");
    }
}

/// Headings of a rule's page in order.
const HEADINGS: [&str; 6] = ["Proves", "Why it matters", "Example", "Evidence", "Cannot see", "Sources"];

#[test]
fn every_rule_has_a_page_with_the_same_headings() {
    assert_eq!(names("docs/rules", ".md"), slugs());
    for rule in RULES {
        assert_eq!(read(&root().join("docs/rules").join(format!("{}.md", rule.slug))), rule.page);
        assert!(rule.page.starts_with(&format!("# {}\n\n", rule.slug)), "{}", rule.slug);
        let headings: Vec<&str> = rule.page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, HEADINGS, "docs/rules/{}.md", rule.slug);
    }
}

#[test]
fn every_incident_has_a_table_of_its_variants_and_findings() {
    for incident in names("histories/incidents", "") {
        let page = read(&root().join("docs/incidents").join(format!("{incident}.md")));
        let mut rows = BTreeSet::new();
        let variants = page.split("\n## Variants").nth(1).expect("a section Variants");
        let variants = variants.split("\n## ").next().unwrap_or_default();
        for line in variants.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [variant, findings, judgement] = cells.as_slice() else { panic!("three cells in {line}") };
            assert!(judgement.ends_with('.') && !judgement.is_empty(), "a judgement for {variant}");
            let findings: Vec<&str> = findings.split(", ").filter(|f| *f != "nothing").collect();
            rows.insert((variant.trim_matches('`').to_owned(), findings.iter().map(|f| (*f).to_owned()).collect()));
        }
        let variants = names(&format!("histories/incidents/{incident}"), "");
        let expected: BTreeSet<(String, BTreeSet<String>)> =
            variants.into_iter().map(|variant| (variant.clone(), expected(&incident, &variant))).collect();
        assert_eq!(rows, expected, "docs/incidents/{incident}.md");
    }
}

/// The reasons why decisions of a variant rest on a half-done operation, in the words of the report.
fn half_done(incident: &str, variant: &str) -> Vec<String> {
    let folder = root().join("histories/incidents").join(incident).join(variant);
    let expected: serde_json::Value = serde_json::from_str(&read(&folder.join("expected.json"))).expect("JSON");
    let sources = expected["arguments"].as_array().expect("arguments").iter().filter_map(|text| text.as_str());
    let sources: Vec<SourceRule> =
        sources.filter(|text| *text != "--source").map(|text| SourceRule::parse(text).expect("a source")).collect();
    let inputs = ingest::inputs(&[folder], &sources, &[]).expect("evidence");
    let history = history::load(inputs, &retrograde::read_options(), &history::Domains::default(), &());
    let judgement = retrograde::judge(&history, &retrograde::Options::default());
    let found = judgement.findings.into_iter().filter(|f| f.rule == "intermediate-state" && f.kind == Kind::Violation);
    found.map(|finding| finding.certificate.reason).collect()
}

#[test]
fn the_windows_that_the_page_of_the_reconciler_names_are_those_of_the_reports() {
    let page = read(&root().join("docs/incidents/ip-reconciler.md"));
    let mut rows = BTreeSet::new();
    for line in page.lines().filter(|line| line.contains(" to ") && line.ends_with(" ms")) {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let [variant, "revisions", first, "to", last, half, "ms", "revisions", from, "to", through, decision, "ms"] =
            words[..]
        else {
            panic!("a row of windows: {line}")
        };
        let reasons = half_done("ip-reconciler", variant);
        assert_eq!(reasons.len(), 1, "{variant}");
        for window in [
            format!("half done from revision {first} to {last}, {half}.000 ms."),
            format!("revisions {from} to {through}, {decision}.000 ms."),
        ] {
            assert!(reasons[0].contains(&window), "{variant}: {window} in {}", reasons[0]);
        }
        rows.insert(variant.to_owned());
    }
    let variants = names("histories/incidents/ip-reconciler", "").into_iter();
    let violated: BTreeSet<String> =
        variants.filter(|v| expected("ip-reconciler", v).contains("`intermediate-state`")).collect();
    assert_eq!(rows, violated);
}

/// The expected findings of a variant, as a table cell names them.
fn expected(incident: &str, variant: &str) -> BTreeSet<String> {
    let path = root().join("histories/incidents").join(incident).join(variant).join("expected.json");
    let json: serde_json::Value = serde_json::from_str(&read(&path)).unwrap_or_else(|error| panic!("{error}"));
    let findings = json["findings"].as_array().unwrap_or_else(|| panic!("findings in {}", path.display()));
    findings
        .iter()
        .filter_map(|f| {
            let mut words = f.as_str()?.split(' ');
            let (kind, rule) = (words.next()?, words.next()?);
            Some(if kind == "violation" { format!("`{rule}`") } else { format!("`{rule}` ({kind})") })
        })
        .collect()
}

/// The pages of the protocols of incidents are those of the incidents.
#[test]
fn every_protocol_has_a_page_that_names_its_fixes() {
    for &(name, text) in PROTOCOLS {
        let pages =
            ["protocols", "incidents"].map(|folder| root().join("docs").join(folder).join(format!("{name}.md")));
        let pages: Vec<&PathBuf> = pages.iter().filter(|page| page.exists()).collect();
        let [page] = pages[..] else { panic!("{name}: one page is expected, found {pages:?}") };
        let page = read(page);
        for fix in fixes(text).unwrap_or_else(|error| panic!("{name}: {error}")) {
            assert!(page.contains(&format!("`{}`", fix.name)), "the page of {name} does not name {}", fix.name);
        }
    }
    for name in names("docs/protocols", ".md") {
        assert!(shipped(&name).is_some(), "docs/protocols/{name}.md is about no shipped protocol");
    }
}

/// The page on sketches is the documentation of the module, without lines for documentation tests.
fn sketch_page() -> String {
    let source = read(&root().join("src/history/sketch/mod.rs"));
    let mut page = "# Sketches\n\n".to_owned();
    for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        let prose = page.matches("```").count().is_multiple_of(2);
        match line {
            "```" if prose => page += "```rust\n",
            hidden if hidden.starts_with("# Ok") => {}
            title if title.starts_with("# ") && prose => page += &format!("#{title}\n"),
            line => page += &format!("{line}\n"),
        }
    }
    page
}

#[test]
fn the_page_about_sketches_is_the_modules_documentation() {
    let path = root().join("docs/sketch.md");
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        fs::write(&path, sketch_page()).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(read(&path), sketch_page(), "UPDATE=1 writes the page");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut pages =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(|page| root().join(page)).to_vec();
    pages.extend(pages_below("docs").into_iter().map(|page| root().join(page)));
    for page in pages.iter().filter(|page| page.exists()) {
        let text = read(page);
        for link in links(&text) {
            let target = link.split('#').next().unwrap_or("");
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            let path = page.parent().unwrap_or(root()).join(target);
            assert!(path.exists(), "{} links to {target}", page.display());
        }
    }
}

/// `docs/SUMMARY.md` is the table of contents of the book. An entry without a target is the heading of a group.
#[test]
fn the_table_of_contents_names_every_page_once() {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let targets: Vec<String> =
        links(&summary).filter(|link| !link.is_empty()).map(|link| format!("docs/{link}")).collect();
    let mut pages = pages_below("docs");
    pages.retain(|page| page != "docs/SUMMARY.md");
    for page in &pages {
        let times = targets.iter().filter(|target| *target == page).count();
        assert_eq!(times, 1, "docs/SUMMARY.md names {page} {times} times");
    }
    assert_eq!(targets.len(), pages.len(), "docs/SUMMARY.md names something that is no page");
}

/// The worked examples are the files that the tests read.
#[test]
fn the_page_about_rules_files_shows_the_examples_as_they_are() {
    let page = read(&root().join("docs/rules-file.md"));
    let examples = names("histories/rules-file", "");
    assert_eq!(examples.len(), 5);
    for example in examples {
        let folder = root().join("histories/rules-file").join(&example);
        let rules = read(&folder.join("rules.toml"));
        assert!(
            page.contains(&format!("```toml\n{rules}```\n")),
            "docs/rules-file.md does not show {example} as it is"
        );
        for kind in ["violation", "fixed"] {
            assert!(folder.join(format!("{kind}.sketch")).exists(), "{example}/{kind}");
        }
    }
}

fn rules_schema() -> serde_json::Value {
    let text = read(&root().join("docs/rules-file.schema.json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("docs/rules-file.schema.json: {error}"))
}

/// Every rules file of the repository is valid by its schema.
#[test]
fn the_packs_and_examples_are_valid_by_the_schema_of_rules_files() {
    let schema = jsonschema::validator_for(&rules_schema()).unwrap_or_else(|error| panic!("{error}"));
    let files = |folder: &str| {
        names(folder, ".toml").into_iter().map(move |name| format!("{folder}/{name}.toml")).collect::<Vec<_>>()
    };
    let mut all = files("src/model/packs");
    all.extend(
        names("histories/rules-file", "").into_iter().map(|name| format!("histories/rules-file/{name}/rules.toml")),
    );
    all.push("histories/rules/invariant/rules.toml".to_owned());
    assert!(all.len() > 12);
    for file in all {
        let value: serde_json::Value =
            toml::from_str(&read(&root().join(&file))).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mistakes: Vec<String> =
            schema.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path)).collect();
        assert!(mistakes.is_empty(), "{file}: {mistakes:#?}");
    }
}
