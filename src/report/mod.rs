//! Stage 5 of 5: judgements to reports. Input: [`Report`]. Output: one document per [`Sink`]. Invariant: changes no verdict,
//! and is the same for the same judgement, whatever the number of threads was.

pub(crate) mod calls;
pub(crate) mod cause_tree;
pub(crate) mod cluster;
pub(crate) mod document;
pub(crate) mod dot;
pub(crate) mod evidence;
mod hazards;
pub(crate) mod html;
pub(crate) mod human;
pub(crate) mod json;
#[cfg(feature = "junit")]
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod nearby;
pub(crate) mod overview;
pub mod page;
pub(crate) mod perfetto;
pub(crate) mod reading;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod sarif;
pub(crate) mod summary;

use crate::check::{Judgement, Kind, Verdict};
use crate::explain::words::{count, thousands};
use crate::history::History;
use crate::history::{Nature, Subject};
use std::io;

/// Everything that was decided in one run.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The histories, in the order in which their inputs were given.
    pub histories: Vec<Part<'a>>,
}

/// One history with its judgement.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its name for people.
    pub name: &'a str,
    /// What it is a history of.
    pub nature: Nature,
    /// The facts.
    pub history: &'a History,
    /// What they came to.
    pub judgement: &'a Judgement,
}

impl<'a> Part<'a> {
    /// A history with its judgement, named by what it is.
    pub fn of(history: &'a History, judgement: &'a Judgement) -> Part<'a> {
        let nature = history.nature();
        let name = match &history.subject {
            Subject::Kubernetes => {
                let cluster = history.inputs.iter().find_map(|input| input.source.cluster.as_deref());
                cluster.unwrap_or("kubernetes")
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
    /// How many obligations were met and could not be decided, and of which rules; none where there are none. It stands beside the
    /// verdict, because `holds` is about the obligations that were decided.
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
    /// The worst verdict of all histories: violated, then unknown, then holds. What was not checked never counts as held.
    pub fn verdict(&self) -> Verdict {
        let verdicts = || self.histories.iter().map(|part| &part.judgement.verdict);
        if verdicts().any(|v| *v == Verdict::Violated) {
            return Verdict::Violated;
        }
        match verdicts().find(|v| **v != Verdict::Holds) {
            Some(open) => Verdict::Unknown(open.reason().to_owned()),
            None if self.histories.is_empty() => Verdict::Unknown("there was no evidence to judge".to_owned()),
            None => Verdict::Holds,
        }
    }

    /// The gravest kind of finding, if there is any finding.
    pub fn gravest(&self) -> Option<Kind> {
        self.histories.iter().flat_map(|part| &part.judgement.findings).map(|f| f.kind).min()
    }
}

/// A format of reports. Each writes the whole report; what it leaves out is its own choice, what it says is not.
pub trait Sink {
    /// Writes the report.
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()>;
}

/// The formats, by the names that the command line uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// For the person who has to act on it.
    Human,
    /// For programs: the schema is `docs/report.schema.json`.
    Json,
    /// One page with a picture, for a browser.
    Html,
    /// For a comment on a pull request or the summary of a CI job.
    Markdown,
    /// Test reports of CI systems.
    #[cfg(feature = "junit")]
    Junit,
    /// Code scanning: SARIF 2.1.0.
    Sarif,
    /// Facts and their order, for Graphviz.
    Dot,
    /// A trace for Perfetto.
    Perfetto,
}

impl Format {
    /// All formats.
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

    /// The format of a name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Its sink. `look` says how text for people is laid out.
    pub fn sink(self, look: page::Look) -> Box<dyn Sink> {
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
