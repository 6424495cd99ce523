//! Writes the end of the report: what was not checked, what held, what could not be read, and how to get more.

use crate::check::{Kind, NO_EVIDENCE, NOT_ASKED_FOR, OTHER_NATURE, RuleReport, Verdict};
use crate::explain::words::{count, thousands};
use crate::report::page::{Page, Tone};
use crate::report::{Part, Report};
use std::io;

/// Problems to show in full.
const PROBLEMS: usize = 5;

/// Up to this number, ignored files are named.
const MAX_NAMED_FILES: usize = 3;

/// Rules without evidence to name. An etcd cluster's history has forty, about many topics.
const MAX_NAMED_RULES: usize = 8;

/// Rules that are undecided, unchecked and held, in this order.
pub(super) fn rules(page: &mut Page<'_>, part: &Part<'_>) -> io::Result<()> {
    let rules = &part.judgement.rules;
    let open: Vec<&RuleReport> = rules.iter().filter(|r| matches!(r.verdict, Verdict::Unknown(_))).collect();
    if !open.is_empty() {
        page.title("Undecided")?;
        // A suspect already states the reason.
        let (explained, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(|rule| is_explained(part, rule));
        if !explained.is_empty() {
            let slugs: Vec<&str> = explained.iter().map(|rule| rule.rule).collect();
            page.labelled(2, 2, (Tone::Faint, "-"), &format!("{}: see the suspects", slugs.join(", ")))?;
        }
        grouped(page, &rest)?;
    }
    let unmet = rules.iter().filter(|r| matches!(r.verdict, Verdict::NotChecked(_)));
    // A rule for another nature is not missing here.
    let unmet: Vec<&RuleReport> = unmet.filter(|r| r.verdict.reason() != OTHER_NATURE).collect();
    if !unmet.is_empty() || !part.judgement.unchecked.is_empty() {
        page.title("Not checked")?;
        for sentence in &part.judgement.unchecked {
            page.labelled(2, 2, (Tone::Faint, "-"), sentence)?;
        }
        let (unasked, unmet): (Vec<_>, Vec<_>) = unmet.into_iter().partition(|r| r.verdict.reason() == NOT_ASKED_FOR);
        if !unasked.is_empty() {
            let text = format!("{}: {NOT_ASKED_FOR}", count(unasked.len() as u64, "rule"));
            page.labelled(2, 2, (Tone::Faint, "-"), &text)?;
        }
        let (lacking, other): (Vec<_>, Vec<_>) =
            unmet.into_iter().partition(|r| r.verdict.reason().starts_with(NO_EVIDENCE) && !page.look().verbose);
        grouped(page, &other)?;
        // The page of each rule lists its needs; thirty of them in a row would hide the rest.
        if lacking.len() > MAX_NAMED_RULES {
            let text = format!(
                "{}: the evidence they need is absent (--verbose lists the rules and their needs)",
                count(lacking.len() as u64, "rule")
            );
            page.labelled(2, 2, (Tone::Faint, "-"), &text)?;
        } else if !lacking.is_empty() {
            let slugs: Vec<&str> = lacking.iter().map(|r| r.rule).collect();
            let text = format!("the evidence these rules need is absent (--verbose lists it): {}", slugs.join(", "));
            page.labelled(2, 2, (Tone::Faint, "-"), &text)?;
        }
    }
    let held: Vec<String> = rules
        .iter()
        .filter(|r| r.verdict == Verdict::Holds)
        .map(|r| format!("{} {}", r.rule, thousands(r.checked)))
        .collect();
    if !held.is_empty() {
        page.title("Held, with the number of checks")?;
        page.paragraph(2, Tone::Plain, &held.join(", "))?;
    }
    Ok(())
}

/// Whether a suspect states why a rule is undecided.
fn is_explained(part: &Part<'_>, rule: &RuleReport) -> bool {
    part.judgement.findings.iter().any(|finding| {
        finding.kind == Kind::Suspect
            && finding.rule == rule.rule
            && finding.certificate.unproved() == rule.verdict.reason()
    })
}

/// Rules with one reason share a line.
fn grouped(page: &mut Page<'_>, rules: &[&RuleReport]) -> io::Result<()> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for rule in rules {
        match groups.iter_mut().find(|(reason, _)| *reason == rule.verdict.reason()) {
            Some((_, slugs)) => slugs.push(rule.rule),
            None => groups.push((rule.verdict.reason(), vec![rule.rule])),
        }
    }
    for (reason, slugs) in groups {
        let slugs = slugs.join(", ");
        let text = if reason.is_empty() { slugs } else { format!("{slugs}: {reason}") };
        page.labelled(2, 2, (Tone::Faint, "-"), &text)?;
    }
    Ok(())
}

/// Problems and ignored files.
pub(super) fn inputs(page: &mut Page<'_>, part: &Part<'_>) -> io::Result<()> {
    let history = part.history;
    let lines: u64 = history.files.iter().map(|f| f.problems).sum();
    let problems = || history.problems.iter().chain(&part.judgement.problems);
    let known = problems().count();
    let total = lines.max(history.problems.len() as u64) + part.judgement.problems.len() as u64;
    if total > 0 {
        page.title(&format!("Problems: {} of evidence that could not be used", count(total, "piece")))?;
        let shown = if page.look().verbose { known } else { PROBLEMS };
        for problem in problems().take(shown) {
            let place =
                if problem.line > 0 { format!("{}:{}", problem.path, problem.line) } else { problem.path.clone() };
            let text = format!("{place} expected {}, found {}", problem.expected, problem.found);
            page.labelled(2, 2, (Tone::Doubt, "-"), &text)?;
        }
        // One problem may represent all lines of its file, so the rest is a count of problems.
        let left = known.saturating_sub(shown) as u64;
        if left > 0 {
            page.labelled(2, 2, (Tone::Faint, "-"), &format!("and {} more (--verbose lists them)", thousands(left)))?;
        }
    }
    let ignored: Vec<_> = history.files.iter().filter(|f| f.format.is_none()).collect();
    if ignored.is_empty() {
        return Ok(());
    }
    if page.look().verbose || ignored.len() <= MAX_NAMED_FILES {
        page.title(&format!("Ignored: {} without evidence", count(ignored.len() as u64, "file")))?;
        for file in ignored {
            let reason = file.ignored.as_deref().unwrap_or("no format of evidence");
            page.labelled(2, 2, (Tone::Faint, "-"), &format!("{}: {reason}", file.path))?;
        }
        return Ok(());
    }
    page.gap()?;
    let text = format!("{} without evidence (--verbose names them).", count(ignored.len() as u64, "file"));
    page.labelled(0, 9, (Tone::Title, "Ignored"), &text)
}

/// The last lines: how to get more.
pub(super) fn more(page: &mut Page<'_>, report: &Report<'_>) -> io::Result<()> {
    let first = report.histories.iter().flat_map(|p| &p.judgement.findings).next();
    page.gap()?;
    let text = match first {
        Some(finding) => format!(
            "`retrograde rules {}` explains what that rule proves and what it cannot see; `--json` has every fact and every \
             occurrence; `retrograde show` tells what was understood of the evidence.",
            finding.rule
        ),
        None => {
            "`retrograde show` lists the contents of the evidence; `retrograde rules` explains what each rule proves; \
                 `--json` is this report for programs."
                .to_owned()
        }
    };
    page.labelled(0, 9, (Tone::Title, "More"), &text)
}
