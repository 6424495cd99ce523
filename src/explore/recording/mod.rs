//! A protocol from a recording: the client of a finding with the requests that it sent, and the writes of all others around the
//! finding. Input: a history, its order, and a finding. Output: the text of a protocol, with alternatives as its fixes.
//!
//! The client keeps its requests and their options. The moment of each is left open: it reads again after a crash, a break or a
//! 410, and it sends each of its writes whenever it knows the object. The others write in the recorded order. Contents are
//! left out, so only properties that need none can be taken from a recording.

mod client;
mod text;

use crate::check::Finding;
use crate::history::{
    History, IncarnationId, KeyId, Marks, Operation, OperationId, Outcome, ResourceId, Revision, Symbol, Verb,
};
use crate::order::{Change, Order};
use std::collections::BTreeMap;

/// The properties that need no contents.
const PROPERTIES: [&str; 4] = ["monotonic-reads", "read-your-writes", "name-reuse", "stale-premise"];

/// Objects of a protocol, at most.
const MAX_KEYS: usize = 6;

/// Writes of all clients, at most.
const MAX_WRITES: usize = 12;

/// Whether a protocol can be taken from findings of a rule.
pub fn is_recordable(rule: &str) -> bool {
    PROPERTIES.contains(&rule)
}

/// The protocol of a finding.
///
/// # Errors
/// The reason why none can be made: the rule needs contents, or the finding spans too much.
pub fn recorded(history: &History, order: &Order, finding: &Finding) -> Result<String, String> {
    if !is_recordable(finding.rule) {
        return Err(format!(
            "a protocol can be taken from findings of {}, and this one is of {}",
            PROPERTIES.join(", "),
            finding.rule
        ));
    }
    let scene = Scene::of(history, order, finding)?;
    let client = client::Client::of(&scene)?;
    Ok(text::protocol(&scene, &client))
}

/// The part of a recording that a finding is about.
struct Scene<'h> {
    history: &'h History,
    order: &'h Order,
    finding: &'h Finding,
    /// The objects, with their names in the protocol.
    keys: BTreeMap<KeyId, String>,
    /// The lives of the client.
    lives: Vec<IncarnationId>,
    /// Their requests, in order.
    requests: BTreeMap<IncarnationId, Vec<(OperationId, Operation)>>,
    /// The objects that are there at the begin.
    present: Vec<KeyId>,
    writes: Vec<Write>,
    /// Whether servers sent deletions with the former version of the object, as those before 1.10 do.
    is_old: bool,
}

/// A committed write.
struct Write {
    key: KeyId,
    kind: WriteKind,
    /// The request; none if it was not recorded.
    operation: OperationId,
    revision: Option<Revision>,
    /// Whether the client of the finding sent it.
    is_own: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteKind {
    Create,
    Patch,
    Apply,
    Delete,
}

impl WriteKind {
    fn word(self) -> &'static str {
        match self {
            WriteKind::Create => "create",
            WriteKind::Patch => "patch",
            WriteKind::Apply => "apply",
            WriteKind::Delete => "delete",
        }
    }
}

impl<'h> Scene<'h> {
    fn of(history: &'h History, order: &'h Order, finding: &'h Finding) -> Result<Scene<'h>, String> {
        let facts = &finding.certificate.facts;
        let mut keys: Vec<KeyId> =
            facts.iter().map(|fact| fact.key).chain([finding.key]).filter(|k| k.is_some()).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            keys = changed_between(history, order, finding);
        }
        if keys.is_empty() {
            return Err("no object that its reads cover changed between its revisions".to_owned());
        }
        if keys.len() > MAX_KEYS {
            return Err(format!("at most {MAX_KEYS} objects are expected in the finding, found {}", keys.len()));
        }
        let mut lives: Vec<IncarnationId> = facts.iter().map(|fact| fact.incarnation).collect();
        lives.push(finding.incarnation);
        let is_of_client =
            |life: &IncarnationId| life.is_some() && history.incarnations[life.index()].client == finding.client;
        lives.retain(is_of_client);
        lives.sort_unstable();
        lives.dedup();
        if lives.is_empty() {
            return Err("the finding names no client".to_owned());
        }
        let (misdated, oldest) = misdated(history, order, &lives);
        keys.extend(misdated);
        keys.sort_unstable();
        keys.dedup();
        keys.truncate(MAX_KEYS);
        let revisions = || facts.iter().map(|fact| fact.revision).filter(|revision| revision.is_some());
        // A finding may name an object only by its uid: then its last version is the begin.
        let named = facts.iter().filter(|fact| fact.key.is_some() && fact.uid.is_some()).filter_map(|fact| {
            let versions = order.timeline.versions(fact.key).iter().rev();
            let mut of_uid = versions.filter(|version| version.uid == fact.uid && version.change.lives() == Some(true));
            of_uid.next().map(|version| version.revision)
        });
        let first = revisions().chain(oldest).chain(named).min().ok_or("the finding has no revision")?;
        let answers = facts.iter().filter(|fact| fact.operation.is_some());
        let answers = answers.map(|fact| history.operation(fact.operation)).filter(|o| o.verb.is_write());
        let last = revisions().chain(answers.map(|o| o.answered)).max().unwrap_or(first);
        let mut scene = Scene {
            history,
            order,
            finding,
            keys: names(history, &keys),
            requests: requests(history, &lives),
            lives,
            present: Vec::new(),
            writes: Vec::new(),
            is_old: oldest.is_some(),
        };
        for &key in &keys {
            scene.write_of(key, first, last);
        }
        // A removal without a revision comes right before the next object of its name, or at the end.
        scene.writes.sort_by_key(|write| write.revision.unwrap_or(last.next()));
        if scene.writes.len() > MAX_WRITES {
            return Err(format!(
                "at most {MAX_WRITES} writes are expected around the finding, found {}",
                scene.writes.len()
            ));
        }
        Ok(scene)
    }

    /// The writes of a key from its state at the first revision to the last.
    fn write_of(&mut self, key: KeyId, first: Revision, last: Revision) {
        let order = self.order;
        let shown = order.timeline.version_at(key, first);
        let before = order.timeline.at_or_before(key, first.previous());
        let before = before.filter(|version| version.change.lives() == Some(true));
        // The first fact may show a version whose predecessor nobody recorded.
        let (there, from) = match shown {
            Some(shown) if matches!(shown.change, Change::Updated | Change::Put) => (Some(shown), first),
            _ => (before, first.previous()),
        };
        let mut uid = there.map(|version| version.uid);
        self.present.extend(there.map(|_| key));
        for version in order.timeline.between(key, from, last).iter() {
            let lives = version.change.lives() == Some(true);
            // Another uid: the former object was removed, whether its end was recorded or not.
            if lives && uid.is_some_and(|uid: Symbol| uid != version.uid && uid.is_some() && version.uid.is_some()) {
                self.removal(key, uid, Some(version.revision.previous()));
                uid = None;
            }
            let kind = match (lives, uid) {
                (true, None) => WriteKind::Create,
                (true, Some(_)) => WriteKind::Patch,
                (false, _) => WriteKind::Delete,
            };
            uid = lives.then_some(version.uid);
            self.push(key, kind, version.writer, Some(version.revision));
        }
        if uid.is_some_and(|uid| order.timeline.may_be_removed(key, uid)) {
            self.removal(key, uid, None);
        }
        // An object that no known write created was there before.
        let first = self.writes.iter().find(|write| write.key == key);
        if there.is_none() && first.is_none_or(|write| write.kind != WriteKind::Create) {
            self.present.push(key);
        }
    }

    fn removal(&mut self, key: KeyId, uid: Option<Symbol>, at: Option<Revision>) {
        let order = self.order;
        let removal = uid.and_then(|uid| order.timeline.removals_of(key, uid).first());
        let removal = removal.or_else(|| order.timeline.removals(key).first());
        self.push(key, WriteKind::Delete, removal.map_or(OperationId::NONE, |removal| removal.operation), at);
    }

    fn push(&mut self, key: KeyId, kind: WriteKind, operation: OperationId, revision: Option<Revision>) {
        let is_own = operation.is_some() && self.lives.contains(&self.history.operation(operation).incarnation);
        self.writes.push(Write { key, kind, operation, revision, is_own });
    }

    /// The requests of a life, in their order.
    fn requests(&self, life: IncarnationId) -> &[(OperationId, Operation)] {
        self.requests.get(&life).map_or(&[], |requests| requests)
    }

    /// Whether a list or a stream covers an object of the finding, and which resource.
    fn covered(&self, o: &Operation) -> Option<ResourceId> {
        let is_read = matches!(o.verb, Verb::List | Verb::Watch) && o.scope.is_some();
        let covers = is_read && self.keys.keys().any(|key| self.history.covers_key(o.scope, *key));
        covers.then(|| self.history.scopes[o.scope.index()].resource)
    }

    /// The name of a resource in the protocol.
    fn resource(&self, resource: ResourceId) -> String {
        plain(&self.history.resource_name(resource))
    }
}

/// The objects of the scope of the last read that changed between the revisions of a finding without objects: the first
/// few, so that others can join them.
fn changed_between(history: &History, order: &Order, finding: &Finding) -> Vec<KeyId> {
    let facts = &finding.certificate.facts;
    let reads =
        facts.iter().rev().filter(|fact| fact.operation.is_some()).map(|fact| history.operation(fact.operation));
    let Some(scope) = reads.map(|o| o.scope).find(|scope| scope.is_some()) else { return Vec::new() };
    let revisions = || facts.iter().map(|fact| fact.revision).filter(|revision| revision.is_some());
    let (Some(low), Some(high)) = (revisions().min(), revisions().max()) else { return Vec::new() };
    let changed = order.timeline.of_resource(history.scopes[scope.index()].resource, low, high);
    let mut keys = Vec::new();
    for version in changed.filter(|version| history.covers_key(scope, version.key)) {
        if keys.len() < MAX_KEYS / 2 && !keys.contains(&version.key) {
            keys.push(version.key);
        }
    }
    keys
}

/// The requests of lives, in their order, without refused ones and dry runs.
fn requests(history: &History, lives: &[IncarnationId]) -> BTreeMap<IncarnationId, Vec<(OperationId, Operation)>> {
    let mut requests: BTreeMap<_, Vec<_>> = lives.iter().map(|life| (*life, Vec::new())).collect();
    for (id, o) in history.operations.but_shadows() {
        if let Some(own) = requests.get_mut(&o.incarnation)
            && !o.marks.has(Marks::DRY_RUN)
            && o.outcome() != Outcome::Rejected
        {
            own.push((id, o));
        }
    }
    requests.values_mut().for_each(|own| own.sort_by_key(|(id, o)| (o.invoke, *id)));
    requests
}

/// The objects whose deletions reached the client with a former version, and the least such version.
fn misdated(history: &History, order: &Order, lives: &[IncarnationId]) -> (Vec<KeyId>, Option<Revision>) {
    let is_own = |at: usize| lives.contains(&history.operation(history.watch_of(at)).incarnation);
    let all = (0..history.deliveries.len()).filter(|at| order.timeline.is_misdated(*at) && is_own(*at));
    let events: Vec<_> = all.map(|at| &history.deliveries[at]).collect();
    (events.iter().map(|event| event.key).collect(), events.iter().map(|event| event.revision).min())
}

/// A name as protocols and sketches can write it.
fn plain(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' };
    text.chars().map(keep).collect()
}

/// The names of objects, each of its own. A second one of a name has its namespace in front, or a number behind.
fn names(history: &History, keys: &[KeyId]) -> BTreeMap<KeyId, String> {
    let mut taken: BTreeMap<String, KeyId> = BTreeMap::new();
    for &id in keys {
        let key = history.keys[id.index()];
        let (resource, name) = (plain(&history.resource_name(key.resource)), plain(history.name(key.name)));
        let space = plain(history.name(key.namespace));
        let names = [format!("{resource}/{name}"), format!("{resource}/{space}.{name}")].into_iter();
        let numbered = (2..).map(|number| format!("{resource}/{name}-{number}"));
        if let Some(free) = names.chain(numbered).find(|name| !taken.contains_key(name)) {
            taken.insert(free, id);
        }
    }
    taken.into_iter().map(|(name, key)| (key, name)).collect()
}
