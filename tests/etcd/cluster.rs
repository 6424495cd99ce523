//! A simulated etcd with clients, and the recording of its traffic.

use crate::chance::Chance;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A live key.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    pub value: String,
    pub changed: i64,
    pub version: i64,
    pub lease: i64,
}

pub type State = BTreeMap<String, Live>;

/// A key changed at a revision; `None`: deleted.
pub type Change = (String, Option<String>);

/// A committed revision.
#[derive(Clone, Debug)]
pub struct Commit {
    pub at: i64,
    pub changes: Vec<Change>,
}

/// A store with its history.
#[derive(Clone)]
pub struct Etcd {
    /// States by revision, from revision 1.
    pub states: Vec<State>,
    /// Commits, from revision 2.
    pub commits: Vec<Commit>,
    pub leases: BTreeSet<i64>,
    pub compacted: i64,
    /// Compactions: time and revision.
    pub compactions: Vec<(i64, i64)>,
}

impl Etcd {
    pub fn new() -> Etcd {
        Etcd {
            states: vec![State::new()],
            commits: Vec::new(),
            leases: BTreeSet::new(),
            compacted: 0,
            compactions: Vec::new(),
        }
    }

    pub fn revision(&self) -> i64 {
        self.states.len() as i64
    }

    pub fn state(&self, revision: i64) -> &State {
        &self.states[revision as usize - 1]
    }

    /// Drops all revisions above one.
    pub fn go_back(&mut self, revision: i64) {
        self.states.truncate(revision as usize);
        self.commits.truncate(revision as usize - 1);
        self.compacted = self.compacted.min(revision);
    }

    fn now(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    /// Ends an expired lease.
    pub fn expire(&mut self, at: i64, lease: i64) {
        if self.leases.remove(&lease) {
            self.detach(at, lease);
        }
    }

    fn detach(&mut self, at: i64, lease: i64) {
        let keys = self.now().iter().filter(|(_, live)| live.lease == lease).map(|(key, _)| (key.clone(), None));
        let keys = keys.collect();
        self.commit(at, keys);
    }

    fn commit(&mut self, at: i64, changes: Vec<(String, Option<(String, i64)>)>) {
        if changes.is_empty() {
            return;
        }
        let number = self.revision() + 1;
        let mut state = self.now().clone();
        for (key, value) in &changes {
            match value {
                Some((value, lease)) => {
                    let version = state.get(key).map_or(0, |live| live.version) + 1;
                    state.insert(key.clone(), Live { value: value.clone(), changed: number, version, lease: *lease });
                }
                None => drop(state.remove(key)),
            }
        }
        self.states.push(state);
        let changes = changes.into_iter().map(|(key, value)| (key, value.map(|(value, _)| value))).collect();
        self.commits.push(Commit { at, changes });
    }
}

/// A request.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Conditions on revisions; puts and deletes; whether the other branch reads the keys.
    Txn {
        conditions: Vec<(String, i64)>,
        puts: Vec<(String, String, i64)>,
        deletes: Vec<String>,
        reads: bool,
    },
    Get {
        key: String,
        end: String,
        limit: i64,
        at: i64,
    },
    Grant(i64),
    Revoke(i64),
    Compact(i64),
}

/// A recorded operation.
pub struct Recorded {
    pub client: usize,
    pub call: i64,
    pub input: Value,
    pub output: Value,
    pub ret: i64,
}

fn value(text: &str) -> Value {
    if text.is_empty() { json!({}) } else { json!({ "Value": text }) }
}

fn pairs(found: &[(&String, &Live)]) -> Value {
    let pair = |(key, live): &(&String, &Live)| json!({"Key": key, "Value": value(&live.value), "ModRevision": live.changed, "Version": live.version});
    found.iter().map(pair).collect()
}

fn range<'s>(state: &'s State, key: &str, end: &str) -> Vec<(&'s String, &'s Live)> {
    let inside = |name: &str| if end.is_empty() { name == key } else { name >= key && name < end };
    state.iter().filter(|(name, _)| inside(name)).collect()
}

impl Etcd {
    /// Applies a request and returns the answer.
    pub fn apply(&mut self, at: i64, ask: &Ask) -> Value {
        match ask {
            Ask::Txn { conditions, puts, deletes, reads } => {
                let holds =
                    |(key, number): &(String, i64)| self.now().get(key).map_or(0, |live| live.changed) == *number;
                if !conditions.iter().all(holds) {
                    let key = &conditions[0].0;
                    let results = match reads {
                        true => {
                            let found = range(self.now(), key, "");
                            json!([{"KVs": pairs(&found), "Count": found.len(), "Deleted": 0}])
                        }
                        false => json!([]),
                    };
                    return json!({"Txn": {"Failure": true, "Results": results}, "Revision": self.revision()});
                }
                if puts.iter().any(|(_, _, lease)| *lease != 0 && !self.leases.contains(lease)) {
                    return json!({"Error": "etcdserver: requested lease not found", "Revision": 0});
                }
                let mut results = Vec::new();
                let mut changes = Vec::new();
                for (key, value, lease) in puts {
                    changes.push((key.clone(), Some((value.clone(), *lease))));
                    results.push(json!({"KVs": null, "Count": 0, "Deleted": 0}));
                }
                for key in deletes {
                    let there = self.now().contains_key(key);
                    if there {
                        changes.push((key.clone(), None));
                    }
                    results.push(json!({"KVs": null, "Count": 0, "Deleted": i64::from(there)}));
                }
                self.commit(at, changes);
                json!({"Txn": {"Failure": false, "Results": results}, "Revision": self.revision()})
            }
            Ask::Get { key, end, limit, at: asked } => {
                if *asked > 0 && *asked < self.compacted {
                    return json!({"Error": "etcdserver: mvcc: required revision has been compacted", "Revision": 0});
                }
                if *asked > self.revision() {
                    return json!({"Error": "etcdserver: mvcc: required revision is a future revision", "Revision": 0});
                }
                let state = self.state(if *asked > 0 { *asked } else { self.revision() });
                let found = range(state, key, end);
                let shown = if *limit > 0 { &found[..found.len().min(*limit as usize)] } else { &found[..] };
                json!({"Range": {"KVs": pairs(shown), "Count": found.len()}, "Revision": self.revision()})
            }
            Ask::Grant(lease) => {
                if !self.leases.insert(*lease) {
                    return json!({"Error": "etcdserver: lease already exists", "Revision": 0});
                }
                json!({"LeaseGrant": {"LeaseID": 0}, "Revision": self.revision()})
            }
            Ask::Revoke(lease) => {
                if !self.leases.remove(lease) {
                    return json!({"Error": "etcdserver: requested lease not found", "Revision": 0});
                }
                self.detach(at, *lease);
                json!({"LeaseRevoke": {}, "Revision": self.revision()})
            }
            Ask::Compact(number) => {
                if *number <= self.compacted {
                    return json!({"ClientError": "mvcc: required revision has been compacted", "Revision": 0});
                }
                if *number > self.revision() {
                    return json!({"ClientError": "mvcc: required revision is a future revision", "Revision": 0});
                }
                self.compacted = *number;
                self.compactions.push((at, *number));
                json!({"Compact": {}, "Revision": -1})
            }
        }
    }
}

impl Ask {
    /// The request as a report has it.
    pub fn input(&self) -> Value {
        match self {
            Ask::Txn { conditions, puts, deletes, reads } => {
                let conditions: Vec<_> = conditions
                    .iter()
                    .map(|(key, number)| json!({"Key": key, "ExpectedRevision": number, "ExpectedVersion": 0}))
                    .collect();
                let put = |(key, text, lease): &(String, String, i64)| json!({"Type": "put-operation", "Put": {"Key": key, "Value": value(text), "LeaseID": lease}});
                let delete = |key: &String| json!({"Type": "delete-operation", "Delete": {"Key": key}});
                let success: Vec<_> = puts.iter().map(put).chain(deletes.iter().map(delete)).collect();
                let otherwise = match reads {
                    true => {
                        json!([{"Type": "range-operation", "Range": {"Start": conditions[0]["Key"], "End": "", "Limit": 0}}])
                    }
                    false => json!(null),
                };
                json!({"Type": "txn", "Txn": {"Conditions": conditions, "OperationsOnSuccess": success, "OperationsOnFailure": otherwise}})
            }
            Ask::Get { key, end, limit, at } => {
                json!({"Type": "range", "Range": {"Start": key, "End": end, "Limit": limit, "Revision": at}})
            }
            Ask::Grant(lease) => json!({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": lease}}),
            Ask::Revoke(lease) => json!({"Type": "leaseRevoke", "LeaseRevoke": {"LeaseID": lease}}),
            Ask::Compact(number) => json!({"Type": "compact", "Compact": {"Revision": number}}),
        }
    }
}

const KEYS: [&str; 5] = ["a", "b", "ba", "c", "d"];

fn ask(etcd: &Etcd, n: usize, dice: &mut Chance) -> Ask {
    let key = |dice: &mut Chance| KEYS[dice.below(KEYS.len() as u64) as usize].to_owned();
    let lease = |dice: &mut Chance| 70 + dice.below(3) as i64;
    let past = |dice: &mut Chance| 1 + dice.below(etcd.revision() as u64 + 1) as i64;
    let known = |dice: &mut Chance, key: &str| match dice.below(4) {
        0 => past(dice),
        _ => etcd.now().get(key).map_or(0, |live| live.changed),
    };
    match dice.below(20) {
        0..=4 => {
            let lease = if dice.below(3) == 0 { lease(dice) } else { 0 };
            Ask::Txn {
                conditions: vec![],
                puts: vec![(key(dice), format!("v{n}"), lease)],
                deletes: vec![],
                reads: false,
            }
        }
        5..=8 => {
            let (key, reads) = (key(dice), dice.below(2) == 0);
            let conditions = vec![(key.clone(), known(dice, &key))];
            let delete = dice.below(3) == 0;
            let puts = if delete { vec![] } else { vec![(key.clone(), format!("v{n}"), 0)] };
            Ask::Txn { conditions, puts, deletes: if delete { vec![key] } else { vec![] }, reads }
        }
        9 | 10 => Ask::Txn { conditions: vec![], puts: vec![], deletes: vec![key(dice)], reads: false },
        11 => {
            let puts = vec![("a".to_owned(), format!("v{n}"), 0), ("c".to_owned(), format!("w{n}"), 0)];
            Ask::Txn { conditions: vec![], puts, deletes: vec!["b".to_owned()], reads: false }
        }
        12..=14 => Ask::Get { key: key(dice), end: String::new(), limit: 0, at: 0 },
        15 => Ask::Get { key: "a".to_owned(), end: "z".to_owned(), limit: dice.below(4) as i64, at: 0 },
        16 => Ask::Get { key: "b".to_owned(), end: "c".to_owned(), limit: 0, at: past(dice) },
        17 => Ask::Grant(lease(dice)),
        18 => Ask::Revoke(lease(dice)),
        _ => Ask::Compact(past(dice)),
    }
}

/// A request at the time of its effect.
pub struct Turn<'a> {
    /// Number of requests applied before.
    pub n: usize,
    pub client: usize,
    pub at: i64,
    pub ask: &'a Ask,
    /// Whether the client gets an answer.
    pub answered: bool,
}

/// A server that applies requests.
pub trait Server {
    /// The store that clients observe.
    fn store(&self) -> &Etcd;

    fn serve(&mut self, turn: &Turn<'_>) -> Value;
}

impl Server for Etcd {
    fn store(&self) -> &Etcd {
        self
    }

    fn serve(&mut self, turn: &Turn<'_>) -> Value {
        self.apply(turn.at, turn.ask)
    }
}

/// The amount of traffic.
pub struct Load {
    pub clients: usize,
    pub requests: usize,
    /// Interval of a stall. Requests in it time out.
    pub stall: Option<(i64, i64)>,
}

/// Concurrent clients; some requests get no answer.
pub fn run(clients: usize, requests: usize, dice: &mut Chance) -> (Etcd, Vec<Recorded>) {
    let mut etcd = Etcd::new();
    let recorded = serve(&mut etcd, &Load { clients, requests, stall: None }, dice);
    (etcd, recorded)
}

/// As [`run`], for any server.
pub fn serve(server: &mut impl Server, load: &Load, dice: &mut Chance) -> Vec<Recorded> {
    let mut slots = Vec::new();
    for client in 0..load.clients {
        let mut now = 1 + dice.below(20) as i64;
        for _ in 0..load.requests {
            let call = now + 1 + dice.below(20) as i64;
            let mut fate = dice.below(12);
            let mut done = call + dice.below(if fate == 0 { 120 } else { 15 }) as i64;
            if let Some((from, until)) = load.stall.filter(|(from, until)| (*from..*until).contains(&done)) {
                done = until + (done - from) / 8;
                fate = u64::from(fate.is_multiple_of(4));
            }
            let ret = if fate < 2 { call + 60 } else { done + dice.below(15) as i64 };
            // Fate 0: applied without an answer; 1: lost.
            slots.push((done, client, call, ret, fate));
            now = ret;
        }
    }
    slots.sort_unstable();
    let mut recorded = Vec::new();
    for (n, (done, client, call, ret, fate)) in slots.into_iter().enumerate() {
        let ask = ask(server.store(), n, dice);
        let input = ask.input();
        let turn = Turn { n, client, at: done, ask: &ask, answered: fate > 1 };
        let mut output = if fate == 1 { json!(null) } else { server.serve(&turn) };
        if fate < 2 {
            output = json!({"Error": "context deadline exceeded", "Revision": 0});
        }
        recorded.push(Recorded { client, call, input, output, ret });
    }
    recorded.sort_by_key(|operation| (operation.client, operation.call));
    recorded
}

/// One response: its time, the store's revision, its events.
#[derive(Clone, Debug, Default)]
pub struct Response {
    pub time: i64,
    pub revision: i64,
    pub progress: bool,
    pub events: Vec<Value>,
    /// Reason for the end of the watch.
    pub error: &'static str,
}

/// A watch on a prefix from a revision to the end.
pub fn watch(etcd: &Etcd, prefix: &str, from: i64, dice: &mut Chance) -> Vec<Response> {
    let mut responses: Vec<Response> = Vec::new();
    let mut events = Vec::new();
    let mut now = 0;
    for (at, commit) in etcd.commits.iter().enumerate() {
        let number = at as i64 + 2;
        if number < from {
            continue;
        }
        let before = etcd.state(number - 1);
        for (key, written) in commit.changes.iter().filter(|(key, _)| key.starts_with(prefix)) {
            let mut event = match written {
                Some(text) => json!({"Type": "put-operation", "Key": key, "Value": value(text), "Revision": number}),
                None => json!({"Type": "delete-operation", "Key": key, "Value": {}, "Revision": number}),
            };
            match before.get(key) {
                None => event["IsCreate"] = json!(true),
                Some(live) => {
                    event["PrevValue"] =
                        json!({"Value": value(&live.value), "ModRevision": live.changed, "Version": live.version});
                }
            }
            events.push(event);
        }
        if dice.below(3) > 0 || at + 1 == etcd.commits.len() {
            now = now.max(commit.at) + dice.below(10) as i64;
            if !events.is_empty() {
                let mut events = std::mem::take(&mut events);
                let compacted = etcd.compactions.iter().filter(|(at, _)| *at < now).map(|(_, through)| *through);
                let compacted = Some(compacted.max().unwrap_or(0));
                for event in events.iter_mut().filter(|event| event["Revision"].as_i64() <= compacted) {
                    // The previous value is compacted away.
                    if dice.below(3) == 0 {
                        event.as_object_mut().map(|fields| fields.remove("PrevValue"));
                    }
                }
                responses.push(Response { time: now, revision: number, events, ..Response::default() });
            } else if dice.below(2) == 0 {
                responses.push(Response { time: now, revision: number, progress: true, ..Response::default() });
            }
        }
    }
    responses
}

/// The watch as a report has it.
pub fn recorded(prefix: &str, from: i64, responses: &[Response]) -> Value {
    let response = |response: &Response| match response.progress {
        _ if !response.error.is_empty() => {
            json!({"Revision": response.revision, "Time": response.time, "Error": response.error})
        }
        true => json!({"IsProgressNotify": true, "Revision": response.revision, "Time": response.time}),
        false => json!({"Events": response.events, "Revision": response.revision, "Time": response.time}),
    };
    let responses: Vec<Value> = responses.iter().map(response).collect();
    json!({
        "Request": {"Key": prefix, "Revision": from, "WithPrefix": true, "WithProgressNotify": true, "WithPrevKV": true},
        "Responses": responses,
    })
}
