//! Draws executions of a server, some requests without an answer.

use super::{Answer, Ask, Compare, Event, Key, Look, Name, Operation, Small, Step, Told, Watch};
use crate::chance::Chance;
use crate::etcd::oracle::{Hidden, Server, is_plain};

fn key(dice: &mut Chance) -> Key {
    // With few keys each has many events.
    [0, 0, 0, 1, 2, 3][dice.below(6) as usize]
}

fn look(server: &Server, dice: &mut Chance) -> Look {
    let whole = dice.below(2) == 0;
    let past = 1 + dice.below(server.revision() as u64 + 1) as i64;
    Look {
        key: if whole { 0 } else { key(dice) },
        end: whole.then(|| 1 + dice.below(3) as u8),
        limit: if dice.below(3) == 0 { 1 + dice.below(2) as i64 } else { 0 },
        revision: if dice.below(3) == 0 { past } else { 0 },
        keys_only: dice.below(5) == 0,
    }
}

fn ask(server: &Server, n: u8, granted: usize, dice: &mut Chance) -> Ask {
    let lease = |dice: &mut Chance| 7 + dice.below(granted.max(1) as u64) as i64;
    let plain = |step: Step| Ask::Txn { conditions: vec![], success: vec![step], failure: vec![] };
    let value = Name(if dice.below(6) == 0 { 0 } else { n });
    // Some reads in transactions name the revision before them.
    let revision = if n.is_multiple_of(2) { server.revision() } else { 0 };
    match dice.below(20) {
        0..=4 => {
            let lease = if dice.below(2) == 0 { lease(dice) } else { 0 };
            plain(Step::Put(key(dice), value, lease))
        }
        5 | 6 => {
            let key = key(dice);
            plain(if n.is_multiple_of(3) { Step::DeleteBetween(0, key.max(1)) } else { Step::Delete(key) })
        }
        7..=10 => {
            let of = key(dice);
            let live = server.now()[of as usize];
            let compare = match dice.below(4) {
                0 => Compare::Version(live.map_or(1, |live| live.version)),
                1 => Compare::Changed(1 + dice.below(server.revision() as u64) as i64),
                _ => Compare::Changed(live.map_or(0, |live| live.changed)),
            };
            let step = if dice.below(3) == 0 { Step::Delete(of) } else { Step::Put(of, value, 0) };
            let failure = match dice.below(3) {
                0 => vec![],
                1 => vec![Step::Put(3, value, 0)],
                _ => vec![Step::Look(Look { key: of, end: None, limit: 0, revision, keys_only: false })],
            };
            Ask::Txn { conditions: vec![(of, compare)], success: vec![step], failure }
        }
        11 => {
            let whole = Look { key: 0, end: Some(3), limit: 0, revision, keys_only: false };
            let deleted = if n.is_multiple_of(3) { Step::DeleteBetween(1, 3) } else { Step::Delete(2) };
            let mut success = vec![Step::Put(0, value, 0), deleted, Step::Look(whole)];
            success.truncate(1 + dice.below(3) as usize);
            success.push(Step::Put(3, value, 0));
            Ask::Txn { conditions: vec![], success, failure: vec![] }
        }
        12..=15 => Ask::Range(look(server, dice)),
        // The server chooses the id.
        16 | 17 => Ask::Grant(7 + granted as i64),
        18 => Ask::Revoke(lease(dice)),
        _ => Ask::Compact(1 + dice.below(server.revision() as u64 + 1) as i64),
    }
}

/// The true leases of transactional puts.
fn hidden(server: &Server, dice: &mut Chance) -> Hidden {
    let leases: Vec<i64> = server.leases.iter().copied().collect();
    (0..2).map(|_| if leases.is_empty() || dice.below(4) > 0 { 0 } else { *dice.one(&leases) }).collect()
}

/// A request with the leases of its puts, as the log has it.
fn attached_to(ask: &Ask, hidden: &Hidden, answer: &Answer) -> Ask {
    let (mut ask, mut hidden) = (ask.clone(), hidden.iter());
    if let Ask::Txn { conditions, success, failure } = &mut ask
        && !is_plain(conditions, success, failure)
    {
        let failed = matches!(answer, Answer::Done { failure: true, .. });
        for step in if failed { failure } else { success } {
            if let Step::Put(_, _, lease @ 0) = step {
                *lease = *hidden.next().unwrap_or(&0);
            }
        }
    }
    ask
}

impl Small {
    /// Gives the history a prefix of the proposals as the log of the only member, and sometimes drops an entry.
    pub fn log_some(&mut self, dice: &mut Chance) {
        if dice.below(6) == 0 && !self.proposed.is_empty() {
            self.proposed.remove(dice.below(self.proposed.len() as u64) as usize);
        }
        let all = self.proposed.len();
        self.logged = Some(if dice.below(2) == 0 { all } else { dice.below(all as u64 + 1) as usize });
    }

    /// Draws a history: an execution with unanswered requests, and some changed answers and deliveries.
    pub fn draw(dice: &mut Chance) -> Small {
        let clients = 1 + dice.below(3) as u32;
        let count = 3 + dice.below(6) as usize;
        let mut slots = Vec::new();
        let mut free = vec![1 + dice.below(3) as i64; clients as usize];
        for _ in 0..count {
            let client = dice.below(u64::from(clients)) as usize;
            let call = free[client] + dice.below(4) as i64;
            let fate = dice.below(8);
            let done = call + dice.below(if fate == 0 { 20 } else { 5 }) as i64;
            let returned = if fate < 2 { call + 4 } else { done + dice.below(4) as i64 };
            free[client] = returned + 1;
            slots.push((done, client as u32, call, returned, fate));
        }
        slots.sort_unstable();
        let mut server = Server::new();
        let mut born = Vec::new();
        let mut compactions = Vec::new();
        let mut operations: Vec<Operation> = Vec::new();
        let mut granted = 0;
        let mut proposed = Vec::new();
        for (n, (done, client, call, returned, fate)) in slots.into_iter().enumerate() {
            if dice.below(12) == 0 && !server.leases.is_empty() {
                let lease = *server.leases.iter().next().unwrap_or(&0);
                server.expire(lease);
                proposed.push(Ask::Revoke(lease));
            }
            let mut ask = ask(&server, n as u8 + 1, granted, dice);
            granted += usize::from(matches!(ask, Ask::Grant(_)));
            let attached = hidden(&server, dice);
            // Fate 0: effect without an answer; 1: lost.
            let answer = if fate == 1 { Answer::Unknown } else { server.apply(&ask, &attached) };
            if fate != 1 && ask.is_proposed() {
                proposed.push(attached_to(&ask, &attached, &answer));
            }
            born.resize(server.revision() as usize - 1, done);
            compactions.push((server.compacted, done));
            let answer = if fate == 0 { Answer::Unknown } else { answer };
            // The client may have left the number to the server.
            if let (Ask::Grant(lease), Answer::Unknown) = (&mut ask, &answer)
                && call % 2 == 1
            {
                *lease = 0;
            }
            operations.push(Operation { client, call, returned, ask, answer });
        }
        operations.sort_by_key(|operation| (operation.client, operation.call));
        let watches = (0..dice.below(3)).map(|_| watch(&server, &born, &compactions, dice)).collect();
        let mut small = Small { operations, watches, proposed, logged: None };
        for _ in 0..[0, 1, 2, 2, 3][dice.below(5) as usize] {
            small.corrupt(dice);
        }
        small
    }
}

/// The responses of a watch from a revision.
fn watch(server: &Server, born: &[i64], compactions: &[(i64, i64)], dice: &mut Chance) -> Watch {
    let (text, prefix) = *dice.one(&[("", true), ("", true), ("a", true), ("a", false), ("c", false)]);
    let from = if dice.below(5) == 0 { 0 } else { 1 + dice.below(server.revision() as u64) as i64 };
    let mut watch = Watch { text, prefix, from, previous: dice.below(3) > 0, told: Vec::new() };
    // Revision 0: from an arbitrary moment.
    let first = if from == 0 { 1 + dice.below(server.revision() as u64 + 1) as i64 } else { from };
    let mut time = 0;
    let mut events = Vec::new();
    for number in first.max(2)..=server.revision() {
        time = time.max(born[number as usize - 2]) + dice.below(4) as i64;
        for (key, before, after) in server.changes(number).into_iter().filter(|(key, ..)| watch.covers(*key)) {
            let compacted = compactions.iter().any(|(through, at)| *through >= number && *at <= time);
            let told = before.filter(|_| watch.previous && !(compacted && dice.below(2) == 0));
            events.push(Event {
                key,
                revision: number,
                value: after.map(|live| live.value),
                create: before.is_none(),
                previous: told.map(|live| (live.value, live.changed, live.version)),
            });
        }
        if dice.below(3) > 0 && !events.is_empty() {
            watch.told.push(Told::Events { time, revision: number, events: std::mem::take(&mut events) });
        } else if dice.below(4) == 0 && events.is_empty() {
            watch.told.push(Told::Progress { time, revision: number });
        }
        if dice.below(12) == 0 {
            break;
        }
    }
    let next = watch.told.iter().filter_map(|told| match told {
        Told::Events { events, .. } => events.last().map(|event| event.revision + 1),
        _ => None,
    });
    let next = next.max().unwrap_or(1).max(from);
    if let Some((_, at)) = compactions.iter().find(|(through, _)| *through > next)
        && dice.below(2) == 0
    {
        watch.told.push(Told::Compacted { time: time.max(*at) + 1 });
    }
    watch
}
