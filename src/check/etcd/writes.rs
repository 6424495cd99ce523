//! Predicates over the writes of etcd, for `revision-reuse`, `revision-rewind`, `split-timeline` and `lost-write`.

use super::{Recorded, logs, one_fault, revision, stores};
use crate::check::{Fact, Kind, RuleResult};
use crate::history::Symbol;
use crate::history::etcd::Outcome;
use crate::order::etcd::proofs::proved;
use crate::order::etcd::{Backward, Class, Contradiction, Mismatch, Proof, ShownVersions};

impl Recorded<'_> {
    /// Counts acknowledged writes.
    pub(super) fn look_at_writes(&self, result: &mut RuleResult<'_>) {
        self.look_at(result, |at| self.analysis.effects.class(at) == Class::Write);
    }

    /// The record that showed a revision, and the later request that was answered at a lower one.
    pub(super) fn went_back(&self, backward: &Backward, answered: &str) -> Vec<Fact> {
        let asked = self.asked(backward.later);
        let then = match self.operation(backward.later).revision {
            0 => format!("{asked}; was answered that this revision is in the future"),
            number => format!("{asked}; {answered} at revision {number}"),
        };
        vec![self.proof(backward.earlier), self.sent(backward.later, then)]
    }

    /// An operation and its answer, as a fact.
    pub(super) fn answer_to(&self, at: u32) -> Fact {
        let (asked, operation) = (self.asked(at), self.operation(at));
        let told = match (operation.outcome, operation.revision) {
            (Outcome::Future, _) => format!("{asked}; was answered that this revision is in the future"),
            (Outcome::Compacted, _) => format!("{asked}; was answered that this revision is compacted"),
            (_, ..=0) => format!("{asked}; answered"),
            (_, number) => format!("{asked}; answered at revision {number}"),
        };
        self.answered(at, told)
    }

    /// The record that shows that a revision exists, as a fact.
    pub(super) fn proof(&self, proof: Proof) -> Fact {
        match proof {
            Proof::Operation(at) => self.answer_to(at),
            Proof::Response(watch, n) => {
                let number = self.proved(proof);
                let fact = self.response(watch, n, format!("received revision {number}"));
                Fact { revision: revision(number), ..fact }
            }
        }
    }

    /// The highest revision that a record shows to exist.
    pub(super) fn proved(&self, proof: Proof) -> i64 {
        proved(self.recording, proof)
    }

    pub(super) fn write(&self, at: u32) -> Fact {
        self.answered(at, format!("{}; acknowledged at revision {}", self.asked(at), self.operation(at).revision))
    }
}

/// `revision-reuse`.
pub fn reuse(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    r.look_at_writes(result);
    for (contradiction, &fault) in r.analysis.timeline.contradictions.iter().zip(&r.analysis.root_causes.contradictions)
    {
        let (number, facts, key) = match *contradiction {
            Contradiction::TwoWrites(lost, kept) => {
                (r.operation(kept).revision, vec![r.write(lost), r.write(kept)], Symbol::NONE)
            }
            Contradiction::OtherKey { revision, key, shown_by } => {
                let Some(writer) = r.analysis.timeline.revision(revision).and_then(|revision| revision.writer) else {
                    continue;
                };
                let says = format!("received that revision {revision} changed {}", r.text(key));
                (revision, vec![r.write(writer), r.witness(shown_by, key, says)], key)
            }
            _ => continue,
        };
        let summary = format!("Revision {number} answers for two writes.");
        let reason = "A revision is one transaction, and etcd gives each its own number.";
        let incarnation = facts[0].incarnation;
        let mut draft = r.draft(Kind::Violation, incarnation, key, one_fault(fault), summary, facts, reason);
        draft.consequence = "one of the acknowledged writes is lost, or clients see different histories".to_owned();
        result.found_of(draft, fault);
    }
}

/// `revision-rewind`.
pub fn rewind(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    r.look_at_writes(result);
    for (backward, &fault) in r.analysis.backward.iter().zip(&r.analysis.root_causes.backward) {
        if r.analysis.effects.class(backward.later) != Class::Write {
            continue;
        }
        let facts = r.went_back(backward, "acknowledged");
        let summary = format!(
            "A write that was sent after revision {} had been seen committed at revision {}.",
            r.proved(backward.earlier),
            r.operation(backward.later).revision
        );
        let reason = "A write commits above every revision that was complete before the write was sent.";
        let incarnation = r.client_of(backward.later);
        let draft = r.draft(Kind::Violation, incarnation, Symbol::NONE, one_fault(fault), summary, facts, reason);
        result.found_of(draft, fault);
    }
}

/// `split-timeline`.
pub fn split(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    for (at, watch) in (0..).zip(&r.recording.watches) {
        let responses = &r.recording.responses[watch.responses.start as usize..][..watch.responses.len as usize];
        result.checked_many(r.watcher(at), responses.iter().map(|response| u64::from(response.events.len)).sum());
    }
    for (contradiction, &fault) in r.analysis.timeline.contradictions.iter().zip(&r.analysis.root_causes.contradictions)
    {
        let (number, key, facts) = match *contradiction {
            Contradiction::TwoContents { known, value, shown_by } => {
                let version = r.version_at(known);
                if version.shown_by.is_of_member() && shown_by.is_of_member() {
                    continue;
                }
                let key = version.change.key;
                let other = r.change(crate::order::etcd::Change { key, value });
                let says = format!("received at revision {}: {other}", version.revision);
                (version.revision, key, vec![r.version(known), r.witness(shown_by, key, says)])
            }
            Contradiction::OtherKey { revision, key, shown_by } => {
                let Some(of) = r.analysis.timeline.revision(revision).filter(|revision| revision.writer.is_none())
                else {
                    continue;
                };
                let says = format!("received that revision {revision} changed {}", r.text(key));
                (revision, key, vec![r.version(of.start), r.witness(shown_by, key, says)])
            }
            _ => continue,
        };
        let summary = format!("Revision {number} has two contents.");
        let reason = "Every member applies the same transactions, so a revision has one content on every member.";
        let incarnation = facts[1].incarnation;
        let draft = r.draft(Kind::Violation, incarnation, key, one_fault(fault), summary, facts, reason);
        result.found_of(draft, fault);
    }
    logs::split(r, result);
    stores::split(r, result);
}

impl Recorded<'_> {
    /// The acknowledged write that an answer lacks and that no other record shows.
    pub(super) fn lost(&self, mismatch: &Mismatch, seen: &ShownVersions) -> Option<(u32, u32)> {
        seen.lost(&self.analysis.timeline, mismatch)
    }
}

/// `lost-write`.
pub fn lost(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    r.look_at_writes(result);
    logs::lost(r, result);
    let mismatches = &r.analysis.answers.mismatches;
    if mismatches.is_empty() {
        return;
    }
    let seen = ShownVersions::of(r.recording);
    for (mismatch, &fault) in mismatches.iter().zip(&r.analysis.root_causes.mismatches) {
        let Some((operation, version)) = r.lost(mismatch, &seen) else { continue };
        let known = r.version_at(version);
        let told = r.operation(operation);
        let facts = vec![
            r.version(version),
            r.answered(operation, format!("{}; answered at revision {} without it", r.asked(operation), told.revision)),
        ];
        let summary = format!(
            "The write of {} that was acknowledged at revision {} is missing at revision {}.",
            r.text(known.change.key),
            known.revision,
            told.revision
        );
        let reason = "An acknowledged write stays in every later state until another write replaces it, and no write \
                     replaced this one.";
        let incarnation = facts[0].incarnation;
        let cause = known.revision.to_string();
        let draft = r.draft(Kind::Violation, incarnation, known.change.key, cause, summary, facts, reason);
        result.found_of(draft, fault);
    }
}
