//! Injected faults of stores: wrong members, and the recording of their clients.

use super::{Report, Row, Sign, clashes};
use crate::chance::Chance;
use crate::etcd::cluster::{Ask, Etcd, Load, Recorded, Server, Turn, serve, watch};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The fault in the middle of a report.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// Loses its last revisions.
    Forgets(i64),
    /// Loses its last deletions after a compaction.
    ForgetsDeletions,
    /// The last member skips a write.
    Skips,
    /// The last member applies a write twice.
    Repeats,
    /// The last member refuses its clients' writes, which other members apply.
    Refuses,
    /// A write is applied and refused.
    RefusesAndApplies,
    /// The last member answers reads from an old state.
    Pauses,
    /// An acknowledged write changes nothing.
    Drops,
}

/// A cluster: every member applies each request, and one of them answers it.
struct Cluster {
    members: Vec<Etcd>,
    fault: Fault,
    /// The first request that may fail.
    at: usize,
    /// The revision of the fault.
    wrong: Option<i64>,
    old: Option<Etcd>,
    /// Further requests.
    more: Vec<Recorded>,
    clients: usize,
}

fn plain_put(ask: &Ask) -> bool {
    matches!(ask, Ask::Txn { conditions, puts, deletes, .. } if conditions.is_empty() && puts.len() == 1 && deletes.is_empty() && puts[0].2 == 0)
}

impl Cluster {
    fn new(members: usize, clients: usize, at: usize, fault: Fault) -> Cluster {
        let members = vec![Etcd::new(); members];
        Cluster { members, fault, at, wrong: None, old: None, more: Vec::new(), clients }
    }

    /// Drops all revisions above one on every member.
    fn go_back(&mut self, revision: i64) {
        self.members.iter_mut().for_each(|member| member.go_back(revision));
        self.wrong = Some(revision + 1);
    }

    /// The last put, if deletions follow it.
    fn before_deletions(&self) -> Option<i64> {
        let commits = &self.members[0].commits;
        let puts = |commit: &crate::etcd::cluster::Commit| commit.changes.iter().any(|(_, value)| value.is_some());
        let last = commits.iter().rposition(puts)? as i64 + 2;
        (last < self.members[0].revision() && self.members[0].revision() > self.members[0].compacted).then_some(last)
    }
}

impl Server for Cluster {
    fn store(&self) -> &Etcd {
        &self.members[0]
    }

    fn serve(&mut self, turn: &Turn<'_>) -> Value {
        let by = turn.client % self.members.len();
        let last = self.members.len() - 1;
        let begins = turn.n >= self.at && self.wrong.is_none();
        let revision = self.members[0].revision();
        match self.fault {
            Fault::Forgets(depth) if begins && revision > depth + 1 => self.go_back(revision - depth),
            Fault::ForgetsDeletions if begins => {
                if let Some(kept) = self.before_deletions() {
                    let ask = Ask::Compact(revision);
                    let output = self.members[0].clone().apply(turn.at, &ask);
                    let (client, input) = (self.clients, ask.input());
                    self.more.push(Recorded { client, call: turn.at, input, output, ret: turn.at + 1 });
                    self.go_back(kept);
                }
            }
            Fault::Pauses if begins => {
                self.old = Some(self.members[last].clone());
                self.wrong = Some(revision);
            }
            _ => {}
        }
        // An expired lease.
        if turn.n % 23 == 22 {
            self.members.iter_mut().for_each(|member| member.expire(turn.at, 70 + turn.n as i64 % 3));
        }
        let writes = plain_put(turn.ask);
        let mut answer = json!(null);
        for (m, member) in self.members.iter_mut().enumerate() {
            let wrong = m == last && turn.n >= self.at;
            let first = wrong && writes && self.wrong.is_none();
            let answered = match self.fault {
                Fault::Skips if first && by != m => {
                    self.wrong = Some(revision + 1);
                    json!(null)
                }
                Fault::Repeats if first && (turn.answered || by != m) => {
                    let answered = member.apply(turn.at, turn.ask);
                    self.wrong = Some(member.revision() + 1);
                    member.apply(turn.at, turn.ask);
                    answered
                }
                Fault::Refuses if wrong && writes && by == m && turn.answered => {
                    self.wrong.get_or_insert(revision + 1);
                    json!({"Error": "etcdserver: permission denied", "Revision": 0})
                }
                Fault::RefusesAndApplies if first && turn.answered => {
                    member.apply(turn.at, turn.ask);
                    self.wrong = Some(revision + 1);
                    json!({"Error": "etcdserver: mvcc: required revision has been compacted", "Revision": 0})
                }
                Fault::Drops if first && turn.answered => {
                    let answered = member.apply(turn.at, turn.ask);
                    let number = member.states.len() - 1;
                    member.states[number] = member.states[number - 1].clone();
                    self.wrong = Some(number as i64 + 1);
                    if let Ask::Txn { puts, .. } = turn.ask {
                        let ask = Ask::Get { key: puts[0].0.clone(), end: String::new(), limit: 0, at: 0 };
                        let (client, input, output) = (self.clients, ask.input(), member.apply(turn.at, &ask));
                        self.more.push(Recorded { client, call: turn.at, input, output, ret: turn.at + 1 });
                    }
                    answered
                }
                Fault::Pauses if wrong && matches!(turn.ask, Ask::Get { .. }) && turn.n < self.at + 40 => {
                    match &self.old {
                        Some(old) => old.clone().apply(turn.at, turn.ask),
                        None => member.apply(turn.at, turn.ask),
                    }
                }
                _ => member.apply(turn.at, turn.ask),
            };
            if m == by {
                answer = answered;
            }
        }
        if answer["Error"].is_null() && answer["ClientError"].is_null() && !answer["Compact"].is_object() {
            answer["member-id"] = json!(format!("{:x}", by + 1));
        }
        answer
    }
}

/// A report of some members, and the revision of the fault.
fn report(seed: u64, members: usize, fault: Fault) -> (Report, Option<i64>) {
    let mut dice = Chance::new(seed);
    let clients = 3 + dice.below(5) as usize;
    let requests = 12 + dice.below(18) as usize;
    let stall = 60 + dice.below(200) as i64;
    let stall = (dice.below(2) == 0).then_some((stall, stall + 60));
    let mut cluster = Cluster::new(members, clients, clients * requests / 3, fault);
    let mut operations = serve(&mut cluster, &Load { clients, requests, stall }, &mut dice);
    operations.append(&mut cluster.more);
    let etcd = cluster.members.swap_remove(0);
    let watches = vec![("", 1, watch(&etcd, "", 1, &mut dice))];
    (Report { etcd, operations, watches }, cluster.wrong)
}

/// Members without a fault.
pub fn healthy(seed: u64) -> Report {
    report(seed, 1 + seed as usize % 3, Fault::Nothing).0
}

/// A fault that is visible as a clash of answers.
fn clashing(seed: u64, members: usize, fault: Fault, watched: bool) -> Option<(Report, BTreeSet<Sign>)> {
    let (mut report, wrong) = report(seed, members, fault);
    wrong?;
    if !watched {
        report.watches.clear();
    }
    let signs = clashes(&report.operations);
    Some((report, signs))
}

/// A put that clients observe at a revision and that no request explains.
fn inexplicable(seed: u64, members: usize, fault: Fault) -> Option<(Report, BTreeSet<Sign>)> {
    let (report, wrong) = report(seed, members, fault);
    let wrong = wrong?;
    Some((report, BTreeSet::from([("linearizability", wrong)])))
}

pub static ROWS: &[Row] = &[
    Row { name: "a member leaves a write out (etcd#13766)", faulty: |seed| clashing(seed, 3, Fault::Skips, true) },
    Row {
        name: "a restart loses what was acknowledged (etcd#14370)",
        faulty: |seed| clashing(seed, 1, Fault::Forgets(1 + seed as i64 % 4), false),
    },
    Row {
        name: "a member refuses what others apply (etcd#14571)",
        faulty: |seed| clashing(seed, 3, Fault::Refuses, true),
    },
    Row {
        name: "the only member applies a write twice (etcd#14685)",
        faulty: |seed| inexplicable(seed, 1, Fault::Repeats),
    },
    Row {
        name: "one of three members applies a write twice (etcd#14685)",
        faulty: |seed| clashing(seed, 3, Fault::Repeats, true),
    },
    Row {
        name: "a compaction and a crash lose deletions (etcd#17780)",
        faulty: |seed| clashing(seed, 1, Fault::ForgetsDeletions, false),
    },
    Row {
        name: "a refused transaction is applied (etcd#18667)",
        faulty: |seed| inexplicable(seed, 1, Fault::RefusesAndApplies),
    },
    Row {
        name: "a paused member answers reads from its old state (etcd#20418)",
        faulty: |seed| clashing(seed, 3, Fault::Pauses, true),
    },
    Row {
        name: "an acknowledged write is in no later state",
        faulty: |seed| {
            let (mut report, wrong) = report(seed, 1, Fault::Drops);
            let wrong = wrong?;
            report.watches.clear();
            let key = report.etcd.commits[wrong as usize - 2].changes[0].0.clone();
            // A read at this revision or above returns the key's old state.
            let old = |pair: &Value| pair["Key"] == *key && pair["ModRevision"].as_i64() < Some(wrong);
            let shows = |operation: &Recorded| {
                let (range, asked) = (&operation.output["Range"], operation.input["Range"]["Revision"].as_i64());
                let at = asked.filter(|asked| *asked > 0).or(operation.output["Revision"].as_i64());
                at >= Some(wrong) && range["KVs"].as_array().is_some_and(|pairs| pairs.iter().any(old))
            };
            let visible = report.operations.iter().any(shows);
            Some((report, visible.then_some(("lost-write", wrong)).into_iter().collect()))
        },
    },
];
