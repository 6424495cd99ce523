//! Input: a state of a scope at a revision, from a list or from initial events. Output: its contradictions with the revision
//! order ([`Flaw`]). Trap: a missing key counts only inside the range that [`Absence`] names.

use crate::check::facts::live_keys::{LiveKeys, by_path, path};
use crate::check::facts::removals::{self, Ended};
use crate::check::{Draft, Evidence, Fact, Kind};
use crate::history::{
    Asked, History, IncarnationId, Item, KeyId, Marks, Operation, OperationId, ResourceId, Revision, ScopeId, Symbol,
    Verb,
};
use crate::order::{After, Life, Presence, Version};
use rustc_hash::{FxHashMap, FxHashSet};

/// One object of a shown state.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The version of it.
    pub version: Item,
    /// The delivery that showed it, in a stream.
    pub delivery: Option<usize>,
}

/// The meaning of a key that the state lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// None: the state may be a part.
    Open,
    /// The object is absent: the state is whole.
    Whole,
    /// The object is absent if its path lies between these (both included): a page in the order of keys.
    Between(Option<String>, Option<String>),
}

/// A state of a scope at a revision, as a record shows it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The scope.
    pub scope: ScopeId,
    /// The revision.
    pub revision: Revision,
    /// The list, or the watch.
    pub operation: OperationId,
    /// Its objects, in the recorded order.
    pub items: Vec<Shown>,
    /// The meaning of keys that are not among them.
    pub absence: Absence,
    /// "the list", "the initial events".
    pub what: &'static str,
}

/// One error of a snapshot.
#[derive(Clone, Debug)]
pub struct Flaw {
    /// The key.
    pub key: KeyId,
    /// A clause: "shows pods d/a at version 7, above its own revision".
    pub says: String,
    /// The facts.
    pub facts: Vec<Fact>,
    /// The reason why the facts contradict each other.
    pub reason: String,
    /// The reason why it is not proved, if it is not.
    pub open: Option<&'static str>,
}

/// A finding that becomes a suspect if something is open.
pub fn unless_open(mut draft: Draft, open: Option<&str>) -> Draft {
    if let Some(open) = open {
        draft.kind = Kind::Suspect;
        draft.reason = format!("{} Not proved: {open}.", draft.reason);
    }
    draft
}

/// The doubt of a selection by a field that the evidence does not keep.
pub const BEYOND: &str = "the selector names a field of which the evidence keeps nothing";

/// The most errors of one snapshot that are stated.
const MAX_STATED: usize = 20;

/// The most intervals that are examined for missing keys in one history.
const MAX_INTERVALS: usize = 50_000_000;

/// Compares snapshots with the revision order.
#[derive(Debug)]
pub struct Examiner<'h> {
    evidence: Evidence<'h>,
    presence: Presence<'h>,
    /// The intervals of each namespace of a resource, by index.
    residents: Option<FxHashMap<(ResourceId, Symbol), Vec<u32>>>,
    censuses: FxHashMap<(ResourceId, Option<Symbol>), LiveKeys>,
    steps: usize,
    /// Snapshots that were not searched for missing keys.
    pub skipped: u64,
    /// Snapshots with more errors than `MAX_STATED`.
    pub cut: u64,
    /// Missing objects for which nothing shows the fields that the selector names.
    pub unselected: u64,
}

impl<'h> Examiner<'h> {
    /// An examiner of one history.
    pub fn new(evidence: &Evidence<'h>) -> Examiner<'h> {
        Examiner {
            evidence: *evidence,
            presence: evidence.order.presence(evidence.history),
            residents: None,
            censuses: FxHashMap::default(),
            steps: MAX_INTERVALS,
            skipped: 0,
            cut: 0,
            unselected: 0,
        }
    }

    /// The errors of a snapshot.
    pub fn flaws(&mut self, snapshot: &Snapshot) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        let mut keys: Vec<(KeyId, u32)> =
            snapshot.items.iter().enumerate().map(|(at, item)| (item.version.key, at as u32)).collect();
        keys.sort_unstable();
        for pair in keys.windows(2).filter(|pair| pair[0].0 == pair[1].0).take(MAX_STATED + 1) {
            flaws.push(self.twice(snapshot, &snapshot.items[pair[0].1 as usize], &snapshot.items[pair[1].1 as usize]));
        }
        let twice: FxHashSet<KeyId> = flaws.iter().map(|f| f.key).collect();
        for item in snapshot.items.iter().filter(|i| i.version.revision.is_some() && !twice.contains(&i.version.key)) {
            if flaws.len() > MAX_STATED {
                break;
            }
            if item.version.revision > snapshot.revision {
                flaws.push(self.above(snapshot, item));
                continue;
            }
            let timeline = &self.evidence.order.timeline;
            let later = timeline
                .next(item.version.key, item.version.revision)
                .filter(|v| timeline.revision(*v) <= snapshot.revision);
            if let Some(later) = later {
                flaws.push(self.outdated(snapshot, item, &timeline.version(later)));
            } else if let Some(removal) = removals::through(&self.evidence, &item.version, snapshot.revision)
                && Some(item.version.revision) < removal.before
            {
                flaws.push(self.gone(snapshot, item, removal));
            }
        }
        if snapshot.absence != Absence::Open {
            keys.dedup_by_key(|k| k.0);
            self.missing(snapshot, &keys, &mut flaws);
        }
        if flaws.len() > MAX_STATED {
            flaws.truncate(MAX_STATED);
            self.cut += 1;
        }
        flaws
    }

    fn missing(&mut self, snapshot: &Snapshot, shown: &[(KeyId, u32)], flaws: &mut Vec<Flaw>) {
        let history = self.evidence.history;
        let scope = history.scopes[snapshot.scope.index()];
        let (namespace, name) = (history.name(scope.namespace), history.name(scope.name));
        let is_shown = |key: KeyId| shown.binary_search_by_key(&key, |s| s.0).is_ok();
        let within = (!namespace.is_empty()).then_some(scope.namespace);
        let (evidence, presence) = (&self.evidence, &self.presence);
        let residents = &mut self.residents;
        let census = self.censuses.entry((scope.resource, within)).or_insert_with(|| match within {
            Some(namespace) => {
                let residents = residents.get_or_insert_with(|| residents_of(evidence, presence));
                let all = residents.get(&(scope.resource, namespace)).map_or(&[][..], |all| all);
                LiveKeys::take(evidence, all.iter().map(|at| &presence.all()[*at as usize]))
            }
            None => {
                let of = |life: &&Life| history.resource_of(life.key) == scope.resource;
                LiveKeys::take(evidence, presence.all().iter().filter(of))
            }
        });
        let selective = history.is_selective(snapshot.scope);
        if snapshot.absence == Absence::Whole && !selective && name.is_empty() {
            let present = shown.iter().filter(|s| presence.at(s.0, snapshot.revision).is_some()).count();
            if census.count(snapshot.revision) == present {
                return;
            }
        }
        let (lower, upper) = match &snapshot.absence {
            Absence::Between(lower, upper) => (lower.as_deref(), upper.as_deref()),
            _ => (None, None),
        };
        let around = census.around(snapshot.revision, lower, upper);
        if around.cost() > self.steps {
            self.skipped += 1;
            return;
        }
        self.steps -= around.cost();
        let mut keys = around.keys();
        keys.retain(|&key| history.covers_key(snapshot.scope, key) && !is_shown(key));
        for key in keys {
            if flaws.len() > MAX_STATED {
                break;
            }
            // With a selector, only the version current at that revision decides whether the object was selected.
            let selected = if selective { self.selected(snapshot, key) } else { Some(true) };
            let open = (selected.is_none() && history.is_beyond_evidence(snapshot.scope)).then_some(BEYOND);
            if selected == Some(true) || open.is_some() {
                flaws.extend(self.absent(snapshot, key).map(|flaw| Flaw { open, ..flaw }));
            } else if selected.is_none() {
                self.unselected += 1;
            }
        }
    }

    /// Whether the selection of a snapshot certainly holds a key; `None` without evidence. Without evidence of the current
    /// version, the object may have had another one.
    fn selected(&self, snapshot: &Snapshot, key: KeyId) -> Option<bool> {
        match self.presence.version_at(key, snapshot.revision) {
            Some(version) => self.evidence.history.selects(snapshot.scope, key, version.attributes),
            None => Some(false),
        }
    }

    fn cite(&self, snapshot: &Snapshot, item: &Shown, says: String) -> Fact {
        match item.delivery {
            Some(index) => self.evidence.delivery(index, snapshot.operation, says),
            None => {
                self.evidence.item(snapshot.operation, item.version.key, item.version.uid, item.version.revision, says)
            }
        }
    }

    fn whole(&self, snapshot: &Snapshot, says: String) -> Fact {
        Fact {
            key: KeyId::NONE,
            uid: Symbol::NONE,
            ..self.evidence.operation(snapshot.operation, snapshot.revision, says)
        }
    }

    fn at(&self, snapshot: &Snapshot) -> Fact {
        self.whole(snapshot, format!("{} names revision {} as its state", snapshot.what, snapshot.revision))
    }

    fn above(&self, snapshot: &Snapshot, item: &Shown) -> Flaw {
        let name = self.evidence.history.key_name(item.version.key);
        Flaw {
            key: item.version.key,
            says: format!(
                "shows {name} at version {}, above its own revision {}",
                item.version.revision, snapshot.revision
            ),
            facts: vec![
                self.at(snapshot),
                self.cite(snapshot, item, format!("it showed {name} at version {}", item.version.revision)),
            ],
            reason: format!("The state of revision {} holds no later write.", snapshot.revision),
            open: None,
        }
    }

    fn twice(&self, snapshot: &Snapshot, first: &Shown, second: &Shown) -> Flaw {
        let name = self.evidence.history.key_name(first.version.key);
        Flaw {
            key: first.version.key,
            says: format!("shows {name} twice"),
            facts: vec![
                self.cite(
                    snapshot,
                    first,
                    format!("{} showed {name} at version {}", snapshot.what, first.version.revision),
                ),
                self.cite(snapshot, second, format!("it showed {name} again, at version {}", second.version.revision)),
            ],
            reason: "A state holds one object per name.".to_owned(),
            open: None,
        }
    }

    fn outdated(&self, snapshot: &Snapshot, item: &Shown, later: &Version) -> Flaw {
        let name = self.evidence.history.key_name(item.version.key);
        Flaw {
            key: item.version.key,
            says: format!(
                "shows {name} at version {}, which was replaced at revision {}",
                item.version.revision, later.revision
            ),
            facts: vec![
                self.evidence.version(later, self.evidence.change_words(later)),
                self.at(snapshot),
                self.cite(snapshot, item, format!("it showed {name} at version {}", item.version.revision)),
            ],
            reason: format!(
                "The state of revision {} includes every write at or below it, and so the write of revision {}.",
                snapshot.revision, later.revision
            ),
            open: None,
        }
    }

    fn gone(&self, snapshot: &Snapshot, item: &Shown, removal: Ended) -> Flaw {
        let name = self.evidence.history.key_name(item.version.key);
        let mut facts = removals::facts(&self.evidence, removal);
        facts.push(self.at(snapshot));
        facts.push(self.cite(snapshot, item, format!("it showed {name} at version {}", item.version.revision)));
        Flaw {
            key: item.version.key,
            says: format!("shows {name}, which {}", removal.had_been()),
            facts,
            reason: if removal.is_gone {
                format!("The state of revision {} holds no object that was removed at or below it.", snapshot.revision)
            } else {
                format!("The state of revision {} shows each object as it was after that deletion.", snapshot.revision)
            },
            open: None,
        }
    }

    fn absent(&self, snapshot: &Snapshot, key: KeyId) -> Option<Flaw> {
        let (version, after) = self.presence.proof(key, snapshot.revision)?;
        let name = self.evidence.history.key_name(key);
        let was = format!("{name} existed at revision {}", version.revision);
        let mut facts = vec![self.evidence.version(&version, was)];
        let why = match after {
            After::Itself => "It was written at that very revision.",
            After::Change(next) => {
                facts.push(self.evidence.version(&next, self.evidence.change_words(&next)));
                "One uid has one life, so the object existed between the two versions."
            }
            After::Shown(list) => {
                let of = self.evidence.history.operation(list).answered;
                facts.push(self.evidence.item(
                    list,
                    key,
                    version.uid,
                    of,
                    format!("the list of revision {of} still showed it"),
                ));
                "A list that still shows the version proves it for all revisions before."
            }
            After::Read(read) => {
                let says =
                    format!("a later read of {name} without resourceVersion returned version {}", version.revision);
                facts.push(self.evidence.operation(read, version.revision, says));
                "A read without resourceVersion returns the most recent state, so the object had no change in between."
            }
            After::Removed(by) => {
                let says =
                    format!("a request that was sent when revision {} was complete removed {name}", snapshot.revision);
                facts.push(self.evidence.operation(by, version.revision, says));
                "The object existed when the request that removed it was sent, and one uid has one life."
            }
            After::Watched(watch) => {
                let says = format!(
                    "a watch of its scope went past revision {} without an event of its end",
                    snapshot.revision
                );
                facts.push(self.evidence.operation(watch, version.revision, says));
                "A watch delivers every change before it goes past it, so either the list lacks the object or the \
                watch never delivered its end."
            }
            After::Witness => "The etcd witness shows no change of it in between.",
        };
        let lacks = format!("{} of revision {} did not hold {name}", snapshot.what, snapshot.revision);
        facts.push(self.whole(snapshot, lacks));
        Some(Flaw {
            key,
            says: format!("lacks {name}, which existed at revision {}", snapshot.revision),
            facts,
            reason: format!("The state of revision {} holds every object of its scope. {why}", snapshot.revision),
            open: None,
        })
    }
}

/// The intervals of each namespace of a resource. Computed for all at once, because there may be as many namespaces as lists.
fn residents_of(evidence: &Evidence<'_>, presence: &Presence<'_>) -> FxHashMap<(ResourceId, Symbol), Vec<u32>> {
    let mut residents: FxHashMap<(ResourceId, Symbol), Vec<u32>> = FxHashMap::default();
    for (at, life) in presence.all().iter().enumerate() {
        let key = evidence.history.keys[life.key.index()];
        residents.entry((key.resource, key.namespace)).or_default().push(at as u32);
    }
    residents
}

/// The keys on all pages of each list. A key on another page of the same list was not lost: the store orders keys differently
/// from etcd.
#[derive(Debug, Default)]
pub struct Pages {
    list_of: FxHashMap<OperationId, usize>,
    keys: Vec<FxHashSet<KeyId>>,
}

impl Pages {
    /// Collects the pages of all lists. A page continues the last list of its scope that the same process began.
    pub fn of(history: &History) -> Pages {
        let mut pages = Pages::default();
        let mut begun: FxHashMap<(IncarnationId, ScopeId), usize> = FxHashMap::default();
        for (id, o) in history.operations.of_verbs(&[Verb::List]) {
            let goes_on = is_continued(&o);
            if !goes_on && !o.marks.has(Marks::MORE_PAGES) {
                continue;
            }
            let list = begun.entry((o.incarnation, o.scope)).or_insert(usize::MAX);
            if !goes_on || *list == usize::MAX {
                *list = pages.keys.len();
                pages.keys.push(FxHashSet::default());
            }
            pages.keys[*list].extend(history.items_of(&o).iter().map(|item| item.key));
            pages.list_of.insert(id, *list);
        }
        pages
    }

    /// Whether a page of the same list shows a key.
    pub fn show(&self, page: OperationId, key: KeyId) -> bool {
        self.list_of.get(&page).is_some_and(|list| self.keys[*list].contains(&key))
    }
}

fn is_continued(o: &Operation) -> bool {
    matches!(o.asked, Asked::Continue | Asked::ContinueInconsistent)
}

/// The range in which a key's absence from a page counts. A page is in the order of keys, so it is whole from behind the last
/// key of the page before to its own last key. Continue tokens name both; without readable tokens, the page is whole between
/// its first and last item.
pub fn page(evidence: &Evidence<'_>, o: &Operation, items: &[Shown]) -> Absence {
    let first = !is_continued(o);
    let last = !o.marks.has(Marks::MORE_PAGES);
    if first && last {
        return Absence::Whole;
    }
    // A store with another order of keys (an SQL collation) would make a page whole between other keys.
    if !items.is_sorted_by(|a, b| by_path(evidence, a.version.key, b.version.key).is_le()) {
        return Absence::Open;
    }
    let namespace = evidence.history.name(evidence.history.scopes[o.scope.index()].namespace);
    let path_of = |key: Symbol| {
        let key = key.is_some().then(|| evidence.history.name(key))?;
        Some(if namespace.is_empty() { key.to_owned() } else { format!("{namespace}/{key}") })
    };
    let [lowest, highest] = [items.first(), items.last()].map(|item| item.map(|item| path(evidence, item.version.key)));
    // A token that its own page contradicts proves nothing about keys.
    let after = path_of(o.page_after).filter(|after| lowest.as_ref().is_none_or(|lowest| after < lowest));
    let end = path_of(o.page_end).filter(|end| highest.as_ref().is_none_or(|highest| highest <= end));
    let lower = after.map(|after| after + "\0").or(lowest);
    let upper = end.or(highest);
    if (!first && lower.is_none()) || (!last && upper.is_none()) {
        return Absence::Open;
    }
    Absence::Between(lower.filter(|_| !first), upper.filter(|_| !last))
}
