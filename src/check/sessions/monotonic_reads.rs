#![doc = include_str!("../../../docs/rules/monotonic-reads.md")]

use crate::check::facts::absence;
use crate::check::facts::absence::{NotFoundAnswers, is_absence};
use crate::check::facts::awareness::doubt;
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{
    Asked, AttributesId, DeliveryKind, Item, KeyId, Marks, Operation, OperationId, Revision, ScopeId, Stream, Verb,
};
use crate::order::{
    EvidenceRef, Frontier, Observation, Provenance, Start, Version, is_deliberate, remembers, stream_base,
};
use rustc_hash::FxHashSet;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "monotonic-reads",
    title: "no observation lies below one that the same process made before",
    group: Group::Sessions,
    promise: BrokenBy::Nobody,
    needs: "two observations by one process",
    causes: &[
        "stale-consistent-read",
        "below-minimum",
        "delete-version",
        "resume-backwards",
        "resume-from-item",
        "ignored-gone",
        "revision-rewind",
    ],
    page: include_str!("../../../docs/rules/monotonic-reads.md"),
    checks: Checks::kubernetes(check),
};

/// Upper bound on the observations above an answer that are examined for one answer.
const MAX_OBSERVATIONS: usize = 10_000;

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let not_found_answers = NotFoundAnswers::collect(evidence);
    let sessions = &evidence.order.sessions;
    let lists =
        evidence.of_verbs(&[Verb::List]).filter(|(_, o)| is_whole(o) && !evidence.history.is_selective(o.scope));
    let listing: FxHashSet<u32> = lists.map(|(_, o)| sessions.index_of(o.incarnation)).collect();
    for (id, o) in evidence.of_verbs(&[Verb::List, Verb::Get, Verb::Watch]) {
        if !remembers(evidence.history, o.incarnation)
            || o.verb == Verb::Watch && evidence.history.stream_of(id).is_none()
            || is_deliberate(&evidence.order.chains, id, &o)
        {
            continue;
        }
        // No version follows the observed one, so only an absence can show that it was gone.
        let may_be_absent = !not_found_answers.is_empty() || listing.contains(&sessions.index_of(o.incarnation));
        if evidence.order.frontiers.is_current(id) && !may_be_absent {
            if o.is_answered() {
                result.checked(o.incarnation);
            }
            continue;
        }
        let resource = evidence.history.scopes[o.scope.index()].resource;
        let Some(frontier) = evidence.order.frontiers.of(evidence.history, evidence.order, o.incarnation, resource)
        else {
            continue;
        };
        let reader = Reader { evidence, frontier, not_found_answers: &not_found_answers, id, o: &o };
        match o.verb {
            Verb::List if o.is_answered() => {
                if let Some(revision) = evidence.order.listed_at(evidence.history, id) {
                    result.checked(o.incarnation);
                    reader.snapshot(revision, || id_fact(evidence, id, revision), result);
                }
            }
            Verb::Get if o.is_answered() && o.answered.is_some() && o.key.is_some() => {
                result.checked(o.incarnation);
                let fact = || evidence.operation(id, o.answered, format!("read it at version {}", o.answered));
                reader.object(o.key, o.answered, fact, result);
            }
            Verb::Get if is_absence(&o) => reader.absent(result),
            Verb::Watch => reader.stream(result),
            _ => {}
        }
    }
}

/// Whether the answer to a list shows all of it.
fn is_whole(list: &Operation) -> bool {
    list.is_answered()
        && list.marks.has(Marks::LIST_ANSWER)
        && list.marks.has(Marks::ANSWER_BODY)
        && !list.marks.has(Marks::MORE_PAGES)
        && !list.marks.has(Marks::TRUNCATED)
        && !matches!(list.asked, Asked::Continue | Asked::ContinueInconsistent)
}

fn id_fact(evidence: &Evidence<'_>, id: OperationId, revision: Revision) -> Fact {
    let request = evidence.history.request_name(&evidence.history.operation(id));
    let fact = evidence.operation(id, revision, format!("{request} answered the state of revision {revision}"));
    Fact { key: KeyId::NONE, ..fact }
}

struct Reader<'r> {
    evidence: &'r Evidence<'r>,
    frontier: Frontier<'r>,
    not_found_answers: &'r NotFoundAnswers,
    id: OperationId,
    o: &'r Operation,
}

/// An earlier observation, and the reason why it contradicts the later one.
struct Conflict {
    observation: Observation,
    version: Option<Version>,
    kind: Kind,
    because: String,
}

impl Reader<'_> {
    /// Judges a state of the whole scope at a revision.
    fn snapshot(&self, revision: Revision, fact: impl FnOnce() -> Fact, result: &mut RuleResult<'_>) {
        let found = self.above_in_scopes(revision).or_else(|| self.above_in_objects(revision));
        if let Some(conflict) = found {
            self.state(conflict, self.saw(revision), vec![fact()], result);
        } else if let Some((conflict, item)) = self.listed_again() {
            let says = format!("it listed version {}", item.revision);
            let listed = self.evidence.item(self.id, item.key, item.uid, item.revision, says);
            self.state(conflict, self.saw(revision), vec![listed], result);
        } else if let Some(observation) = self.unproved_above(revision) {
            self.suspect_clock(observation, revision, fact(), result);
        } else if let Some(conflict) =
            self.below_its_start(revision).or_else(|| self.above_of_unknown_selection(revision))
        {
            self.state(conflict, self.saw(revision), vec![fact()], result);
        }
    }

    /// The observation in words.
    fn saw(&self, revision: Revision) -> String {
        format!("saw {} at revision {revision}", self.evidence.history.scope_name(self.o.scope))
    }

    /// A watch of the same scope at the beginning of the evidence: the process named a revision that it must have learned
    /// before.
    fn below_its_start(&self, revision: Revision) -> Option<Conflict> {
        let (order, o) = (self.evidence.order, self.o);
        let maxima = self.frontier.begun.get(&o.scope)?;
        let observation =
            maxima.before(&order.clocks, o.clock, o.invoke).filter(|observation| observation.revision > revision)?;
        let because = "both are of one scope. Not proved: the observations of the process before its watch began are \
                      not recorded, and a client may have the number from another client"
            .to_owned();
        Some(Conflict { observation, version: None, kind: Kind::Suspect, because })
    }

    /// An observation of an object of which the evidence does not show whether the list selects it.
    fn above_of_unknown_selection(&self, revision: Revision) -> Option<Conflict> {
        let (history, order, o) = (self.evidence.history, self.evidence.order, self.o);
        let mut observations =
            self.frontier.objects.above(&order.clocks, o.clock, o.invoke, revision).take(MAX_OBSERVATIONS);
        let is_open = |observation: &Observation| {
            let version = order.timeline.version_at(observation.key, observation.revision);
            let attributes = version.map_or(AttributesId::NONE, |version| version.attributes);
            history.covers_key(o.scope, observation.key)
                && history.selects(o.scope, observation.key, attributes).is_none()
                && !self.was_outside(observation.key, revision, observation.revision)
        };
        let observation = observations.find(is_open)?;
        let because = "the object that it had seen may be inside the list's scope. Not proved: the evidence does not \
                      show the fields that the selectors name"
            .to_owned();
        Some(Conflict { observation, version: None, kind: Kind::Suspect, because })
    }

    /// Whether a version of an object between two revisions, or the last one before them, is known to be outside the
    /// selection.
    fn was_outside(&self, key: KeyId, after: Revision, through: Revision) -> bool {
        let (history, timeline) = (self.evidence.history, &self.evidence.order.timeline);
        let between = timeline.between(key, after, through);
        timeline
            .at_or_before(key, after)
            .into_iter()
            .chain(between.iter())
            .any(|v| history.selects(self.o.scope, v.key, v.attributes) == Some(false))
    }

    /// An item with a version that was gone when an earlier answer showed that the name has no object.
    fn listed_again(&self) -> Option<(Conflict, Item)> {
        if self.not_found_answers.is_empty() {
            return None;
        }
        let items = self.evidence.history.items_of(self.o).iter();
        items
            .filter(|item| item.revision.is_some())
            .find_map(|item| Some((self.absent_before(item.key, item.revision)?, *item)))
    }

    /// An earlier answer that the name has no object, after the end of the given version.
    fn absent_before(&self, key: KeyId, version: Revision) -> Option<Conflict> {
        let not_found = self.not_found_answers.before(self.evidence, self.o, key, version)?;
        let observation = Observation {
            time: not_found.time,
            clock: self.o.clock,
            revision: not_found.revision,
            key,
            evidence: EvidenceRef::Answer(not_found.id),
        };
        let because = "that version was gone when an earlier answer said that the object does not exist".to_owned();
        Some(Conflict { observation, version: None, kind: Kind::Violation, because })
    }

    /// Judges a 404: the process had seen the object, and the object existed from then on.
    fn absent(&self, result: &mut RuleResult<'_>) {
        let (evidence, o) = (self.evidence, self.o);
        let (history, order) = (evidence.history, evidence.order);
        let own = self.frontier.keys.get(&o.key).and_then(|maxima| maxima.before(&order.clocks, o.clock, o.invoke));
        let of_scope = |scope: ScopeId| {
            let observation = self.frontier.scopes.get(&scope)?.before(&order.clocks, o.clock, o.invoke)?;
            let version = order.timeline.at_or_before(o.key, observation.revision)?;
            (history.covers_key(scope, o.key) && history.selects(scope, o.key, version.attributes) == Some(true))
                .then_some(observation)
        };
        let seen = own.into_iter().chain(self.frontier.scopes.ids().into_iter().filter_map(of_scope));
        for observation in seen.filter(|observation| absence::certainly_existed(evidence, o.key, observation.revision))
        {
            result.checked(o.incarnation);
            let Some(facts) = absence::refuted(evidence, self.id, o, observation.revision) else { continue };
            let because = "the object that it had seen existed the whole time".to_owned();
            let conflict = Conflict { observation, version: None, kind: Kind::Violation, because };
            let saw = format!("was answered that {} does not exist", history.key_name(o.key));
            return self.state(conflict, saw, facts, result);
        }
    }

    /// Earlier observations from lists and streams.
    fn above_in_scopes(&self, revision: Revision) -> Option<Conflict> {
        let (history, order, o) = (self.evidence.history, self.evidence.order, self.o);
        let mut weaker = None;
        let highest = self.frontier.progress.before(&order.clocks, o.clock, o.invoke)?;
        if highest.revision <= revision {
            return None;
        }
        let mut scopes = self.frontier.scopes.ids();
        // The same scope first, because it gives the simplest proof.
        scopes.sort_by_key(|&s| (s != o.scope, s));
        for scope in scopes {
            let maxima = self.frontier.scopes.get(&scope);
            let Some(observation) = maxima.and_then(|maxima| maxima.before(&order.clocks, o.clock, o.invoke)) else {
                continue;
            };
            if observation.revision <= revision || !history.scopes_may_overlap(scope, o.scope) {
                continue;
            }
            let resource = history.scopes[o.scope.index()].resource;
            let inside = |v: &Version| {
                [scope, o.scope].iter().all(|&s| {
                    history.covers_key(s, v.key)
                        && (history.selects(s, v.key, v.attributes) == Some(true) || self.was_selected(s, v))
                })
            };
            let version = order.timeline.of_resource(resource, revision, observation.revision).find(inside);
            if version.is_some() {
                let because = "the change in between lies inside both scopes".to_owned();
                return Some(Conflict { observation, version, kind: Kind::Violation, because });
            }
            let is_quiet = order.timeline.covers(history, o.scope, revision, observation.revision, Provenance::Event);
            if scope == o.scope {
                let because = match is_quiet {
                    true => {
                        "both show the same scope, and the revision went back although nothing in the scope changed \
                        in between"
                    }
                    false => "both show the same scope",
                };
                return Some(Conflict { observation, version, kind: Kind::Violation, because: because.to_owned() });
            }
            if is_quiet {
                continue;
            }
            let because = "the two scopes overlap, and no change in between is known inside both".to_owned();
            weaker = weaker.or(Some(Conflict { observation, version, kind: Kind::Suspect, because }));
        }
        weaker
    }

    /// Whether the previous version was selected. Then a deletion, or a change out of the selection, lies inside the scope
    /// too.
    fn was_selected(&self, scope: ScopeId, version: &Version) -> bool {
        let before = version.revision.previous();
        let previous = self.evidence.order.timeline.at_or_before(version.key, before);
        previous.is_some_and(|p| self.evidence.history.selects(scope, p.key, p.attributes) == Some(true))
    }

    /// Earlier observations of single objects inside the scope.
    fn above_in_objects(&self, revision: Revision) -> Option<Conflict> {
        let (order, o) = (self.evidence.order, self.o);
        let observations =
            self.frontier.objects.above(&order.clocks, o.clock, o.invoke, revision).take(MAX_OBSERVATIONS);
        let mut best: Option<Observation> = None;
        for observation in observations {
            if best.is_none_or(|best| best.revision < observation.revision) && self.is_inside(&observation) {
                best = Some(observation);
            }
        }
        best.map(|observation| Conflict {
            observation,
            version: order.timeline.version_at(observation.key, observation.revision),
            kind: Kind::Violation,
            because: "the object that it had seen is inside the list's scope".to_owned(),
        })
    }

    /// Whether an observed object is inside the list's scope.
    fn is_inside(&self, observation: &Observation) -> bool {
        let (history, o) = (self.evidence.history, self.o);
        if !history.covers_key(o.scope, observation.key) {
            return false;
        }
        // The answer to a deletion shows a revision of the object, and not whether the revision is that of the deletion. So it is
        // of no known version.
        let version = self.evidence.order.timeline.version_at(observation.key, observation.revision);
        let attributes = version.map_or(AttributesId::NONE, |version| version.attributes);
        let selected = history.selects(o.scope, observation.key, attributes);
        // If the list's selector is undecided, a delivery counts only if the list has the object: the object may have entered
        // or left the selection.
        let is_listed = || history.items_of(o).iter().any(|item| item.key == observation.key);
        selected.unwrap_or_else(is_listed)
    }

    /// Judges one object at a version. Returns whether the process went back.
    fn object(&self, key: KeyId, revision: Revision, fact: impl FnOnce() -> Fact, result: &mut RuleResult<'_>) -> bool {
        let (history, order, o) = (self.evidence.history, self.evidence.order, self.o);
        let own = self.frontier.keys.get(&key).and_then(|maxima| maxima.before(&order.clocks, o.clock, o.invoke));
        if let Some(observation) = own.filter(|s| s.revision > revision) {
            let because = "both are of one object".to_owned();
            let version = order.timeline.version_at(key, observation.revision);
            let conflict = Conflict { observation, version, kind: Kind::Violation, because };
            self.state(conflict, self.saw(revision), vec![fact()], result);
            return true;
        }
        if let Some(conflict) = self.absent_before(key, revision).or_else(|| self.missed(key, revision)) {
            self.state(conflict, self.saw(revision), vec![fact()], result);
            return true;
        }
        let Some(highest) = self.frontier.progress.before(&order.clocks, o.clock, o.invoke) else { return false };
        if order.timeline.between(key, revision, highest.revision).is_empty() {
            return false;
        }
        for scope in self.frontier.scopes.ids() {
            if !history.covers_key(scope, key) {
                continue;
            }
            let maxima = self.frontier.scopes.get(&scope);
            let Some(observation) = maxima.and_then(|maxima| maxima.before(&order.clocks, o.clock, o.invoke)) else {
                continue;
            };
            let between = order.timeline.between(key, revision, observation.revision);
            let version = between
                .iter()
                .find(|v| history.selects(scope, v.key, v.attributes) == Some(true) || self.was_selected(scope, v));
            if let Some(version) = version {
                let because = "the state that it had seen includes the change in between".to_owned();
                let conflict = Conflict { observation, version: Some(version), kind: Kind::Violation, because };
                self.state(conflict, self.saw(revision), vec![fact()], result);
                return true;
            }
        }
        false
    }

    /// A whole list at or above a version, without the name. The version was gone by then.
    fn missed(&self, key: KeyId, revision: Revision) -> Option<Conflict> {
        let (history, order, o) = (self.evidence.history, self.evidence.order, self.o);
        let highest = self.frontier.progress.before(&order.clocks, o.clock, o.invoke)?;
        let version = order.timeline.version_at(key, revision)?;
        if highest.revision < revision || order.timeline.present_through(&version) >= highest.revision {
            return None;
        }
        let of_scope = |scope: ScopeId| {
            let observation = self.frontier.scopes.get(&scope)?.before(&order.clocks, o.clock, o.invoke)?;
            let EvidenceRef::Answer(id) = observation.evidence else { return None };
            let list = history.operation(id);
            let is_whole = list.verb == Verb::List && list.answered == observation.revision && is_whole(&list);
            let counts = is_whole && observation.revision >= revision && !history.is_selective(scope);
            (counts && history.covers_key(scope, key) && history.item(&list, key).is_none()).then_some(observation)
        };
        let observation = self.frontier.scopes.ids().into_iter().find_map(of_scope)?;
        let because = "that version was gone in the state that it had listed".to_owned();
        Some(Conflict { observation, version: None, kind: Kind::Violation, because })
    }

    /// Judges the beginning of a watch, and what a reflector's stream delivers again.
    fn stream(&self, result: &mut RuleResult<'_>) {
        let (history, order) = (self.evidence.history, self.evidence.order);
        let Some(stream) = history.stream_of(self.id) else { return };
        result.checked(self.o.incarnation);
        if matches!(order.chains.start_of(self.id), Some(Start::Continues(_) | Start::Item(_))) {
            return self.repeated(result);
        }
        let marker = stream.deliveries().find(|&i| history.deliveries[i].kind == DeliveryKind::InitialEventsEnd);
        if let (Some(index), Some(base)) = (marker, stream_base(history, stream.id)) {
            let says = format!("its initial events showed the state of revision {base}");
            let fact = || self.evidence.delivery(index, self.id, says);
            return self.snapshot(base, fact, result);
        }
        // Without a marker the initial part ends at the first event that is not ADDED.
        let mut is_found = false;
        for index in stream.deliveries() {
            let d = &history.deliveries[index];
            if d.kind != DeliveryKind::Added {
                break;
            }
            let fact = || self.evidence.delivery(index, self.id, "its initial events showed this version");
            is_found |= self.object(d.key, d.revision, fact, result);
        }
        if !is_found {
            self.initial_state(stream, result);
        }
    }

    /// The state that initial events without a marker show lies below the first change that the stream delivered afterwards.
    fn initial_state(&self, stream: &Stream, result: &mut RuleResult<'_>) {
        // A client takes the events that it asked for as a state only at their marker.
        if self.o.marks.has(Marks::INITIAL_EVENTS) {
            return;
        }
        let view = StreamView::of(self.evidence, stream);
        // A DELETED event can carry an earlier version.
        let mut live = view.changes(view.live.clone()).filter(|(_, d)| d.kind != DeliveryKind::Deleted);
        let Some((index, first)) = live.next().filter(|_| !view.initial.is_empty()) else { return };
        let (above, through) = (first.revision, first.revision.previous());
        if view.changes(view.initial.clone()).any(|(_, d)| d.revision >= above) {
            return;
        }
        if let Some(conflict) = self.above_in_scopes(through).or_else(|| self.above_in_objects(through)) {
            let saw = format!("saw {} below revision {above}", self.evidence.history.scope_name(self.o.scope));
            let fact = self.evidence.delivery(index, self.id, "this change followed the initial events");
            self.state(conflict, saw, vec![fact], result);
        }
    }

    /// A chain that continues from below its watermark receives its past again.
    fn repeated(&self, result: &mut RuleResult<'_>) {
        let (history, order, o) = (self.evidence.history, self.evidence.order, self.o);
        let Some(stream) = history.stream_of(self.id) else { return };
        let maxima = self.frontier.scopes.get(&o.scope);
        let Some(observation) = maxima.and_then(|maxima| maxima.before(&order.clocks, o.clock, o.invoke)) else {
            return;
        };
        let seen = stream.deliveries().find(|&index| {
            let d = &history.deliveries[index];
            d.key.is_some()
                && d.revision.is_some()
                && d.revision <= observation.revision
                && !order.timeline.is_misdated(index)
        });
        // An event at the watermark itself was delivered before, as were those below it. Only the latter count.
        let Some(index) = seen.filter(|&i| history.deliveries[i].revision < observation.revision) else { return };
        let d = &history.deliveries[index];
        let fact = self.evidence.delivery(index, self.id, format!("the stream delivered {} again", d.revision));
        let because = "one reflector of one scope had reached a higher revision".to_owned();
        let conflict = Conflict { observation, version: None, kind: Kind::Violation, because };
        self.state(conflict, self.saw(d.revision), vec![fact], result);
    }

    /// A higher observation that precedes the request only by unrelated times of two clocks.
    fn unproved_above(&self, revision: Revision) -> Option<Observation> {
        let (order, o) = (self.evidence.order, self.o);
        let progress = self.frontier.scopes.get(&o.scope).and_then(|maxima| maxima.before_by_the_clock(o.invoke));
        let object =
            self.frontier.objects.before_by_the_clock(o.invoke).filter(|observation| self.is_inside(observation));
        let is_open = |s: &Observation| s.clock != o.clock || order.clocks.several(o.clock).is_some();
        [progress, object].into_iter().flatten().find(|s| s.revision > revision && is_open(s))
    }

    fn suspect_clock(&self, observation: Observation, revision: Revision, fact: Fact, result: &mut RuleResult<'_>) {
        let offset = self.o.invoke.since(observation.time) as f64 / 1e6;
        let because = format!(
            "by the recorded times, the later request was sent after the earlier answer. Not proved: clocks that \
            differ by {offset:.3} ms explain the order of the times, and nothing rules that out (--clock-skew)"
        );
        let conflict = Conflict { observation, version: None, kind: Kind::Suspect, because };
        self.state(conflict, self.saw(revision), vec![fact], result);
    }

    /// States the finding: `saw` and `shown` are the later observation in words and as facts.
    fn state(&self, conflict: Conflict, saw: String, mut shown: Vec<Fact>, result: &mut RuleResult<'_>) {
        let Conflict { observation, version, kind, because } = conflict;
        let (evidence, history, o) = (self.evidence, self.evidence.history, self.o);
        let earlier_life = match observation.evidence {
            EvidenceRef::Answer(id) | EvidenceRef::Delivery(_, id) => history.operation(id).incarnation,
        };
        let restarted = earlier_life != o.incarnation;
        let mut facts =
            vec![evidence.showing(observation.evidence, observation.revision, seen_words(evidence, &observation))];
        if let Some(version) = version.filter(|v| v.revision < observation.revision) {
            facts.push(evidence.version(&version, evidence.change_words(&version)));
        }
        shown.retain(|fact| (fact.position, fact.operation) != (facts[0].position, facts[0].operation));
        facts.extend(shown);
        let client = evidence.short_client(o);
        let after = if restarted { "its process before the restart" } else { "it" };
        let identified_by = history.incarnations[o.incarnation.index()].identified_by.sentence();
        let server = self.broken_by(observation.revision);
        // A request for the most recent state had to get it, whichever session had seen it before.
        let doubt = match (kind, server) {
            (Kind::Violation, BrokenBy::Nobody) => doubt(evidence, (observation.evidence, observation.time), o),
            _ => None,
        };
        let kind = if doubt.is_some() { Kind::Suspect } else { kind };
        let because = match doubt {
            Some(doubt) => format!("{because}. Not proved: {doubt}"),
            None => because,
        };
        let demand = match server {
            BrokenBy::Server => "The request excluded so old an answer.",
            _ => {
                "The request allowed any state, so no server broke a promise. But the observations of the client are \
                not one history."
            }
        };
        result.found(Draft {
            kind,
            broken_by: server,
            incarnation: o.incarnation,
            key: facts.last().map_or(KeyId::NONE, |f| f.key),
            cause: format!("{}|{}", history.resource_name(history.scopes[o.scope.index()].resource), restarted),
            summary: format!(
                "{client} {saw} after {after} had seen revision {}: it went back in time",
                observation.revision
            ),
            facts,
            reason: format!("No observation of a process lies below one that it made before (monotonic reads): \
                            {because}. {demand} Process lives: {identified_by}."),
            refuted_by: "evidence that the two observations are of different processes, or that the earlier one was complete only after the later request was sent".to_owned(),
            consequence: "it acts on an older state than it had: deleted objects reappear in its cache until its \
                         stream catches up".to_owned(),
        });
    }

    /// The server broke its promise if the request asked for the most recent state, or for a state not older than a version
    /// above the answer.
    fn broken_by(&self, above: Revision) -> BrokenBy {
        match self.o.asked {
            Asked::Unset if self.o.verb != Verb::Watch || self.o.marks.has(Marks::INITIAL_EVENTS) => BrokenBy::Server,
            Asked::From if self.o.verb != Verb::Watch && self.o.asked_revision >= above => BrokenBy::Server,
            _ => BrokenBy::Nobody,
        }
    }
}

/// An earlier observation in words.
fn seen_words(evidence: &Evidence<'_>, observation: &Observation) -> String {
    let history = evidence.history;
    match observation.evidence {
        EvidenceRef::Delivery(index, _) => {
            let d = &history.deliveries[index as usize];
            let object = if d.key.is_some() { history.key_name(d.key) } else { String::new() };
            match d.kind {
                DeliveryKind::Added => format!("its stream delivered {object} added"),
                DeliveryKind::Modified => format!("its stream delivered {object} modified"),
                DeliveryKind::Deleted => format!("its stream delivered {object} deleted"),
                _ => "its stream confirmed progress".to_owned(),
            }
        }
        EvidenceRef::Answer(id) => {
            let o = history.operation(id);
            let request = history.request_name(&o);
            match o.verb {
                Verb::Watch => format!("{request}: it had reached {}", observation.revision),
                _ if is_absence(&o) => format!("{request}: the answer was 404"),
                Verb::Update if observation.revision == o.asked_revision => {
                    format!("{request}: that version was its base")
                }
                _ => format!("{request} showed it revision {}", observation.revision),
            }
        }
    }
}
