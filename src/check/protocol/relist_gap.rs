#![doc = include_str!("../../../docs/rules/relist-gap.md")]

use crate::check::protocol::changes_between::{Stretch, changes};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, IncarnationId, KeyId, Marks, OperationId, Revision, Verb};
use crate::order::{Chain, Start, Step, Version, remembers};
use rustc_hash::{FxHashMap, FxHashSet};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "relist-gap",
    title: "a client whose stream has ended reads the whole list before it watches on from a newer revision",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a stream that has ended, a list after it and the watch from that list",
    causes: &[],
    page: include_str!("../../../docs/rules/relist-gap.md"),
    checks: Checks::kubernetes(check),
};

/// The most cache reads that are examined in one history.
const READS: usize = 1_000_000;

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let mut caches = Caches::default();
    let mut lists: Option<Lists> = None;
    for chain in &evidence.order.chains.chains {
        if !remembers(history, chain.incarnation) {
            continue;
        }
        // The revisions of which the steps so far read a further page.
        let mut continued: FxHashSet<Revision> = FxHashSet::default();
        for (at, step) in chain.steps.iter().enumerate() {
            if let Some(last) = at.checked_sub(1).map(|last| history.operation(chain.steps[last].operation))
                && last.verb == Verb::List
                && last.asked == Asked::Continue
            {
                continued.insert(last.asked_revision);
            }
            let gap = match step.start {
                Start::List(list) => {
                    let Some(listing) = chain.steps[..at].iter().rfind(|s| s.operation == list) else { continue };
                    if listing.error == 0 && !had_ended(evidence, &chain.steps[..at], listing) {
                        continue;
                    }
                    result.checked(chain.incarnation);
                    if !is_unfinished(evidence, &continued, list) {
                        continue;
                    }
                    Gap { chain, step, before: listing, page: Some(list) }
                }
                Start::Continues(previous) => {
                    let lists = lists.get_or_insert_with(|| lists_of(evidence));
                    if !jumps(evidence, step) || has_listed(evidence, lists, chain, step, previous) {
                        continue;
                    }
                    result.checked(chain.incarnation);
                    Gap { chain, step, before: step, page: None }
                }
                _ => continue,
            };
            skipped(evidence, result, &mut caches, gap);
        }
    }
}

/// Whether a list shows one page only and no further page was read.
fn is_unfinished(evidence: &Evidence<'_>, continued: &FxHashSet<Revision>, list: OperationId) -> bool {
    let listed = evidence.history.operation(list);
    let partial = listed.marks.has(Marks::LIMITED) && listed.marks.has(Marks::MORE_PAGES);
    partial && !continued.contains(&listed.answered)
}

/// Whether the stream before a list had certainly ended when the list was sent.
fn had_ended(evidence: &Evidence<'_>, steps: &[Step], listing: &Step) -> bool {
    let (history, clocks) = (evidence.history, &evidence.order.clocks);
    let list = history.operation(listing.operation);
    let before = steps.iter().rev().skip_while(|step| step.operation != listing.operation);
    let last = before.into_iter().find(|step| history.operation(step.operation).verb == Verb::Watch);
    last.is_some_and(|step| {
        let watch = history.operation(step.operation);
        !step.has_concurrent_consumers && clocks.before((watch.ret, watch.clock), (list.invoke, list.clock))
    })
}

/// Whether a watch starts above everything that the recorded stream before it had shown. After 410 this belongs to
/// `ignored-gone`.
fn jumps(evidence: &Evidence<'_>, step: &Step) -> bool {
    let history = evidence.history;
    let o = history.operation(step.operation);
    let Start::Continues(previous) = step.start else { return false };
    o.asked == Asked::From
        && !step.has_concurrent_consumers
        && step.error != 410
        && history.stream_of(previous).is_some()
        && step.frontier.is_some_and(|(frontier, _)| o.asked_revision > frontier)
}

/// The lists of each process.
type Lists = FxHashMap<IncarnationId, Vec<OperationId>>;

fn lists_of(evidence: &Evidence<'_>) -> Lists {
    let mut lists = Lists::default();
    // A list without a recorded answer may have shown the state too.
    for (id, o) in evidence.of_verbs(&[Verb::List]).filter(|(_, o)| o.is_answered() || o.marks.has(Marks::OPEN)) {
        lists.entry(o.incarnation).or_default().push(id);
    }
    lists
}

/// Whether the process had listed anything of the scope since the previous stream began. Lists are in order of time.
fn has_listed(evidence: &Evidence<'_>, lists: &Lists, chain: &Chain, step: &Step, previous: OperationId) -> bool {
    let history = evidence.history;
    let (since, until) = (history.operation(previous).invoke, history.operation(step.operation).invoke);
    let listed = lists.get(&chain.incarnation).map_or(&[][..], |listed| listed);
    let begin = listed.partition_point(|list| history.operation(*list).invoke < since);
    let between = listed[begin..].iter().map(|list| history.operation(*list)).take_while(|list| list.invoke <= until);
    between.into_iter().any(|list| history.scopes_may_overlap(list.scope, chain.scope))
}

/// A watch that starts above the last revision of its process.
#[derive(Clone, Copy)]
struct Gap<'c> {
    chain: &'c Chain,
    step: &'c Step,
    /// The step with the lower revision: the unfinished list, or the watch itself.
    before: &'c Step,
    /// The unfinished list.
    page: Option<OperationId>,
}

impl Gap<'_> {
    /// Whether the page shows an object.
    fn shows(&self, evidence: &Evidence<'_>, key: KeyId) -> bool {
        let history = evidence.history;
        self.page.is_some_and(|page| history.item(&history.operation(page), key).is_some())
    }
}

/// Reads from the caches of processes, by process, with the count of those examined.
#[derive(Default)]
struct Caches {
    reads: Option<FxHashMap<IncarnationId, Vec<u32>>>,
    looked_at: usize,
}

impl Caches {
    /// The first cache read after the watch began that still shows the version before a skipped change: its index, and the
    /// change.
    fn served(&mut self, evidence: &Evidence<'_>, gap: Gap<'_>, frontier: Revision) -> Option<(usize, Fact)> {
        let (history, order) = (evidence.history, evidence.order);
        let watch = history.operation(gap.step.operation);
        let reads = self.reads.get_or_insert_with(|| {
            let mut reads: FxHashMap<IncarnationId, Vec<u32>> = FxHashMap::default();
            let shown = history.cache_reads.iter().enumerate().filter(|(_, read)| read.revision.is_some());
            shown.for_each(|(index, read)| reads.entry(read.incarnation).or_default().push(index as u32));
            reads
        });
        for &index in reads.get(&gap.chain.incarnation)? {
            self.looked_at += 1;
            if self.looked_at > READS {
                return None;
            }
            let read = &history.cache_reads[index as usize];
            let later = order.clocks.before((watch.invoke, watch.clock), (read.at, read.clock));
            if !later || !history.covers_key(gap.chain.scope, read.key) || gap.shows(evidence, read.key) {
                continue;
            }
            let member = order.timeline.version_at(read.key, read.revision);
            if member.is_none_or(|v| history.selects(gap.chain.scope, v.key, v.attributes) != Some(true)) {
                continue;
            }
            let after = frontier.max(read.revision);
            if let Some(change) = order.timeline.between(read.key, after, watch.asked_revision).first() {
                return Some((index as usize, evidence.version(&change, evidence.change_words(&change))));
            }
            let removal = order.timeline.removals_of(read.key, read.uid).iter().find(|removal| {
                let by = history.operation(removal.operation);
                let list = gap.page.map(|page| history.operation(page)).filter(|list| list.asked == Asked::Unset);
                let shown = list.is_some_and(|list| order.clocks.before((by.ret, by.clock), (list.invoke, list.clock)));
                removal.after >= frontier && shown
            });
            if let Some(removal) = removal {
                let says = format!("{} was removed", history.key_name(read.key));
                let fact = evidence.operation(removal.operation, removal.after, says);
                return Some((index as usize, Fact { key: read.key, uid: removal.uid, ..fact }));
            }
        }
        None
    }
}

fn skipped(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, caches: &mut Caches, gap: Gap<'_>) {
    let history = evidence.history;
    let Gap { chain, step, before, page } = gap;
    let is_broken = before.error != 0;
    let Some((frontier, showing)) = before.frontier else { return };
    let o = history.operation(step.operation);
    let revision = o.asked_revision;
    if revision <= frontier {
        return;
    }
    let (client, scope) = (evidence.short_client(&o), history.scope_name(chain.scope));
    let how = if is_broken { "after an error" } else { "after its stream had ended" };
    let mut facts: Vec<Fact> =
        vec![evidence.showing(showing, frontier, format!("{client} had reached revision {frontier} of {scope}"))];
    facts.extend(page.map(|page| {
        let count = history.operation(page).items().len();
        let says = format!("{how} it read {count} objects of a longer list, at revision {revision}");
        evidence.operation(page, revision, says)
    }));
    facts.push(evidence.request(
        step.operation,
        revision,
        format!("it asked to watch {scope} from revision {revision}"),
    ));
    let unseen = |v: &Version| !gap.shows(evidence, v.key);
    let served = if is_broken { None } else { caches.served(evidence, gap, frontier) };
    let stretch = changes(evidence, chain.scope, frontier, revision, unseen);
    let (kind, reason) = match (served, stretch) {
        (Some((index, change)), _) => {
            let says = format!("{client} still read the older version from its cache");
            facts.extend([change, evidence.cache_read(index, says)]);
            (
                Kind::Suspect,
                "no read of the client shows this change, and the watch begins after it. Not proved: another consumer \
                of the process may have begun the watch while the first one was about to resume",
            )
        }
        (None, Stretch::Changed(version)) => {
            facts.push(evidence.version(&version, evidence.change_words(&version)));
            match is_broken {
                true => (
                    Kind::Violation,
                    "no read of the client shows this change, and the watch begins after it, so it never reached the client",
                ),
                false => (
                    Kind::Hazard,
                    "no read of the client shows this change, and the watch begins after it; the evidence does not \
                    show whether the client relies on its earlier state",
                ),
            }
        }
        _ if !is_broken || page.is_none() => return,
        _ => (Kind::Hazard, "no change in between is known outside the page, so the evidence shows no missed change"),
    };
    let from = match page {
        Some(_) => format!("took revision {revision} from an unfinished list of {scope} and watched on from there"),
        None => format!("watched {scope} on from revision {revision} without a list"),
    };
    let key = facts.iter().rev().map(|fact| fact.key).find(|key| key.is_some()).unwrap_or_default();
    result.found(evidence.unless_lost(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: chain.incarnation,
        key,
        cause: scope.clone(),
        summary: format!("{client} {from}; it had reached {frontier}"),
        facts,
        reason: reason.to_owned(),
        refuted_by: "a list of this process that shows the skipped changes".to_owned(),
        consequence: "the client misses the changes of the objects that it did not read".to_owned(),
    }));
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

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
    fn without_a_stream_before_it_nothing_is_owed() {
        assert_eq!(kinds(&RULE, "c@A LIST limit=1 => 50 {a:u1@40} more\nc@A WATCH from 50\n"), []);
    }

    #[test]
    fn a_watch_that_goes_on_above_its_stream_skips_what_was_in_between() {
        let on = "c@A WATCH from 50\n";
        assert_eq!(kinds(&RULE, &format!("{BEFORE}{on}")), [Kind::Violation]);
        let ended = BEFORE.replace(" !500", "");
        assert_eq!(kinds(&RULE, &format!("{ended}{on}")), [Kind::Hazard]);
        assert_eq!(kinds(&RULE, &format!("{ended}{on}c@A READ z => :u9@39 for d\n")), [Kind::Suspect]);
        // It continues at its last revision, or it had read the state elsewhere.
        assert_eq!(kinds(&RULE, &format!("{ended}c@A WATCH from 40\n")), []);
        assert_eq!(kinds(&RULE, &format!("{ended}c@A LIST => 50 {{a:u1@40 z:u9@44}}\n{on}")), []);
        // A bookmark had named the revision.
        assert_eq!(kinds(&RULE, &format!("{}{on}", ended.replace(" eof", " ~z:u9@44 ^50 eof"))), []);
        // After 410 `ignored-gone` reports it.
        assert_eq!(kinds(&RULE, &format!("{}{on}", BEFORE.replace("!500", "!410"))), []);
    }

    #[test]
    fn without_an_error_another_consumer_may_have_sent_the_page() {
        let before = BEFORE.replace(" !500", "");
        let page = "c@A LIST limit=1 => 50 {a:u1@40} more\nc@A WATCH from 50 as s\n";
        assert_eq!(kinds(&RULE, &format!("{before}{page}")), [Kind::Hazard]);
        let served = "c@A READ z => :u9@39 for d\n";
        assert_eq!(kinds(&RULE, &format!("{before}{page}{served}")), [Kind::Suspect]);
        // A cache read before the watch began proves nothing, nor does the newer version.
        assert_eq!(kinds(&RULE, &format!("{before}{served}{page}")), [Kind::Hazard]);
        assert_eq!(kinds(&RULE, &format!("{before}{page}{}", served.replace("@39", "@44"))), [Kind::Hazard]);
        // Nothing changed in between.
        assert_eq!(kinds(&RULE, &format!("c@A WATCH from 38 +a:u1@40 eof\n{page}")), []);
        // The stream is still open: another consumer requested the page.
        assert_eq!(kinds(&RULE, &format!("{}{page}", before.replace(" eof", ""))), []);
    }
}
