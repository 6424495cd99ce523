//! Explains single requests: what each asked, what that promises, what the answer was, how old it was, and which findings it is
//! part of. This is the output of `retrograde explain`.

use super::page::{Page, Tone};
use crate::check::facts::staleness::Staleness;
use crate::check::{Evidence, Judgement, Kind, Verdict};
use crate::explain::names;
use crate::explain::words::{count, day, duration, thousands, time_of_day};
use crate::history::{History, Marks, Operation, OperationId, Revision, Verb};
use crate::ingest::Position;
use crate::model::{Promise, promise};
use std::io;

/// Requests to explain; the others are counted.
const MAX_REQUESTS: usize = 20;
/// Columns for the labels.
const LABEL: usize = 12;

/// The requests to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The audit id.
    pub audit_id: Option<String>,
    /// Part of the user name, or of the name of the incarnation.
    pub client: Option<String>,
    /// The key, as `pods default/web-0`, `default/web-0` or `web-0`.
    pub key: Option<String>,
}

impl Wanted {
    /// Whether the operation is wanted.
    pub(super) fn is(&self, history: &History, operation: &Operation) -> bool {
        let audit = self.audit_id.as_ref().is_none_or(|id| history.audit_id(operation.audit_id) == *id);
        let client = self.client.as_ref().is_none_or(|wanted| {
            history.client_name(operation.incarnation).contains(wanted.as_str())
                || operation.incarnation.is_some()
                    && history.incarnations[operation.incarnation.index()].label.contains(wanted.as_str())
        });
        let key = self.key.as_ref().is_none_or(|wanted| {
            let is = |key| super::evidence::matches(&history.key_name(key), wanted);
            let named = operation.key.is_some() && is(operation.key);
            named || history.items_of(operation).iter().any(|item| is(item.key))
        });
        audit && client && key && !operation.marks.has(Marks::SHADOW)
    }

    /// Whether it names a client and nothing else.
    pub fn is_of_a_client(&self) -> bool {
        self.client.is_some() && self.key.is_none() && self.audit_id.is_none()
    }

    fn words(&self) -> String {
        let parts = [("audit id", &self.audit_id), ("client", &self.client), ("key", &self.key)];
        let parts = parts.iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("{name} {value}")));
        parts.collect::<Vec<_>>().join(" and ")
    }
}

/// Explains the requests. Returns whether there are any.
pub fn write(page: &mut Page<'_>, evidence: &Evidence<'_>, judgement: &Judgement, wanted: &Wanted) -> io::Result<bool> {
    let history = evidence.history;
    let meant: Vec<OperationId> = (0..history.operations.len())
        .map(|at| OperationId(at as u32))
        .filter(|&id| wanted.is(history, &history.operation(id)))
        .collect();
    if meant.is_empty() {
        page.paragraph(0, Tone::Plain, &format!("No request with {} is in the evidence.", wanted.words()))?;
        return Ok(false);
    }
    for (at, &id) in meant.iter().take(MAX_REQUESTS).enumerate() {
        if at > 0 {
            page.gap()?;
        }
        Reading { evidence, judgement, id, operation: history.operation(id) }.write(page)?;
    }
    if meant.len() > MAX_REQUESTS {
        page.gap()?;
        page.paragraph(0, Tone::Faint, &format!("and {} more", thousands((meant.len() - MAX_REQUESTS) as u64)))?;
    }
    Ok(true)
}

/// One request.
struct Reading<'a> {
    evidence: &'a Evidence<'a>,
    judgement: &'a Judgement,
    id: OperationId,
    operation: Operation,
}

impl Reading<'_> {
    fn write(&self, page: &mut Page<'_>) -> io::Result<()> {
        let (history, o) = (self.evidence.history, &self.operation);
        page.paragraph(0, Tone::Title, &history.request_name(o))?;
        let client = client_and_life(history, o);
        let server = match names::server(history, o.server).as_str() {
            "" => String::new(),
            server => format!(", server {server}"),
        };
        entry(page, "Asked by", &format!("{client}{server}"))?;
        entry(page, "Recorded", &self.recorded())?;
        let stream = history.stream_of(self.id);
        let (_, row) = promise(history, o, stream);
        let since = if row.changed.is_empty() { String::new() } else { format!(" ({})", row.changed) };
        if matches!(o.verb, Verb::Get | Verb::List | Verb::Watch) {
            entry(page, "Promised", &format!("{}: {}{since}", row.condition, row.promise))?;
        }
        entry(page, "Answered", &self.answered())?;
        if matches!(o.verb, Verb::Get | Verb::List) {
            let (tone, word, text) = self.age();
            page.labelled(2, LABEL, (tone, word), &text)?;
        }
        self.findings(page)
    }

    fn recorded(&self) -> String {
        let (history, o) = (self.evidence.history, &self.operation);
        let place = |position: Position| format!("{}:{}", history.file_name(position.file), position.line);
        let time = match (o.invoke.is_known(), o.ret.is_known()) {
            (true, true) => {
                let took = duration(o.ret.since(o.invoke));
                format!("{} {}, {took} long, ", day(o.invoke), time_of_day(o.invoke))
            }
            (true, false) => format!("{} {}, ", day(o.invoke), time_of_day(o.invoke)),
            _ => String::new(),
        };
        let clock = match names::clock(history, o.clock).as_str() {
            "" => String::new(),
            clock => format!("clock {clock}, "),
        };
        format!("{time}{clock}{}", place(o.position))
    }

    /// The revision of its answer, if known.
    fn revision(&self) -> Option<Revision> {
        match self.operation.verb {
            Verb::List => {
                self.evidence.order.list_revision(self.evidence.history, self.id).map(|(revision, _)| revision)
            }
            _ => self.operation.answered.known().map(|_| self.operation.answered),
        }
    }

    fn answered(&self) -> String {
        let (history, o) = (self.evidence.history, &self.operation);
        if o.verb == Verb::Watch {
            return match history.stream_of(self.id) {
                Some(stream) => count(history.deliveries_of(stream).len() as u64, "event"),
                None => "its events were not recorded".to_owned(),
            };
        }
        let status = match o.status {
            0 => "no answer was recorded".to_owned(),
            status => format!("status {status}"),
        };
        let revision = match (o.verb, self.revision()) {
            (_, None) => ", no revision is recorded".to_owned(),
            (Verb::List, Some(revision)) => format!(", the state of revision {revision}"),
            (_, Some(revision)) => format!(", version {revision}"),
        };
        let items = match o.verb {
            Verb::List if o.marks.has(Marks::ANSWER_BODY) => {
                format!(", {}", count(history.items_of(o).len() as u64, "object"))
            }
            _ => String::new(),
        };
        format!("{status}{revision}{items}")
    }

    /// The age of the answer when it was requested.
    fn age(&self) -> (Tone, &'static str, String) {
        let (evidence, o) = (self.evidence, &self.operation);
        let unknown = |why: &str| (Tone::Faint, "Age", format!("not known: {why}"));
        let Some(revision) = self.revision() else { return unknown("no revision of the answer is recorded") };
        if !o.invoke.is_known() {
            return unknown("no time of the request is recorded");
        }
        let lag = match o.verb {
            Verb::List if o.scope.is_some() => Staleness::of_scope(evidence, revision, o),
            Verb::Get if o.key.is_some() => {
                let resource = evidence.history.resource_of(o.key);
                let bound = crate::check::facts::staleness::bound(evidence, resource, o);
                let later = bound.and_then(|bound| evidence.order.timeline.between(o.key, revision, bound).first());
                later.and_then(|later| Staleness::by(evidence, later, o))
            }
            _ => None,
        };
        match lag {
            None => {
                let text = "the answer lacks no change that is known to have been complete before the request";
                (Tone::Good, "Fresh", text.to_owned())
            }
            Some(lag) => {
                let change = evidence.change_words(&lag.version);
                let proof = match lag.offset {
                    None => "complete before it was sent".to_owned(),
                    Some(offset) => format!(
                        "complete before it was sent, unless the two clocks differ by {:.3} ms or more",
                        offset as f64 / 1e6
                    ),
                };
                let (promised, _) = promise(evidence.history, o, None);
                let allowed = match promised {
                    Promise::Any => "; its promise allows that",
                    Promise::MostRecent => "; its promise excludes that",
                    Promise::NotOlderThan(least) | Promise::Exact(least) if revision >= least => {
                        "; its promise allows that"
                    }
                    Promise::NotOlderThan(_) | Promise::Exact(_) => "; its promise excludes that",
                    Promise::After(_) | Promise::Unstated => "",
                };
                (Tone::Bad, "Stale", format!("it lacks: {change}, {proof}{allowed}"))
            }
        }
    }

    /// The findings with this request.
    fn findings(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mine = |certificates: &[crate::check::Certificate]| {
            certificates.iter().flat_map(|c| &c.facts).any(|fact| fact.operation == self.id)
        };
        let found: Vec<_> = self.judgement.findings.iter().filter(|f| mine(&f.occurrences)).collect();
        for finding in &found {
            let tone = if finding.kind == Kind::Violation { Tone::Bad } else { Tone::Doubt };
            let whose = crate::explain::words::promise(finding);
            let whose = if whose.is_empty() { String::new() } else { format!(" Promise: {whose}") };
            let text = format!("{}: {}{whose}", finding.rule, stop(&finding.summary));
            page.labelled(2, LABEL, (tone, finding.kind_word()), &text)?;
        }
        if found.is_empty() {
            let text = match &self.judgement.verdict {
                Verdict::Unknown(reason) => format!("it is part of no finding (the history is unknown: {reason})"),
                _ => "it is part of no finding".to_owned(),
            };
            entry(page, "Findings", &text)?;
        }
        Ok(())
    }
}

/// The client of a request, with its process life if that has a name of its own.
pub(super) fn client_and_life(history: &History, o: &Operation) -> String {
    let life = names::incarnation(history, o.incarnation);
    let client = names::client(history, history.incarnations[o.incarnation.index()].client);
    if life.is_empty() || life == client { client } else { format!("{client} ({life})") }
}

fn stop(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn entry(page: &mut Page<'_>, label: &str, text: &str) -> io::Result<()> {
    page.labelled(2, LABEL, (Tone::Title, label), text)
}
