//! Stage 5 of 5: from judgements to reports. Input: [`Report`]. Output: one document per [`Sink`]. Invariant: a report changes no
//! verdict, and equal judgements give equal reports, whatever the number of threads.
//!
//! ```
//! use retrograde::history::sketch::sketch;
//! use retrograde::report::{Format, Look, Part, Report};
//! use retrograde::{Options, judge};
//!
//! let history = sketch("ctrl@A  LIST => 15 {a:u1@12}")?;
//! let judgement = judge(&history, &Options::default());
//! let report = Report { histories: vec![Part::of(&history, &judgement)] };
//! let mut text = Vec::new();
//! report.write(Format::Markdown, Look::default(), &mut text)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod boundaries;
pub(crate) mod calls;
pub(crate) mod cause_tree;
pub(crate) mod cluster;
pub(crate) mod contract;
pub(crate) mod decisions;
pub(crate) mod document;
pub(crate) mod dot;
pub(crate) mod evidence;
pub(crate) mod exploration;
mod hazards;
pub(crate) mod html;
pub(crate) mod human;
pub(crate) mod json;
#[cfg(feature = "junit")]
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod nearby;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod perfetto;
pub(crate) mod reading;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod sarif;
pub(crate) mod summary;

pub use page::Look;

use crate::check::{Judgement, Kind, Verdict};
use crate::explain::words::{count, thousands};
use crate::history::History;
use crate::history::{Nature, Subject};
use std::io;

/// The results of one run.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The histories, in the order of their inputs.
    pub histories: Vec<Part<'a>>,
}

/// One history with its judgement.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its name in reports.
    pub name: &'a str,
    /// Its nature.
    #[doc(hidden)]
    pub nature: Nature,
    /// The history that was judged.
    pub history: &'a History,
    /// The result of [`crate::judge`] for this history.
    pub judgement: &'a Judgement,
}

impl<'a> Part<'a> {
    /// A history with its judgement, named by its nature.
    pub fn of(history: &'a History, judgement: &'a Judgement) -> Part<'a> {
        let nature = history.nature();
        let name = match &history.subject {
            Subject::Kubernetes => {
                let declared = history.inputs.iter().find_map(|input| input.source.cluster.as_deref());
                let mut named = history.files.iter().flat_map(|file| &file.export.clusters);
                declared.or(named.next().map(String::as_str)).unwrap_or("kubernetes")
            }
            Subject::Etcd(cluster) => match cluster.recording.name.as_str() {
                "" => "etcd",
                name => name,
            },
            Subject::Operations(_) => history.files.first().map_or("", |file| file.path.as_str()),
        };
        Part { name, nature, history, judgement }
    }
}

impl Part<'_> {
    /// Number of undecided obligations with their rules, in words; none if all were decided. Reports show it beside the verdict,
    /// since `holds` is about decided obligations only.
    pub fn undecided(&self) -> Option<String> {
        let open = self.judgement.rules.iter().map(|rule| (rule.rule, rule.open_obligations()));
        let open: Vec<(&str, u64)> = open.filter(|(_, count)| *count > 0).collect();
        let rules: Vec<String> = open.iter().map(|(rule, count)| format!("{rule} {}", thousands(*count))).collect();
        let total = open.iter().map(|(_, count)| count).sum();
        let verb = if total == 1 { "was" } else { "were" };
        (total > 0).then(|| format!("{} {verb} met and not decided: {}", count(total, "obligation"), rules.join(", ")))
    }
}

impl Report<'_> {
    /// The worst verdict of all histories: violated, then unknown, then holds. A history that was not checked never counts as
    /// held.
    pub fn verdict(&self) -> Verdict {
        let verdicts = || self.histories.iter().map(|part| &part.judgement.verdict);
        if verdicts().any(|v| *v == Verdict::Violated) {
            return Verdict::Violated;
        }
        match verdicts().find(|v| **v != Verdict::Holds) {
            Some(open) => Verdict::Unknown(open.reason().to_owned()),
            None if self.histories.is_empty() => Verdict::Unknown("there was no evidence to check".to_owned()),
            None => Verdict::Holds,
        }
    }

    /// Writes the report in a format. `look` is the layout of [`Format::Human`]; other formats ignore it.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, format: Format, look: Look, out: &mut dyn io::Write) -> io::Result<()> {
        format.sink(look).write(self, out)
    }

    /// The gravest kind among the findings.
    #[doc(hidden)]
    pub fn gravest(&self) -> Option<Kind> {
        self.histories.iter().flat_map(|part| &part.judgement.findings).map(|f| f.kind).min()
    }
}

/// A writer of one format. A sink may omit parts of the report, but must not change them.
#[doc(hidden)]
pub trait Sink {
    /// Writes the report.
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()>;
}

/// The formats of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Text for the person who acts on it.
    Human,
    /// JSON for programs, with the schema `docs/report.schema.json`.
    Json,
    /// One page with a picture, for a browser.
    Html,
    /// Markdown for a comment on a pull request or the summary of a CI job.
    Markdown,
    /// JUnit XML for test reports of CI systems.
    #[cfg(feature = "junit")]
    Junit,
    /// SARIF 2.1.0 for code scanning.
    Sarif,
    /// Facts and their order, for Graphviz.
    Dot,
    /// A trace for Perfetto.
    Perfetto,
}

impl Format {
    /// All formats that this build writes.
    pub const ALL: &[Format] = &[
        Format::Human,
        Format::Json,
        Format::Html,
        Format::Markdown,
        #[cfg(feature = "junit")]
        Format::Junit,
        Format::Sarif,
        Format::Dot,
        Format::Perfetto,
    ];

    /// The name in `--report NAME=FILE`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Human => "human",
            Format::Json => "json",
            Format::Html => "html",
            Format::Markdown => "markdown",
            #[cfg(feature = "junit")]
            Format::Junit => "junit",
            Format::Sarif => "sarif",
            Format::Dot => "dot",
            Format::Perfetto => "perfetto",
        }
    }

    /// The format with this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Its sink. `look` is the layout of text for people.
    #[doc(hidden)]
    pub fn sink(self, look: Look) -> Box<dyn Sink> {
        match self {
            Format::Human => Box::new(human::Human::new(look)),
            Format::Json => Box::new(json::Json),
            Format::Html => Box::new(html::Html),
            Format::Markdown => Box::new(markdown::Markdown),
            #[cfg(feature = "junit")]
            Format::Junit => Box::new(junit::Junit),
            Format::Sarif => Box::new(sarif::Sarif),
            Format::Dot => Box::new(dot::Dot),
            Format::Perfetto => Box::new(perfetto::Perfetto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(verdicts: &[Verdict]) -> Verdict {
        let history = History::default();
        let judgements: Vec<Judgement> = verdicts.iter().map(|v| sample::empty_judgement(v.clone())).collect();
        let histories = judgements
            .iter()
            .map(|judgement| Part { name: "x", nature: Nature::Kubernetes, history: &history, judgement })
            .collect();
        Report { histories }.verdict()
    }

    #[test]
    fn the_overall_verdict_is_the_worst_and_nothing_checked_is_never_success() {
        let unknown = || Verdict::Unknown("budget".to_owned());
        assert_eq!(verdict_of(&[Verdict::Holds, unknown(), Verdict::Violated]), Verdict::Violated);
        assert_eq!(verdict_of(&[Verdict::Holds, unknown()]), unknown());
        assert_eq!(verdict_of(&[Verdict::NotChecked("empty".to_owned())]), Verdict::Unknown("empty".to_owned()));
        assert_eq!(verdict_of(&[Verdict::Holds, Verdict::Holds]), Verdict::Holds);
        assert_eq!(verdict_of(&[]).word(), "unknown");
    }
}
