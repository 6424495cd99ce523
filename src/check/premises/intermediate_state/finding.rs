//! The findings of `intermediate-state` in words. `tests/documents.rs` compares the sentences of `window` with
//! `docs/incidents/ip-reconciler.md`.

use crate::check::premises::intermediate_state::{Half, Search};
use crate::check::{BrokenBy, Draft, Fact, Kind, RuleResult};
use crate::history::{Operation, OperationId, Outcome, Revision};
use crate::order::{Pass, Version};

impl Search<'_, '_, '_> {
    pub(super) fn state(&self, result: &mut RuleResult<'_>, write: OperationId, kind: Kind, half: &Half<'_>) {
        let evidence = self.evidence;
        let o = evidence.history.operation(write);
        let client = evidence.short_client(&o);
        let request = evidence.history.request_name(&o);
        let mut facts = self.seen(half, client);
        facts.push(evidence.operation(write, o.answered, format!("{request} was answered with success")));
        facts.push(self.completion(half));
        let unproved = match kind {
            Kind::Suspect if half.completed.writer.is_some() => {
                " Not proved: nothing shows that the write rests on these reads (a record of the decision would)."
            }
            Kind::Suspect => " Not proved: nothing shows the writer of the later part.",
            _ => "",
        };
        let (early, late) = (self.early_words(half), evidence.history.key_name(half.seen_late.key));
        result.found(Draft {
            kind,
            broken_by: BrokenBy::Client,
            incarnation: o.incarnation,
            key: half.early.0,
            cause: half.title.to_owned(),
            summary: format!(
                "{client} acted on {early} while another process was {}: it had read that part, and {late} without \
                the later part",
                half.title
            ),
            facts,
            reason: format!("{}{unproved}", self.window(half, Some(&o))),
            refuted_by:
                "evidence that the process had seen the later part, or that the two writes do not belong together"
                    .to_owned(),
            consequence: "the client treats an assignment in progress as a leftover, so another client may receive it \
                         too"
            .to_owned(),
        });
    }

    /// States a decision that saw a group half done and changed nothing of it.
    pub(super) fn only_seen(&self, result: &mut RuleResult<'_>, pass: &Pass, half: &Half<'_>) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let name = history.client_name(pass.incarnation);
        let client = name.rsplit(':').next().unwrap_or(name);
        let mut facts = self.seen(half, client);
        // The write that the decision tried, if it tried one.
        let mut tried = pass.writes.iter().map(|&id| (id, history.operation(id)));
        if let Some((id, o)) = tried.rfind(|(_, o)| o.outcome() == Outcome::Rejected) {
            let says = format!("{} was refused with {}", history.request_name(&o), o.status);
            facts.push(evidence.operation(id, Revision::NONE, says));
        }
        facts.push(self.completion(half));
        let (early, late) = (self.early_words(half), history.key_name(half.seen_late.key));
        result.found(Draft {
            kind: Kind::Hazard,
            broken_by: BrokenBy::Client,
            incarnation: pass.incarnation,
            key: half.early.0,
            cause: half.title.to_owned(),
            summary: format!(
                "{client} saw {early} while another process was {}, and {late} without the later part",
                half.title
            ),
            facts,
            reason: format!("{} The decision committed no write that rests on these reads.", self.window(half, None)),
            refuted_by: "evidence that the two writes do not belong together".to_owned(),
            consequence: "a decision that treats the earlier part as a leftover would undo an operation in progress"
                .to_owned(),
        });
    }

    fn early_words(&self, half: &Half<'_>) -> String {
        let object = self.evidence.history.key_name(half.early.0);
        match half.early.1.entry.as_str() {
            "" => object,
            entry => format!("{entry} ({}) of {object}", half.early.1.of),
        }
    }

    fn seen(&self, half: &Half<'_>, client: &str) -> Vec<Fact> {
        let evidence = self.evidence;
        let mut facts = Vec::new();
        if let Some(begun) = &half.begun {
            facts.push(
                evidence.version(begun, format!("{} came: {}", self.early_words(half), evidence.change_words(begun))),
            );
        }
        let (early, late) = (self.basis.words(&half.seen_early), self.basis.words(&half.seen_late));
        facts.push(self.basis.fact(&half.seen_early, format!("{client} read {early}, with that part")));
        facts.push(self.basis.fact(&half.seen_late, format!("{client} read {late}, without its part")));
        facts
    }

    fn completion(&self, half: &Half<'_>) -> Fact {
        let words = self.evidence.change_words(&half.completed);
        self.evidence.version(&half.completed, format!("{words}, now with its part: the operation was complete"))
    }

    /// The interval in which the operation was half done, and the age of the reads when the write was sent: in revisions and,
    /// if one clock has both ends, in milliseconds.
    fn window(&self, half: &Half<'_>, write: Option<&Operation>) -> String {
        let history = self.evidence.history;
        let sent = |version: &Version| {
            let writer = version.writer.is_some().then(|| history.operation(version.writer));
            writer.map_or_else(|| version.moment(history), |o| (o.invoke, o.clock))
        };
        let between = |from: (crate::ingest::Time, crate::history::ClockId),
                       to: (crate::ingest::Time, crate::history::ClockId)| {
            let comparable = from.1 == to.1 && from.0.is_known() && to.0.is_known() && to.0 >= from.0;
            if comparable { format!(", {:.3} ms", to.0.since(from.0) as f64 / 1e6) } else { String::new() }
        };
        let mut text = match &half.begun {
            Some(begun) => format!(
                "{} was half done from revision {} to {}{}.",
                capital(half.title),
                begun.revision,
                half.completed.revision,
                between(sent(begun), sent(&half.completed))
            ),
            None => format!("{} was complete only at revision {}.", capital(half.title), half.completed.revision),
        };
        if let Some(o) = write {
            let age = between(half.seen_late.moment, (o.invoke, o.clock));
            let late = history.key_name(half.seen_late.key);
            let read = half.seen_late.seen(history, &self.basis.validity).from;
            let revisions = match (read.is_some(), o.answered.is_some()) {
                (true, true) => format!(", revisions {read} to {}", o.answered),
                _ => String::new(),
            };
            text +=
                &format!(" The window of this decision: from its last read of {late} to its write{revisions}{age}.");
        }
        text
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
