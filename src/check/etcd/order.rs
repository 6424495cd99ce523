//! `linearizability` of a recording of etcd. Input: the analysis. Output: findings for answers that do not fit the revision
//! order and for revisions without a request that made them; a certificate if nothing is wrong or open. Trap: a mismatch that
//! rests only on a log entry which may belong to another history leaves the rule open and is no finding.

use super::coherence::{incoherent, incoherent_reason};
use super::{Recorded, logs, one_fault};
use crate::check::{Fact, Kind, Proof, RuleResult};
use crate::history::Symbol;
use crate::history::etcd::Request;
use crate::order::etcd::{
    Class, Contradiction, Linearization, Mismatch, Misuse, SearchOutcome, ShownVersions, Unattributed, Unfit,
    WatchViolation, Witness,
};

/// The most candidates that a finding shows. It states the number of the others.
const CANDIDATES: usize = 16;

/// Decides a recording.
pub fn check(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    // Without any record of clients, there is no answer to explain.
    if !r.has_clients() {
        return;
    }
    r.look_at(result, |_| true);
    let analysis = r.analysis;
    let mut open: Option<String> = None;
    let mut leave_open = |reason: String| {
        open.get_or_insert(reason);
    };
    let seen = match analysis.answers.mismatches.is_empty() {
        true => None,
        false => Some(ShownVersions::of(r.recording)),
    };
    for (mismatch, &fault) in analysis.answers.mismatches.iter().zip(&analysis.root_causes.mismatches) {
        if seen.as_ref().is_some_and(|seen| r.lost(mismatch, seen).is_some()) {
            continue;
        }
        let (operation, key, facts, summary) = told(r, mismatch);
        let unsure = |by: Witness| matches!(by, Witness::Log(entry) if !analysis.timeline.is_sure(r.recording, entry));
        let guessed = facts.iter().any(|fact| fact.1.is_some_and(unsure));
        let facts: Vec<Fact> = facts.into_iter().map(|(fact, _)| fact).collect();
        if guessed {
            let summary = summary.trim_end_matches('.');
            leave_open(format!("a version that only the members' log shows does not fit an answer: {summary}"));
            continue;
        }
        let reason = match *mismatch {
            Mismatch::Miscounted { version, .. } if r.version_at(version).version == 0 => {
                "A revision changes a key at most once, and fewer revisions than that may have changed this key."
            }
            Mismatch::Misshapen { .. } => "A transaction answers each step of the branch that it took with one result.",
            Mismatch::Torn { .. } => "The conditions and the steps of a transaction read one state.",
            Mismatch::Founding { .. } => "The first write of a store makes revision 2.",
            Mismatch::Incoherent { how, sure, .. } => incoherent_reason(how, sure),
            Mismatch::Contested { .. } => {
                "Answers and events at one revision come from one state, so none of them contradicts another."
            }
            Mismatch::Recounted { .. } => "A key has one version number at a revision.",
            Mismatch::OwnChange { .. } => "A step of a transaction finds what the steps before it changed.",
            Mismatch::WrongDeletes { .. } => {
                "A delete removes each key of its interval that exists, and its answer has their number."
            }
            _ => {
                "An answer carries the revision of its state. This state is completely known, and it differs from the \
                answer."
            }
        };
        let incarnation = r.client_of(operation);
        let kind = match *mismatch {
            Mismatch::Incoherent { sure: false, .. } => Kind::Suspect,
            _ => Kind::Violation,
        };
        let draft = r.draft(kind, incarnation, key, one_fault(fault), summary, facts, reason);
        result.found_of(draft, fault);
    }
    for &(at, key) in &analysis.attribution.unrevoked {
        let version =
            analysis.timeline.at(key, r.operation(at).revision).map(|version| analysis.timeline.index(version));
        let mut facts: Vec<Fact> = version.map(|version| r.version(version)).into_iter().collect();
        facts.push(r.answered(at, format!("{}; answered at revision {}", r.asked(at), r.operation(at).revision)));
        let summary = format!("A lease was revoked, but {}, which was attached to it, remained.", r.text(key));
        let reason = "Revoking a lease removes the keys that are attached to it, in the same revision.";
        let incarnation = r.client_of(at);
        let draft = r.draft(Kind::Violation, incarnation, key, String::new(), summary, facts, reason);
        r.forgotten(draft, at, result);
    }
    if !analysis.settled {
        leave_open("the evidence does not show which of several lease ends removed which keys".to_owned());
    }
    for misuse in &analysis.misuses {
        leases(r, misuse, result, &mut leave_open);
    }
    r.ungranted(result);
    logs::unlogged(r, result);
    let explained = |gap: &Unattributed| repeated(gap).is_some() || gap.refused.is_some();
    let whole = !r.damaged && !r.lacks_clients() && analysis.attribution.unattributed.iter().all(explained);
    for (gap, &fault) in analysis.attribution.unattributed.iter().zip(&analysis.root_causes.unfilled) {
        unfilled(r, gap, whole, fault, result);
    }
    let (logs, clients): (Vec<&Contradiction>, Vec<_>) =
        analysis.timeline.contradictions.iter().partition(|c| matches!(c, Contradiction::LogDiffers { .. }));
    // The committed entries and the clients' answers either differ as a finding reports, or the log may belong to another
    // history.
    if let Some(Contradiction::LogDiffers { revision, .. }) = logs.first() {
        leave_open(match r.departure() {
            Some(_) => "the members' log and clients differ: findings of other rules name the revision".to_owned(),
            None if !analysis.replicas.differences.is_empty() => {
                "the members' stores differ from their log: findings of other rules name the revision".to_owned()
            }
            None => format!(
                "the members' log has another change at revision {revision} than clients were shown or asked for: a \
                committed request was not applied, or applied twice (as in etcd#13766 and etcd#14685), or the log \
                belongs to another history"
            ),
        });
    }
    if !clients.is_empty() || !analysis.backward.is_empty() {
        leave_open("answers contradict each other: the findings of other rules name them".to_owned());
    }
    if let Some(number) = analysis.attribution.open {
        leave_open(match analysis.reconstruction {
            Some(SearchOutcome::Nothing { at }) => unexplained(r, at, result),
            Some(SearchOutcome::Spent) => {
                format!(
                    "nothing shows every change of revision {number}, and the search for its writer exhausted its budget"
                )
            }
            _ => format!("nothing shows every change of revision {number}, nor its writer"),
        });
    }
    if analysis.answers.open > 0 {
        leave_open(format!("{} answers are of states that are not completely known", analysis.answers.open));
    }
    if let Some(at) = analysis.attribution.undecided.first() {
        leave_open(format!("the answer to `{}` does not show its changes", r.asked(*at)));
    }
    result.open = open;
    if r.proofs && result.open.is_none() && result.findings.is_empty() {
        result.proofs.extend(proof(r));
    }
}

/// The linearization of a report without findings and open questions.
fn proof(r: &Recorded<'_>) -> Option<Proof> {
    let analysis = r.analysis;
    // Old servers report progress just below the requested revision, which hides no event.
    let hides = |flaw: &WatchViolation| !matches!(flaw, WatchViolation::EarlyProgress { .. });
    if analysis.streams.flaws.iter().any(|(_, flaw)| hides(flaw)) || !analysis.placing.repeated.is_empty() {
        return None;
    }
    let Linearization { steps, removed } = Linearization::of(r.recording, analysis)?;
    let texts = |keys: Vec<Symbol>| keys.into_iter().map(|key| r.text(key).to_owned()).collect();
    let removed = removed.into_iter().map(|(revision, keys)| (revision, texts(keys))).collect();
    Some(Proof::Etcd { order: steps, removed })
}

/// A lease that was used before its grant or after its end.
fn leases(r: &Recorded<'_>, misuse: &Misuse, result: &mut RuleResult<'_>, leave_open: &mut impl FnMut(String)) {
    let Some(used) = misuse.used else {
        return leave_open("a lease that seems to have expired had already ended before".to_owned());
    };
    let asked = r.asked(used);
    let Some(bound) = misuse.bound.filter(|_| misuse.certain) else {
        let is_grant = matches!(r.operation(used).request, Request::LeaseGrant { .. });
        let state = if is_grant { "to have still been alive" } else { "not to have been alive then" };
        let why = match r.analysis.lives.has_unnumbered() {
            true => ", unless it belongs to a grant without a recorded id",
            false => "",
        };
        leave_open(format!("`{asked}` was answered although the lease seems {state}{why}"));
        return;
    };
    let fact = |at: u32| r.answered(at, format!("{}; answered at revision {}", r.asked(at), r.operation(at).revision));
    let mut facts = vec![fact(bound), fact(used)];
    // The lease of a put may stand in the log alone.
    let logged = r.analysis.log.step(r.operation(bound).revision).filter(|step| step.certain);
    if matches!(r.operation(bound).request, Request::Txn(_)) {
        facts.extend(logged.map(|step| r.committed(step.entry)));
    }
    let is_grant = matches!(r.operation(used).request, Request::LeaseGrant { .. });
    let (summary, reason) = match is_grant {
        true => (
            format!("A lease was granted although it was alive: {asked}."),
            "A lease that is alive is not granted. If it had ended before, the key that is attached to it would have \
            been removed.",
        ),
        false => (
            format!("A request was answered although its lease was not alive: {asked}."),
            "A lease is alive from its grant to its end, and requests with any other lease are refused.",
        ),
    };
    let incarnation = r.client_of(used);
    let draft = r.draft(r.unless_incomplete(), incarnation, Symbol::NONE, asked, summary, facts, reason);
    r.forgotten(draft, used, result);
}

/// A fact, and the witness of the version that it cites.
type Cited = (Fact, Option<Witness>);

fn told(r: &Recorded<'_>, mismatch: &Mismatch) -> (u32, Symbol, Vec<Cited>, String) {
    let version = |at: u32| (r.version(at), Some(r.version_at(at).shown_by));
    let answer = |at: u32, says: String| (r.answered(at, format!("{}; {says}", r.asked(at))), None);
    let found = |operation: u32, pair: u32| {
        let pair = &r.recording.pairs[pair as usize];
        let says = format!(
            "answered at revision {} with {}={} of revision {}",
            r.operation(operation).revision,
            r.text(pair.key),
            r.value(pair.value),
            pair.revision
        );
        (pair.key, answer(operation, says))
    };
    match *mismatch {
        Mismatch::Outdated { operation, pair, version: at, at: number } => {
            let (key, fact) = found(operation, pair);
            let summary = format!(
                "An answer of revision {number} shows {} as it was before revision {}.",
                r.text(key),
                r.version_at(at).revision
            );
            (operation, key, vec![version(at), fact], summary)
        }
        Mismatch::Missing { operation, version: at, at: number } => {
            let key = r.version_at(at).change.key;
            let summary = format!("An answer of revision {number} lacks {}, which existed.", r.text(key));
            let says = format!("answered at revision {} without {}", r.operation(operation).revision, r.text(key));
            (operation, key, vec![version(at), answer(operation, says)], summary)
        }
        Mismatch::Unborn { operation, pair, at: number } => {
            let (key, fact) = found(operation, pair);
            let summary =
                format!("An answer of revision {number} shows {} with a value that it never had by then.", r.text(key));
            let mut facts = vec![fact];
            facts.extend(r.analysis.timeline.at(key, number).map(|known| version(r.analysis.timeline.index(known))));
            (operation, key, facts, summary)
        }
        Mismatch::Miscounted { operation, pair, version: at } => {
            let (key, fact) = found(operation, pair);
            let known = r.version_at(at);
            let had = match known.version {
                0 => format!("it had changed at most {}", known.most),
                version => format!("it had changed {version}"),
            };
            let summary = format!(
                "An answer says that {} had changed {} times since its creation, but {had} times.",
                r.text(key),
                r.recording.pairs[pair as usize].version,
            );
            (operation, key, vec![version(at), fact], summary)
        }
        Mismatch::NotAsked { operation, pair } => {
            let (key, fact) = found(operation, pair);
            (
                operation,
                key,
                vec![fact],
                format!("An answer has {}, which its request does not name, or has it twice.", r.text(key)),
            )
        }
        Mismatch::WrongCount { operation, count, expected, at } => {
            let summary = format!("An answer of revision {at} counts {count} keys, but {expected} existed.");
            (operation, Symbol::NONE, vec![answer(operation, format!("was answered a count of {count}"))], summary)
        }
        Mismatch::WrongBranch { operation, condition, version: at, at: number } => {
            let condition = &r.recording.requests.conditions[condition as usize];
            let key = condition.keys.key;
            let taken = if r.operation(operation).failure { "false" } else { "true" };
            let summary = format!(
                "A condition on {} was decided as {taken}, against the state at revision {number}.",
                r.text(key)
            );
            let mut facts: Vec<Cited> = at.map(version).into_iter().collect();
            let says = format!("was answered at revision {} that this is {taken}", r.operation(operation).revision);
            facts.push(answer(operation, says));
            (operation, key, facts, summary)
        }
        Mismatch::WrongDelete { operation, key, version: at, at: number } => {
            let summary = format!("A delete of {} was answered against the state at revision {number}.", r.text(key));
            let mut facts: Vec<Cited> = at.map(version).into_iter().collect();
            facts.push(answer(operation, format!("answered at revision {}", r.operation(operation).revision)));
            (operation, key, facts, summary)
        }
        Mismatch::OwnChange { operation, pair } => {
            let (key, fact) = found(operation, pair);
            let summary =
                format!("A step of a transaction shows {} without the change of an earlier step.", r.text(key));
            (operation, key, vec![fact], summary)
        }
        Mismatch::WrongDeletes { operation, deleted, expected, at: number } => {
            let than = if deleted < expected { "at least" } else { "at most" };
            let summary = format!(
                "The count of a delete of an interval is {deleted}, but the number of its keys at revision {number} was \
                 {than} {expected}."
            );
            let says = format!("answered at revision {} that it removed {deleted}", r.operation(operation).revision);
            (operation, Symbol::NONE, vec![answer(operation, says)], summary)
        }
        Mismatch::Baseless { operation } => {
            let summary = "A transaction without conditions took the branch for a false condition.".to_owned();
            (
                operation,
                Symbol::NONE,
                vec![answer(operation, "was answered that a condition was false".to_owned())],
                summary,
            )
        }
        Mismatch::Mistaken { operation } => {
            let failure = r.operation(operation).failure;
            let says = format!("the answer took the branch for {} conditions", if failure { "false" } else { "true" });
            let summary =
                "The answer to a step has the form of another kind of step: a put that found keys, a read that \
                removed some or found more than it asked for, or a delete of one key that removed several."
                    .to_owned();
            (operation, Symbol::NONE, vec![answer(operation, says)], summary)
        }
        Mismatch::Misshapen { operation } => {
            let summary =
                "The answer to a transaction does not have one result for each step of the branch that it took."
                    .to_owned();
            let results = r.operation(operation).results.len;
            (operation, Symbol::NONE, vec![answer(operation, format!("answered with {results} results"))], summary)
        }
        Mismatch::Torn { operation, condition } => {
            let key = r.recording.requests.conditions[condition as usize].keys.key;
            let taken = if r.operation(operation).failure { "false" } else { "true" };
            let summary = format!(
                "An answer decides a condition on {} as {taken}, but its steps show the opposite.",
                r.text(key)
            );
            let number = r.operation(operation).revision;
            let says =
                format!("answered at revision {number}: the condition was {taken}, and the steps show otherwise");
            let facts = vec![(r.sent(operation, r.asked(operation)), None), (r.answered(operation, says), None)];
            (operation, key, facts, summary)
        }
        Mismatch::Incoherent { operation, how, .. } => {
            let (key, says, summary) = incoherent(r, how);
            (
                operation,
                key,
                vec![(r.sent(operation, r.asked(operation)), None), (r.answered(operation, says), None)],
                summary,
            )
        }
        Mismatch::Contested { operation, key, at, stay } => {
            let summary = format!(
                "An answer of the state at revision {at} contradicts another record about {} in that state.",
                r.text(key)
            );
            let says = format!("answered differently at revision {}", r.operation(operation).revision);
            (operation, key, vec![(r.stay(key, stay), None), answer(operation, says)], summary)
        }
        Mismatch::Recounted { operation, pair, other, before } => {
            let [now, then] = [pair, before].map(|at| &r.recording.pairs[at as usize]);
            let key = now.key;
            let summary = format!(
                "Two answers differ about the number of changes of {} by revision {}: {} and {}.",
                r.text(key),
                now.revision,
                then.version,
                now.version
            );
            let says = |version: i64| format!("was answered that {} had changed {version} times", r.text(key));
            (operation, key, vec![answer(other, says(then.version)), answer(operation, says(now.version))], summary)
        }
        Mismatch::Founding { operation } => {
            let summary = "A write was acknowledged at revision 1, which is the revision of an empty store.".to_owned();
            let sent = (r.sent(operation, r.asked(operation)), None);
            (operation, Symbol::NONE, vec![sent, (r.answered(operation, "acknowledged at revision 1"), None)], summary)
        }
        Mismatch::Unreached { operation } => {
            let summary = "A store answered a revision that it had not reached.".to_owned();
            let says = format!("answered at revision {}", r.operation(operation).revision);
            (operation, Symbol::NONE, vec![answer(operation, says)], summary)
        }
    }
}

/// The request that was certainly applied twice, if there is one.
fn repeated(gap: &Unattributed) -> Option<u32> {
    let used = gap.candidates.iter().find(|(_, unfit)| matches!(unfit, Unfit::Used(_))).map(|(at, _)| *at);
    gap.repeats.or(used)
}

/// Reports unattributed revisions that no choice of requests explains: the first one without a possible request.
fn unexplained(r: &Recorded<'_>, at: i64, result: &mut RuleResult<'_>) -> String {
    let analysis = r.analysis;
    let unknown = (0..r.recording.operations.len() as u32).filter(|at| analysis.effects.class(*at) == Class::Unknown);
    let mut unknown: Vec<u32> = unknown.collect();
    let more = match unknown.len().saturating_sub(CANDIDATES) {
        0 => String::new(),
        more => format!("; {more} more of unknown outcome are not shown here"),
    };
    let said = format!(
        "the server, or a client whose record is missing, made revision {at}: no choice of recorded requests for the \
        revisions without a record fits the evidence{more}"
    );
    let Some((seen, proof)) = analysis.proofs.first(at) else { return said };
    let mut facts = vec![r.proof(proof)];
    let late = |request: u32| r.operation(request).call > seen;
    unknown.sort_by_key(|request| late(*request));
    for request in unknown.into_iter().take(CANDIDATES) {
        let late = late(request);
        let why = if late { "sent after this revision had been seen" } else { "its effect does not fit there" };
        facts.push(r.sent(request, format!("{}; not answered; {why}", r.asked(request))));
    }
    let incarnation = facts[0].incarnation;
    let summary = format!("No recorded request explains revision {at}.");
    let cause = "unexplained".to_owned();
    result.found(r.draft(Kind::Suspect, incarnation, Symbol::NONE, cause, summary, facts, said.clone()));
    said
}

/// Reports a revision without a request that made it.
fn unfilled(r: &Recorded<'_>, gap: &Unattributed, whole: bool, fault: u32, result: &mut RuleResult<'_>) {
    let timeline = &r.analysis.timeline;
    let Some(revision) = timeline.revision(gap.revision) else { return };
    let version = revision.start;
    let key = r.version_at(version).change.key;
    let puts = r.version_at(version).change.value.is_some();
    let mut facts = vec![r.version(version)];
    // A dialing error may be that of a second attempt, after a first one that took effect.
    let never_sent = |at: &u32| r.text(r.operation(*at).error).to_ascii_lowercase().contains("dialing");
    let (kind, summary, reason) = if let Some(at) = gap.refused.filter(|at| puts && whole && !never_sent(at)) {
        facts.push(r.answered(at, format!("{}; was answered with a refusal", r.asked(at))));
        (
            Kind::Violation,
            format!("Revision {} has the effect of a request that was refused.", gap.revision),
            "Only this request has this effect, and a refused request has none.".to_owned(),
        )
    } else if let Some(at) = repeated(gap).filter(|_| puts && whole) {
        facts.push(r.answered(at, format!("{}; it made another revision", r.asked(at))));
        (
            Kind::Violation,
            format!("Revision {} repeats a request that had made another one.", gap.revision),
            "A request is applied once. No other client wrote this, and every other revision has a request that made it."
                .to_owned(),
        )
    } else {
        for (at, unfit) in gap.candidates.iter().take(CANDIDATES) {
            let why = match unfit {
                Unfit::Late(_) => "sent after this revision had been seen".to_owned(),
                Unfit::OtherEffect => "it would have had another effect there".to_owned(),
                Unfit::Used(other) => format!("it made revision {other}"),
            };
            facts.push(r.sent(*at, format!("{}; not answered; {why}", r.asked(*at))));
        }
        // If the log shows the version, its entry is cited already.
        if let Some(entry) = gap.entry.filter(|_| !matches!(r.version_at(version).shown_by, Witness::Log(_))) {
            facts.push(r.entry(entry, "the members' log has the request"));
        }
        let by = if gap.entry.is_some() {
            "a client whose record is missing"
        } else {
            "the server, or a client whose record is missing"
        };
        let more = match gap.candidates.len().saturating_sub(CANDIDATES) + gap.more {
            0 => String::new(),
            more => format!(", nor do {more} more of unknown outcome about this key"),
        };
        (
            Kind::Suspect,
            format!("No recorded request explains revision {}.", gap.revision),
            format!(
                "revision {} was made by {by}{}: no recorded request has this effect at this place{more}",
                gap.revision,
                r.missing_words()
            ),
        )
    };
    let cause = match kind {
        Kind::Suspect => "unexplained".to_owned(),
        _ => gap.revision.to_string(),
    };
    let incarnation = facts[0].incarnation;
    result.found_of(r.draft(kind, incarnation, key, cause, summary, facts, reason), fault);
}
