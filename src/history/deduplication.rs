//! Finds rows that record the same request: stages of one audit event, repeated events, copies of captures, and the two sides of
//! one request (client and server).
//!
//! Input: the operations of all files. Output: [`Joined`], with the kept row for each dropped one. Invariant: a client's record
//! stays, and if both sides stay, the server's is a shadow ([`Marks::SHADOW`]). Rows with equal hashes are only candidates; every
//! pair is compared in full.

use super::client::Process;
use super::ids::{AttributesId, IncarnationId, OperationId, ServerId, Symbol, sort_by_word};
use super::operation::{AuditId, Item, Marks, Operation};
use super::operations::Operations;
use super::request::Verb;
use super::revision::Revision;
use super::scope::Attributes;
use crate::ingest::{FileId, Position};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeSet;
use std::hash::BuildHasher;

/// The result of joining rows.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// For every dropped row, the row that stays.
    pub gone: FxHashMap<u32, u32>,
    /// The subset of `gone` that copies of captures repeat.
    pub copies: FxHashMap<u32, u32>,
    /// Rows of clients' requests with a body in the server's record only, with the position of that record.
    pub bodies: Vec<(u32, Position)>,
    /// Rows of clients' requests with a body in the server's record too, with the position of that record.
    pub server_records: Vec<(u32, Position)>,
    /// Pairs of one process: as the client recorded it, and as a server did. At least one request is known from both.
    pub sides: BTreeSet<(IncarnationId, IncarnationId)>,
}

/// The content of objects in rows.
#[derive(Clone, Copy)]
pub(super) struct Shown<'b> {
    /// Content of versions, beside their identity.
    pub attributes: &'b [Attributes],
    /// Items of lists.
    pub items: &'b [Item],
}

impl Shown<'_> {
    fn extent(&self, id: AttributesId) -> Option<(bool, bool, bool)> {
        Attributes::extent(self.attributes, id)
    }

    /// Whether one record of a list has more content than another record of the same objects. A recorder may cut bodies.
    fn lists_more(&self, one: &Operation, than: &Operation) -> bool {
        let [one, than] = [one, than].map(|o| &self.items[o.items()]);
        let same = |(a, b): (&Item, &Item)| (a.key, a.uid, a.revision) == (b.key, b.uid, b.revision);
        let pairs = || one.iter().zip(than);
        let more = |(a, b): (&Item, &Item)| self.extent(a.attributes) > self.extent(b.attributes);
        one.len() == than.len() && pairs().any(more) && pairs().all(same)
    }
}

/// Joins the stages of audit events, drops repeated events, and joins the two sides of one request.
///
/// Two audit events are the same if audit id, stage, both timestamps, verb and URI agree. Audit ids alone are not unique, since a
/// client may send one. Servers need not agree, since several exports of one log name its server in different ways, or not at
/// all. `is_presumed` says that the file of a row is all that is known of its server; the other record then stays.
pub(super) fn join(
    rows: &mut Operations,
    process: impl Fn(IncarnationId) -> Process,
    is_presumed: impl Fn(ServerId) -> bool,
    shown: Shown<'_>,
) -> Joined {
    let mut joined = Joined::default();
    drop_copies(rows, &mut joined);
    // The audit id separates nearly all rows, so it is compared first.
    let id = |r: u32| (FxBuildHasher.hash_one(rows.get(r as usize).audit_id) >> 32) as u32;
    let with_id = (0..rows.len() as u32).filter(|&r| rows.get(r as usize).audit_id != AuditId::None);
    let mut index = meeting(&with_id.map(|r| (id(r), r)).collect::<Vec<_>>());
    let group = |o: &Operation| (o.audit_id, o.verb, o.scope, o.marks.has(Marks::CLIENT_SIDE), o.invoke);
    sort_by_word(&mut index, id, |r| {
        let row = rows.get(r as usize);
        (group(&row), row.marks.has(Marks::OPEN), row.ret, is_presumed(row.server), r)
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
                // Times of microseconds, by two servers, tell one event from two.
                let is_one_server = r.server == k.server || r.invoke.is_known();
                // An earlier stage merges into the answer; a repeated answer counts once.
                let is_same = r.marks.has(Marks::OPEN)
                    || (r.ret == k.ret && r.status == k.status && r.asked_revision == k.asked_revision);
                if is_one_server && is_same {
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

/// Finds requests that two files hold because captures were copied or joined. They agree in everything but their position. The
/// first record stays.
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
        // Equal requests at one time are matched by their rank: the first of one file is the first of the other.
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

/// Requests that agree in everything but their position.
struct Alike {
    /// The first file that holds one.
    file: FileId,
    /// Its rows.
    originals: Vec<u32>,
    /// Number of these requests in each file.
    met: FxHashMap<FileId, usize>,
}

/// Keeps the rows whose word (a hash, first in the pair) another row may share, so that only these are sorted. A bitmap decides,
/// in which several words share a bit, so some rows with a unique word stay too.
fn meeting(rows: &[(u32, u32)]) -> Vec<u32> {
    /// Bits per row: about one in 16 rows with a unique word stays.
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

/// Finds the server's record of a request that a client recorded too. Both stay; the server's is then a shadow that bounds clocks
/// and proves commits. The two records of a watch become one operation if they use one clock.
///
/// The client's operation keeps its times, although the shadow's are narrower. A client that sends two requests at once knows
/// neither answer when it sends the other, whatever the server did meanwhile.
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
        // Without --source one API server often has two names; then an audit id that occurs once is enough.
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
    // Audit times have microseconds, so the server may seem to begin up to one microsecond early.
    server.invoke.0 >= client.invoke.0.saturating_sub(1_000) && (client.ret >= server.ret || client.verb == Verb::Watch)
}

/// Finds the server's record of an accepted write by its content alone, since captures need no audit ids. Two writes of one user
/// to one object, answered with the same version, are one request if both answers show that they committed it. Without that proof
/// they are one if they use one clock and the server's times lie inside the client's.
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

/// Whether two values are equal, or one of them is unknown.
fn agrees<T: PartialEq + Copy>(one: T, other: T, known: impl Fn(T) -> bool) -> bool {
    one == other || !known(one) || !known(other)
}

/// Marks of an answer about whatever holds back an object under deletion.
const HOLDS: [Marks; 2] = [Marks::HELD, Marks::REMOVES];

/// What two records of one request say about its parameters.
struct Request {
    set: Marks,
    cleared: Marks,
    uid: Symbol,
    base: Revision,
}

/// Combines the parameters in a client's and a server's record of one request: each may lack what the other has.
fn asked_by_both(client: &Operation, server: &Operation) -> Request {
    const SHOWN: Marks =
        Marks(Marks::DRY_RUN.0 | Marks::NAMES_UID.0 | Marks::REQUEST_BODY.0 | Marks::APPLY.0 | Marks::BINDING.0);
    let uid = if client.request_uid.is_some() { client.request_uid } else { server.request_uid };
    let base = match [client, server].into_iter().any(Operation::compared_nothing) {
        true => Revision::NONE,
        false if client.asked_revision.is_some() => client.asked_revision,
        false => server.asked_revision,
    };
    let mut set = Marks((client.marks.0 | server.marks.0) & SHOWN.0);
    // Only a record with the request's body proves that the write has no condition.
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

/// Merges the server's record of a request into the client's, or keeps it as a shadow.
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
        // A client's recorder may have cut the fields that show an object's end; the server's log may have them.
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
    if server.clock == merged.clock && merged.verb == Verb::Watch {
        joined.gone.insert(found, row);
    } else {
        // The shadow belongs to the client's process.
        rows.change(found as usize, |shadow| {
            shadow.incarnation = merged.incarnation;
            shadow.marks.set(Marks(Marks::SHADOW.0 | Marks::BOTH_SIDES.0));
            request.put(shadow);
        });
    }
    rows.set(row as usize, merged);
}
