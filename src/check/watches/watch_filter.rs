#![doc = include_str!("../../../docs/rules/watch-filter.md")]

use crate::check::etcd::watches;
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{AttributesId, DeliveryKind, KeyId, Marks, Operation, ScopeId, Verb};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-filter",
    title: "a watch, a list or a read returns only objects inside the scope that the request names",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch, or the body of an answer, with its request",
    causes: &[],
    page: include_str!("../../../docs/rules/watch-filter.md"),
    checks: Checks::kubernetes(check).and_etcd(watches::filter),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for view in StreamView::all(evidence).filter(|view| !view.is_saved()) {
        let o = view.operation;
        for (index, d) in view.changes(view.initial.start..view.live.end) {
            result.checked(o.incarnation);
            // A DELETED event of a selection carries labels from before the object left.
            let attributes = if d.kind == DeliveryKind::Deleted { AttributesId::NONE } else { d.attributes };
            let Some(how) = outside(evidence, o.scope, d.key, attributes) else { continue };
            let event = evidence.delivery_words(index);
            let fact = evidence.delivery(index, view.watch, format!("received {event}"));
            let asked = evidence.request(view.watch, o.asked_revision, format!("asked for {}", view.words()));
            result.found(draft(evidence, &o, d.key, &format!("received {event}, {how}"), vec![asked, fact]));
        }
    }
    for (id, o) in evidence.of_verbs(&[Verb::List, Verb::Get]) {
        if o.marks.has(Marks::SAVED) || !o.scope.is_some() || !o.is_answered() {
            continue;
        }
        let asked =
            || evidence.request(id, o.asked_revision, format!("asked for {}", evidence.history.request_name(&o)));
        if o.verb == Verb::Get {
            if o.marks.has(Marks::OTHER_OBJECT) {
                result.checked(o.incarnation);
                let name = evidence.history.key_name(o.key);
                let fact = evidence.operation(id, o.asked_revision, "was answered with an object of another name");
                let what = format!("asked for {name} and received an object of another name or namespace");
                result.found(draft(evidence, &o, o.key, &what, vec![asked(), fact]));
            } else if o.key.is_some() && o.answered.is_some() {
                result.checked(o.incarnation);
            }
            continue;
        }
        let items = evidence.history.items_of(&o);
        result.checked_many(o.incarnation, items.len() as u64);
        for item in items {
            let Some(how) = outside(evidence, o.scope, item.key, item.attributes) else { continue };
            let name = evidence.history.key_name(item.key);
            let fact = evidence.item(id, item.key, item.uid, item.revision, format!("the answer showed {name}"));
            result.found(draft(evidence, &o, item.key, &format!("was shown {name}, {how}"), vec![asked(), fact]));
        }
    }
}

/// The way in which an object lies outside a scope, if it does.
fn outside(evidence: &Evidence<'_>, scope: ScopeId, key: KeyId, attributes: AttributesId) -> Option<&'static str> {
    let history = evidence.history;
    let (wanted, shown) = (history.scopes[scope.index()], history.keys[key.index()]);
    if wanted.resource != shown.resource {
        return None;
    }
    let differ = |wanted, shown| {
        let (wanted, shown) = (history.name(wanted), history.name(shown));
        !wanted.is_empty() && !shown.is_empty() && wanted != shown
    };
    if differ(wanted.namespace, shown.namespace) {
        return Some("which is of another namespace than was asked for");
    }
    if differ(wanted.name, shown.name) {
        return Some("which has another name than was asked for");
    }
    let excluded = history.selects(scope, key, attributes) == Some(false);
    excluded.then_some("which the selector excludes")
}

fn draft(evidence: &Evidence<'_>, o: &Operation, key: KeyId, what: &str, facts: Vec<Fact>) -> Draft {
    Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key,
        cause: evidence.cause(o),
        summary: format!("{} {what}", evidence.observer_words(o)),
        facts,
        reason: "An answer holds only objects of the namespace and name that the request names, and only those that \
                its selectors select."
            .to_owned(),
        refuted_by: "a record of the request that shows another namespace, name or selector".to_owned(),
        consequence: "the client treats an object that it did not ask for as its own, and acts on it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

    #[test]
    fn what_leaves_a_selection_is_told_with_any_labels() {
        for (kind, labels, found) in [
            ("ADDED", r#"{"tier":"iron"}"#, 1),
            ("ADDED", r#"{"tier":"gold"}"#, 0),
            ("DELETED", r#"{"tier":"iron"}"#, 0),
        ] {
            let mut s = Specimen::new();
            let w = s.watch("&resourceVersion=20&labelSelector=tier%3Dgold");
            s.event_labelled(w, kind, ("a", "u", 23), labels);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{kind} {labels}");
        }
    }
}
