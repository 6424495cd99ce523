//! A watch resumes below what the client had already seen: **resume backwards**.
//!
//! A reflector that lost its stream goes on from the last revision that it saw. Here the next watch of the same chain starts
//! below it, so the server must deliver again what the client had seen: deleted objects come back, are deleted again, and a
//! controller acts on each step.
//!
//! ```text
//! T          27 create a   28 create b   35 create x   38 delete x   39 create x   45 delete a
//! client     LIST => 28    WATCH 28 --------------------------------------------> (ends)
//!                          WATCH 27: b@28, x@35, x deleted, x@39 come once more
//! ```
//!
//! **A violation**, of the client, where T has a change of the watch's scope between the start and what the chain had seen: the
//! server has to replay it. A **hazard** where no such change is known, or the selectors leave it open.
//!
//! **Evidence**: the request lines of two watches of one process, with the end of the first; the audit log at level Metadata is
//! enough where the starts fall (28, 27), a capture of the stream where only the events lie above the next start.
//!
//! **Not judged**: a start that a list explains; a second consumer of the same scope (its watch begins while the other one is
//! open, and later starts may be its own); watches of command-line tools, where each is a process; an item's version right
//! after a list (`resume-from-item`). Several informers of one process with other selectors are other chains. DELETED events
//! that carry an old version raise no frontier (`delete-version`): a client that ignores them is right.
//!
//! Sources: kubernetes#58545 and #63356 (a DELETED event with an old version drags the reflector back); client-go
//! `tools/cache/reflector.go`, handleAnyWatch.

use super::stretch::{Stretch, changes};
use super::{BrokenBy, Draft, Evidence, Group, Kind, Rule, Ruling, resume_from_item};
use crate::history::{Asked, Revision, Verb};
use crate::order::{Chain, Start, Step, remembers};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "resume-backwards",
    title: "a watch resumes where the stream before it had come to",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "two watches of one process on one scope, the first with its end",
    causes: &["delete-version", "watch-reorder"],
    source: include_str!("resume_backwards.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    for chain in &evidence.order.chains.chains {
        if !remembers(evidence.history, chain.incarnation) {
            continue;
        }
        let mut others: Vec<Revision> = Vec::new();
        for step in &chain.steps {
            let o = evidence.history.operation(step.operation);
            if o.verb != Verb::Watch {
                continue;
            }
            match step.start {
                Start::NewConsumer => others.push(o.asked_revision),
                Start::Continues(_) if o.asked == Asked::From => {
                    ruling.checked(chain.incarnation);
                    // What another consumer of the scope may have come to since it began.
                    let explained = others.iter().any(|start| *start <= o.asked_revision);
                    if !explained && resume_from_item::mistaken(evidence, step).is_none() {
                        resumed(evidence, ruling, chain, step);
                    }
                }
                _ => {}
            }
        }
    }
}

fn resumed(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>, chain: &Chain, step: &Step) {
    let history = evidence.history;
    let o = history.operation(step.operation);
    let (start, Some((frontier, showing))) = (o.asked_revision, step.frontier) else { return };
    if start >= frontier {
        return;
    }
    let stretch = changes(evidence, chain.scope, start, frontier, |_| true);
    let client = evidence.short_client(o);
    let scope = history.scope_name(chain.scope);
    let mut facts = vec![
        evidence.showing(showing, frontier, format!("{client} had come to revision {frontier} of {scope}")),
        evidence.request(step.operation, start, format!("it asked to watch {scope} from revision {start}")),
    ];
    let (kind, reason) = match stretch {
        Stretch::Changed(version) => {
            facts.push(evidence.version(version, evidence.change_words(version)));
            let reason = "a watch from a revision delivers every later change of its scope: what the client had seen comes again";
            (Kind::Violation, reason)
        }
        Stretch::Open(version) => {
            facts.push(evidence.version(version, evidence.change_words(version)));
            (Kind::Hazard, "whether the selectors take in what changed in between is not in the evidence")
        }
        Stretch::Quiet => (Kind::Hazard, "no change of the scope is known in between, so nothing had to come again"),
    };
    ruling.found(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: chain.incarnation,
        key: facts.get(2).map_or_else(Default::default, |f| f.key),
        cause: scope.clone(),
        summary: format!(
            "{client} resumed its watch on {scope} from revision {start} after it had seen revision {frontier}"
        ),
        facts,
        reason: reason.to_owned(),
        refuted_by: "a list of this process, or another of its watches on this scope, that explains the start"
            .to_owned(),
        consequence:
            "events of the past are delivered once more: deleted objects come back, and controllers act on them"
                .to_owned(),
    });
}
