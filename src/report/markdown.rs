//! Markdown for a comment on a pull request, or the step summary of a CI job.
//!
//! A comment on GitHub holds 65,536 characters, a step summary 1 MiB. The output stays below the smaller limit and states what it
//! omits.

use super::hazards::HazardGroup;
use super::{Part, Report, Sink, human};
use crate::check::{Finding, Kind, Verdict};
use crate::explain::markup::{markdown, markdown_block, markdown_code, markdown_html};
use crate::explain::terminal_text::shorten;
use crate::explain::{names, words};
use std::io;

/// Limit on the output, in bytes.
const MAX_BYTES: usize = 60_000;
/// Rows per table.
const MAX_ROWS: usize = 40;

/// Writes the summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Markdown;

impl Sink for Markdown {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let mut text = format!("## retrograde: {}\n", report.verdict().word());
        if let Verdict::Unknown(reason) = report.verdict() {
            text += &format!("\nUnknown: {}\n", markdown(&reason));
        }
        for part in &report.histories {
            if report.histories.len() > 1 {
                text += &format!("\n### {}: {}\n", markdown_code(part.name), part.judgement.verdict.word());
            }
            history(&mut text, part);
        }
        let last = "\nThe rest is left out; the human report and the JSON document have everything.\n";
        if text.len() > MAX_BYTES {
            let room = &text.as_bytes()[..MAX_BYTES - last.len() - 20];
            text.truncate(room.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
            // An open code block would swallow the closing sentence.
            if text.matches("\n```").count() % 2 == 1 {
                text += "```\n";
            }
            if text.matches("<details>").count() > text.matches("</details>").count() {
                text += "</details>\n";
            }
            text += last;
        }
        out.write_all(text.as_bytes())
    }
}

fn history(text: &mut String, part: &Part<'_>) {
    let judgement = part.judgement;
    let hazards = HazardGroup::all(judgement.findings.iter());
    let count = |kind: Kind| match kind {
        Kind::Hazard => hazards.len() as u64,
        kind => judgement.findings.iter().filter(|f| f.kind == kind).count() as u64,
    };
    let counts = [(Kind::Violation, "violation"), (Kind::Suspect, "suspect"), (Kind::Hazard, "hazard")];
    let counts: Vec<String> = counts.map(|(kind, noun)| words::count(count(kind), noun)).to_vec();
    let checked = judgement.rules.iter().filter(|rule| !matches!(rule.verdict, Verdict::NotChecked(_))).count() as u64;
    *text += &format!("\n{}; {} checked.\n", words::series(&counts), words::count(checked, "rule"));
    if let Some(open) = part.undecided() {
        *text += &format!("\n{}.\n", markdown(&open));
    }
    if !judgement.findings.is_empty() {
        *text += "\n| | rule | client | what |\n| --- | --- | --- | --- |\n";
        let grave = judgement.findings.iter().filter(|finding| finding.kind != Kind::Hazard);
        let rows: Vec<(&Finding, u64)> = grave
            .map(|finding| (finding, 1))
            .chain(hazards.iter().map(|group| (group.first(), group.times())))
            .collect();
        for &(finding, times) in rows.iter().take(MAX_ROWS) {
            let client = names::client(part.history, finding.client);
            let times = if times > 1 { format!("{} times, first: ", words::thousands(times)) } else { String::new() };
            *text += &format!(
                "| {} | {} | {} | {times}{} |\n",
                finding.kind_word(),
                markdown_code(finding.rule),
                markdown_code(&client),
                markdown(&finding.summary)
            );
        }
        if rows.len() > MAX_ROWS {
            *text += &format!("\nand {} more\n", words::thousands((rows.len() - MAX_ROWS) as u64));
        }
    }
    for finding in judgement.findings.iter().filter(|finding| finding.kind != Kind::Hazard) {
        details(text, part, finding);
        if text.len() > MAX_BYTES {
            return;
        }
    }
    if !judgement.unchecked.is_empty() {
        *text += "\n<details><summary>What was not checked</summary>\n\n";
        for reason in &judgement.unchecked {
            *text += &format!("- {}\n", markdown(reason));
        }
        *text += "\n</details>\n";
    }
}

fn details(text: &mut String, part: &Part<'_>, finding: &Finding) {
    let client = names::client(part.history, finding.client);
    let passage = markdown_block(&human::passage(part.history, finding));
    *text += &format!(
        "\n<details><summary>{}: {}</summary>\n\n{passage}\n</details>\n",
        finding.rule,
        markdown_html(&shorten(&client, 60))
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn written(decorate: fn(&str) -> String) -> String {
        let sample = sample::restart(decorate);
        let mut out = Vec::new();
        Markdown.write(&sample.report(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_summary_says_the_verdict_the_findings_and_the_proof() {
        insta::assert_snapshot!(written(str::to_owned));
    }

    #[test]
    fn names_are_neither_markup_nor_mentions() {
        let text = written(|name| format!("</details>```{name}@team|`x`"));
        assert_eq!(text.matches("<details>").count(), text.matches("</summary>").count());
        let outside: String = text.split("````text").map(|part| part.rsplit("````").next().unwrap_or(part)).collect();
        for line in outside.lines().filter(|line| line.starts_with('|')) {
            let bars = line.replace("\\|", "").matches('|').count();
            assert_eq!(bars, 5, "{line}");
        }
    }

    #[test]
    fn a_long_report_is_cut_where_a_comment_would_refuse_it() {
        let mut sample = sample::restart(str::to_owned);
        let many = (0..400).flat_map(|_| sample.judgement.findings.clone()).collect();
        sample.judgement.findings = many;
        let mut out = Vec::new();
        Markdown.write(&sample.report(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.len() <= MAX_BYTES && text.ends_with("have everything.\n"), "{}", text.len());
        assert_eq!(text.matches("\n```").count() % 2, 0);
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }
}
