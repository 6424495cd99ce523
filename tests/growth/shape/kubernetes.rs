//! Audit logs of consecutive Kubernetes calls that grow in one way each.

use super::call::{Call, create, delete, get, list, object, pod, pods, refused, update};
use super::{Draw, Evidence, Shape};

/// Revisions begin above this one.
const BASE: u64 = 100;

pub const SHAPES: &[Shape] = &[
    audit("audit-clients", |n| Call { user: format!("u{n}"), ..round(n, 50) }),
    audit("audit-agents", |n| Call { agent: format!("a{n}/v1"), ..round(n, 50) }),
    audit("audit-addresses", |n| Call {
        address: format!("10.{}.{}.{}", n >> 16 & 255, n >> 8 & 255, n & 255),
        ..round(n, 50)
    }),
    audit("audit-keys", |n| create(n, n, BASE + n)),
    audit("audit-one-key", |n| round(n, 1)),
    audit("audit-reads-of-one-key", |n| if n % 10 == 0 { round(n / 10, 1) } else { get(0, BASE + n / 10) }),
    audit("audit-made-and-removed", |n| if n % 2 == 0 { create(0, n, BASE + 2 + n) } else { delete(0, n - 1) }),
    audit("audit-many-made-and-removed", |n| {
        if n % 2 == 0 { create(n % 500, n, BASE + 2 + n) } else { delete((n - 1) % 500, n - 1) }
    }),
    audit("audit-read-items-of-deleted-collections", |n| match n % 3 {
        0 => create(n, n, BASE + n),
        1 => delete_collection(n - 1, BASE + n - 1),
        _ => get(n - 2, BASE + n - 2),
    }),
    audit("audit-updated-item-of-deleted-collections", |n| match n % 2 {
        0 => update(0, BASE + n, BASE + n + 2),
        _ => delete_collection(0, BASE + n + 1),
    }),
    audit("audit-listed-namespaces", |n| Call { namespace: format!("n{n}"), ..list(BASE + n / 2000, "") }),
    audit("audit-namespaces", |n| {
        let asked = created("Pod", "p", n, BASE + n, "", "").replace(r#""d""#, &format!(r#""n{n}""#));
        Call {
            verb: "create",
            namespace: format!("n{n}"),
            name: "p".to_owned(),
            status: 201,
            answered: asked,
            ..Call::default()
        }
    }),
    audit("audit-resources", |n| made("g.io", &format!("r{n}s"), "R", "", "", n)),
    audit("audit-groups", |n| made(&format!("g{n}.io"), "things", "Thing", "", "", n)),
    audit("audit-label-selectors", |n| Call {
        query: format!("labelSelector=a%3Db{n}"),
        ..list(BASE + n, &labelled(n, n % 1009))
    }),
    audit("audit-field-selectors", |n| Call {
        query: format!("fieldSelector=spec.nodeName%3Dn{n}"),
        ..list(BASE + n, "")
    }),
    audit("audit-selectors-beside-writes", |n| match n % 2 {
        // It lacks the pod that was written at its revision.
        0 => Call { query: format!("labelSelector=a%3Db{}", n / 8), ..list(BASE + n / 2, "") },
        _ => Call { answered: labelled(n, n / 4), ..create(n, n, BASE + n / 2 + 1) },
    }),
    audit("audit-lists-of-100", |n| list(BASE + n, &(0..100).map(|i| pod(i, i, i + 1)).collect::<Vec<_>>().join(","))),
    audit("audit-lists-that-lack-writes", |n| match n % 10 {
        0 => list(
            BASE + n,
            &(0..20.min(n)).map(|i| pod(n - 1 - i, n - 1 - i, BASE + n - 1 - i)).collect::<Vec<_>>().join(","),
        ),
        _ => create(n, n, BASE + n),
    }),
    whole("audit-one-list", "audit.log", |out| {
        let items = draft(out, |n| pod(n, n, n + 1));
        list(10_000_000, &items).audit(out, 0);
    }),
    audit("audit-pages", |n| page(n, 10)),
    audit("audit-one-chain-of-pages", |n| page(n, u64::MAX)),
    audit("audit-lost-pages", |n| {
        if n % 3 == 2 {
            refused(
                Call { answered: String::new(), ..page(n, u64::MAX) },
                410,
                "Expired",
                "The provided continue parameter is too old",
            )
        } else {
            page(n, u64::MAX)
        }
    }),
    audit("audit-conflicts", |n| {
        refused(
            update(n % 50, BASE, 0),
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }),
    audit("audit-conflicts-of-uids", |n| {
        refused(
            update(n % 50, BASE, 0),
            409,
            "Conflict",
            &format!("Precondition failed: UID in precondition: u{n}, UID in object meta: v{n}"),
        )
    }),
    audit("audit-conflicts-and-retries", |n| match n % 3 {
        0 => Call { user: "v".to_owned(), ..update(n / 3, 10 + n, 11 + n) },
        1 => refused(update(n / 3, 10 + n - 1, 0), 409, "Conflict", "the object has been modified"),
        _ => update(n / 3, 11 + n - 2, 12 + n - 2),
    }),
    audit("audit-unknown-outcomes", |n| {
        if n % 2 == 0 { refused(update(n % 50, 0, 0), 504, "Timeout", "the request timed out") } else { round(n, 50) }
    }),
    audit("audit-unknown-outcomes-of-one-key", |n| {
        if n % 2 == 0 {
            refused(update(0, 0, 0), 500, "InternalError", "etcdserver: request timed out")
        } else {
            get(0, BASE + n)
        }
    }),
    audit("audit-refusals", |n| refused(round(n, 50), 429, "TooManyRequests", "too many requests")),
    audit("audit-dry-runs", |n| Call { query: "dryRun=All".to_owned(), ..round(n, 50) }),
    audit("audit-patches", |n| Call {
        verb: "patch",
        asked: format!(r#"{{"metadata":{{"labels":{{"a":"{n}"}}}}}}"#),
        ..round(n, 50)
    }),
    audit("audit-applies", |n| Call { verb: "patch", query: format!("fieldManager=m{n}&force=true"), ..round(n, 50) }),
    audit("audit-finalizers", |n| {
        let held = |finalizers, revision| {
            object(
                "Pod",
                &format!("p{}", n / 3),
                &format!("u{}", n / 3),
                revision,
                &format!(r#","finalizers":[{finalizers}],"deletionTimestamp":"2026-03-02T09:00:00Z""#),
                "",
            )
        };
        match n % 3 {
            0 => create(n / 3, n / 3, BASE + n),
            1 => Call {
                verb: "delete",
                name: format!("p{}", n / 3),
                answered: held(r#""f""#, BASE + n),
                ..Call::default()
            },
            _ => Call {
                verb: "update",
                name: format!("p{}", n / 3),
                asked: held("", BASE + n - 1),
                answered: held("", BASE + n - 1),
                ..Call::default()
            },
        }
    }),
    audit("audit-deleted-collections", |n| Call { verb: "deletecollection", ..list(BASE + n, &pod(n, n, BASE + n)) }),
    audit("audit-watches", |n| Call {
        verb: "watch",
        query: format!("watch=1&resourceVersion={}", BASE + n),
        stage: "ResponseStarted",
        ..Call::default()
    }),
    audit("audit-lists-and-watches", |n| match n % 2 {
        0 => Call { query: "resourceVersion=0".to_owned(), ..list(BASE + n, "") },
        _ => Call { verb: "watch", query: format!("watch=1&resourceVersion={}", BASE + n - 1), ..Call::default() },
    }),
    audit("audit-identity-leases", |n| Call {
        namespace: "kube-system".to_owned(),
        user: "system:apiserver".to_owned(),
        step: 3333,
        ..lease(&format!("apiserver-{}", n % 3), n, 3, "h")
    }),
    audit("audit-leases", |n| lease(&format!("l{}", n / 2), n, 1, "h")),
    audit("audit-one-lease", |n| lease("l", n, 1, "h")),
    audit("audit-holders", |n| Call { user: format!("h{n}"), ..lease("l", n, 1, &format!("h{n}")) }),
    audit("audit-bindings", |n| match n % 2 {
        0 => create(n, n, BASE + n),
        _ => Call {
            subresource: "binding",
            status: 201,
            asked: format!(
                r#"{{"kind":"Binding","apiVersion":"v1","metadata":{{"name":"p{0}","namespace":"d"}},"target":{{"kind":"Node","name":"n{n}"}}}}"#,
                n - 1
            ),
            answered: r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#.to_owned(),
            ..create(n - 1, n - 1, 0)
        },
    }),
    audit("audit-bound-pods", |n| made("", "pods", "Pod", "", &format!(r#","spec":{{"nodeName":"n{}"}}"#, n % 997), n)),
    audit("audit-rebound-pods", |n| {
        made("", "pods", "Pod", "", &format!(r#","spec":{{"nodeName":"n{n}"}}"#), n).named("p")
    }),
    audit("audit-nodes-that-go", |n| match n % 2 {
        0 => Call { namespace: String::new(), ..made("", "nodes", "Node", "", "", n) },
        _ => made("", "pods", "Pod", "", &format!(r#","spec":{{"nodeName":"o{}"}}"#, n - 1), n),
    }),
    audit("audit-statuses", |n| Call {
        subresource: "status",
        ..made("", "pods", "Pod", "", r#","status":{"phase":"Running","podIP":"10.0.0.1"}"#, n).named("p")
    }),
    audit("audit-children-of-one", |n| {
        made(
            "",
            "pods",
            "Pod",
            r#","ownerReferences":[{"kind":"ReplicaSet","apiVersion":"apps/v1","name":"r","uid":"r","controller":true}]"#,
            "",
            n,
        )
    }),
    audit("audit-children", |n| {
        made(
            "",
            "pods",
            "Pod",
            &format!(
                r#","ownerReferences":[{{"kind":"ReplicaSet","apiVersion":"apps/v1","name":"r{0}","uid":"r{0}","controller":true}}]"#,
                n / 3
            ),
            "",
            n,
        )
    }),
    audit("audit-owners-of-one", |n| {
        made(
            "",
            "pods",
            "Pod",
            &format!(
                r#","ownerReferences":[{{"kind":"ReplicaSet","apiVersion":"apps/v1","name":"r{n}","uid":"r{n}"}}]"#
            ),
            "",
            n,
        )
        .named("p")
    }),
    audit("audit-addresses-of-services", |n| {
        made(
            "",
            "services",
            "Service",
            "",
            &format!(r#","spec":{{"clusterIP":"10.{}.{}.{}"}}"#, n >> 16, n >> 8 & 255, n & 255),
            n,
        )
    }),
    audit("audit-one-address-of-services", |n| {
        made("", "services", "Service", "", r#","spec":{"clusterIP":"10.0.0.1"}"#, n)
    }),
    audit("audit-references", |n| match n % 2 {
        0 => made("", "configmaps", "ConfigMap", "", "", n),
        _ => made(
            "",
            "pods",
            "Pod",
            "",
            &format!(r#","spec":{{"volumes":[{{"name":"v","configMap":{{"name":"o{}"}}}}]}}"#, n - 1),
            n,
        ),
    }),
    audit("audit-events", |n| {
        made(
            "",
            "events",
            "Event",
            "",
            &format!(r#","involvedObject":{{"kind":"Pod","namespace":"d","name":"p{n}","uid":"u{n}"}}"#),
            n,
        )
    }),
    audit("audit-metadata", |n| Call { asked: String::new(), answered: String::new(), ..round(n, 50) }),
    audit("audit-tables", |n| Call {
        answered: format!(
            r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"{}"}},"columnDefinitions":[],"rows":[{{"cells":["p"],"object":{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"name":"p","namespace":"d","uid":"u","resourceVersion":"{}"}}}}}}]}}"#,
            BASE + n,
            BASE + n
        ),
        ..list(0, "")
    }),
    audit("audit-labels", |n| {
        made(
            "",
            "pods",
            "Pod",
            &format!(
                r#","labels":{{{}}}"#,
                (0..20).map(|i| format!(r#""l{i}":"v{}""#, n * 20 + i)).collect::<Vec<_>>().join(",")
            ),
            "",
            n,
        )
    }),
    audit("audit-names-of-labels", |n| made("", "pods", "Pod", &format!(r#","labels":{{"l{n}":"v"}}"#), "", n)),
    audit("audit-managed-fields", |n| {
        made("", "pods", "Pod", &format!(r#","managedFields":[{}]"#, [r#"{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}}"#; 20].join(",")), "", n)
    }),
    audit("audit-stale-reads", |n| if n % 2 == 0 { round(n, 1) } else { get(0, BASE + n.saturating_sub(5)) }),
    audit(
        "audit-stale-lists",
        |n| if n % 2 == 0 { create(n, n, BASE + n) } else { list(BASE + n.saturating_sub(5), "") },
    ),
    audit("audit-stale-reads-of-clients", |n| {
        if n % 2 == 0 { round(n, 1) } else { Call { user: format!("u{n}"), ..get(0, BASE + n.saturating_sub(5)) } }
    }),
    audit("audit-torn-lists", |n| {
        if n % 2 == 0 { create(n, n, BASE + n) } else { list(BASE + n - 1, &pod(n + 1, n + 1, BASE + n - 3)) }
    }),
    audit("audit-patches-beside-unrecorded-reads", |n| match n % 3 {
        _ if n == 0 => create(0, 0, BASE),
        _ if n == 1 => Call { verb: "watch", query: format!("watch=1&resourceVersion={BASE}"), ..Call::default() },
        0 => Call { user: "v".to_owned(), ..update(0, BASE + n - 1, BASE + n) },
        1 => Call { name: "p0".to_owned(), ..Call::default() },
        _ => Call { verb: "patch", asked: r#"{"metadata":{}}"#.to_owned(), ..get(0, BASE + n) },
    }),
    audit("audit-blind-writes", |n| match n % 2 {
        0 => Call { user: format!("u{}", n % 20), ..get(0, BASE + n / 2) },
        _ => Call {
            user: format!("u{}", (n - 1) % 20),
            asked: object("Pod", "p0", "u0", 0, "", "").replace(r#""resourceVersion":"0","#, ""),
            ..update(0, 0, BASE + n / 2 + 1)
        },
    }),
    audit("audit-reused-revisions", |n| create(n, n, BASE + n / 2)),
    audit("audit-contradictions", |n| {
        Call {
            answered: object("Pod", "p", "u", BASE + n / 3, &format!(r#","labels":{{"a":"{n}"}}"#), ""),
            ..Call::default()
        }
        .named("p")
    }),
    audit("audit-contradictions-of-one-revision", |n| {
        Call { answered: object("Pod", "p", &format!("u{n}"), BASE, "", ""), ..Call::default() }.named("p")
    }),
    audit("audit-uids-of-one-name", |n| {
        Call { verb: "update", answered: object("Pod", "p", &format!("u{n}"), BASE + n, "", ""), ..Call::default() }
            .named("p")
    }),
    audit("audit-falling-revisions", |n| update(n % 50, 0, 10_000_000 - n)),
    audit("audit-long-revisions", |n| {
        Call {
            answered: object("Pod", "p", "u", n, "", "")
                .replace(r#"Version":""#, r#"Version":"1000000000000000000000000000"#),
            ..get(0, 0)
        }
        .named("p")
    }),
    audit("audit-long-names", |n| {
        Call { answered: object("Pod", &format!("{:a>200}", n), &format!("u{n}"), BASE + n, "", ""), ..Call::default() }
            .named(&format!("{:a>200}", n))
    }),
    audit("audit-long-calls", |n| Call { takes: 999, step: 0, ..round(n, 50) }),
    audit("audit-copied-lines", |n| Call { id: format!("c{}", n / 2), step: 0, ..round(n / 2, 50) }),
    audit("audit-stages", |n| Call {
        id: format!("c{}", n / 2),
        stage: if n % 2 == 0 { "RequestReceived" } else { "ResponseComplete" },
        ..round(n / 2, 50)
    }),
    audit("audit-requests-without-answer", |n| Call { stage: "RequestReceived", ..round(n, 50) }),
    audit("audit-panics", |n| Call { stage: "Panic", status: 500, ..round(n, 50) }),
    whole("audit-event-lists", "audit.log", |out| {
        write!(out, r#"{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{{}},"items":["#);
        out.list(|out, n| round(n, 50).audit(out, n));
        writeln!(out, "]}}");
    }),
    whole("audit-parts", "audit.log", |out| {
        out.each(|out, n| {
            let event = round(n, 50).event(n);
            let (first, rest) = event.split_at(event.len() / 3);
            let (second, last) = rest.split_at(rest.len() / 2);
            writeln!(out, "{RUNTIME} P {first}\n{RUNTIME} P {second}\n{RUNTIME} F {last}");
        });
    }),
    whole("audit-parts-of-one-line", "audit.log", |out| {
        let event = round(0, 50).event(0);
        let (first, last) = event.split_at(event.len() - 1);
        writeln!(out, "{RUNTIME} P {first}");
        out.each(|out, n| writeln!(out, r#"{RUNTIME} P ,"a{n}":1"#));
        writeln!(out, "{RUNTIME} F {last}");
    }),
    whole("audit-parts-without-end", "audit.log", |out| {
        let event = round(0, 50).event(0);
        writeln!(out, "{RUNTIME} F {event}\n{RUNTIME} P {}", &event[..event.len() / 2]);
        out.each(|out, n| writeln!(out, r#"{RUNTIME} P {{"a{n}":"#));
    }),
    whole("audit-files", "audit-0.log", |out| {
        out.each(|out, n| {
            if n % 40 == 39 {
                out.file(&format!("audit-{n}.log"));
            }
            round(n, 50).audit(out, n);
        });
    }),
    whole("list-one", "list.json", |out| {
        let items = draft(out, |n| pod(n, n, n + 1));
        write!(out, "{}", pods(10_000_000, &items));
    }),
    lines("list-many", "list.json", |n| pods(BASE + n, &pod(n % 50, n % 50, BASE))),
    lines("list-objects", "objects.json", |n| pod(n, n, n + 1)),
    lines("list-objects-of-one-key", "objects.json", |n| pod(0, 0, n + 1)),
];

/// The beginning of a line by CRI-O.
const RUNTIME: &str = "2026-03-02T09:00:00Z stdout";

const fn audit(name: &'static str, call: fn(u64) -> Call) -> Shape {
    Shape { name, draw: Draw::Audit(call) }
}

const fn whole(name: &'static str, file: &'static str, draw: fn(&mut Evidence)) -> Shape {
    Shape { name, draw: Draw::Whole(file, draw) }
}

const fn lines(name: &'static str, file: &'static str, line: fn(u64) -> String) -> Shape {
    Shape { name, draw: Draw::Lines(file, line) }
}

/// Creates `pods` pods, then updates them in turn, each from its last version.
pub fn round(n: u64, pods: u64) -> Call {
    if n < pods { create(n, n, BASE + n) } else { update(n % pods, BASE + n - pods, BASE + n) }
}

/// Creates an object of a resource with a name of its own.
fn made(group: &str, resource: &str, kind: &str, metadata: &str, rest: &str, n: u64) -> Call {
    let answered = created(kind, &format!("o{n}"), n, BASE + n, metadata, rest);
    let (group, resource, name) = (group.to_owned(), resource.to_owned(), format!("o{n}"));
    Call { verb: "create", group, resource, name, status: 201, answered, ..Call::default() }
}

fn created(kind: &str, name: &str, uid: u64, revision: u64, metadata: &str, rest: &str) -> String {
    object(kind, name, &format!("u{uid}"), revision, metadata, rest)
}

impl Call {
    /// The call for an object with one name: from the second call on it is an update.
    fn named(self, name: &str) -> Call {
        let answered = self.answered.replace(&format!(r#""name":"{}""#, self.name), &format!(r#""name":"{name}""#));
        let verb = if self.verb == "create" { "update" } else { self.verb };
        Call { verb, name: name.to_owned(), status: 200, answered, ..self }
    }
}

/// Renews `leases` leases in turn.
fn lease(name: &str, n: u64, leases: u64, holder: &str) -> Call {
    let spec = format!(
        r#","spec":{{"holderIdentity":"{holder}","leaseDurationSeconds":15,"renewTime":"2026-03-02T09:00:00.000000Z"}}"#
    );
    let answered = object("Lease", name, &format!("u{name}"), BASE + n, "", &spec);
    let asked = object("Lease", name, &format!("u{name}"), BASE + n - leases, "", &spec);
    let (group, resource, name) = ("coordination.k8s.io".to_owned(), "leases".to_owned(), name.to_owned());
    Call { verb: "update", group, resource, name, asked, answered, ..Call::default() }
}

fn labelled(n: u64, label: u64) -> String {
    object("Pod", &format!("p{n}"), &format!("u{n}"), BASE + n, &format!(r#","labels":{{"a":"b{label}"}}"#), "")
}

/// Deletes the collection, in which there is one pod.
fn delete_collection(name: u64, revision: u64) -> Call {
    let pod = object("Pod", &format!("p{name}"), &format!("u{name}"), revision, "", r#","spec":{}"#);
    Call { verb: "deletecollection", ..list(revision, &pod) }
}

/// A page of a list; chains have `chain` pages.
fn page(n: u64, chain: u64) -> Call {
    let first = n.is_multiple_of(chain);
    let query = if first { "limit=5".to_owned() } else { format!("limit=5&continue=t{}", n - 1) };
    let of = 10_000_000 + n - n % chain;
    let items: Vec<String> = (0..5).map(|i| pod(n * 5 + i, n * 5 + i, 1 + n * 5 + i)).collect();
    let next = if n % chain == chain - 1 { String::new() } else { format!(r#","continue":"t{n}""#) };
    let answered = pods(of, &items.join(",")).replace(r#""},"items""#, &format!(r#""{next}}},"items""#));
    Call { verb: "list", query, answered, ..Call::default() }
}

/// Items with commas between them, nearly as long as the evidence.
fn draft(out: &Evidence, item: impl Fn(u64) -> String) -> String {
    let mut items = item(0);
    let mut n = 1;
    while (items.len() as u64) < out.size {
        items += ",";
        items += &item(n);
        n += 1;
    }
    items
}
