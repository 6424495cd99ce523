#![doc = include_str!("../../../docs/rules/read-your-writes.md")]

use crate::check::facts::absence;
use crate::check::facts::absence::is_absence;
use crate::check::facts::awareness::doubt;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, Item, KeyId, Marks, Operation, OperationId, Revision, Verb};
use crate::order::{EvidenceRef, Frontier, held, is_deliberate, remembers};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "read-your-writes",
    title: "no observation of a process excludes a write that the same process had completed before",
    group: Group::Sessions,
    promise: BrokenBy::Nobody,
    needs: "a completed write and a later read of the same resource by one process",
    causes: &["stale-consistent-read", "below-minimum", "revision-rewind", "monotonic-reads"],
    page: include_str!("../../../docs/rules/read-your-writes.md"),
    checks: Checks::kubernetes(check),
};

/// Upper bound on the own commits above an answer that are examined for one answer.
const MAX_COMMITS: usize = 10_000;

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, order) = (evidence.history, evidence.order);
    for (id, o) in evidence.of_verbs(&[Verb::List, Verb::Get, Verb::Update]) {
        if !remembers(history, o.incarnation) {
            continue;
        }
        // No version follows the observed one, so no own write can be missing from it.
        if order.frontiers.is_current(id) && (o.verb == Verb::Update || !order.frontiers.have_removals()) {
            let counts = match o.verb {
                Verb::Get => o.is_answered() && !is_deliberate(&order.chains, id, &o),
                _ => held(history, order, &o),
            };
            if counts {
                result.checked(o.incarnation);
            }
            continue;
        }
        let resource = history.scopes[o.scope.index()].resource;
        let Some(frontier) = order.frontiers.of(evidence.history, order, o.incarnation, resource) else { continue };
        let observer = Observer { evidence, frontier, id, o: &o };
        let deliberate = || is_deliberate(&order.chains, id, &o);
        match o.verb {
            Verb::List if o.is_answered() && !deliberate() => observer.list(result),
            Verb::Get if is_absence(&o) && !deliberate() => observer.absent(result),
            Verb::Get if o.is_answered() && !deliberate() && o.answered.is_some() && o.key.is_some() => {
                result.checked(o.incarnation);
                let fact = || evidence.operation(id, o.answered, format!("read it at version {}", o.answered));
                if !observer.removed(&o.answered_item(), fact, result) {
                    observer.object(o.answered, fact, result);
                }
            }
            Verb::Update if held(history, order, &o) => {
                result.checked(o.incarnation);
                let fact = || {
                    let says = format!("sent a write based on version {}", o.asked_revision);
                    evidence.request(id, o.asked_revision, says)
                };
                observer.object(o.asked_revision, fact, result);
            }
            _ => {}
        }
    }
}

struct Observer<'r> {
    evidence: &'r Evidence<'r>,
    frontier: Frontier<'r>,
    id: OperationId,
    o: &'r Operation,
}

impl Observer<'_> {
    fn list(&self, result: &mut RuleResult<'_>) {
        let (history, order, o) = (self.evidence.history, self.evidence.order, self.o);
        result.checked(o.incarnation);
        for item in history.items_of(o).iter().filter(|_| !self.frontier.removals.is_empty()) {
            let fact = || self.evidence.item(self.id, item.key, item.uid, item.revision, self.shown());
            if self.removed(item, fact, result) {
                return;
            }
        }
        let Some(revision) = order.listed_at(history, self.id) else { return };
        let commits = self.frontier.commits.above(&order.clocks, o.clock, o.invoke, revision).take(MAX_COMMITS);
        for commit in commits {
            if !history.covers_key(o.scope, commit.key) {
                continue;
            }
            let version = order.timeline.version_at(commit.key, commit.revision);
            let selected = version.and_then(|v| history.selects(o.scope, v.key, v.attributes));
            let listed = history.item(o, commit.key);
            if selected == Some(true) || listed.is_some() {
                let fact = match listed {
                    Some(item) => self.evidence.item(self.id, item.key, item.uid, revision, self.shown()),
                    None => self.evidence.item(self.id, commit.key, Default::default(), revision, self.shown()),
                };
                return self.state(
                    commit.evidence,
                    commit.revision,
                    commit.key,
                    self.saw(revision),
                    vec![fact],
                    result,
                );
            }
        }
    }

    fn shown(&self) -> String {
        format!("{} showed an older state", self.evidence.history.request_name(self.o))
    }

    /// Reports an object that an own request had removed and that is shown alive. The uid distinguishes it from a later
    /// object.
    fn removed(&self, shown: &Item, fact: impl FnOnce() -> Fact, result: &mut RuleResult<'_>) -> bool {
        let (history, order, o) = (self.evidence.history, self.evidence.order, self.o);
        let key = shown.key;
        let Some(removals) = self.frontier.removals.get(&key).filter(|_| shown.uid.is_some()) else { return false };
        let own = removals.iter().find(|removal| {
            let removal_op = history.operation(removal.operation);
            removal.excludes(history, &order.timeline, shown)
                && order.clocks.before((removal_op.ret, removal_op.clock), (o.invoke, o.clock))
        });
        let Some(own) = own else { return false };
        // The finding names the removal's revision if the revision order has it.
        let known = order
            .timeline
            .versions(key)
            .iter()
            .find(|v| v.writer == own.operation && v.change == crate::order::Change::Deleted)
            .map_or(Revision::NONE, |v| v.revision);
        let fact = fact();
        let saw = self.saw(fact.revision);
        self.state(EvidenceRef::Answer(own.operation), known, key, saw, vec![fact], result);
        true
    }

    fn object(&self, revision: Revision, fact: impl FnOnce() -> Fact, result: &mut RuleResult<'_>) {
        let (order, o) = (self.evidence.order, self.o);
        let own =
            self.frontier.commits_of.get(&o.key).and_then(|maxima| maxima.before(&order.clocks, o.clock, o.invoke));
        if let Some(commit) = own.filter(|c| c.revision > revision) {
            self.state(commit.evidence, commit.revision, o.key, self.saw(revision), vec![fact()], result);
        }
    }

    /// Judges a 404 for an object that the process had written and that existed from then on.
    fn absent(&self, result: &mut RuleResult<'_>) {
        let (evidence, order, o) = (self.evidence, self.evidence.order, self.o);
        let own =
            self.frontier.commits_of.get(&o.key).and_then(|maxima| maxima.before(&order.clocks, o.clock, o.invoke));
        let Some(commit) = own.filter(|commit| absence::certainly_existed(evidence, o.key, commit.revision)) else {
            return;
        };
        result.checked(o.incarnation);
        if let Some(facts) = absence::refuted(evidence, self.id, o, commit.revision) {
            let saw = "then received 404 for it".to_owned();
            self.state(commit.evidence, commit.revision, o.key, saw, facts, result);
        }
    }

    /// The act of the request after the write, in words.
    fn saw(&self, revision: Revision) -> String {
        match self.o.verb {
            Verb::Update => format!("based a write of it on version {revision}"),
            _ => format!("then read a state (revision {revision}) without that"),
        }
    }

    fn state(
        &self,
        write: EvidenceRef,
        commit: Revision,
        key: KeyId,
        saw: String,
        mut shown: Vec<Fact>,
        result: &mut RuleResult<'_>,
    ) {
        let (evidence, history, o) = (self.evidence, self.evidence.history, self.o);
        let (EvidenceRef::Answer(write) | EvidenceRef::Delivery(_, write)) = write;
        let by = history.operation(write);
        let object = history.key_name(key);
        let at = if commit.is_some() { format!(" at revision {commit}") } else { String::new() };
        let what = if crate::order::removes(&by) { "removed" } else { "wrote" };
        let request = history.request_name(&by);
        let answered = evidence.operation(write, commit, format!("{request} was answered with success"));
        let mut facts = vec![Fact { key, ..answered }];
        shown.retain(|fact| (fact.position, fact.operation) != (facts[0].position, facts[0].operation));
        facts.extend(shown);
        let excluded = match o.asked {
            Asked::Unset => true,
            Asked::From => commit.is_some() && o.asked_revision >= commit,
            _ => false,
        };
        let broken_by = if excluded && !o.verb.is_write() { BrokenBy::Server } else { BrokenBy::Nobody };
        let client = evidence.short_client(o);
        let refused = o.verb == Verb::Update && (o.marks.has(Marks::OPEN) || o.status >= 400);
        let doubt = match broken_by {
            BrokenBy::Nobody if !refused => doubt(evidence, (EvidenceRef::Answer(write), by.ret), o),
            _ => None,
        };
        let kind = match () {
            () if refused => Kind::Hazard,
            () if doubt.is_some() => Kind::Suspect,
            () => Kind::Violation,
        };
        let unproved = doubt.map_or(String::new(), |doubt| format!(" Not proved: {doubt}."));
        let consequence = if refused {
            "the server refused the write; a controller that does not retry on a fresh read stays wrong"
        } else {
            "it acts as if its own write had not happened, and repeats or undoes it"
        };
        result.found(Draft {
            kind,
            broken_by,
            incarnation: o.incarnation,
            key,
            cause: format!("{}|{:?}", history.resource_name(history.resource_of(key)), o.verb),
            summary: format!("{client} {what} {object}{at}, and {saw}"),
            facts,
            reason: format!(
                "No observation of a process excludes a write that it had completed before (read your \
                            writes). The write was answered before the later request was sent.{unproved}"
            ),
            refuted_by: "evidence that the write did not commit, or that the two requests are of different processes"
                .to_owned(),
            consequence: consequence.to_owned(),
        });
    }
}
