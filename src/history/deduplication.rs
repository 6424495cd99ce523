//! Stages of one audit event, one event met twice, and the two sides of one request: which rows are the same request.

use super::client::Process;
use super::ids::{AttributesId, IncarnationId, OperationId, Symbol, sort_by_word};
use super::operation::{AuditId, Item, Marks, Operation};
use super::operations::Operations;
use super::request::Verb;
use super::revision::Revision;
use super::scope::Attributes;
use crate::ingest::{FileId, Position};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeSet;
use std::hash::BuildHasher;

/// What joining rows came to.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// For every row that went into another, which one.
    pub gone: FxHashMap<u32, u32>,
    /// Those of them that a capture's copy holds again.
    pub copies: FxHashMap<u32, u32>,
    /// Rows of clients' requests whose bodies only the server recorded, with its rows' positions.
    pub bodies: Vec<(u32, Position)>,
    /// Rows of clients' requests that a server recorded with a body too, with its rows' positions.
    pub server_records: Vec<(u32, Position)>,
    /// Processes as clients recorded them, with the same as servers did: of which one request is known from both sides.
    pub sides: BTreeSet<(IncarnationId, IncarnationId)>,
}

/// What rows show of objects.
#[derive(Clone, Copy)]
pub(super) struct Shown<'b> {
    /// Of versions, beside their identity.
    pub attributes: &'b [Attributes],
    /// Of lists.
    pub items: &'b [Item],
}

impl Shown<'_> {
    fn extent(&self, id: AttributesId) -> Option<(bool, bool, bool)> {
        Attributes::extent(self.attributes, id)
    }

    /// Whether one record of a list says more of the same objects than another: a recorder may have cut them down.
    fn lists_more(&self, one: &Operation, than: &Operation) -> bool {
        let [one, than] = [one, than].map(|o| &self.items[o.items()]);
        let same = |(a, b): (&Item, &Item)| (a.key, a.uid, a.revision) == (b.key, b.uid, b.revision);
        let pairs = || one.iter().zip(than);
        let more = |(a, b): (&Item, &Item)| self.extent(a.attributes) > self.extent(b.attributes);
        one.len() == than.len() && pairs().any(more) && pairs().all(same)
    }
}

/// Joins the stages of audit events, drops events met twice, and puts the two sides of one request together.
///
/// Two audit events are the same iff server, audit id, stage, both timestamps, verb and URI agree; audit ids alone are not
/// unique (a client may send one).
pub(super) fn join(rows: &mut Operations, process: impl Fn(IncarnationId) -> Process, shown: Shown<'_>) -> Joined {
    let mut joined = Joined::default();
    drop_copies(rows, &mut joined);
    // Nearly always the audit id tells two rows apart.
    let id = |r: u32| (FxBuildHasher.hash_one(rows.get(r as usize).audit_id) >> 32) as u32;
    let with_id = (0..rows.len() as u32).filter(|&r| rows.get(r as usize).audit_id != AuditId::None);
    let mut index = meeting(&with_id.map(|r| (id(r), r)).collect::<Vec<_>>());
    let group = |o: &Operation| (o.audit_id, o.verb, o.scope, o.marks.has(Marks::CLIENT_SIDE), o.server, o.invoke);
    sort_by_word(&mut index, id, |r| {
        let row = rows.get(r as usize);
        (group(&row), row.marks.has(Marks::OPEN), row.ret, r)
    });
    let mut at = 0;
    while at < index.len() {
        let first = rows.get(index[at] as usize);
        let mut end = at + 1;
        while end < index.len() && group(&rows.get(index[end] as usize)) == group(&first) {
            end += 1;
        }
        if !first.marks.has(Marks::CLIENT_SIDE) {
            let mut kept = index[at];
            for &row in &index[at + 1..end] {
                let (k, r) = (rows.get(kept as usize), rows.get(row as usize));
                // A stage before the answer goes into the answer; an answer met twice counts once.
                if r.marks.has(Marks::OPEN)
                    || (r.ret == k.ret && r.status == k.status && r.asked_revision == k.asked_revision)
                {
                    joined.gone.insert(row, kept);
                } else {
                    kept = row;
                }
            }
        }
        at = end;
    }
    if index.iter().any(|&row| rows.get(row as usize).marks.has(Marks::CLIENT_SIDE)) {
        pair_sides(rows, &index, shown, &mut joined);
    }
    pair_writes(rows, process, shown, &mut joined);
    joined
}

/// Finds requests that a client's process recorded once and that stand in two files, because somebody copied or joined captures: they
/// agree in everything but their places. The first record stays.
fn drop_copies(rows: &Operations, joined: &mut Joined) {
    let mut files: FxHashMap<IncarnationId, (FileId, bool)> = FxHashMap::default();
    for (_, o) in rows.of_marks(Marks::CLIENT_SIDE) {
        let known = files.entry(o.incarnation).or_insert((o.position.file, false));
        known.1 |= known.0 != o.position.file;
    }
    if !files.values().any(|(_, several)| *several) {
        return;
    }
    let same = |o: &Operation| {
        let asked = (o.incarnation, o.verb, o.scope, o.key, o.asked, o.asked_revision, o.marks.0, o.decision);
        let answered = (o.audit_id, o.status, o.answered, o.answer_uid, o.items_len, o.attributes);
        (o.invoke, o.ret, asked, answered)
    };
    let in_several = |o: &Operation| files.get(&o.incarnation).is_some_and(|(_, several)| *several);
    let words: Vec<(u32, u32)> = rows
        .of_marks(Marks::CLIENT_SIDE)
        .filter(|(_, o)| o.invoke.is_known() && in_several(o))
        .map(|(id, o)| ((FxBuildHasher.hash_one(same(&o)) >> 32) as u32, id.0))
        .collect();
    let mut all: FxHashMap<_, Alike> = FxHashMap::default();
    for row in meeting(&words) {
        let o = rows.get(row as usize);
        let file = o.position.file;
        let alike =
            all.entry(same(&o)).or_insert_with(|| Alike { file, originals: Vec::new(), met: FxHashMap::default() });
        // Of several requests at one time each copy has as many: the first of one file is the first of the other.
        let nth = alike.met.entry(file).or_default();
        if file == alike.file {
            alike.originals.push(row);
        } else if let Some(&original) = alike.originals.get(*nth) {
            joined.copies.insert(row, original);
            joined.gone.insert(row, original);
        }
        *nth += 1;
    }
}

/// Requests that agree in everything but their places.
struct Alike {
    /// The first file that has one.
    file: FileId,
    /// Its rows.
    originals: Vec<u32>,
    /// How many each file has.
    met: FxHashMap<FileId, usize>,
}

/// Of rows, each behind a word, those that may share it with another: only they are worth sorting. A bit stands for several words, so
/// some of them share theirs with nobody.
fn meeting(rows: &[(u32, u32)]) -> Vec<u32> {
    /// Bits a row: one in so many that share their word with nobody is kept.
    const SPARE: usize = 16;
    let bits = (rows.len() * SPARE).next_power_of_two().max(64);
    let place = |word: u32| {
        let bit = word as usize & (bits - 1);
        (bit / 64, 1u64 << (bit % 64))
    };
    let (mut once, mut twice) = (vec![0u64; bits / 64], vec![0u64; bits / 64]);
    for (at, bit) in rows.iter().map(|(word, _)| place(*word)) {
        twice[at] |= once[at] & bit;
        once[at] |= bit;
    }
    let is_twice = |(word, _): &&(u32, u32)| {
        let (at, bit) = place(*word);
        twice[at] & bit != 0
    };
    rows.iter().filter(is_twice).map(|(_, row)| *row).collect()
}

/// Finds the server's record of a request that a client recorded too. On one clock the two become one operation; on two clocks, and
/// where the client had no answer, both stay, the server's as a shadow that bounds clocks and proves commits.
///
/// The one operation keeps the times of the client, though the server's are narrower: a client that sends two requests at a time
/// knows the answer of neither when it sends the other, whatever the server did meanwhile.
fn pair_sides(rows: &mut Operations, index: &[u32], shown: Shown<'_>, joined: &mut Joined) {
    let mut by_id: FxHashMap<(AuditId, Verb), Vec<u32>> = FxHashMap::default();
    for &row in index {
        let o = rows.get(row as usize);
        if !o.marks.has(Marks::CLIENT_SIDE) && !joined.gone.contains_key(&row) {
            by_id.entry((o.audit_id, o.verb)).or_default().push(row);
        }
    }
    if by_id.is_empty() {
        return;
    }
    let mut taken: FxHashMap<u32, ()> = FxHashMap::default();
    for &row in index {
        let client = rows.get(row as usize);
        if !client.marks.has(Marks::CLIENT_SIDE) || joined.gone.contains_key(&row) {
            continue;
        }
        let Some(candidates) = by_id.get(&(client.audit_id, client.verb)) else { continue };
        let fits = |server: &Operation| {
            let same_key = server.key == client.key || !server.key.is_some() || !client.key.is_some();
            let same_server = server.server == client.server || !server.server.is_some() || !client.server.is_some();
            let inside = server.clock != client.clock || is_inside(server, &client);
            server.scope == client.scope && same_key && same_server && inside
        };
        // Servers of different names for one apiserver are usual (no --source): then an id that occurs once is enough.
        let loose = |server: &Operation| server.scope == client.scope && candidates.len() == 1;
        let free = |r: &&u32| !taken.contains_key(*r);
        let fitting: Vec<u32> =
            candidates.iter().filter(free).filter(|&&r| fits(&rows.get(r as usize))).copied().collect();
        let found = match fitting.as_slice() {
            [one] => Some(*one),
            [] => candidates
                .iter()
                .filter(free)
                .find(|&&r| rows.get(r as usize).clock != client.clock && loose(&rows.get(r as usize)))
                .copied(),
            _ => None,
        };
        let Some(found) = found else { continue };
        taken.insert(found, ());
        merge(rows, row, found, shown, joined);
    }
}

/// Whether the server's times of a request lie inside the client's, both of one clock.
fn is_inside(server: &Operation, client: &Operation) -> bool {
    // Audit times are cut to microseconds, so the server may seem to begin up to one early.
    server.invoke.0 >= client.invoke.0.saturating_sub(1_000) && (client.ret >= server.ret || client.verb == Verb::Watch)
}

/// Finds the server's record of an accepted write that nothing but its content joins with the client's: audit ids are optional in
/// captures, and who had no answer has none to keep. One user's writes of one object that were answered with the same version are one
/// where they commit it; where they may have changed nothing, if one clock shows that no other can be meant.
fn pair_writes(
    rows: &mut Operations,
    process: impl Fn(IncarnationId) -> Process,
    shown: Shown<'_>,
    joined: &mut Joined,
) {
    let is_write = |o: &Operation| {
        matches!(o.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete)
            && o.is_answered()
            && o.key.is_some()
            && (o.answered.is_some() || o.answer_uid.is_some())
            && process(o.incarnation).user.is_some()
            && o.subresource.answers_parent()
            && !o.marks.has(Marks::DRY_RUN)
            && !o.marks.has(Marks::LIST_ANSWER)
            && !o.marks.has(Marks::BOTH_SIDES)
    };
    let group = |o: &Operation| (process(o.incarnation).user, o.verb, o.key, o.subresource, o.answered);
    let mut groups: FxHashMap<_, (Vec<u32>, Vec<u32>)> = FxHashMap::default();
    let is_kept = |id: OperationId| !joined.gone.contains_key(&id.0);
    for (id, o) in rows.of_marks(Marks::CLIENT_SIDE).filter(|(id, o)| is_write(o) && is_kept(*id)) {
        groups.entry(group(&o)).or_default().0.push(id.0);
    }
    if groups.is_empty() {
        return;
    }
    for (id, o) in rows.but_shadows().filter(|(_, o)| is_write(o) && !o.marks.has(Marks::CLIENT_SIDE)) {
        if let Some((_, servers)) = groups.get_mut(&group(&o)).filter(|_| !joined.gone.contains_key(&id.0)) {
            servers.push(id.0);
        }
    }
    let is_one = |client: &Operation, server: &Operation| {
        let agents = [client, server].map(|o| process(o.incarnation).agent);
        client.status == server.status
            && agrees(agents[0], agents[1], |agent| agent.is_some())
            && agrees(client.audit_id, server.audit_id, |id| id != AuditId::None)
            && agrees(client.answer_uid, server.answer_uid, |uid| uid.is_some())
            && agrees(client.asked_revision, server.asked_revision, |revision| revision.is_some())
            && match client.clock == server.clock {
                true => is_inside(server, client),
                false => client.shows_its_commit() && server.shows_its_commit(),
            }
    };
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for (clients, servers) in groups.values() {
        let fits = |client: u32, server: u32| is_one(&rows.get(client as usize), &rows.get(server as usize));
        for &client in clients {
            let mut of_client = servers.iter().filter(|server| fits(client, **server));
            let (Some(&server), None) = (of_client.next(), of_client.next()) else { continue };
            if clients.iter().filter(|other| fits(**other, server)).count() == 1 {
                pairs.push((client, server));
            }
        }
    }
    pairs.sort_unstable();
    for (client, server) in pairs {
        merge(rows, client, server, shown, joined);
    }
}

/// Whether two records of something are the same, or one does not have it.
fn agrees<T: PartialEq + Copy>(one: T, other: T, known: impl Fn(T) -> bool) -> bool {
    one == other || !known(one) || !known(other)
}

/// What an answer shows of what holds back an object that is being deleted.
const HOLDS: [Marks; 2] = [Marks::HELD, Marks::REMOVES];

/// What two records of one request show of what it asked for.
struct Request {
    set: Marks,
    cleared: Marks,
    uid: Symbol,
    base: Revision,
}

/// Puts together what a client's and a server's record show of one request: each may have left out what the other has.
fn asked_by_both(client: &Operation, server: &Operation) -> Request {
    const SHOWN: Marks =
        Marks(Marks::DRY_RUN.0 | Marks::NAMES_UID.0 | Marks::REQUEST_BODY.0 | Marks::APPLY.0 | Marks::BINDING.0);
    let uid = if client.request_uid.is_some() { client.request_uid } else { server.request_uid };
    let base = if client.asked_revision.is_some() { client.asked_revision } else { server.asked_revision };
    let mut set = Marks((client.marks.0 | server.marks.0) & SHOWN.0);
    // Only who has the body can tell that it names no condition.
    let mut bodies = [client, server].into_iter().filter(|o| o.marks.has(Marks::REQUEST_BODY));
    let unconditioned = match bodies.next_back() {
        Some(shown) => shown.marks.has(Marks::UNCONDITIONED),
        None => client.marks.has(Marks::UNCONDITIONED) && server.marks.has(Marks::UNCONDITIONED),
    };
    let conditioned = base.is_some() || uid.is_some() || set.has(Marks::APPLY);
    let mut cleared = Marks::default();
    if unconditioned && !conditioned {
        set.set(Marks::UNCONDITIONED);
    } else {
        cleared = Marks::UNCONDITIONED;
    }
    Request { set, cleared, uid, base }
}

impl Request {
    fn put(&self, operation: &mut Operation) {
        operation.marks.clear(self.cleared);
        operation.marks.set(self.set);
        operation.request_uid = self.uid;
        if operation.verb.is_write() {
            operation.asked_revision = self.base;
        }
    }
}

/// Puts the server's record of a request into the client's, or beside it.
fn merge(rows: &mut Operations, row: u32, found: u32, shown: Shown<'_>, joined: &mut Joined) {
    let server = rows.get(found as usize);
    let mut merged = rows.get(row as usize);
    joined.sides.insert((merged.incarnation, server.incarnation));
    merged.marks.set(Marks::BOTH_SIDES);
    if server.marks.has(Marks::REQUEST_BODY) || server.marks.has(Marks::ANSWER_BODY) {
        joined.server_records.push((row, server.position));
    }
    if server.marks.has(Marks::REQUEST_BODY) && !merged.marks.has(Marks::REQUEST_BODY) {
        joined.bodies.push((row, server.position));
    }
    let request = asked_by_both(&merged, &server);
    if !merged.answered.is_some() && !merged.marks.has(Marks::ANSWER_BODY) {
        merged.answered = server.answered;
        merged.answer_uid = server.answer_uid;
        merged.items_start = server.items_start;
        merged.items_len = server.items_len;
        merged.page_end = server.page_end;
        merged.marks.set(Marks(
            server.marks.0
                & (Marks::ANSWER_BODY.0
                    | Marks::LIST_ANSWER.0
                    | Marks::MORE_PAGES.0
                    | Marks::REMOVES.0
                    | Marks::HELD.0
                    | Marks::TERMINATING.0
                    | Marks::STATUS_ANSWER.0),
        ));
    } else if merged.answered == server.answered && !merged.marks.has(HOLDS[0]) && !merged.marks.has(HOLDS[1]) {
        // A client's recorder may have cut off what the server's log shows of an object's end.
        merged.marks.set(Marks(server.marks.0 & (HOLDS[0].0 | HOLDS[1].0)));
    }
    if merged.answered == server.answered && shown.extent(server.attributes) > shown.extent(merged.attributes) {
        merged.attributes = server.attributes;
    }
    if merged.answered == server.answered && shown.lists_more(&server, &merged) {
        merged.items_start = server.items_start;
    }
    if merged.audit_id == AuditId::None {
        merged.audit_id = server.audit_id;
    }
    request.put(&mut merged);
    if !merged.key.is_some() {
        merged.key = server.key;
    }
    if !merged.server.is_some() {
        merged.server = server.server;
    }
    if server.clock == merged.clock && (merged.ret.is_known() || merged.verb == Verb::Watch) {
        joined.gone.insert(found, row);
    } else {
        // The same process, seen from the other side.
        rows.change(found as usize, |shadow| {
            shadow.incarnation = merged.incarnation;
            shadow.marks.set(Marks(Marks::SHADOW.0 | Marks::BOTH_SIDES.0));
            request.put(shadow);
        });
    }
    rows.set(row as usize, merged);
}
