#![doc = include_str!("../../../docs/rules/false-progress.md")]

use crate::check::etcd;
use crate::check::facts::lone_witness;
use crate::check::facts::staleness;
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{DeliveryKind, KeyId, OperationId, Revision};
use crate::order::EvidenceRef;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "false-progress",
    title: "a bookmark at revision B says that the stream has delivered every change through B",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "a watch with bookmarks",
    causes: &["watch-reorder", "watch-duplicate", "watch-prehistory"],
    page: include_str!("../../../docs/rules/false-progress.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::watches::progress),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for view in StreamView::all(evidence) {
        // The highest change and the highest bookmark so far. The marker is the first bookmark.
        let mut change: Option<(usize, Revision)> = None;
        let mut disproved = Vec::new();
        let mut progress = view.marker.map(|at| (at, evidence.history.deliveries[at].revision));
        if let Some((at, revision)) = progress {
            result.checked(view.operation.incarnation);
            if !revision.is_some() {
                found(evidence, result, &view, at, Counterevidence::Zero);
                progress = None;
            }
        }
        for (index, d) in view.progress() {
            if matches!(d.kind, DeliveryKind::Bookmark | DeliveryKind::InitialEventsEnd) {
                result.checked(view.operation.incarnation);
                let counterevidence = if !d.revision.is_some() {
                    Some(Counterevidence::Zero)
                } else if view.start.is_some_and(|start| d.revision < start) {
                    Some(Counterevidence::Start)
                } else if let Some((at, _)) = change.filter(|c| d.revision < c.1) {
                    Some(Counterevidence::Change(at))
                } else if let Some((at, _)) = progress.filter(|p| d.revision < p.1) {
                    Some(Counterevidence::Bookmark(at))
                } else {
                    None
                };
                match counterevidence {
                    Some(counterevidence) => found(evidence, result, &view, index, counterevidence),
                    None => progress = Some((index, d.revision)),
                }
                continue;
            }
            if !d.revision.is_some() || view.start.is_some_and(|start| d.revision <= start) {
                continue;
            }
            if let Some((_, reached)) = change
                && d.revision <= reached
            {
                continue;
            }
            if let Some((at, reached)) = progress {
                result.checked(view.operation.incarnation);
                if d.revision <= reached {
                    disproved.push(at);
                    found(evidence, result, &view, index, Counterevidence::Bookmark(at));
                }
            }
            change = Some((index, d.revision));
        }
        let is_bookmark = |kind| matches!(kind, DeliveryKind::Bookmark | DeliveryKind::InitialEventsEnd);
        let bookmarks = view.progress().filter(|(_, d)| is_bookmark(d.kind));
        for (index, d) in view.marker.map(|at| (at, &evidence.history.deliveries[at])).into_iter().chain(bookmarks) {
            if let Some(write) = lone_witness::inside(evidence, EvidenceRef::Delivery(index as u32, view.watch))
                && !disproved.contains(&index)
            {
                let gap = evidence.history.operation(write).invoke.since(d.at);
                found(evidence, result, &view, index, Counterevidence::Write(write, gap));
            }
        }
    }
}

/// The evidence that a bookmark contradicts.
#[derive(Clone, Copy)]
enum Counterevidence {
    Zero,
    Start,
    Change(usize),
    Bookmark(usize),
    /// A write that was sent this many nanoseconds after the bookmark.
    Write(OperationId, i64),
}

fn found(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    view: &StreamView<'_>,
    index: usize,
    counterevidence: Counterevidence,
) {
    let d = &evidence.history.deliveries[index];
    let words = evidence.delivery_words(index);
    let observer = evidence.observer_words(&view.operation);
    let received = |at: usize| evidence.delivery(at, view.watch, format!("received {}", evidence.delivery_words(at)));
    let asked = || evidence.request(view.watch, view.operation.asked_revision, format!("asked for {}", view.words()));
    let (facts, summary, reason) = match counterevidence {
        Counterevidence::Zero => (
            vec![asked(), evidence.delivery(index, view.watch, "received a bookmark without revision")],
            format!("{observer} received a bookmark without revision"),
            "A bookmark names the revision that the stream has reached (KEP-956), and zero is no revision.".to_owned(),
        ),
        Counterevidence::Start => (
            vec![asked(), received(index)],
            format!("{observer} received {words} on a watch from revision {}", view.operation.asked_revision),
            "A stream has reached at least the revision that it starts after.".to_owned(),
        ),
        Counterevidence::Change(at) => (
            vec![received(at), received(index)],
            format!("{observer} received {words} after {}", evidence.delivery_words(at)),
            "A bookmark names the revision that the stream has reached, so it is not below a change delivered before it."
                .to_owned(),
        ),
        Counterevidence::Bookmark(at) => (
            vec![received(at), received(index)],
            format!("{observer} received {words} after {}", evidence.delivery_words(at)),
            "A bookmark says that every change through its revision was delivered: none can follow, and no later \
            bookmark is lower."
                .to_owned(),
        ),
        Counterevidence::Write(id, _) => {
            let o = evidence.history.operation(id);
            let asked = evidence.history.request_name(&o);
            (
                vec![
                    received(index),
                    evidence.request(id, o.answered, format!("{asked} was sent")),
                    evidence.operation(id, o.answered, format!("it was answered as committed at revision {}", o.answered)),
                ],
                format!("{observer} received {words} before a client sent a change of the watch's scope that \
                        committed at revision {}", o.answered),
                "A bookmark says that every change through its revision was delivered: none can follow. Nothing else \
                shows that the store had reached that revision."
                    .to_owned(),
            )
        }
    };
    let step = evidence.order.clocks.step(view.operation.clock);
    let open = match counterevidence {
        Counterevidence::Write(_, gap) => step.map(|_| staleness::set_back(gap)),
        _ => None,
    };
    let draft = Draft {
        kind: if open.is_some() { Kind::Suspect } else { Kind::Violation },
        broken_by: BrokenBy::Server,
        incarnation: view.operation.incarnation,
        key: if d.key.is_some() { d.key } else { KeyId::NONE },
        cause: view.cause(),
        summary,
        facts,
        reason: open.map_or(reason.clone(), |open| format!("{reason} {open}")),
        refuted_by: match counterevidence {
            Counterevidence::Write(..) => {
                "evidence that the store had reached that revision and went back (`revision-rewind`)".to_owned()
            }
            _ => "a record that shows two streams here".to_owned(),
        },
        consequence: "a client that reconnects from such a bookmark misses changes, or receives them again".to_owned(),
    };
    result.found(view.settle(draft));
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::reads::stale_consistent_read;
    use crate::check::testing::specimen::Specimen;
    use crate::check::testing::trial::{holds, kinds};
    use crate::check::writes::{revision_reuse, revision_rewind};

    #[test]
    fn true_progress_is_kept() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20&allowWatchBookmarks=true");
        s.bookmark(w, 20, false).event(w, "ADDED", ("a", "u", 23)).bookmark(w, 23, false).bookmark(w, 40, false);
        s.event(w, "MODIFIED", ("a", "u", 41));
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn finds_every_way_of_claiming_too_much_or_too_little() {
        let watch = |s: &mut Specimen| s.watch("&resourceVersion=20&allowWatchBookmarks=true");
        let mut zero = Specimen::new();
        let w = watch(&mut zero);
        zero.bookmark(w, 0, false);
        let mut below_start = Specimen::new();
        let w = watch(&mut below_start);
        below_start.bookmark(w, 19, false);
        let mut below_change = Specimen::new();
        let w = watch(&mut below_change);
        below_change.event(w, "ADDED", ("a", "u", 23)).bookmark(w, 22, false);
        let mut falling = Specimen::new();
        let w = watch(&mut falling);
        falling.bookmark(w, 30, false).bookmark(w, 29, false);
        let mut followed = Specimen::new();
        let w = watch(&mut followed);
        followed.bookmark(w, 30, false).event(w, "ADDED", ("a", "u", 27));
        for s in [zero, below_start, below_change, falling, followed] {
            assert_eq!(s.kinds(&RULE), [Kind::Violation]);
        }
    }

    #[test]
    fn initial_events_are_below_their_bookmark() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=0&allowWatchBookmarks=true");
        s.event(w, "ADDED", ("b", "u2", 9)).event(w, "ADDED", ("a", "u1", 7)).bookmark(w, 12, true);
        s.event(w, "MODIFIED", ("a", "u1", 13));
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_bookmark_of_the_future_is_false_and_convicts_nobody_else() {
        let text = |bookmark: u32| {
            format!(
                "w@A  WATCH from 9 bookmarks\nc@A  CREATE a => a:u1@10\nw@A  ..  +a:u1@10 ^{bookmark}\nr@A  GET b => b:u2@8\n\
                 c@A  PUT a:u1@10 => a:u1@11\nd@A  PUT b:u2@8 => b:u2@12\n"
            )
        };
        let others = [&revision_reuse::RULE, &revision_rewind::RULE, &stale_consistent_read::RULE];
        for bookmark in [11, 12, 13] {
            assert_eq!(kinds(&RULE, &text(bookmark)), [Kind::Violation]);
            assert!(others.iter().all(|rule| kinds(rule, &text(bookmark)).is_empty()), "{bookmark}");
        }
        assert!(holds(&RULE, &text(10)));
        // If another client was shown the same revision, the store went back.
        let rewound = text(13).replace("\nr@A", "\ns@A  LIST => 13 {a:u1@10 b:u2@8}\nr@A");
        assert_eq!(kinds(&RULE, &rewound), []);
        assert!(kinds(others[1], &rewound).contains(&Kind::Violation));
    }
}
