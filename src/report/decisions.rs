//! The decisions of one client that rested on values which were true no more, and which of them a client that waits for its own
//! writes would have put off. This is the output of `retrograde explain --client`, without a key.

use super::human::effect_label;
use super::page::{Page, Tone};
use super::reading::{Wanted, client_and_life};
use crate::check::premises::stale_decisions::{ENDLESS, EndedPremise, StaleDecision, StaleDecisions};
use crate::check::{Effect, Evidence};
use crate::counterfactual::own_writes::{Missed, judged};
use crate::explain::words::{count, moment, thousands};
use crate::history::Revision;
use crate::ingest::{Position, Time};
use crate::order::{Reading, Source};
use std::io;

/// Decisions that are listed without `--verbose`.
const MAX_DECISIONS: usize = 20;
/// Premises that are listed of one decision without `--verbose`.
const MAX_PREMISES: usize = 5;
/// Columns for the labels.
const LABEL: usize = 12;

/// Lists the decisions of the wanted clients. Returns whether the evidence has any.
pub fn write(page: &mut Page<'_>, evidence: &Evidence<'_>, wanted: &Wanted) -> io::Result<bool> {
    let client = wanted.client.as_deref().unwrap_or_default();
    let found = StaleDecisions::collect(evidence, |operation| wanted.is(evidence.history, operation));
    let Some(found) = found.filter(|found| found.writes > 0) else {
        let text = format!(
            "No declared decision of client {client} took effect. `explain` lists decisions that a capture declares, with \
             records of kind `decision` and `read`. For single requests, add `--key`."
        );
        page.paragraph(0, Tone::Plain, &text)?;
        return Ok(false);
    };
    let (written, stale) = (count(found.writes, "write"), thousands(found.stale.len() as u64));
    page.title(&format!("{written} of decisions took effect, {stale} of them on premises that had ended"))?;
    let most = if page.look().verbose { usize::MAX } else { MAX_DECISIONS };
    let mut prevented = 0;
    for (at, decision) in found.stale.iter().enumerate() {
        let ways: Vec<_> = decision.premises.iter().map(|ended| own_writes(evidence, decision, ended)).collect();
        prevented +=
            u64::from(ways.iter().any(|way| way.as_ref().is_some_and(|(effect, _)| *effect == Effect::Impossible)));
        if at < most {
            one(page, evidence, decision, &ways)?;
        }
    }
    if found.stale.len() > most {
        page.paragraph(0, Tone::Faint, &format!("and {} more", thousands((found.stale.len() - most) as u64)))?;
    }
    page.gap()?;
    if !found.stale.is_empty() {
        let text = format!(
            "A client that waits until its cache has its own writes would have put off {} of these {stale}.",
            thousands(prevented)
        );
        page.paragraph(0, Tone::Plain, &text)?;
    }
    if found.undecided > 0 {
        let text = format!("Not decided: {} ({ENDLESS}).", count(found.undecided, "write"));
        page.paragraph(0, Tone::Doubt, &text)?;
    }
    let limits = "Only reads of single objects are premises here: answers to GET, and records of kind `read`.";
    page.paragraph(0, Tone::Faint, limits)?;
    Ok(true)
}

/// The effect of waiting for the own writes of the process, and why. `None` if the object's resource is not known.
fn own_writes(evidence: &Evidence<'_>, decision: &StaleDecision, ended: &EndedPremise) -> Option<(Effect, String)> {
    let (history, premise) = (evidence.history, &ended.premise);
    let seen = match premise.reading {
        Reading::Present { revision, .. } => revision,
        Reading::Absent => Revision::NONE,
    };
    if !history.resource_of(premise.key).is_some() || ended.end.revision <= seen {
        return None;
    }
    let listed = matches!(premise.source, Source::List(_));
    let missed = Missed { key: premise.key, change: ended.end.revision, seen, moment: premise.moment, listed };
    let (effect, _, because) = judged(evidence, history.operation(decision.write).incarnation, &missed);
    Some((effect, because))
}

fn one(
    page: &mut Page<'_>,
    evidence: &Evidence<'_>,
    decision: &StaleDecision,
    ways: &[Option<(Effect, String)>],
) -> io::Result<()> {
    let (history, o) = (evidence.history, evidence.history.operation(decision.write));
    let place = |position: Position| format!("[{}:{}]", history.file_name(position.file), position.line);
    page.gap()?;
    page.paragraph(0, Tone::Title, &format!("{} {}", history.request_name(&o), place(o.position)))?;
    let at =
        |time: Time| if time.is_known() { format!("at {}", moment(time)) } else { "at an unknown time".to_owned() };
    page.labelled(2, LABEL, (Tone::Title, "Sent"), &format!("by {} {}", client_and_life(history, &o), at(o.invoke)))?;
    let most = if page.look().verbose { usize::MAX } else { MAX_PREMISES };
    for (ended, way) in decision.premises.iter().zip(ways).take(most) {
        let text = format!("{} {} {}", ended.belief, at(ended.premise.moment.0), place(ended.read));
        page.labelled(2, LABEL, (Tone::Title, "Premise"), &text)?;
        let when = match ended.read_was_stale {
            true => (Tone::Bad, "the read was stale"),
            false => (Tone::Doubt, "before the write took effect; the read may have been right"),
        };
        let end = format!("{}: {}", evidence.change_words(&ended.end), when.1);
        page.labelled(2, LABEL, (when.0, "Ended"), &end)?;
        if let Some((effect, because)) = way {
            let text = format!("for a client that waits for its own writes: {because}");
            page.labelled(2, LABEL, effect_label(*effect), &text)?;
        }
    }
    if decision.premises.len() > most {
        let more = count((decision.premises.len() - most) as u64, "more premise");
        page.paragraph(2, Tone::Faint, &format!("and {more} that had ended"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::trial::drawn;
    use crate::check::{Facts, Options};
    use crate::order::{Order, OrderOptions};
    use crate::report::page::Look;

    /// The list for one client, and whether it has decisions.
    fn listed(client: &str, sketch: &str) -> (bool, String) {
        let history = drawn(sketch);
        let (order, options) = (Order::derive(&history, &OrderOptions::default()), Options::default());
        let evidence = Evidence { history: &history, order: &order, options: &options, facts: &Facts::default() };
        let (mut out, wanted) = (Vec::new(), Wanted { client: Some(client.to_owned()), ..Wanted::default() });
        let look = Look { columns: 400, ..Look::default() };
        let any = write(&mut Page::new(&mut out, look), &evidence, &wanted).expect("memory takes every byte");
        (any, String::from_utf8(out).expect("UTF-8"))
    }

    /// A binder that reads from its cache that there is no claim, and then writes the volume.
    const DECIDES: &str = "user@A    CREATE persistentvolumes/pv-1 => persistentvolumes/pv-1:v1@22\n\
                           binder@A  READ persistentvolumeclaims/data => absent for pass\n";
    const WRITES: &str = "binder@A  PUT persistentvolumes/pv-1:v1@22 status for pass => persistentvolumes/pv-1:v1@30\n";

    /// Shows that the claim was not deleted in between.
    const LATER: &str = "user@A PUT persistentvolumeclaims/data:c1@20 => persistentvolumeclaims/data:c1@41\n";

    fn claim(by: &str, at: u32) -> String {
        format!("{by}@A CREATE persistentvolumeclaims/data => persistentvolumeclaims/data:c1@{at}\n")
    }

    #[test]
    fn a_decision_on_a_stale_read_of_an_own_write_would_have_been_put_off() {
        let (any, text) = listed("binder", &[&claim("binder", 20), DECIDES, WRITES, LATER].concat());
        assert!(any && text.contains("1 write of decisions took effect, 1 of them"), "{text}");
        for part in ["no persistentvolumeclaims", "the read was stale", "impossible", "put off 1 of these 1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_write_of_another_client_is_not_waited_for() {
        let (_, text) = listed("binder", &[&claim("user", 20), DECIDES, WRITES, LATER].concat());
        assert!(text.contains("the read was stale") && text.contains("no better"), "{text}");
        assert!(text.contains("put off 0 of these 1"), "{text}");
    }

    #[test]
    fn a_premise_that_ended_after_the_read_does_not_make_the_read_stale() {
        let (_, text) = listed("binder", &[DECIDES, &claim("user", 25), WRITES].concat());
        assert!(text.contains("the read may have been right") && !text.contains("the read was stale"), "{text}");
    }

    #[test]
    fn a_premise_that_held_is_not_listed() {
        let (any, text) = listed("binder", &[DECIDES, WRITES, &claim("user", 35)].concat());
        assert!(any && text.contains("0 of them on premises that had ended"), "{text}");
        assert!(!text.contains("put off"), "{text}");
    }

    #[test]
    fn an_absence_that_an_unrecorded_deletion_explains_is_not_listed() {
        let (_, text) = listed("binder", &[&claim("user", 20), DECIDES, WRITES].concat());
        assert!(text.contains("0 of them on premises that had ended"), "{text}");
    }

    #[test]
    fn a_client_without_declared_decisions_is_told_what_is_missing() {
        let (any, text) = listed("user", &[&claim("user", 20), DECIDES, WRITES].concat());
        assert!(!any && text.contains("records of kind `decision` and `read`"), "{text}");
    }
}
