//! Captures that grow in clocks, incarnations, streams and decisions.

use super::call::{Call, create, get, list, object, pod, pods, refused, update};
use super::kubernetes::round;
use super::{Draw, Evidence, Shape, at};

/// Revisions begin above this one.
const BASE: u64 = 100;

pub const SHAPES: &[Shape] = &[
    calls("capture-keys", |n| create(n, n, BASE + n)),
    calls("capture-one-key", |n| round(n, 1)),
    calls("capture-lists", |n| list(BASE + n, &pod(n % 50, n % 50, BASE))),
    calls("capture-gets", |n| get(n, n + 1)),
    calls("capture-open-requests", |n| Call { stage: "RequestReceived", ..round(n, 50) }),
    calls("capture-unknown-outcomes", |n| {
        if n % 2 == 0 {
            refused(update(n % 50, 0, 0), 500, "InternalError", "etcdserver: request timed out")
        } else {
            round(n, 50)
        }
    }),
    calls("capture-agents", |n| Call { agent: format!("a{n}/v1"), ..round(n, 50) }),
    calls("capture-repeated-conflicts", |n| match n % 2 {
        0 => refused(update(0, BASE + n, 0), 409, "Conflict", "the object has been modified"),
        _ => update(0, BASE + n, BASE + n + 1),
    }),
    calls("capture-decisions", |n| Call { decision: format!("r{n}"), ..round(n, 50) }),
    calls("capture-writes-of-one-decision", |n| Call { decision: "r".to_owned(), ..round(n, 50) }),
    calls("capture-gets-of-one-decision", |n| Call {
        decision: "r".to_owned(),
        ..if n % 100 == 0 { round(n, 50) } else { get(n % 50, BASE + n) }
    }),
    whole("capture-500-clocks", |out| clocks(out, 500)),
    whole("capture-clocks", |out| clocks(out, u64::MAX)),
    whole("capture-clocks-of-one-server", |out| {
        out.each(|out, n| {
            if n % 40 == 0 {
                context(out, "c", "", "s", &format!("k{}", n / 40));
            }
            round(n, 50).capture(out, n);
        });
    }),
    whole("capture-clients", |out| contexts(out, |out, n| context(out, &format!("c{n}"), "", "", "k"))),
    whole("capture-lives", |out| contexts(out, |out, n| context(out, "c", &format!("l{n}"), "", "k"))),
    whole("capture-servers", |out| contexts(out, |out, n| context(out, "c", "", &format!("s{n}"), "k"))),
    whole("capture-lives-in-turn", |out| contexts(out, |out, n| context(out, "c", &format!("l{}", n % 100), "", "k"))),
    whole("capture-steps-of-a-clock", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            // Ten seconds back every hundred calls, and nine forward.
            let time = n + 20_000 - n % 100 * 100;
            Call { step: 0, ..round(n, 50) }.capture(out, n);
            mark(out, time, n);
        });
    }),
    whole("capture-marks", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| mark(out, n, n));
    }),
    whole("capture-decisions-with-reads", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            phase(out, n, &format!("r{n}"), "begin");
            (0..5).for_each(|i| read(out, n, &format!("r{n}"), (n + i) % 50, n.saturating_sub(50 - i)));
            Call { decision: format!("r{n}"), takes: 900, ..round(n, 50) }.capture(out, n);
            phase(out, n + 1, &format!("r{n}"), "end");
        });
    }),
    whole("capture-absences", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            let (decision, name) = (format!("r{n}"), format!("p{n}"));
            writeln!(out, r#"{{"kind":"read","decision":"{decision}","at":"{}","resource":"pods","group":"","namespace":"d","name":"{name}"}}"#, at(n, 0));
            Call { decision, ..create(n, n, BASE + n) }.capture(out, n);
        });
    }),
    whole("capture-reads-of-one-decision", |out| {
        context(out, "c", "", "", "k");
        phase(out, 0, "r", "begin");
        out.each(|out, n| read(out, n, "r", n, n));
        Call { decision: "r".to_owned(), ..round(10_000_000, 50) }.capture(out, 10_000_000);
    }),
    whole("capture-reads-and-writes-of-one-decision", |out| {
        context(out, "c", "", "", "k");
        phase(out, 0, "r", "begin");
        out.each(|out, n| {
            read(out, n, "r", (n + 1) % 50, n.saturating_sub(49));
            Call { decision: "r".to_owned(), ..round(n, 50) }.capture(out, n);
        });
    }),
    whole("capture-open-decisions", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            phase(out, n, &format!("r{n}"), "begin");
            read(out, n, &format!("r{n}"), n % 50, n);
        });
    }),
    whole("capture-skewed-reads", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| match n % 4 {
            3 => {
                let decision = format!("r{n}");
                (0..3).for_each(|i| read(out, n, &decision, (n - 1 - i) % 9, n.saturating_sub(20 * i)));
                Call { decision, ..round(n, 9) }.capture(out, n);
            }
            _ => round(n, 9).capture(out, n),
        });
    }),
    whole("capture-skewed-writes", |out| {
        out.each(|out, n| {
            context(out, if n % 2 == 0 { "a" } else { "b" }, "", "", "k");
            let decision = format!("r{n}");
            let (own, other) = (n % 2, 1 - n % 2);
            read(out, n, &decision, own, n.saturating_sub(2));
            read(out, n, &decision, other, (n | 1).saturating_sub(3 - other));
            Call { decision, ..update(own, BASE + n.saturating_sub(2), BASE + n) }.capture(out, n);
        });
    }),
    whole("capture-cached-reads", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| read(out, n, "r", n % 50, n));
    }),
    whole("capture-copied-files", |out| {
        for file in 0..4 {
            if file > 0 {
                out.file(&format!("copy-{file}.jsonl"));
            }
            context(out, "c", "l", "", "k");
            let mut n = 0;
            while out.written < out.size / 4 * (file + 1) {
                round(n, 50).capture(out, n);
                n += 1;
            }
        }
    }),
    whole("capture-files", |out| {
        out.each(|out, n| {
            if n % 40 == 0 {
                if n > 0 {
                    out.file(&format!("c{n}.jsonl"));
                }
                context(out, &format!("c{n}"), "", "", "k");
            }
            round(n, 50).capture(out, n);
        });
    }),
    whole("capture-gone", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            ask(out, 2 * n, n, &format!("/api/v1/pods?watch=1&resourceVersion={}", BASE + n));
            let gone = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;
            told(out, 2 * n, n, "ERROR", gone);
            ended(out, 2 * n, n);
            ask(out, 2 * n + 1, n, "/api/v1/pods");
            writeln!(out, r#"{{"kind":"response","id":{},"at":"{}","status":200,"body":{}}}"#, 2 * n + 1, at(n, 900), pods(BASE + n + 1, ""));
        });
    }),
    whole("capture-resumed-streams", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            ask(out, n, n, &format!("/api/v1/pods?watch=1&resourceVersion={}", BASE + n));
            told(out, n, n, "ADDED", &pod(n, n, BASE + n + 1));
            ended(out, n, n);
        });
    }),
    whole("capture-streams-that-go-back", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            ask(out, n, n, &format!("/api/v1/pods?watch=1&resourceVersion={}", BASE + n.saturating_sub(7)));
            told(out, n, n, "ADDED", &pod(n, n, BASE + n + 1));
            ended(out, n, n);
        });
    }),
    whole("capture-initial-events", |out| {
        context(out, "c", "", "", "k");
        out.each(|out, n| {
            ask(out, n, n, "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
            (0..10).for_each(|i| told(out, n, n, "ADDED", &pod(i, i, 1 + i)));
            let end = r#","annotations":{"k8s.io/initial-events-end":"true"}"#;
            told(out, n, n, "BOOKMARK", &object("Pod", "", "", BASE + n, end, ""));
        });
    }),
    streams("capture-one-stream", Streams { event: |n, _| (0, "MODIFIED", pod(n % 50, n % 50, BASE + n)), ..ONE }),
    streams("capture-stream-of-keys", Streams { event: |n, _| (0, "ADDED", pod(n, n, BASE + n)), ..ONE }),
    streams(
        "capture-stream-of-removals",
        Streams {
            event: |n, _| (0, if n % 2 == 0 { "ADDED" } else { "DELETED" }, pod(n / 2 % 9, n / 2, BASE + n)),
            ..ONE
        },
    ),
    streams(
        "capture-stream-in-disorder",
        Streams { event: |n, _| (0, "ADDED", pod(n, n, BASE + n * 7919 % 130_003)), ..ONE },
    ),
    streams(
        "capture-repeated-events",
        Streams { event: |n, _| (0, "MODIFIED", pod(n / 2 % 50, n / 2 % 50, BASE + n / 2)), ..ONE },
    ),
    streams("capture-events-of-one-revision", Streams { event: |n, _| (0, "ADDED", pod(n, n, BASE)), ..ONE }),
    streams(
        "capture-events-from-before",
        Streams {
            uri: |_| "/api/v1/pods?watch=1&resourceVersion=10000000".to_owned(),
            event: |n, _| (0, "MODIFIED", pod(n % 50, n % 50, BASE + n)),
            ..ONE
        },
    ),
    streams(
        "capture-events-of-others",
        Streams {
            uri: |_| "/api/v1/namespaces/e/pods?watch=1&resourceVersion=99".to_owned(),
            event: |n, _| (0, "ADDED", pod(n, n, BASE + n)),
            ..ONE
        },
    ),
    streams(
        "capture-types-of-events",
        Streams {
            event: |n, _| (0, ["ADDED", "DELETED", "MODIFIED"][n as usize % 3], pod(n % 50, n % 50, BASE + n)),
            ..ONE
        },
    ),
    streams(
        "capture-bookmarks",
        Streams { event: |n, _| (0, "BOOKMARK", object("Pod", "", "", BASE + n, "", "")), ..ONE },
    ),
    streams(
        "capture-bookmarks-beside-events",
        Streams {
            event: |n, _| {
                if n % 2 == 0 {
                    (0, "ADDED", pod(n, n, BASE + n))
                } else {
                    (0, "BOOKMARK", object("Pod", "", "", BASE + n, "", ""))
                }
            },
            ..ONE
        },
    ),
    streams(
        "capture-streams",
        Streams { event: |n, all| (n % all, "MODIFIED", pod(n % 50, n % 50, BASE + n)), ..MANY },
    ),
    streams(
        "capture-gaps",
        Streams { event: |n, all| (n * 81 % all, "MODIFIED", pod(n % 10, n % 10, BASE + n)), ..MANY },
    ),
    streams(
        "capture-equal-streams",
        Streams {
            count: |_| 20,
            event: |n, _| (n % 20, "MODIFIED", pod(n / 20 % 50, n / 20 % 50, BASE + n / 20)),
            ..ONE
        },
    ),
    streams(
        "capture-selectors",
        Streams {
            uri: |n| format!("/api/v1/pods?watch=1&resourceVersion=99&labelSelector=a%3Db{n}"),
            event: |n, all| {
                (
                    n % all,
                    "ADDED",
                    object(
                        "Pod",
                        &format!("p{n}"),
                        &format!("u{n}"),
                        BASE + n,
                        &format!(r#","labels":{{"a":"b{}"}}"#, n % all),
                        "",
                    ),
                )
            },
            ..MANY
        },
    ),
    streams(
        "capture-sets-of-selectors",
        Streams {
            uri: |n| format!("/api/v1/pods?watch=1&resourceVersion=99&labelSelector=a%20in%20(b{n},c{n}),!d{n}"),
            event: |n, all| {
                (
                    n % all,
                    "ADDED",
                    object(
                        "Pod",
                        &format!("p{n}"),
                        &format!("u{n}"),
                        BASE + n,
                        &format!(r#","labels":{{"a":"c{}"}}"#, n % all),
                        "",
                    ),
                )
            },
            ..MANY
        },
    ),
    streams(
        "capture-namespaces-of-streams",
        Streams {
            uri: |n| format!("/api/v1/namespaces/n{n}/pods?watch=1&resourceVersion=99"),
            event: |n, all| {
                (
                    n % all,
                    "ADDED",
                    pod(n, n, BASE + n).replace(r#""namespace":"d""#, &format!(r#""namespace":"n{}""#, n % all)),
                )
            },
            ..MANY
        },
    ),
    streams(
        "capture-names-of-streams",
        Streams {
            uri: |n| format!("/api/v1/namespaces/d/pods?watch=1&resourceVersion=99&fieldSelector=metadata.name%3Dp{n}"),
            event: |n, all| (n % all, "MODIFIED", pod(n % all, n % all, BASE + n)),
            ..MANY
        },
    ),
    streams(
        "capture-resources-of-streams",
        Streams {
            uri: |n| format!("/apis/g.io/v1/r{n}s?watch=1&resourceVersion=99"),
            event: |n, all| (n % all, "ADDED", object("R", &format!("p{n}"), &format!("u{n}"), BASE + n, "", "")),
            ..MANY
        },
    ),
    streams(
        "capture-clients-of-streams",
        Streams {
            context: |out, n| context(out, &format!("c{n}"), "", "", "k"),
            event: |n, all| (n * 81 % all, "MODIFIED", pod(n % 10, n % 10, BASE + n)),
            ..MANY
        },
    ),
    streams(
        "capture-clocks-of-streams",
        Streams {
            count: |bytes| (bytes / 2000).min(300),
            context: |out, n| context(out, &format!("c{n}"), "", "", &format!("k{n}")),
            event: |n, all| (n % all, "MODIFIED", pod(n % 50, n % 50, BASE + n)),
            ..MANY
        },
    ),
];

const fn calls(name: &'static str, call: fn(u64) -> Call) -> Shape {
    Shape { name, draw: Draw::Capture(call) }
}

const fn whole(name: &'static str, draw: fn(&mut Evidence)) -> Shape {
    Shape { name, draw: Draw::Whole("capture.jsonl", draw) }
}

const fn streams(name: &'static str, streams: Streams) -> Shape {
    Shape { name, draw: Draw::Streams(streams) }
}

/// Consecutive streams with events.
#[derive(Clone, Copy)]
pub struct Streams {
    /// Number of streams for a size.
    count: fn(u64) -> u64,
    /// Lines in front of the request of each.
    context: fn(&mut Evidence, u64),
    uri: fn(u64) -> String,
    /// Stream, type and object of an event, by its number and the number of streams.
    event: fn(u64, u64) -> (u64, &'static str, String),
}

const ONE: Streams = Streams {
    count: |_| 1,
    context: |out, n| {
        if n == 0 {
            context(out, "c", "", "", "k");
        }
    },
    uri: |_| "/api/v1/pods?watch=1&resourceVersion=99".to_owned(),
    event: |_, _| (0, "", String::new()),
};

const MANY: Streams = Streams { count: |bytes| bytes / 2000, ..ONE };

impl Streams {
    /// Writes a capture.
    pub fn draw(&self, out: &mut Evidence) {
        let count = (self.count)(out.size).max(1);
        for n in 0..count {
            (self.context)(out, n);
            ask(out, n, 0, &(self.uri)(n));
            writeln!(out, r#"{{"kind":"response","id":{n},"at":"{}","status":200}}"#, at(0, 500));
        }
        out.each(|out, n| {
            let (stream, kind, object) = (self.event)(n, count);
            told(out, stream, 1000 + n, kind, &object);
        });
    }
}

/// Opens a context; empty values are omitted.
pub fn context(out: &mut Evidence, client: &str, life: &str, server: &str, clock: &str) {
    let named = [("client", client), ("incarnation", life), ("server", server), ("clock", clock)];
    let named = named.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!(r#","{name}":"{text}""#));
    writeln!(out, r#"{{"kind":"capture","version":1{}}}"#, named.collect::<String>());
}

/// Two calls in each context.
fn contexts(out: &mut Evidence, open: fn(&mut Evidence, u64)) {
    out.each(|out, n| {
        if n % 2 == 0 {
            open(out, n / 2);
        }
        round(n, 50).capture(out, n);
    });
}

/// Reads of clients, each with a clock of its own.
fn clocks(out: &mut Evidence, clocks: u64) {
    out.each(|out, n| {
        if n % 2 == 0 {
            let k = n / 2 % clocks;
            context(out, &format!("c{k}"), "", &format!("s{k}"), &format!("k{k}"));
        }
        get(n % 50, BASE + n).capture(out, n);
    });
}

fn mark(out: &mut Evidence, time: u64, n: u64) {
    writeln!(out, r#"{{"kind":"mark","at":"{}","name":"m{n}"}}"#, at(time, 0));
}

fn phase(out: &mut Evidence, time: u64, decision: &str, phase: &str) {
    writeln!(out, r#"{{"kind":"decision","id":"{decision}","at":"{}","name":"x","phase":"{phase}"}}"#, at(time, 0));
}

fn read(out: &mut Evidence, time: u64, decision: &str, name: u64, revision: u64) {
    writeln!(
        out,
        r#"{{"kind":"read","decision":"{decision}","at":"{}","resource":"pods","group":"","namespace":"d","name":"p{name}","uid":"u{name}","resourceVersion":"{}"}}"#,
        at(time, 0),
        BASE + revision
    );
}

fn ask(out: &mut Evidence, id: u64, time: u64, uri: &str) {
    writeln!(out, r#"{{"kind":"request","id":{id},"at":"{}","method":"GET","uri":"{uri}"}}"#, at(time, 0));
}

fn told(out: &mut Evidence, id: u64, time: u64, kind: &str, object: &str) {
    writeln!(
        out,
        r#"{{"kind":"event","id":{id},"at":"{}","event":{{"type":"{kind}","object":{object}}}}}"#,
        at(time, 500)
    );
}

fn ended(out: &mut Evidence, id: u64, time: u64) {
    writeln!(out, r#"{{"kind":"end","id":{id},"at":"{}","reason":"eof"}}"#, at(time, 600));
}
