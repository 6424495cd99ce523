//! Recordings as runs of the environment: it allows what real servers answered. Input: evidence. Output: for each window of a
//! recording, whether the environment has a run with the same answers.
//!
//! A window has at most ten changes of at most four objects of one resource and namespace, and the sessions of one server that
//! read them. Each session is a straight-line program. A run is the recorded one if its log is the recorded log, and each answer
//! and event shows what the recorded one showed. Leaving out other objects and servers keeps every run.

use super::machine::{Event, Machine, Outcome};
use super::protocol::STOP;
use super::state::State;
use super::system::TransitionSystem;
use crate::check::Kind;
use crate::history::{
    Asked, Delivery, DeliveryKind, Domains, History, KeyId, Marks, Operation, OperationId, Revision, ServerId, Stream,
    Verb, load_each, sketch,
};
use crate::ingest::{SourceRule, Time, inputs};
use crate::order::{Change, Order, OrderOptions, Provenance, Version};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

const MOST_CHANGES: usize = 10;
const MOST_KEYS: usize = 4;

/// Sessions that are replayed together.
const MOST_SESSIONS: usize = 4;

/// States of one window.
const MOST_STATES: usize = 100_000;

/// Altered forms of one window.
const MOST_ALTERED: usize = 2;

/// For each key of a window, the change that a read showed: its place in the protocol's log, or `None` for no object.
type Shown = Vec<Option<u8>>;

/// The recorded result of a step.
#[derive(Clone, Debug)]
enum Expected {
    /// A read, or the initial events of a stream.
    Read(Shown),
    /// An event of a stream: the change at this place of the log.
    Event(u8),
    /// A write that was committed at this place of the log.
    Commit(u8),
}

/// Changes of a recording, with its sessions.
struct Window<'h> {
    history: &'h History,
    order: &'h Order,
    keys: Vec<KeyId>,
    /// The revision before the first change.
    after: Revision,
    changes: Vec<Version>,
    /// The objects at the begin.
    present: Vec<KeyId>,
}

/// A step of a session as the text of a protocol, and its recorded result.
type Step = (String, Expected);

/// The times of a request, its step, and the change that it wrote.
type Request = (Time, Time, Step, Option<usize>);

/// Requests that follow one another, or a stream.
#[derive(Clone, Default)]
struct Session {
    steps: Vec<Step>,
    /// The changes that it wrote.
    writes: Vec<usize>,
}

/// The results of all windows.
#[derive(Default)]
struct Tally {
    windows: usize,
    sessions: usize,
    steps: usize,
    /// Windows without such a run, of evidence that may lack changes.
    incomplete: usize,
    /// The other windows without such a run.
    refused: Vec<String>,
    undecided: usize,
    altered: usize,
    /// Altered windows that have a run.
    missed: Vec<String>,
}

impl<'h> Window<'h> {
    /// The windows of all objects that a history shows from their first version on.
    fn all(history: &'h History, order: &'h Order) -> Vec<Window<'h>> {
        let mut places: BTreeMap<_, Vec<KeyId>> = BTreeMap::new();
        for (id, key) in (0..).map(KeyId).zip(&history.keys) {
            if is_whole(order, id) {
                places.entry((key.resource, key.namespace)).or_default().push(id);
            }
        }
        let mut windows = Vec::new();
        for keys in places.into_values() {
            let mut changes: Vec<Version> = keys.iter().flat_map(|key| order.timeline.versions(*key).iter()).collect();
            changes.sort_by_key(|version| version.revision);
            let mut rest = &changes[..];
            while let Some(first) = rest.first() {
                let (mut of_window, mut chosen) = (BTreeSet::new(), Vec::new());
                let mut read = 0;
                for version in rest {
                    if chosen.len() == MOST_CHANGES {
                        break;
                    }
                    read += 1;
                    if of_window.contains(&version.key) || of_window.len() < MOST_KEYS {
                        of_window.insert(version.key);
                        chosen.push(*version);
                    }
                }
                rest = &rest[read..];
                let after = first.revision.previous();
                let lives = |key: &KeyId| Some(order.timeline.at_or_before(*key, after)?.change.lives() == Some(true));
                let keys: Vec<KeyId> = of_window.into_iter().collect();
                let present = keys.iter().copied().filter(|key| lives(key) == Some(true)).collect();
                windows.push(Window { history, order, keys, after, changes: chosen, present });
            }
        }
        windows
    }

    fn through(&self) -> Revision {
        self.changes[self.changes.len() - 1].revision
    }

    /// The place in the protocol's log of an object's change at a revision; `None` if the window does not have it.
    fn place(&self, key: KeyId, revision: Revision) -> Option<u8> {
        let present = || self.present.iter().position(|other| *other == key);
        if revision <= self.after {
            // The first change is of no object.
            let is_last = self
                .order
                .timeline
                .next(key, revision)
                .is_none_or(|next| self.order.timeline.revision(next) > self.after);
            return is_last.then(present).flatten().map(|at| 2 + at as u8);
        }
        let at = self.changes.iter().position(|version| version.key == key && version.revision == revision)?;
        Some((2 + self.present.len() + at) as u8)
    }

    /// The state at a revision of the window, as the order has it.
    fn state(&self, at: Revision) -> Shown {
        let shown = |key: &KeyId| {
            let version = self.order.timeline.at_or_before(*key, at.max(self.after))?;
            (version.change.lives() == Some(true)).then(|| self.place(*key, version.revision)).flatten()
        };
        self.keys.iter().map(shown).collect()
    }

    fn covers(&self, o: &Operation) -> bool {
        o.scope.is_some()
            && !self.history.is_selective(o.scope)
            && self.keys.iter().all(|key| self.history.covers_key(o.scope, *key))
    }

    /// What a list, a GET or a stream showed of the objects, from their revisions; `None` if one is not of the window.
    fn shown(&self, versions: impl Fn(KeyId) -> Option<Revision>) -> Option<Shown> {
        let shown = |key: &KeyId| match versions(*key) {
            Some(revision) => self.place(*key, revision).map(Some),
            None => Some(None),
        };
        self.keys.iter().map(shown).collect()
    }

    /// The name of a key in the protocol.
    fn name(&self, key: KeyId) -> String {
        let at = self.keys.iter().position(|other| *other == key).unwrap();
        format!("configmaps/k{at}")
    }

    fn write(&self, at: usize) -> Step {
        let version = &self.changes[at];
        let before = self.changes[..at].iter().rfind(|other| other.key == version.key);
        let was_there = before.map_or(self.present.contains(&version.key), |v| v.change.lives() == Some(true));
        let verb = match (version.change.lives(), was_there) {
            (Some(true), false) => "create",
            (Some(true), true) => "patch",
            _ => "delete",
        };
        let fields = if verb == "delete" { String::new() } else { format!(", fields = \"{{'n': {at}}}\"") };
        let place = self.place(version.key, version.revision).unwrap();
        (format!("{verb} = \"{}\"{fields}", self.name(version.key)), Expected::Commit(place))
    }

    /// A stream: its begin, and every event of the window.
    fn stream(&self, o: &Operation, stream: &Stream) -> Option<Vec<Step>> {
        let events = self.history.deliveries_of(stream);
        let is_of_window = |event: &Delivery| self.keys.contains(&event.key);
        let is_change = |event: &&Delivery| {
            matches!(event.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted)
        };
        let (ask, begin, initial, later) = match o.asked {
            Asked::From if !o.marks.has(Marks::INITIAL_EVENTS) => {
                let begin = o.asked_revision.max(self.after);
                ("0", begin, self.state(begin), events)
            }
            Asked::Any | Asked::Unset | Asked::From => {
                let end = events.iter().position(|event| event.kind == DeliveryKind::InitialEventsEnd)?;
                let versions: BTreeMap<KeyId, Revision> =
                    events[..end].iter().filter(is_change).map(|event| (event.key, event.revision)).collect();
                let begin = events[end].revision;
                let initial = match begin < self.after {
                    true => self.state(self.after),
                    false => self.shown(|key| versions.get(&key).copied())?,
                };
                let ask = if o.asked == Asked::Unset && begin >= self.after { "unset" } else { "0" };
                (ask, begin.max(self.after), initial, &events[end..])
            }
            _ => return None,
        };
        let mut steps = Vec::new();
        let watch = "watch = \"configmaps\", into = \"seen\"";
        steps.push((format!("{watch}, initial-events = true, resource-version = \"{ask}\""), Expected::Read(initial)));
        for event in later.iter().filter(is_change).filter(|event| is_of_window(event)) {
            if event.revision > begin && event.revision <= self.through() {
                steps.push((watch.to_owned(), Expected::Event(self.place(event.key, event.revision)?)));
            }
        }
        (begin < self.through()).then_some(steps)
    }

    /// A list or a GET.
    fn read(&self, o: &Operation) -> Option<Step> {
        let ask = match o.asked {
            Asked::Unset => "unset",
            Asked::Any => "0",
            // The version that it names may come from anywhere. The answer is compared all the same.
            Asked::From => "0",
            _ => return None,
        };
        if o.status != 200 || o.marks.has(Marks::MORE_PAGES) {
            return None;
        }
        match o.verb {
            Verb::List
                if o.marks.has(Marks::ANSWER_BODY)
                    && self.covers(o)
                    && o.answered >= self.after
                    && o.answered <= self.through() =>
            {
                let version = |key| self.history.item(o, key).map(|item| item.revision);
                let text = format!("list = \"configmaps\", into = \"all\", resource-version = \"{ask}\"");
                Some((text, Expected::Read(self.shown(version)?)))
            }
            Verb::Get if self.keys.contains(&o.key) && o.answered.is_some() => {
                let place = self.place(o.key, o.answered)?;
                let at = self.keys.iter().position(|key| *key == o.key)?;
                let mut shown = vec![None; self.keys.len()];
                shown[at] = Some(place);
                let text = format!("get = \"{}\", into = \"one{at}\", resource-version = \"{ask}\"", self.name(o.key));
                Some((text, Expected::Read(shown)))
            }
            _ => None,
        }
    }

    /// The sessions at each server: each stream, and the other requests of a life, one after another.
    fn sessions(&self) -> BTreeMap<ServerId, Vec<Session>> {
        let mut requests: BTreeMap<_, Vec<Request>> = BTreeMap::new();
        let mut sessions: BTreeMap<ServerId, Vec<Session>> = BTreeMap::new();
        for (id, o) in self.history.operations.but_shadows() {
            if o.verb == Verb::Watch {
                let stream = self.history.stream_of(id).filter(|_| self.covers(&o));
                let steps = stream.and_then(|stream| self.stream(&o, stream));
                let session = steps.map(|steps| Session { steps, writes: Vec::new() });
                sessions.entry(o.server).or_default().extend(session);
            } else if let Some((step, written)) = self.request(id, &o) {
                requests.entry((o.server, o.incarnation)).or_default().push((o.invoke, o.ret, step, written));
            }
        }
        for ((server, _), mut of_life) in requests {
            of_life.sort_by_key(|(invoke, ret, ..)| (*invoke, *ret));
            // Requests that overlap are in sessions of their own.
            let mut open: Vec<(Time, Session)> = Vec::new();
            for (invoke, ret, step, written) in of_life {
                let free = open.iter().position(|(last, _)| *last <= invoke).unwrap_or(open.len());
                if free == open.len() {
                    open.push((invoke, Session::default()));
                }
                let (last, session) = &mut open[free];
                *last = ret;
                session.steps.push(step);
                session.writes.extend(written);
            }
            let with_reads = open.into_iter().map(|(_, session)| session);
            let with_reads = with_reads.filter(|session| session.steps.len() > session.writes.len());
            sessions.entry(server).or_default().extend(with_reads);
        }
        sessions
    }

    /// A list, a GET or a write of one change, with that change.
    fn request(&self, id: OperationId, o: &Operation) -> Option<(Step, Option<usize>)> {
        if !o.verb.is_write() {
            return Some((self.read(o)?, None));
        }
        let mut written = (0..self.changes.len()).filter(|at| self.changes[*at].writer == id);
        let at = written.next().filter(|_| o.is_answered())?;
        written.next().is_none().then(|| (self.write(at), Some(at)))
    }

    /// Whether the evidence has every change of the window.
    fn is_complete(&self) -> bool {
        let timeline = &self.order.timeline;
        let mut scopes =
            self.history.operations.but_shadows().map(|(_, o)| o).filter(|o| self.covers(o)).map(|o| o.scope);
        scopes.any(|scope| timeline.covers(self.history, scope, self.after, self.through(), Provenance::Event))
    }

    /// Whether the environment has a run with these sessions; `None` if the limit of states ended the search.
    fn is_run(&self, sessions: &[Session]) -> Option<bool> {
        let own: BTreeSet<usize> = sessions.iter().flat_map(|session| session.writes.iter().copied()).collect();
        let others = (0..self.changes.len()).filter(|at| !own.contains(at)).map(|at| self.write(at));
        let mut programs: Vec<Vec<Step>> = sessions.iter().map(|session| session.steps.clone()).collect();
        programs.push(others.collect());
        programs.retain(|steps| !steps.is_empty());
        let mut text = format!(
            "name = \"window\"\nproperties = [\"name-reuse\"]\nlimits = {{ servers = 1, writes = {}, crashes = 0, breaks = 0 }}\n",
            self.changes.len()
        );
        for key in &self.present {
            text += &format!("[[object]]\nkey = \"{}\"\n", self.name(*key));
        }
        for (number, steps) in programs.iter().enumerate() {
            text += &format!("[[client]]\nname = \"c{number}\"\nsteps = [\n");
            for (at, (step, _)) in steps.iter().enumerate() {
                let event =
                    if step.starts_with("watch") { format!(", on-event = \"s{}\"", at + 1) } else { String::new() };
                text += &format!("  {{ name = \"s{at}\", {step}{event} }},\n");
            }
            text += &format!("  {{ name = \"s{}\", stop = true }},\n]\n", steps.len());
        }
        let protocol = super::read(&text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let machine = Machine::new(protocol).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let is_key = |name: &str| self.keys.iter().position(|key| self.name(*key) == format!("configmaps/{name}"));
        let names: Vec<usize> = machine.protocol.keys.iter().map(|key| is_key(&key.name).unwrap()).collect();
        let agrees = |state: &State, expected: &Shown, only: Option<u8>, revision: u8| {
            (0..).zip(&names).filter(|(key, _)| only.is_none_or(|only| only == *key)).all(|(key, at)| {
                let version = machine.layout.version_at(state, key, revision);
                let is_there = version > 0 && machine.layout.change(state, version).content > 0;
                expected[*at] == is_there.then_some(version)
            })
        };
        let step_of = |client: u8, step: u8| {
            let first = machine.protocol.clients[usize::from(client)].programs[0].start;
            &programs[usize::from(client)][usize::from(step - first)].1
        };
        let mut visited: HashSet<State> = HashSet::new();
        let mut open = vec![machine.initial()];
        while let Some(state) = open.pop() {
            let is_end = (0..programs.len() as u8).all(|client| machine.layout.step(&state, client, 0) == STOP);
            if is_end {
                return Some(true);
            }
            if visited.len() > MOST_STATES {
                return None;
            }
            machine.transitions(&state, &mut |after, _, event, _| {
                let is_recorded = match event {
                    Event::Read { actor, revision, .. } => match step_of(actor.client, actor.step) {
                        Expected::Read(shown) => {
                            let only = match machine.protocol.steps[usize::from(actor.step)].act {
                                super::protocol::Act::Get { key, .. } => Some(key),
                                _ => None,
                            };
                            agrees(&after, shown, only, revision)
                        }
                        _ => false,
                    },
                    Event::Delivered { actor, revision, .. } => {
                        matches!(step_of(actor.client, actor.step), Expected::Event(place) if *place == revision)
                    }
                    Event::Wrote { actor, outcome: Outcome::Committed(revision) } => {
                        matches!(step_of(actor.client, actor.step), Expected::Commit(place) if *place == revision)
                    }
                    _ => false,
                };
                if is_recorded && visited.insert(after.clone()) {
                    open.push(after);
                }
            });
        }
        Some(false)
    }
}

/// Whether every version of an object is known with its revision, and each follows from the one before.
fn is_whole(order: &Order, key: KeyId) -> bool {
    let mut uid = None;
    for (nth, version) in order.timeline.versions(key).iter().enumerate() {
        let is_possible = match (version.change.lives(), uid) {
            (None, _) => false,
            (Some(true), None) => nth == 0 || version.change == Change::Created,
            (Some(true), Some(uid)) => uid == version.uid && version.change != Change::Created,
            (Some(false), uid) => uid.is_none_or(|uid| uid == version.uid || !version.uid.is_some()),
        };
        if !is_possible || version.is_undated() {
            return false;
        }
        uid = (version.change.lives() == Some(true)).then_some(version.uid);
    }
    uid.is_none_or(|uid| !order.timeline.may_be_removed(key, uid))
}

/// Replays all windows of a history, and each again with two steps of a session swapped.
fn replay(history: &History, tally: &mut Tally) {
    let order = Order::derive(history, &OrderOptions::default());
    for window in Window::all(history, &order) {
        for (server, sessions) in window.sessions() {
            for together in sessions.chunks(MOST_SESSIONS) {
                tally.windows += 1;
                tally.sessions += together.len();
                tally.steps += together.iter().map(|session| session.steps.len()).sum::<usize>();
                let text = |sessions: &[Session]| {
                    let steps: String = sessions.iter().map(|session| format!("{:?}\n", session.steps)).collect();
                    let (key, server) = (history.key_name(window.keys[0]), history.server_name(server));
                    format!("{key} at {server} after {}:\n{steps}", window.after)
                };
                match window.is_run(together) {
                    None => tally.undecided += 1,
                    Some(false) if !window.is_complete() => tally.incomplete += 1,
                    Some(false) => tally.refused.push(text(together)),
                    Some(true) => {}
                }
                for altered in swapped(together).into_iter().take(MOST_ALTERED) {
                    tally.altered += 1;
                    if window.is_run(&altered) == Some(true) {
                        tally.missed.push(text(&altered));
                    }
                }
            }
        }
    }
}

/// The sessions with two neighbouring results swapped, so that the second one shows what is not yet there, or goes back.
fn swapped(sessions: &[Session]) -> Vec<Vec<Session>> {
    let mut all = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        for (at, pair) in session.steps.windows(2).enumerate() {
            let is_possible = match (&pair[0].1, &pair[1].1) {
                (Expected::Event(_), Expected::Event(_)) => false,
                (Expected::Commit(place), Expected::Read(shown)) => !shown.contains(&Some(*place)),
                (Expected::Read(first), Expected::Read(second)) => pair[0].0 != pair[1].0 || first == second,
                _ => true,
            };
            if !is_possible {
                let mut altered = sessions.to_vec();
                altered[number].steps.swap(at, at + 1);
                all.push(altered);
            }
        }
    }
    all
}

/// The evidence of a case, without the folders that hold the same log again.
fn histories(case: &Path) -> Vec<History> {
    let sources = ["audit-0.log:server=A,clock=lab", "audit-1.log:server=B,clock=lab", "capture-*.jsonl:clock=lab"];
    let sources: Vec<SourceRule> = sources.iter().map(|rule| SourceRule::parse(rule).unwrap()).collect();
    let mut found = inputs(&[case.to_path_buf()], &sources, &[]).unwrap();
    found.retain(|input| !["/metadata/", "/merged/"].iter().any(|folder| input.shown.contains(folder)));
    load_each(found, &crate::read_options(), &Domains::default(), &())
}

#[test]
fn legal_sketches_are_runs_of_the_environment() {
    let (mut tally, mut open) = (Tally::default(), vec![PathBuf::from("histories")]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|e| e == "sketch") {
            let Ok(history) = sketch::sketch(&std::fs::read_to_string(&path).unwrap()) else { continue };
            let judgement = crate::judge(&history, &crate::Options::default());
            if judgement.findings.iter().all(|finding| finding.kind != Kind::Violation) {
                replay(&history, &mut tally);
            }
        }
    }
    println!("{tally}");
    assert!(tally.windows > 250 && tally.altered > 50 && tally.incomplete <= 2 && tally.undecided == 0, "{tally}");
    assert!(tally.refused.is_empty() && tally.missed.is_empty(), "{tally}");
}

#[test]
fn real_recordings_are_runs_of_the_environment() {
    let captures = std::env::var_os("RETROGRADE_CAPTURES").map_or_else(|| "../shared/captures".into(), PathBuf::from);
    let Ok(folders) = std::fs::read_dir(captures.join("real")) else {
        return eprintln!("skipped: there is no {} (RETROGRADE_CAPTURES names another folder)", captures.display());
    };
    let mut cases: Vec<PathBuf> = folders.flatten().map(|entry| entry.path()).collect();
    cases.sort();
    for case in cases {
        let mut tally = Tally::default();
        histories(&case).iter().for_each(|history| replay(history, &mut tally));
        println!("{}: {tally}", case.display());
        // These two show two clusters as one, and the requests of two processes at two servers by clocks that differ.
        let is_mixed = ["two-clusters", "merged-skewed"].iter().any(|name| case.to_string_lossy().contains(name));
        if is_mixed {
            assert!(tally.refused.len() + tally.incomplete > 0, "{tally}");
        } else {
            assert!(tally.windows > 50 && tally.altered > 50 && tally.incomplete + tally.undecided == 0, "{tally}");
            assert!(tally.refused.is_empty() && tally.missed.is_empty(), "{tally}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { windows, sessions, steps, incomplete, refused, undecided, altered, missed } = self;
        writeln!(
            f,
            "{windows} windows with {sessions} sessions of {steps} steps: {} refused, {incomplete} of incomplete evidence, \
             {undecided} not decided; {} of {altered} altered ones have a run",
            refused.len(),
            missed.len()
        )?;
        refused.iter().chain(missed).try_for_each(|text| writeln!(f, "{}", &text[..text.len().min(1_500)]))
    }
}
