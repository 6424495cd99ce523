//! Operation logs without revisions: JSON, EDN, and Jepsen's text log.

use super::{Draw, Evidence, Shape};

pub const SHAPES: &[Shape] = &[
    json("register-calls", |n| {
        if n % 2 == 0 {
            call(n, 0, "write", "", &n.to_string(), "")
        } else {
            call(n, 0, "read", "", "", &(n - 1).to_string())
        }
    }),
    json("register-keys", |n| {
        if n % 2 == 0 {
            call(n, 0, "write", &n.to_string(), "1", "")
        } else {
            call(n, 0, "read", &(n - 1).to_string(), "", "1")
        }
    }),
    json("register-processes", |n| call(n, n, "write", "", &n.to_string(), "")),
    json("register-calls-at-one-time", |n| call(0, n, "write", "", &n.to_string(), "")),
    json("register-equal-values", |n| {
        if n % 2 == 0 { call(n, 0, "write", "", "7", "") } else { call(n, 0, "read", "", "", "7") }
    }),
    json("register-long-integers", |n| call(n, 0, "write", "", &format!("1000000000000000000000000000000{n}"), "")),
    json("register-long-values", |n| call(n, 0, "write", "", &format!(r#""{n:a>500}""#), "")),
    json("register-stale-reads", |n| {
        if n % 2 == 0 {
            call(n, 0, "write", "", &n.to_string(), "")
        } else {
            call(n, 0, "read", "", "", &n.saturating_sub(5).to_string())
        }
    }),
    json("register-unknown-outcomes", |n| match n % 2 {
        0 => open(n, n, "write", "", &n.to_string()),
        _ => call(n, 0, "read", "", "", &(n - 1).to_string()),
    }),
    // Each value is written twice, and read at once and much later: the search has to remember half of all values.
    json("register-unknown-outcomes-read-late", |n| {
        let value = n / 4;
        match n % 4 {
            0 | 1 => open(n, n + 1, "write", "", &value.to_string()),
            2 => call(n, 0, "read", "", "", &value.to_string()),
            _ => call(n, 0, "read", "", "", &(if value % 2 == 0 { value / 2 } else { value }).to_string()),
        }
    }),
    json("register-unseen-outcomes", |n| open(n, n, "write", "", &n.to_string())),
    json("register-compares", |n| {
        if n == 0 {
            call(n, 0, "write", "", "0", "")
        } else {
            call(n, 0, "cas", "", &format!("[{},{n}]", n - 1), "true")
        }
    }),
    json("register-failed-compares", |n| {
        if n == 0 { call(n, 0, "write", "", "0", "") } else { call(n, 0, "cas", "", &format!("[{n},{n}]"), "false") }
    }),
    json("kv-keys", |n| {
        if n % 2 == 0 {
            call(n, 0, "put", &format!(r#""k{n}""#), r#""v""#, "")
        } else {
            call(n, 0, "get", &format!(r#""k{}""#, n - 1), "", r#""v""#)
        }
    }),
    json("kv-appends", |n| call(n, 0, "append", &format!(r#""k{}""#, n % 50), &format!(r#""{n}""#), "")),
    json("kv-appends-and-gets", |n| {
        let (key, first) = (n / 20, n - n % 20);
        match n % 20 {
            19 => call(
                n,
                0,
                "get",
                &format!(r#""k{key}""#),
                "",
                &format!(r#""{}""#, (first..n).map(|i| format!("{i} ")).collect::<String>()),
            ),
            _ => call(n, 0, "append", &format!(r#""k{key}""#), &format!(r#""{n} ""#), ""),
        }
    }),
    json("kv-deletes", |n| {
        if n % 2 == 0 {
            call(n, 0, "put", r#""k""#, &n.to_string(), "")
        } else {
            call(n, 0, "delete", r#""k""#, "", "")
        }
    }),
    json("mutex-calls", |n| call(n, 0, if n % 2 == 0 { "acquire" } else { "release" }, "", "", "")),
    model("queue-calls", "queue", |n| {
        if n % 2 == 0 {
            call(n, 0, "enqueue", "", &n.to_string(), "")
        } else {
            call(n, 0, "dequeue", "", "", &(n - 1).to_string())
        }
    }),
    // Each value and each amount is that of one operation of unknown outcome, which a later answer needs.
    model("queue-unknown-outcomes", "queue", |n| match n % 2 {
        0 => open(n, n + 1, "enqueue", "", &n.to_string()),
        _ => call(n, 0, "dequeue", "", "", &(n - 1).to_string()),
    }),
    model("counter-unknown-outcomes", "counter", |n| {
        let amount = n / 2 + 1;
        match n % 2 {
            0 => open(n, n + 1, "add", "", &amount.to_string()),
            _ => call(n, 0, "read", "", "", &(amount * (amount + 1) / 2).to_string()),
        }
    }),
    model("queue-left", "queue", |n| call(n, 0, "enqueue", "", &n.to_string(), "")),
    model("set-elements", "set", |n| call(n, 0, "add", "", &n.to_string(), "")),
    model("counter-additions", "counter", |n| {
        if n % 2 == 0 { call(n, 0, "add", "", "1", "") } else { call(n, 0, "read", "", "", &n.div_ceil(2).to_string()) }
    }),
    json("pool-resources", |n| {
        if n % 2 == 0 {
            call(n, 0, "allocate", "", "", &format!(r#""r{n}""#))
        } else {
            call(n, 0, "release", "", &format!(r#""r{}""#, n - 1), "")
        }
    }),
    whole("register-events", "a.json", |out| {
        writeln!(out, r#"{{"kind":"operations","version":1,"model":"register"}}"#);
        out.each(|out, n| {
            writeln!(out, r#"{{"process":0,"type":"invoke","op":"write","value":{n},"at":{}}}"#, 10 * n);
            writeln!(out, r#"{{"process":0,"type":"ok","op":"write","at":{}}}"#, 10 * n + 5);
        });
    }),
    whole("register-array", "a.json", |out| {
        write!(out, "[");
        out.list(|out, n| write!(out, "{}", call(n, 0, "write", "", &n.to_string(), "")));
        writeln!(out, "]");
    }),
    whole("register-files", "o0.json", |out| {
        out.each(|out, n| {
            if n % 400 == 399 {
                out.file(&format!("o{n}.json"));
            }
            writeln!(out, "{}", call(n, 0, "write", "", &n.to_string(), ""));
        });
    }),
    edn("edn-calls", |n| pair(n, 0, ":write", &n.to_string(), &n.to_string())),
    edn("edn-keys", |n| pair(n, 0, ":write", &format!("1 :key {n}"), &format!("1 :key {n}"))),
    edn("edn-keys-that-are-maps", |n| {
        pair(
            n,
            0,
            ":write",
            &format!("1 :key {{:a {n} :b [{n} #{{{n}}}]}}"),
            &format!("1 :key {{:b [{n} #{{{n}}}] :a {n}}}"),
        )
    }),
    edn("edn-values-that-are-sets", |n| {
        pair(n, 0, ":write", &format!("#{{{n} {}}}", n + 1), &format!("#{{{} {n}}}", n + 1))
    }),
    edn("edn-fields", |n| pair(n, 0, ":write", &format!("{n} :f{n} 1"), &n.to_string())),
    edn("edn-ratios", |n| pair(n, 0, ":write", &format!("{}/2", 2 * n + 1), &format!("{}/2", 2 * n + 1))),
    edn("edn-transactions", |n| {
        pair(n, 0, ":txn", &format!("[[:append {} {n}]]", n % 50), &format!("[[:append {} {n}]]", n % 50))
    }),
    edn("edn-transactions-of-keys", |n| {
        pair(n, 0, ":txn", &format!("[[:append {n} 1] [:r {n} nil]]"), &format!("[[:append {n} 1] [:r {n} [1]]]"))
    }),
    edn("edn-registers", |n| pair(n, 0, ":txn", &format!("[[:w {} {n}]]", n % 50), &format!("[[:w {} {n}]]", n % 50))),
    whole("edn-long-transaction", "history.edn", |out| {
        let size = out.size;
        for (kind, part) in [(":invoke", 1), (":ok", 2)] {
            out.size = size / 2 * part;
            write!(out, "{{:process 0, :type {kind}, :f :txn, :value [");
            out.each(|out, n| write!(out, "[:append {n} {n}] "));
            writeln!(out, "]}}");
        }
    }),
    whole("edn-vector", "history.edn", |out| {
        writeln!(out, "[");
        out.each(|out, n| writeln!(out, "{}", pair(n, 0, ":write", &n.to_string(), &n.to_string())));
        writeln!(out, "]");
    }),
    edn("edn-without-processes", |n| {
        let returned = n.checked_sub(1).map(|n| format!("\n{{:type :ok, :f :write, :value {n}}}")).unwrap_or_default();
        format!("{{:type :invoke, :f :write, :value {n}}}{returned}")
    }),
    edn("edn-processes", |n| pair(n, n, ":write", &n.to_string(), &n.to_string())),
    Shape {
        name: "jepsen-log",
        draw: Draw::Lines("jepsen.log", |n| {
            format!("INFO  jepsen.util - 0\t:invoke\t:write\t{n}\nINFO  jepsen.util - 0\t:ok\t:write\t{n}")
        }),
    },
    Shape {
        name: "jepsen-log-of-unknown-outcomes",
        draw: Draw::Lines("jepsen.log", |n| {
            format!("INFO  jepsen.util - {n}\t:invoke\t:write\t{n}\nINFO  jepsen.util - {n}\t:info\t:write\t:timed-out")
        }),
    },
];

const fn json(name: &'static str, line: fn(u64) -> String) -> Shape {
    Shape { name, draw: Draw::Lines("a.json", line) }
}

/// As [`json`], with a header that names the model.
const fn model(name: &'static str, model: &'static str, line: fn(u64) -> String) -> Shape {
    Shape { name, draw: Draw::Model(model, line) }
}

const fn edn(name: &'static str, line: fn(u64) -> String) -> Shape {
    Shape { name, draw: Draw::Lines("history.edn", line) }
}

const fn whole(name: &'static str, file: &'static str, draw: fn(&mut Evidence)) -> Shape {
    Shape { name, draw: Draw::Whole(file, draw) }
}

/// A whole operation; empty members are omitted.
fn call(n: u64, process: u64, op: &str, key: &str, value: &str, result: &str) -> String {
    format!(
        "{},\"return\":{}}}",
        begun(n, process, op, &[("key", key), ("value", value), ("result", result)]),
        10 * n + 6
    )
}

/// An operation without an answer.
fn open(n: u64, process: u64, op: &str, key: &str, value: &str) -> String {
    format!("{},\"outcome\":\"unknown\"}}", begun(n, process, op, &[("key", key), ("value", value)]))
}

fn begun(n: u64, process: u64, op: &str, members: &[(&str, &str)]) -> String {
    let members = members.iter().filter(|(_, value)| !value.is_empty());
    let members: String = members.map(|(name, value)| format!(r#","{name}":{value}"#)).collect();
    format!(r#"{{"process":{process},"op":"{op}"{members},"invoke":{}"#, 10 * n + 1)
}

/// An operation in Jepsen's EDN: two lines.
fn pair(n: u64, process: u64, function: &str, asked: &str, answered: &str) -> String {
    let line = |kind: &str, value: &str, time: u64| {
        format!("{{:process {process}, :type {kind}, :f {function}, :time {time}, :value {value}}}")
    };
    format!("{}\n{}", line(":invoke", asked, 10 * n + 1), line(":ok", answered, 10 * n + 6))
}
