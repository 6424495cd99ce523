#![doc = include_str!("../../../docs/rules/consistent-prefix.md")]

use crate::check::sessions::observed_effect;
use crate::check::sessions::observed_effect::{Effect, Link, ObservedEffect};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{ClockId, IncarnationId, KeyId, Operation, OperationId, Symbol, Verb};
use crate::ingest::Time;
use crate::order::graph::Record;
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "consistent-prefix",
    title: "a process that acts on two collections acts on one state of both",
    group: Group::Sessions,
    promise: BrokenBy::Nobody,
    needs: "a write after a read of one resource and observations of another by the same process",
    causes: &["monotonic-reads", "stale-consistent-read", "below-minimum", "causal-order"],
    page: include_str!("../../../docs/rules/consistent-prefix.md"),
    checks: Checks::kubernetes(check),
};

/// Committed writes of processes, by decision and by object.
#[derive(Default)]
struct CommittedWrites {
    of_decision: FxHashMap<(IncarnationId, Symbol), Series>,
    of_key: FxHashMap<(IncarnationId, KeyId), Series>,
    /// Per object that is observed, the time when its last write was sent. Used for observations that lack nothing.
    last: FxHashMap<(IncarnationId, KeyId), Time>,
}

/// Writes, by clock, in order of time.
#[derive(Default)]
struct Series(Vec<(ClockId, Vec<(Time, OperationId)>)>);

impl Series {
    fn push(&mut self, id: OperationId, o: &Operation) {
        let write = (o.invoke, id);
        match self.0.iter_mut().find(|(of, _)| *of == o.clock) {
            Some((_, writes)) => writes.push(write),
            None => self.0.push((o.clock, vec![write])),
        }
    }
}

impl CommittedWrites {
    /// Collects the writes that may follow an observation.
    fn collect(evidence: &Evidence<'_>) -> CommittedWrites {
        let mut committed = CommittedWrites::default();
        let mut observed = vec![false; evidence.history.keys.len()];
        for observation in observed_effect::observations(evidence).filter(|observation| observation.key.is_some()) {
            observed[observation.key.index()] = true;
            if !is_settled(evidence, &observation) {
                committed.of_key.entry((observation.incarnation, observation.key)).or_default();
            }
        }
        for (id, o) in evidence.of_verbs(&Verb::WRITES) {
            if !evidence.committed(&o) || !o.key.is_some() || !o.invoke.is_known() {
                continue;
            }
            if o.decision.is_some() {
                committed.of_decision.entry((o.incarnation, o.decision)).or_default().push(id, &o);
            }
            if !observed[o.key.index()] {
                continue;
            }
            let of = (o.incarnation, o.key);
            if let Some(of_key) = committed.of_key.get_mut(&of) {
                of_key.push(id, &o);
            }
            let last = committed.last.entry(of).or_insert(o.invoke);
            *last = o.invoke.max(*last);
        }
        let series = committed.of_decision.values_mut().chain(committed.of_key.values_mut());
        for (_, writes) in series.flat_map(|series| &mut series.0) {
            writes.sort_unstable();
        }
        committed
    }

    /// Whether a write of the object followed an observation that lacks nothing.
    fn follow(&self, evidence: &Evidence<'_>, observation: &ObservedEffect) -> bool {
        let Record::Operation(id) = observation.record else { return false };
        let answered = evidence.history.operations.ret(id.index());
        let last = self.last.get(&(observation.incarnation, observation.key));
        last.is_some_and(|last| answered.is_known() && answered < *last)
    }

    /// The first write that followed an observation.
    fn after(&self, evidence: &Evidence<'_>, observation: &ObservedEffect) -> Option<OperationId> {
        let operations = &evidence.history.operations;
        let moment = match observation.record {
            Record::Operation(id) => (operations.ret(id.index()), operations.clock(id.index())),
            _ => observation.begun,
        };
        let series = match observation.decision.is_some() {
            true => self.of_decision.get(&(observation.incarnation, observation.decision)),
            false => self.of_key.get(&(observation.incarnation, observation.key)),
        };
        let first = |(clock, writes): &(ClockId, Vec<(Time, OperationId)>)| {
            let follows = |sent: Time| evidence.order.clocks.before(moment, (sent, *clock));
            let (_, id) = writes.get(writes.partition_point(|(sent, _)| !follows(*sent)))?;
            Some(*id)
        };
        series?.0.iter().filter_map(first).min()
    }
}

/// Whether an observation certainly lacks no change that a client had seen. Then only the existence of a later write matters.
fn is_settled(evidence: &Evidence<'_>, observation: &ObservedEffect) -> bool {
    !observation.decision.is_some() && observation.is_current(evidence)
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let committed = CommittedWrites::collect(evidence);
    for observation in observed_effect::observations(evidence) {
        if is_settled(evidence, &observation) {
            if committed.follow(evidence, &observation) {
                result.checked(observation.incarnation);
            }
            continue;
        }
        let Some(write) = committed.after(evidence, &observation) else { continue };
        result.checked(observation.incarnation);
        let Some(effect) = observed_effect::before(evidence, observation, |link| link == Link::Written) else {
            continue;
        };
        let of = |key| evidence.history.resource_of(key);
        if of(effect.cause.key) != of(effect.effect.key) {
            found(evidence, result, &effect, write);
        }
    }
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, effect: &Effect, write: OperationId) {
    let history = evidence.history;
    let Some(mut facts) = effect.facts(evidence).filter(|facts| facts.len() < 5) else { return };
    let (incarnation, o) = (effect.observation.incarnation, history.operation(write));
    let client = history.short_client(incarnation);
    let writer = history.short_client(history.operation(effect.effect.writer).incarnation);
    let (cause, seen) = (history.key_name(effect.cause.key), history.key_name(effect.effect.key));
    let acted = format!("{client} acted: {} of {}", o.verb.name(), history.key_name(o.key));
    facts.push(evidence.operation(write, o.answered, acted));
    result.found(Draft {
        kind: Kind::Hazard,
        broken_by: BrokenBy::Nobody,
        incarnation,
        key: effect.cause.key,
        cause: history.resource_name(effect.observation.resource),
        summary: format!(
            "{client} acted on {cause} in a state before {}, although it had seen {seen} at {}, which {writer} wrote \
            after that change",
            effect.cause.revision, effect.effect.revision
        ),
        facts,
        reason: "Each of the first steps comes before the next, and the last of them before the first, so the process \
                acted on a state that never existed. The API promises no order across resources."
            .to_owned(),
        refuted_by: "evidence that the process had seen the change when it acted".to_owned(),
        consequence: "the client treats a finished step of another controller as not begun".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    const TEXT: &str = "owner@A CREATE configmaps/c => configmaps/c:c1@9\nowner@A PUT configmaps/c:c1@9 => configmaps/c:c1@10\n\
                        owner@A CREATE p => p:p1@12\nagent@A GET p => p:p1@12\n\
                        agent@A READ configmaps/c => :c1@9 for start\nagent@A DELETE p:p1 for start => ok\n";

    #[test]
    fn acting_on_a_state_that_never_was_is_a_hazard() {
        assert_eq!(kinds(&RULE, TEXT), [Kind::Hazard]);
        let undeclared = TEXT
            .replace(" for start", "")
            .replace("READ configmaps/c => :c1@9", "GET configmaps/c rv=0 => configmaps/c:c1@9");
        assert_eq!(kinds(&RULE, &undeclared), []);
        let same = undeclared.replace("DELETE p:p1", "DELETE configmaps/c:c1");
        assert_eq!(kinds(&RULE, &same), [Kind::Hazard]);
    }

    #[test]
    fn nothing_is_said_without_an_act_or_with_one_state_of_both() {
        assert_eq!(kinds(&RULE, &TEXT.replace("agent@A DELETE p:p1 for start => ok\n", "")), []);
        assert!(holds(&RULE, &TEXT.replace("=> :c1@9", "=> :c1@10")));
        assert!(holds(&RULE, &TEXT.replace("owner@A CREATE p", "other@A CREATE p")));
        // One resource is one stream, which other rules judge.
        assert!(holds(&RULE, &TEXT.replace("configmaps/", "")));
    }
}
