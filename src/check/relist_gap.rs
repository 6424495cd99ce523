//! After an error a client takes its new revision from a list that it did not finish: **relist gap**.
//!
//! A client that needs a fresh revision may ask for one page (`limit=1`) and take the revision from its metadata. That is where
//! the watch may start, yet the objects on the pages that were never read are not reconciled: what happened to them between the
//! old revision and the new one is lost.
//!
//! ```text
//! T        40 (the client stands here)   44 delete web-7   50
//! client   WATCH 40 => ERROR 500    LIST limit=1 => {web-0}, more pages, at 50    WATCH 50
//! ```
//!
//! **A violation**, of the client, where T has a change in the skipped interval of an object that the page does not show; a
//! **hazard** where none is known.
//!
//! **Evidence**: a capture of the stream that ends with an error, the body of the page, the request line of the watch after it.
//!
//! **Not judged**: lists that are continued to their end (their later pages name the same revision), and first lists, which are
//! no client's only source of state for certain.
//!
//! Sources: API concepts, "retrieving large results sets in chunks"; kubernetes-semantics, P-RELIST-GAP.

use super::stretch::{Stretch, changes};
use super::{BrokenBy, Draft, Evidence, Group, Kind, Rule, Ruling};
use crate::history::{Asked, Marks, OperationId, Verb};
use crate::order::{Chain, Start, Step, remembers};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "relist-gap",
    title: "after an error a client reads the whole list before it watches on",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a stream that ended with an error, a list after it and the watch from that list",
    causes: &[],
    source: include_str!("relist_gap.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    let history = evidence.history;
    for chain in &evidence.order.chains.chains {
        if !remembers(history, chain.incarnation) {
            continue;
        }
        for (at, step) in chain.steps.iter().enumerate() {
            let Start::List(list) = step.start else { continue };
            let Some(listing) = chain.steps[..at].iter().find(|s| s.operation == list) else { continue };
            if listing.error == 0 {
                continue;
            }
            ruling.checked(chain.incarnation);
            let listed = history.operation(list);
            let partial = listed.marks.has(Marks::LIMITED) && listed.marks.has(Marks::MORE_PAGES);
            let continued = chain.steps[..at].iter().any(|s| {
                let page = history.operation(s.operation);
                page.verb == Verb::List && page.asked == Asked::Continue && page.asked_revision == listed.answered
            });
            if partial && !continued {
                skipped(evidence, ruling, chain, step, listing);
            }
        }
    }
}

fn skipped(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>, chain: &Chain, step: &Step, listing: &Step) {
    let history = evidence.history;
    let list: OperationId = listing.operation;
    let listed = history.operation(list);
    let Some((frontier, showing)) = listing.frontier else { return };
    let revision = listed.answered;
    if revision <= frontier {
        return;
    }
    let o = history.operation(step.operation);
    let (client, scope) = (evidence.short_client(&o), history.scope_name(chain.scope));
    let count = listed.items().len();
    let mut facts = vec![
        evidence.showing(showing, frontier, format!("{client} had come to revision {frontier} of {scope}")),
        evidence.operation(
            list,
            revision,
            format!("after an error it read {count} objects of a longer list, at revision {revision}"),
        ),
        evidence.request(step.operation, revision, format!("it asked to watch {scope} from revision {revision}")),
    ];
    let unseen = |v: &crate::order::Version| history.item(&listed, v.key).is_none();
    let (kind, reason) = match changes(evidence, chain.scope, frontier, revision, unseen) {
        Stretch::Changed(version) => {
            facts.push(evidence.version(&version, evidence.change_words(&version)));
            (
                Kind::Violation,
                "the page does not show this object, and the watch begins after its change: it never reached the client",
            )
        }
        _ => (Kind::Hazard, "no change in between is known outside the page: nothing was missed this time"),
    };
    ruling.found(evidence.unless_lost(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: chain.incarnation,
        key: facts.get(3).map_or_else(Default::default, |f| f.key),
        cause: scope.clone(),
        summary: format!(
            "{client} took revision {revision} from an unfinished list of {scope} and watched on from there; it stood at {frontier}"
        ),
        facts,
        reason: reason.to_owned(),
        refuted_by: "the other pages of the list, read by this process".to_owned(),
        consequence: "what happened to the objects on the pages that were not read stays unknown to the client".to_owned(),
    }));
}

#[cfg(test)]
mod tests {
    use super::super::trial::{holds, kinds};
    use super::{Kind, RULE};

    const BEFORE: &str = "c@A WATCH from 38 +a:u1@40 !500 eof\no@A PUT z:u9@39 => z:u9@44\n";

    #[test]
    fn one_page_is_not_the_state() {
        let text = format!("{BEFORE}c@A LIST limit=1 => 50 {{a:u1@40}} more\nc@A WATCH from 50\n");
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        let shown = format!("{BEFORE}c@A LIST limit=1 => 50 {{z:u9@44}} more\nc@A WATCH from 50\n");
        assert_eq!(kinds(&RULE, &shown), [Kind::Hazard]);
    }

    #[test]
    fn a_list_read_to_its_end_is() {
        let text = format!(
            "{BEFORE}c@A LIST limit=1 => 50 {{a:u1@40}} more\nc@A LIST continue=50 limit=1 => 50 {{z:u9@44}}\nc@A WATCH from 50\n"
        );
        assert!(holds(&RULE, &text));
        assert!(holds(&RULE, &format!("{BEFORE}c@A LIST => 50 {{a:u1@40 z:u9@44}}\nc@A WATCH from 50\n")));
    }

    #[test]
    fn without_an_error_before_it_nothing_is_owed() {
        assert_eq!(kinds(&RULE, "c@A LIST limit=1 => 50 {a:u1@40} more\nc@A WATCH from 50\n"), []);
    }
}
