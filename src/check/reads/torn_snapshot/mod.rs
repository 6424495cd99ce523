#![doc = include_str!("../../../../docs/rules/torn-snapshot.md")]

mod pages;

use crate::check::facts::state_check::{Absence, Examiner, Pages, Shown, Snapshot, page, unless_open};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, KeyId, Marks, Operation, OperationId, Verb};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "torn-snapshot",
    title: "a list at revision L is exactly the state of its scope at L",
    group: Group::Reads,
    promise: BrokenBy::Server,
    needs: "a list with its body and its revision",
    causes: &["revision-rewind", "split-timeline", "revision-reuse", "wrong-snapshot"],
    page: include_str!("../../../../docs/rules/torn-snapshot.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let mut examiner = Examiner::new(evidence);
    let mut lists = None;
    for (id, o) in evidence.of_verbs(&Verb::LISTS) {
        let is_list = o.is_answered() && o.marks.has(Marks::LIST_ANSWER);
        if !is_list || !o.answered.is_some() || !o.scope.is_some() {
            continue;
        }
        result.checked(o.incarnation);
        let snapshot = snapshot(evidence, id, &o);
        for flaw in examiner.flaws(&snapshot) {
            if matches!(snapshot.absence, Absence::Between(..))
                && !snapshot.items.iter().any(|item| item.version.key == flaw.key)
                && lists.get_or_insert_with(|| Pages::of(evidence.history)).show(id, flaw.key)
            {
                continue;
            }
            let draft = draft(evidence, &o, flaw.key, &flaw.says, flaw.facts, flaw.reason);
            result.found(unless_open(draft, flaw.open));
        }
    }
    pages::audit(evidence, result);
    result.undecided_many("missing objects of unknown labels, in lists with a selector", examiner.unselected);
    result.undecided_many(
        "lists that were not searched for missing objects, because the limit of one run was reached",
        examiner.skipped,
    );
    result.undecided_many("lists with more errors than are reported", examiner.cut);
}

fn draft(evidence: &Evidence<'_>, o: &Operation, key: KeyId, says: &str, facts: Vec<Fact>, reason: String) -> Draft {
    Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key,
        cause: evidence.cause(o),
        summary: format!(
            "{} answered {} ({}) with a state of revision {} that {says}",
            evidence.server_words(o),
            evidence.observer_words(o),
            evidence.history.request_name(o),
            o.answered,
        ),
        facts,
        reason,
        refuted_by: "evidence that the versions belong to another store".to_owned(),
        consequence: "a cache that starts from this list stays wrong: the watch after it never repairs it".to_owned(),
    }
}

fn snapshot(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> Snapshot {
    let items = evidence.history.items_of(o).iter();
    let items: Vec<Shown> = items.map(|item| Shown { version: *item, delivery: None }).collect();
    let cut = o.marks.has(Marks::SAVED) || o.marks.has(Marks::TRUNCATED) || !o.marks.has(Marks::ANSWER_BODY);
    let absence = if cut || matches!(o.asked, Asked::Unrecorded | Asked::Invalid) {
        Absence::Open
    } else {
        page(evidence, o, &items)
    };
    Snapshot { scope: o.scope, revision: o.answered, operation: id, items, absence, what: "the list" }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

    /// `{"v":"meta.k8s.io/v1","rv":1002,"start":"/web-39\u0000"}`.
    const TOKEN: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMiwic3RhcnQiOiIvd2ViLTM5XHUwMDAwIn0";

    #[test]
    fn finds_an_item_above_the_list_and_a_key_twice() {
        let mut s = Specimen::new();
        s.list("?resourceVersion=0", 40, &[("a", "u1", 41)]);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
        let mut s = Specimen::new();
        s.list("?resourceVersion=0", 40, &[("a", "u1", 31), ("a", "u1", 35)]);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn a_watch_without_an_end_of_an_object_proves_it_unless_its_file_lost_a_line() {
        let found = |lost: bool| {
            let mut s = Specimen::new();
            let w = s.create("a", "u1", 31).watch("&resourceVersion=31");
            if lost {
                s.event(w, "ADDED", ("b", "u2", 33)).cut();
            }
            s.bookmark(w, 40, false).list("?resourceVersion=36&resourceVersionMatch=Exact", 36, &[]);
            s.kinds(&RULE)
        };
        assert_eq!(found(false), [Kind::Violation]);
        assert_eq!(found(true), []);
    }

    #[test]
    fn a_removal_that_names_no_uid_may_be_of_the_object_that_a_list_lacks() {
        for (uid, found) in [("", 0), ("u2", 1)] {
            let mut s = Specimen::new();
            let w = s.create("a", "u1", 31).delete("a", uid).watch("&resourceVersion=31");
            s.bookmark(w, 40, false).list("?resourceVersion=36&resourceVersionMatch=Exact", 36, &[]);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{uid}");
        }
    }

    #[test]
    fn a_later_removal_shows_that_an_object_stood_until_then_if_both_have_one_uid() {
        for (uid, found) in [("", 0), ("u1", 1)] {
            let mut s = Specimen::new();
            s.create("a", uid, 31).create("b", "u2", 40).delete("a", uid);
            s.list("?resourceVersion=36&resourceVersionMatch=Exact", 36, &[]);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{uid}");
        }
    }

    #[test]
    fn finds_a_replaced_version_and_a_deleted_object() {
        for (version, found) in [(31, 1), (35, 0)] {
            let mut s = Specimen::new();
            s.update("a", "u1", 31, 35).list("?resourceVersion=0", 40, &[("a", "u1", version)]);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
            assert!(found > 0 || s.keeps(&RULE));
        }
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=30");
        s.event(w, "DELETED", ("a", "u1", 38)).list("?resourceVersion=0", 40, &[("a", "u1", 31)]);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn finds_a_missing_object_between_two_versions_of_one_life() {
        let mut s = Specimen::new();
        s.update("a", "u1", 31, 45).list("?resourceVersion=0", 40, &[]);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
        // Two incarnations of the name may leave a gap between them.
        let mut s = Specimen::new();
        s.create("a", "u1", 31).create("a", "u2", 45).list("?resourceVersion=0", 40, &[]);
        assert!(s.keeps(&RULE));
        // A version that no later evidence shows may leave a gap too.
        let mut s = Specimen::new();
        s.create("a", "u1", 31).list("?resourceVersion=0", 40, &[]);
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn two_lists_contradict_each_other() {
        let mut s = Specimen::new();
        s.list("?resourceVersion=0", 50, &[("a", "u1", 31)]).list("?resourceVersion=0", 40, &[]);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn a_read_without_version_after_the_list_proves_what_the_list_lacked() {
        for (query, version, found) in [("", 31, 1), ("?resourceVersion=0", 31, 0), ("", 45, 0)] {
            let mut s = Specimen::new();
            s.create("b", "u9", 41).list("?resourceVersion=0", 40, &[]).get("a", query, Some(("u1", version)));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{query} {version}");
        }
        // A removal of unknown date explains the list. The error is in the read.
        let mut s = Specimen::new();
        s.create("a", "u1", 31).delete("a", "u1").list("", 40, &[]).get("a", "", Some(("u1", 31)));
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn what_a_later_request_removed_was_there() {
        for (uid, found) in [("u1", 1), ("u2", 0)] {
            let mut s = Specimen::new();
            s.create("a", "u1", 31)
                .create("b", "u9", 40)
                .list("?resourceVersion=0", 40, &[("b", "u9", 40)])
                .delete("a", uid);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{uid}");
        }
        // A deletion answers with its own revision: the object is gone at it.
        let gone = |revision: u64| {
            let text =
                format!("a@A CREATE x => x:u1@31\na@A DELETE x:u1 => x:u1@40 gone\na@B LIST rv=0 => {revision} {{}}\n");
            crate::check::testing::trial::kinds(&RULE, &text)
        };
        assert_eq!(gone(40), []);
        // Sent before the list was answered.
        let mut s = Specimen::new();
        s.create("a", "u1", 31).create("b", "u9", 40).delete("a", "u1").list("", 45, &[("b", "u9", 40)]);
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_watch_that_went_past_without_its_end_shows_that_it_was_there() {
        let missing = |query: &str, draw: &dyn Fn(&mut Specimen, u64)| {
            let mut s = Specimen::new();
            s.create("a", "u1", 31);
            let w = s.watch(query);
            draw(&mut s, w);
            s.list("?resourceVersion=0", 40, &[]);
            s.kinds(&RULE)
        };
        let past = |s: &mut Specimen, w| {
            s.bookmark(w, 45, false);
        };
        assert_eq!(missing("&resourceVersion=31&allowWatchBookmarks=true", &past), [Kind::Violation]);
        // It began later, ended below the list, has a selector, or reported a loss.
        assert_eq!(missing("&resourceVersion=32&allowWatchBookmarks=true", &past), []);
        assert_eq!(
            missing("&resourceVersion=31&allowWatchBookmarks=true", &|s, w| {
                s.bookmark(w, 39, false);
            }),
            []
        );
        assert_eq!(missing("&resourceVersion=31&allowWatchBookmarks=true&labelSelector=a%3Db", &past), []);
        assert_eq!(
            missing("&resourceVersion=31", &|s, w| {
                s.error(w, 410);
            }),
            []
        );
        // Deleted at an unknown revision.
        let deleted = |s: &mut Specimen, w| {
            s.delete("a", "u1").bookmark(w, 45, false);
        };
        assert_eq!(missing("&resourceVersion=31&allowWatchBookmarks=true", &deleted), []);
    }

    #[test]
    fn a_deletion_proves_the_life_before_it() {
        for (uid, found) in [("u1", 1), ("u2", 0)] {
            let mut s = Specimen::new();
            let w = s.create("a", "u1", 31).watch("&resourceVersion=44");
            s.event(w, "DELETED", ("a", uid, 45)).list("?resourceVersion=0", 40, &[]);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
        }
    }

    /// `{"v":"meta.k8s.io/v1","rv":1002,"start":"d\u0000"}`.
    const BEHIND_D: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMiwic3RhcnQiOiJkXHUwMDAwIn0";
    /// `{"v":"meta.k8s.io/v1","rv":1002,"start":"x"}`: Kubernetes servers do not write this token.
    const OTHER: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMiwic3RhcnQiOiJ4In0";

    #[test]
    fn a_page_is_whole_from_behind_the_page_before_to_its_own_end() {
        let first = [("a", "u1", 31), ("c", "u3", 33)];
        for (token, name, found) in [
            (BEHIND_D, "b", 1),
            (BEHIND_D, "d", 1),
            (BEHIND_D, "e", 0),
            // With this token only the items show where the page ends.
            (OTHER, "b", 1),
            (OTHER, "d", 0),
        ] {
            let mut s = Specimen::new();
            s.update(name, "u9", 900, 2000);
            s.page("?limit=2", 1002, &first, token);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{name} {token}");
        }
        for (token, name, found) in [
            (BEHIND_D, "d", 0),
            (BEHIND_D, "e", 1),
            (BEHIND_D, "z", 1),
            (OTHER, "e", 0),
            (OTHER, "z", 1),
            // Its items contradict it.
            (TOKEN, "e", 0),
            (TOKEN, "g", 1),
            (TOKEN, "z", 1),
        ] {
            let mut s = Specimen::new();
            s.update(name, "u9", 900, 2000);
            s.list(&format!("?limit=2&continue={token}"), 1002, &[("f", "u1", 31), ("h", "u3", 33)]);
            // A page that goes back behind its token is a separate finding.
            let missing = s.kinds(&RULE).into_iter().filter(|kind| *kind == Kind::Violation);
            assert_eq!(missing.count(), found, "{name} {token}");
        }
    }

    #[test]
    fn what_lies_between_the_items_of_two_pages_was_lost() {
        let pages = |second: &[crate::check::testing::specimen::Shown<'_>]| {
            let mut s = Specimen::new();
            s.update("b", "u9", 900, 2000);
            s.page("?limit=2", 1002, &[("a", "u1", 31)], BEHIND_D);
            s.list(&format!("?limit=2&continue={BEHIND_D}"), 1002, second);
            s.kinds(&RULE)
        };
        assert_eq!(pages(&[("e", "u3", 33)]), [Kind::Violation]);
        // The second page shows the object, so the list did not lose it. That page goes back behind its token.
        assert_eq!(pages(&[("b", "u9", 900)]), [Kind::Violation]);
    }

    #[test]
    fn a_selector_excuses_what_it_may_exclude() {
        for (labels, found) in [(r#"{"tier":"gold"}"#, 1), (r#"{"tier":"iron"}"#, 0)] {
            let mut s = Specimen::new();
            s.create_labelled("a", "u1", 40, labels).update_labelled("a", "u1", 40, 45, labels);
            s.list("?resourceVersion=0&labelSelector=tier%3Dgold", 40, &[]);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{labels}");
        }
        // A write at 45 on base 40 was accepted, so version 40 was current at 42.
        let mut s = Specimen::new();
        let gold = r#"{"tier":"gold"}"#;
        s.create_labelled("a", "u1", 40, gold).update_labelled("a", "u1", 40, 45, gold);
        s.list("?resourceVersion=0&labelSelector=tier%3Dgold", 42, &[]);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn other_namespaces_and_saved_lists_prove_nothing_missing() {
        let mut s = Specimen::new();
        s.update("other/a", "u1", 31, 45).list("?resourceVersion=0", 40, &[]);
        assert!(s.keeps(&RULE));
        let mut s = Specimen::new();
        s.update("a", "u1", 31, 45);
        s.file("pods.json", r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"40"},"items":[]}"#);
        assert!(s.kinds(&RULE).is_empty());
    }

    #[test]
    fn a_list_that_lacks_everything_is_named_with_a_few_of_it() {
        let mut s = Specimen::new();
        let names: Vec<String> = (0..200).map(|n| format!("web-{n}")).collect();
        for (n, name) in names.iter().enumerate() {
            s.update(name, name, 31 + 2 * n as u64, 1_000 + n as u64);
        }
        s.list("?resourceVersion=0", 700, &[]);
        assert_eq!(s.kinds(&RULE).len(), 20);
    }
}
