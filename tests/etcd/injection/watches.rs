//! Injected faults of watches.

use super::{Report, Row, Sign, changed, watched, wrote};
use crate::chance::Chance;
use crate::etcd::cluster::{Ask, Recorded, Response, watch};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The error of a watch whose start revision is compacted.
const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";

fn one(rule: &'static str, revision: i64) -> Option<BTreeSet<Sign>> {
    Some(BTreeSet::from([(rule, revision)]))
}

fn visible(sign: Option<Sign>) -> Option<BTreeSet<Sign>> {
    Some(sign.into_iter().collect())
}

fn number(event: &Value) -> i64 {
    event["Revision"].as_i64().unwrap_or(0)
}

fn key(event: &Value) -> &str {
    event["Key"].as_str().unwrap_or("")
}

/// The watch on everything.
fn whole(report: &mut Report) -> &mut Vec<Response> {
    &mut report.watches[0].2
}

/// A response with events of the watch on everything, by index.
fn delivery(report: &Report, dice: &mut Chance) -> usize {
    let (response, _) = *dice.one(&report.events());
    response
}

/// Removes events from a watch.
fn lose(responses: &mut [Response], lost: impl Fn(&Value) -> bool) -> Vec<Value> {
    responses
        .iter_mut()
        .flat_map(|response| response.events.extract_if(.., |event| lost(event)).collect::<Vec<_>>())
        .collect()
}

/// Whether a watch delivers something above a revision.
fn passes(responses: &[Response], revision: i64) -> bool {
    responses.iter().any(|response| {
        let told = response.progress && response.revision >= revision;
        told || response.events.iter().any(|event| number(event) > revision)
    })
}

/// Removes the events of some revisions from the first watch. The sign is the lowest of them that other evidence has.
fn starve(report: &mut Report, dice: &mut Chance, revisions: u64) -> Option<BTreeSet<Sign>> {
    let from = 2 + dice.below(report.etcd.commits.len() as u64 - revisions) as i64;
    let lost = lose(whole(report), |event| (from..from + revisions as i64).contains(&number(event)));
    let known = lost.iter().filter(|event| report.is_known(key(event), number(event), 0)).map(number).min();
    visible(known.filter(|revision| passes(&report.watches[0].2, *revision)).map(|revision| ("watch-gap", revision)))
}

/// Events of revisions with more than one event.
fn of_several(report: &Report) -> Vec<(usize, usize)> {
    let shared = |(at, n): &(usize, usize)| {
        let events = &report.watches[0].2[*at].events;
        *n > 0 && events[*n - 1]["Revision"] == events[*n]["Revision"]
    };
    report.events().into_iter().filter(shared).collect()
}

/// A revision below the last one that only deletes one key.
fn deletion(report: &Report) -> Option<i64> {
    let commits = &report.etcd.commits[..report.etcd.commits.len().saturating_sub(1)];
    let alone = |(at, _): &(i64, _)| *at > report.etcd.compacted;
    let deletes = (2..).zip(commits).filter(|(_, commit)| matches!(commit.changes[..], [(_, None)])).filter(alone);
    deletes.map(|(at, _)| at).last()
}

/// Compacts a report through a revision, then adds three watches: a new one from this revision, one that continues
/// from before, and one that is too late.
fn compacted(mut report: Report, through: i64, dice: &mut Chance) -> Report {
    let end = report.end();
    let client = report.operations.iter().map(|operation| operation.client).max().unwrap_or(0) + 1;
    let ask = Ask::Compact(through);
    let output = report.etcd.apply(end + 2, &ask);
    report.operations.push(Recorded { client, call: end + 1, input: ask.input(), output, ret: end + 3 });
    let mut from_there = watch(&report.etcd, "", through, dice);
    for response in &mut from_there {
        response.time += end + 4;
        // Previous values below the compaction cannot be read any more.
        for event in response.events.iter_mut().filter(|event| number(event) <= through) {
            event.as_object_mut().map(|fields| fields.remove("PrevValue"));
        }
    }
    let before: Vec<Value> = report.watches[0].2.iter().flat_map(|response| response.events.clone()).collect();
    let until = |last: i64| {
        let events = before.iter().filter(|event| number(event) <= last).cloned().collect();
        Response { time: end, revision: last, events, ..Response::default() }
    };
    let mut again = vec![until(through - 1)];
    again.extend(from_there.clone());
    let ended = Response { time: end + 5, revision: through, error: COMPACTED, ..Response::default() };
    let mut late = vec![ended];
    if through > 3 {
        late.insert(0, until(through - 2));
    }
    report.watches.push(("", through, from_there));
    report.watches.push(("", 1, again));
    if through > 2 {
        report.watches.push(("", 1, late));
    }
    report
}

/// Watches that continue after a compaction, start now, or are refused.
pub fn resumed(seed: u64) -> Report {
    let mut dice = Chance::new(seed);
    let mut report = watched(seed);
    let from = dice.below(report.watches[0].2.len() as u64 + 1) as usize;
    let now_on = report.watches[0].2[from..].to_vec();
    report.watches.push(("", 0, now_on));
    report.watches.push(("c", 1, Vec::new()));
    let through = deletion(&report).unwrap_or(report.etcd.revision());
    if through > report.etcd.compacted { compacted(report, through, &mut dice) } else { report }
}

/// As [`resumed`], but one watch misses the deletion at the compacted revision.
fn without_deletion(seed: u64, from_before: usize) -> Option<(Report, BTreeSet<Sign>)> {
    let report = watched(seed);
    let through = (report.etcd.commits.len() > 3).then(|| deletion(&report))??;
    let watches = report.watches.len();
    let mut report = compacted(report, through, &mut Chance::new(seed));
    let at = watches + from_before;
    lose(&mut report.watches[at].2, |event| number(event) == through);
    let sign = passes(&report.watches[at].2, through).then_some(("watch-gap", through));
    Some((report, sign.into_iter().collect()))
}

/// A progress notification.
fn told(time: i64, revision: i64) -> Response {
    Response { time, revision, progress: true, ..Response::default() }
}

pub static ROWS: &[Row] = &[
    Row { name: "an event is left out", faulty: |seed| changed(seed, |report, dice| starve(report, dice, 1)) },
    Row {
        name: "a watch loses its place and skips events (etcd#17529)",
        faulty: |seed| changed(seed, |report, dice| starve(report, dice, 4)),
    },
    Row {
        name: "another watch from revision -1 makes a watch lose events (etcd#20709)",
        faulty: |seed| {
            changed(seed, |report, dice| {
                report.watches.push(("b", -1, Vec::new()));
                starve(report, dice, 2)
            })
        },
    },
    Row {
        name: "a watch from the revision of a compacted deletion misses it (etcd#18089)",
        faulty: |seed| without_deletion(seed, 0),
    },
    Row {
        name: "a watch that resumes at the revision of a compacted deletion misses it (etcd#19179)",
        faulty: |seed| without_deletion(seed, 1),
    },
    Row {
        name: "the last event never comes, and progress passes it",
        faulty: |seed| {
            changed(seed, |report, _| {
                let (last, time) = (report.etcd.revision(), report.end());
                let lost = lose(whole(report), |event| number(event) == last);
                whole(report).push(told(time, last));
                let known = lost.iter().any(|event| report.is_known(key(event), last, 0));
                visible(known.then_some(("watch-gap", last)))
            })
        },
    },
    Row {
        name: "nothing is delivered but progress",
        faulty: |seed| {
            changed(seed, |report, _| {
                let (from, last, time) = (report.watches[3].1, report.etcd.revision(), report.end());
                report.watches[3].2 = vec![told(time, last)];
                one("watch-gap", from.max(2))
            })
        },
    },
    Row {
        name: "one of the events of a revision is left out",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let places = of_several(report);
                let (at, n) = *dice.one(Some(&places[..]).filter(|places| !places.is_empty())?);
                let event = whole(report)[at].events.remove(n);
                let known = report.is_known(key(&event), number(&event), 0);
                visible(known.then_some(("watch-split", number(&event))))
            })
        },
    },
    Row {
        name: "a watch ends within the events of a revision",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let places = of_several(report);
                let (at, n) = *dice.one(Some(&places[..]).filter(|places| !places.is_empty())?);
                whole(report).truncate(at + 1);
                let lost = whole(report)[at].events.split_off(n);
                let of = number(&lost[0]);
                let known =
                    lost.iter().filter(|event| number(event) == of).any(|event| report.is_known(key(event), of, 0));
                visible(known.then_some(("watch-split", of)))
            })
        },
    },
    Row {
        name: "the events of a revision come in two parts",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let places = of_several(report);
                let (at, n) = *dice.one(Some(&places[..]).filter(|places| !places.is_empty())?);
                let mut rest = whole(report)[at].clone();
                rest.events = whole(report)[at].events.split_off(n);
                let revision = number(&rest.events[0]);
                whole(report).insert(at + 1, rest);
                one("watch-split", revision)
            })
        },
    },
    Row {
        name: "an event comes twice (etcd#17247)",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let (at, n) = *dice.one(&report.events());
                let event = whole(report)[at].events[n].clone();
                let revision = number(&event);
                whole(report)[at].events.insert(n, event);
                one("watch-duplicate", revision)
            })
        },
    },
    Row {
        name: "a watch goes back to an old revision (etcd#15271)",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let (first, last) = (delivery(report, dice), delivery(report, dice));
                let (first, last) = (first.min(last), first.max(last));
                let mut again = whole(report)[first..=last].to_vec();
                again.iter_mut().for_each(|response| response.time = report.watches[0].2[last].time);
                let revision = number(&again[0].events[0]);
                whole(report).splice(last + 1..last + 1, again);
                one("watch-duplicate", revision)
            })
        },
    },
    Row {
        name: "two events change places",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let events = report.events();
                let n = dice.below(events.len() as u64 - 1) as usize;
                let (a, b) = (events[n], events[n + 1]);
                let responses = whole(report);
                let (first, second) = (responses[a.0].events[a.1].clone(), responses[b.0].events[b.1].clone());
                if number(&first) == number(&second) {
                    return None;
                }
                let revision = number(&first);
                responses[a.0].events[a.1] = second;
                responses[b.0].events[b.1] = first;
                one("watch-reorder", revision)
            })
        },
    },
    Row {
        name: "an event of another key is delivered",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let from = report.watches[1].1;
                let others = whole(report).iter().flat_map(|response| &response.events);
                let others: Vec<Value> =
                    others.filter(|e| !key(e).starts_with('b') && number(e) >= from).cloned().collect();
                let event = dice.one(Some(&others[..]).filter(|others| !others.is_empty())?).clone();
                let (revision, time) = (number(&event), report.end());
                let behind = |response: &Response| response.revision >= revision;
                let watch = &mut report.watches[1].2;
                let at = watch.iter().position(behind).unwrap_or(watch.len());
                let time = watch.get(at).map_or(time, |response| response.time);
                let header = report.etcd.revision();
                watch.insert(at, Response { time, revision: header, events: vec![event], ..Response::default() });
                one("watch-filter", revision)
            })
        },
    },
    Row {
        name: "an event from before the first revision asked for (etcd#20221, second symptom)",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let (at, n) = *dice.one(&report.events());
                let first = number(&whole(report)[0].events[0]);
                report.watches[0].1 = number(&report.watches[0].2[at].events[n]) + 1;
                one("watch-prehistory", first)
            })
        },
    },
    Row {
        name: "progress from before the first revision asked for (etcd#20221, first symptom)",
        faulty: |seed| {
            changed(seed, |report, _| {
                let (from, end) = (report.watches[3].1, report.end());
                let responses = &mut report.watches[3].2;
                let time = responses.first().map_or(end, |response| response.time);
                responses.insert(0, told(time, from - 2));
                if from > 2 { one("false-progress", from - 2) } else { None }
            })
        },
    },
    Row {
        name: "progress overtakes events (etcd#15220)",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let at = delivery(report, dice);
                let response = &whole(report)[at];
                let (time, revision) = (response.time, number(&response.events[response.events.len() - 1]));
                whole(report).insert(at, told(time, revision));
                one("false-progress", revision)
            })
        },
    },
    Row {
        name: "progress behind events",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let at = delivery(report, dice);
                let response = &whole(report)[at];
                let (time, revision) = (response.time, number(&response.events[response.events.len() - 1]));
                whole(report).insert(at + 1, told(time, revision - 1));
                one("false-progress", revision - 1)
            })
        },
    },
    Row {
        name: "the store of a response is below its events",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let at = delivery(report, dice);
                let response = &mut whole(report)[at];
                let revision = number(&response.events[response.events.len() - 1]);
                response.revision = revision - 1;
                one("false-progress", revision)
            })
        },
    },
    Row {
        name: "the value before is another one",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let (at, n) = *dice.one(&report.events());
                let event = &mut whole(report)[at].events[n];
                let before = event["PrevValue"]["ModRevision"].as_i64().filter(|before| *before > 2)?;
                event["PrevValue"]["ModRevision"] = json!(before - 1);
                let revision = number(event);
                one("watch-prev-value", revision)
            })
        },
    },
    Row {
        name: "the value before is missing",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let (at, n) = *dice.one(&report.events());
                let response = &mut whole(report)[at];
                let (time, event) = (response.time, &mut response.events[n]);
                let revision = number(event);
                event.as_object_mut()?.remove("PrevValue")?;
                // A compaction through it removes the previous value.
                let taken = !report.compacts() || report.asked_to_compact(time) >= revision;
                visible((!taken).then_some(("watch-prev-value", revision)))
            })
        },
    },
    Row {
        name: "an event says wrongly whether it creates its key",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let (at, n) = *dice.one(&report.events());
                let event = &mut whole(report)[at].events[n];
                if event["Type"] != "put-operation" {
                    return None;
                }
                event["IsCreate"] = json!(event["IsCreate"] != json!(true));
                let revision = number(event);
                // Old servers do not mark creations.
                let mut events = report.watches.iter().flat_map(|(_, _, responses)| responses).flat_map(|r| &r.events);
                visible(events.any(|event| event["IsCreate"] == json!(true)).then_some(("watch-type", revision)))
            })
        },
    },
    Row {
        name: "an event comes before its write is sent",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let writes: Vec<&Recorded> = report.operations.iter().filter(|operation| wrote(operation)).collect();
                let write = dice.one(Some(&writes[..]).filter(|writes| !writes.is_empty())?);
                let (revision, call) = (write.output["Revision"].as_i64()?, write.call);
                let late: BTreeSet<i64> = report
                    .operations
                    .iter()
                    .filter(|operation| wrote(operation) && operation.call >= call)
                    .filter_map(|operation| operation.output["Revision"].as_i64())
                    .collect();
                let of = |response: &&mut Response| response.events.iter().any(|event| number(event) == revision);
                let response = whole(report).iter_mut().find(of)?;
                response.time = call - 1;
                let early = response.events.iter().map(number).filter(|revision| late.contains(revision));
                Some(early.map(|revision| ("watch-before-write", revision)).collect())
            })
        },
    },
    Row {
        name: "a watch ends as compacted, and nothing was",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let end = report.end();
                let (_, from, responses) = &mut report.watches[3];
                responses.truncate(dice.below(responses.len() as u64 + 1) as usize);
                responses.push(Response { time: end + 1, revision: 1, error: COMPACTED, ..Response::default() });
                let last = responses.iter().flat_map(|response| &response.events).map(number).max().unwrap_or(0);
                let next = (*from).max(last + 1);
                let done = !report.compacts() || report.asked_to_compact(end + 1) > next;
                visible((!done).then_some(("false-compaction", next)))
            })
        },
    },
    Row {
        name: "two watches are shown different values",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let (at, n) = *dice.one(&report.events());
                let event = &mut whole(report)[at].events[n];
                if event["Type"] != "put-operation" {
                    return None;
                }
                event["Value"] = json!({"Value": "another"});
                let (key, revision) = (key(event).to_owned(), number(event));
                visible(report.is_known(&key, revision, 0).then_some(("split-timeline", revision)))
            })
        },
    },
];
