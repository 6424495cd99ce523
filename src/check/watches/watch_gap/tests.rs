//! Tests of `watch-gap`.

use crate::check::Kind;
use crate::check::testing::specimen::Specimen;
use crate::check::watches::watch_gap::RULE;

const GOLD: &str = r#"{"tier":"gold"}"#;
const IRON: &str = r#"{"tier":"iron"}"#;

#[test]
fn finds_a_change_that_the_stream_went_past() {
    for (second, found) in [(33, 0), (35, 1)] {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.create("a", "u1", 30).event(w, "ADDED", ("a", "u1", 30)).update("a", "u1", 30, 33);
        if second == 33 {
            s.event(w, "MODIFIED", ("a", "u1", 33));
        }
        s.event(w, "ADDED", ("b", "u2", 35));
        assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
        assert!(found > 0 || s.keeps(&RULE));
    }
}

#[test]
fn a_bookmark_goes_past_a_change_and_an_end_does_not() {
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20&allowWatchBookmarks=true");
    s.create("a", "u1", 30).event(w, "ADDED", ("a", "u1", 30)).update("a", "u1", 30, 33);
    assert!(s.keeps(&RULE), "the stream may still deliver it");
    s.bookmark(w, 33, false);
    assert_eq!(s.kinds(&RULE), [Kind::Violation]);
}

#[test]
fn finds_a_lost_deletion_that_another_stream_shows() {
    let mut s = Specimen::new();
    let other = s.watch("&resourceVersion=20");
    s.event(other, "ADDED", ("a", "u1", 30)).event(other, "DELETED", ("a", "u1", 33));
    let w = s.watch("&resourceVersion=31");
    s.event(w, "ADDED", ("b", "u2", 35));
    assert_eq!(s.kinds(&RULE), [Kind::Violation]);
}

#[test]
fn gaps_between_revisions_and_other_scopes_prove_nothing() {
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20");
    s.create("other/a", "u1", 30).event(w, "ADDED", ("b", "u2", 35)).event(w, "ADDED", ("c", "u3", 90));
    s.create("b", "u2", 35);
    assert!(s.keeps(&RULE));
}

#[test]
fn an_error_says_that_the_stream_lost_its_place() {
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20");
    s.create("a", "u1", 30).event(w, "ADDED", ("b", "u2", 25)).create("b", "u2", 25).error(w, 410);
    assert!(s.keeps(&RULE));
}

#[test]
fn the_initial_part_counts_from_its_end() {
    let mut s = Specimen::new();
    s.create("a", "u1", 30).update("a", "u1", 30, 33);
    let w = s.watch("&resourceVersion=0");
    s.event(w, "ADDED", ("a", "u1", 33)).event(w, "ADDED", ("b", "u2", 21)).bookmark(w, 34, true);
    s.update("a", "u1", 33, 35).event(w, "MODIFIED", ("a", "u1", 35)).bookmark(w, 36, false);
    assert!(s.keeps(&RULE));
    // Without the bookmark: from the first event that is not ADDED.
    let mut s = Specimen::new();
    s.create("a", "u1", 30).update("a", "u1", 30, 33);
    let w = s.watch("&resourceVersion=0");
    s.event(w, "ADDED", ("a", "u1", 33)).event(w, "MODIFIED", ("b", "u2", 35)).update("a", "u1", 33, 37);
    s.event(w, "MODIFIED", ("b", "u2", 39));
    assert_eq!(s.kinds(&RULE), [Kind::Violation]);
}

#[test]
fn a_selector_decides_what_is_owed() {
    // Selected and not delivered.
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20&labelSelector=tier%3Dgold");
    s.create_labelled("a", "u1", 30, GOLD).event_labelled(w, "ADDED", ("b", "u2", 35), GOLD);
    assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    // Not selected, before and after.
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20&labelSelector=tier%3Dgold");
    s.create_labelled("a", "u1", 30, IRON).update_labelled("a", "u1", 30, 33, IRON);
    s.create_labelled("b", "u2", 35, GOLD).event_labelled(w, "ADDED", ("b", "u2", 35), GOLD);
    assert!(s.keeps(&RULE));
    // Held by the stream: a change of unknown labels produces an event too.
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20&labelSelector=tier%3Dgold");
    s.event_labelled(w, "ADDED", ("a", "u1", 30), GOLD).update_labelled("a", "u1", 30, 33, IRON);
    s.event_labelled(w, "ADDED", ("b", "u2", 35), GOLD);
    assert_eq!(s.kinds(&RULE), [Kind::Violation]);
}

#[test]
fn leaving_a_selection_is_delivered_as_deleted() {
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20&labelSelector=tier%3Dgold");
    s.event_labelled(w, "ADDED", ("a", "u1", 30), GOLD).update_labelled("a", "u1", 30, 33, IRON);
    s.event_labelled(w, "DELETED", ("a", "u1", 33), GOLD).update_labelled("a", "u1", 33, 34, IRON);
    s.event_labelled(w, "ADDED", ("b", "u2", 35), GOLD);
    assert!(s.keeps(&RULE));
}

#[test]
fn an_object_selected_at_the_start_that_leaves_is_owed() {
    for (labels, found) in [(GOLD, 1), (IRON, 0)] {
        let mut s = Specimen::new();
        s.create_labelled("a", "u1", 20, labels);
        let w = s.watch("&resourceVersion=20&labelSelector=tier%3Dgold");
        s.update_labelled("a", "u1", 20, 33, IRON).event_labelled(w, "ADDED", ("b", "u2", 35), GOLD);
        assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{labels}");
    }
}

#[test]
fn a_deletion_with_an_old_version_was_delivered() {
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20");
    let other = s.watch("&resourceVersion=20");
    s.event(w, "ADDED", ("a", "u1", 30)).event(other, "ADDED", ("a", "u1", 30));
    s.event(w, "DELETED", ("a", "u1", 30)).event(other, "DELETED", ("a", "u1", 33));
    s.event(w, "ADDED", ("b", "u2", 35)).event(other, "ADDED", ("b", "u2", 35));
    assert!(s.keeps(&RULE));
}

#[test]
fn a_saved_stream_accounts_for_what_it_showed_only() {
    let event = |kind: &str, name: &str, version: u64| {
        format!(
            r#"{{"type":"{kind}","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"namespace":"d","name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}}}"#
        )
    };
    let lines = [event("ADDED", "a", 30), event("MODIFIED", "b", 31), event("MODIFIED", "b", 39)].join("\n");
    for (name, found) in [("a", vec![Kind::Suspect]), ("c", vec![])] {
        let mut s = Specimen::new();
        s.update(name, name, 30, 35).file("w.json", &lines);
        assert_eq!(s.kinds(&RULE), found, "{name}");
    }
}

#[test]
fn another_uid_of_a_name_shows_that_a_deletion_was_lost() {
    let stream = |deleted: &[(&str, u64)], second: &str| {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "ADDED", ("a", "u1", 30));
        for (uid, revision) in deleted {
            s.event(w, "DELETED", ("a", uid, *revision));
        }
        s.event(w, second, ("a", "u2", 35));
        s.kinds(&RULE)
    };
    assert_eq!(stream(&[], "ADDED"), [Kind::Violation]);
    assert_eq!(stream(&[], "MODIFIED"), [], "one object of two uids: `identity-break`");
    assert_eq!(stream(&[("u2", 33)], "ADDED"), [Kind::Violation]);
    assert_eq!(stream(&[("u1", 33)], "ADDED"), []);
    // Delivered with a wrong revision.
    assert_eq!(stream(&[("u1", 30)], "ADDED"), []);
}

#[test]
fn a_lost_deletion_that_others_recorded_is_told_once() {
    let mut s = Specimen::new();
    let other = s.watch("&resourceVersion=20");
    s.event(other, "ADDED", ("a", "u1", 30)).event(other, "DELETED", ("a", "u1", 33)).event(
        other,
        "ADDED",
        ("a", "u2", 35),
    );
    let w = s.watch("&resourceVersion=20");
    s.event(w, "ADDED", ("a", "u1", 30)).event(w, "ADDED", ("a", "u2", 35));
    assert_eq!(s.kinds(&RULE), [Kind::Violation]);
}

#[test]
fn an_error_between_two_lives_says_that_something_was_lost() {
    let mut s = Specimen::new();
    let w = s.watch("&resourceVersion=20");
    s.event(w, "ADDED", ("a", "u1", 30)).error(w, 410).event(w, "ADDED", ("a", "u2", 35));
    assert!(s.kinds(&RULE).is_empty());
}

#[test]
fn a_line_that_could_not_be_used_may_have_been_the_event() {
    let stream = |damaged: bool| {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "ADDED", ("a", "u1", 30));
        if damaged {
            s.event(w, "DELETED", ("a", "u1", 33)).cut();
        }
        s.event(w, "ADDED", ("a", "u2", 35));
        // Nothing above the stream's last revision counts as missed.
        s.event(w, "ADDED", ("b", "u3", 36)).cut();
        s.kinds(&RULE)
    };
    assert_eq!(stream(true), [Kind::Suspect]);
    assert_eq!(stream(false), [Kind::Violation]);
}

#[test]
fn finds_a_removal_of_which_only_its_answer_tells() {
    let kinds = |text: &str| crate::check::testing::trial::kinds(&RULE, text);
    let removed = "w@A CREATE x => x:u1@20\nw@A DELETE x => ok:u1\nw@A CREATE y => y:u2@24\n";
    for (stream, found) in [
        ("from 19 +x:u1@20 +y:u2@24", 1),
        ("from 19 +x:u1@20 -x:u1@22 +y:u2@24", 0),
        // It did not reach the upper bound of the removal.
        ("from 19 +x:u1@20", 0),
        // It began when the object was gone, or may have been gone.
        ("from 22 +y:u2@24", 0),
        ("labels(a=b) from 19 +y:u2@24", 0),
        ("labels(a=b) from 19 +x:u1@20 +y:u2@24", 1),
        ("labels(a=b) from 19 +x:u9@20 +y:u2@24", 0),
    ] {
        let text = format!("{removed}r@B WATCH {stream}\n");
        assert_eq!(kinds(&text), vec![Kind::Violation; found], "{stream}");
    }
}
