//! Folders of every format, with secrets in every place that holds no name.

use crate::secrets::{LABEL, NUMBER, SECRET, member};
use base64::Engine as _;
use std::io::Write as _;

/// A folder of evidence with secrets.
pub struct Laden {
    pub name: &'static str,
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Texts that the page must show all the same.
    pub shown: Vec<&'static str>,
}

fn laden(name: &'static str, files: Vec<(&'static str, String)>, shown: &[&'static str]) -> Laden {
    let files = files.into_iter().map(|(name, text)| (name, filled(&text).into_bytes())).collect();
    Laden { name, files, shown: shown.to_vec() }
}

/// A text with the secrets inserted: `$S` the text, `$B` its base64, `$N` the number, `$L` the label.
fn filled(text: &str) -> String {
    let base64 = base64::engine::general_purpose::STANDARD.encode(SECRET);
    text.replace("$S", SECRET).replace("$B", &base64).replace("$N", NUMBER).replace("$L", LABEL)
}

/// An object of a kind and a version, with secrets everywhere.
fn object(kind: &str, version: u32) -> String {
    let more = match kind {
        "Secret" => r#""spec":{"nodeName":"$S"},"status":{"phase":"$S"},"type":"$S","#,
        _ => r#""spec":{"containers":[{"env":[{"value":"$S"}]}]},"#,
    };
    let labels = if kind == "Secret" { r#""labels":{"$L":"$L"},"# } else { "" };
    format!(
        r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"s","namespace":"d","uid":"u1","resourceVersion":"{version}","creationTimestamp":"2026-03-02T08:00:00Z",{labels}"annotations":{{"kubectl.kubernetes.io/last-applied-configuration":"{{\"data\":{{\"p\":\"$S\"}}}}","$S":"$B"}},"managedFields":[{{"manager":"$S","fieldsV1":{{"f:$S":{{}}}}}}]}},{more}"data":{{"password":"$B","$S":"$S"}},"stringData":{{"p":"$S"}},"n":$N,"immutable":"$S"}}"#
    )
}

/// An audit event, with `more` members.
fn event(number: u32, level: &str, verb: &str, resource: &str, more: &str) -> String {
    format!(
        r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"{level}","auditID":"a{number}","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/d/{resource}/s?pretty=$S&token=$S","verb":"{verb}","user":{{"username":"eve","uid":"$S","groups":["$S"],"extra":{{"authentication.kubernetes.io/credential-id":["$S"],"$S":["$B"]}}}},"sourceIPs":["10.0.0.1"],"userAgent":"kubectl/v1","objectRef":{{"resource":"{resource}","namespace":"d","name":"s","apiVersion":"v1"}},"requestReceivedTimestamp":"2026-03-02T00:00:0{number}.000000Z","stageTimestamp":"2026-03-02T00:00:0{number}.001000Z","annotations":{{"authorization.k8s.io/reason":"$S","patch.webhook.admission.k8s.io/round_0_index_0":"{{\"patch\":[{{\"op\":\"add\",\"value\":\"$S\"}}]}}"}},"$S":"$S"{more}}}"#
    ) + "\n"
}

fn read(number: u32, level: &str, kind: &str, version: u32) -> String {
    let resource = format!("{}s", kind.to_ascii_lowercase());
    let status = r#""responseStatus":{"metadata":{},"code":200,"message":"$S"}"#;
    let body = if level == "RequestResponse" {
        format!(r#","responseObject":{}"#, object(kind, version))
    } else {
        String::new()
    };
    event(number, level, "get", &resource, &format!(",{status}{body}"))
}

/// Three reads, the last one of an older version.
fn audit(level: &str, kind: &str) -> String {
    [105, 109, 102].iter().zip(0..).map(|(version, at)| read(at, level, kind, *version)).collect()
}

/// A capture of three reads with these bodies.
fn capture(body: impl Fn(u32) -> String) -> String {
    let mut text = r#"{"kind":"capture","version":1,"client":"eve","clock":"k","token":"$S"}"#.to_owned() + "\n";
    for (at, version) in [105, 109, 102].into_iter().enumerate() {
        text += &format!(
            "{{\"kind\":\"request\",\"id\":{at},\"at\":10000000{at}0000000000,\"method\":\"GET\",\"uri\":\"/api/v1/namespaces/d/secrets/s?x=$S\",\"headers\":{{\"Authorization\":\"Bearer $S\"}},\"note\":$N}}\n\
             {{\"kind\":\"response\",\"id\":{at},\"at\":10000000{at}0001000000,\"status\":200,\"headers\":{{\"Set-Cookie\":\"$S\"}},\"body\":{}}}\n",
            body(version)
        );
    }
    text
}

/// A Secret with one more member.
fn with(version: u32, member: &str) -> String {
    let object = object("Secret", version);
    format!("{},\"x\":{member}}}", &object[..object.len() - 1])
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(filled(text).as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// All folders.
pub fn all() -> Vec<Laden> {
    let deep = format!("{}\"$S\"{}", "[".repeat(300), "]".repeat(300));
    let watch_event = |kind: &str, version: u32| {
        format!(r#"{{"type":"{kind}","object":{},"$S":"$S"}}"#, object("Secret", version)) + "\n"
    };
    let items = [object("Secret", 105), object("ConfigMap", 106)].join(",");
    let list = format!(
        r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"109","continue":"$B","$S":"$S"}},"items":[{items}],"$S":"$S"}}"#
    );
    let key = base64::engine::general_purpose::STANDARD.encode("/registry/secrets/d/s");
    let stored = |at: u32| {
        format!(
            r#"{{"Header":{{"cluster_id":1,"member_id":1,"revision":{at},"raft_term":1,"$S":"$S"}},"Events":[{{"type":0,"kv":{{"key":"{key}","create_revision":100,"mod_revision":{at},"version":{},"value":"$B"}},"prev_kv":{{"key":"{key}","value":"$B"}}}}],"$S":"$B"}}"#,
            at - 99
        ) + "\n"
    };
    let put = |client: u32, at: u32, revision: u32, more: &str| {
        format!(
            r#"{{"ClientId":{client},"Input":{{"Type":"txn","Txn":{{"Conditions":null,"OperationsOnSuccess":[{{"Type":"put-operation","Put":{{"Key":"k","Value":{{"Value":"$S"}},"LeaseID":0}}}}],"OperationsOnFailure":null}},"$S":"$S"}},"Call":{at}0,"Output":{{"Txn":{{"Failure":false,"Results":[{{"KVs":null,"Count":0,"Deleted":0}}]}},"Revision":{revision},"member-id":"8e9e05c52164694d","$S":"$S"{more}}},"Return":{at}5}}"#
        ) + "\n"
    };
    let range = |at: u32, revision: u32| {
        format!(
            r#"{{"ClientId":0,"Input":{{"Type":"range","Range":{{"Start":"k","End":"","Limit":0,"Revision":0}}}},"Call":{at}0,"Output":{{"Range":{{"KVs":[{{"Key":"k","Value":{{"Value":"other$S"}},"ModRevision":2,"Version":1}}],"Count":1}},"Revision":{revision},"member-id":"8e9e05c52164694d"}},"Return":{at}5}}"#
        ) + "\n"
    };
    let client_watch = r#"{"Request":{"Key":"","Revision":2,"WithPrefix":true,"$S":"$S"},"Responses":[{"Events":[{"Type":"put-operation","Key":"k","Value":{"Value":"$S"},"Revision":3,"IsCreate":true,"PrevValue":{"Value":{"Value":"$S"}}}],"Revision":3,"Time":222},{"Events":[{"Type":"put-operation","Key":"k","Value":{"Value":"more$S"},"Revision":2}],"Revision":2,"Time":262},{"Error":"$S","Time":300}]}"#;
    let edn = "{:process 0, :type :invoke, :f :write, :value 1, :time 1}\n{:process 0, :type :ok, :f :write, :value 1, :time 2}\n\
               {:process 1, :type :invoke, :f :read, :value nil, :time 3}\n{:process 1, :type :ok, :f :read, :value nil, :time 4}\n";
    let json = "{\"process\":0,\"type\":\"invoke\",\"op\":\"write\",\"value\":1,\"at\":1}\n{\"process\":0,\"type\":\"ok\",\"op\":\"write\",\"value\":1,\"at\":2}\n";
    let audit_list = format!(
        r#"{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{{"$S":"$S"}},"items":[{}]}}"#,
        audit("RequestResponse", "Secret").trim_end().replace('\n', ",")
    );
    let writes = [
        (r#"{"data":{"password":"$S"}}"#, "patch"),
        (
            r#"[{"op":"replace","path":"/data/password","value":"$S"},{"op":"test","path":"/metadata/resourceVersion","value":"105"}]"#,
            "patch",
        ),
        (r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"$S":"$S"}}"#, "patch"),
        (r#""$S""#, "update"),
        ("$N", "update"),
        (r#"{"kind":"DeleteOptions","preconditions":{"uid":"u1"},"dryRun":["$S"]}"#, "delete"),
    ];
    let patches: String = (0..)
        .zip(writes)
        .map(|(at, (body, verb))| {
            let answer = format!(
                r#","responseStatus":{{"code":200}},"requestObject":{body},"responseObject":{}"#,
                object("Secret", 110 + at)
            );
            event(at, "RequestResponse", verb, "secrets", &answer)
        })
        .collect();
    let refused = event(
        3,
        "RequestResponse",
        "update",
        "secrets",
        r#","responseStatus":{"status":"Failure","reason":"Invalid","code":422,"message":"data: Invalid value: \"$S\""},"responseObject":{"kind":"Status","status":"Failure","message":"Invalid value: \"$S\"","reason":"Invalid","details":{"name":"s","causes":[{"message":"$S","field":"$S"}]},"code":422}"#,
    );
    let whole = audit("RequestResponse", "Secret");
    let third = whole.lines().next().unwrap_or_default();
    let inside = &third[third.find("\"data\"").unwrap_or(0) + 12..];
    let cut = &third[..third.find("stringData").unwrap_or(0) + 18];
    let odd = |from: &str, to: &str| read(4, "RequestResponse", "Secret", 112).replace(from, to);
    let mut folders = vec![
        laden("audit-metadata", vec![("a.log", audit("Metadata", "Secret"))], &[]),
        laden("audit-request", vec![("a.log", audit("Request", "Secret"))], &[]),
        laden("audit-secrets", vec![("a.log", whole.clone())], &["stale-consistent-read", "\\\"resourceVersion\\\": \\\"102\\\"", "\\\"username\\\": \\\"eve\\\""]),
        laden("audit-configmaps", vec![("a.log", audit("RequestResponse", "ConfigMap"))], &["\\\"verb\\\": \\\"get\\\""]),
        laden("audit-pods", vec![("a.log", audit("RequestResponse", "Pod"))], &["stale-consistent-read"]),
        laden("audit-writes", vec![("a.log", whole.clone() + &patches + &refused)], &[]),
        laden("audit-list", vec![("a.json", audit_list)], &[]),
        laden("capture", vec![("c.jsonl", capture(|version| object("Secret", version)))], &["monotonic-reads", "\\\"status\\\": 200"]),
        laden("capture-surrogate", vec![("c.jsonl", capture(|version| with(version, r#""\ud83d""#)))], &["monotonic-reads", "\\\"resourceVersion\\\": \\\"102\\\""]),
        laden("capture-number", vec![("c.jsonl", capture(|version| with(version, "1e999")))], &["\\\"resourceVersion\\\": \\\"102\\\""]),
        laden("capture-deep", vec![("c.jsonl", capture(|version| with(version, &deep)))], &["\\\"resourceVersion\\\": \\\"102\\\""]),
        laden("capture-bodies", vec![("c.jsonl", capture(|_| r#"["$S",{"data":"$S"}]"#.to_owned()) + &capture(|_| "\"$S\"".to_owned()) + &capture(|_| r#"{"data":{"p":"$S"},"code":"$S","items":"$S"}"#.to_owned()))], &[]),
        laden(
            "capture-odd",
            vec![(
                "c.jsonl",
                capture(|version| object("Secret", version))
                    + "{\"kind\":\"response\",\"id\":0,\"status\":\"$S\"}\n{\"kind\":\"request\",\"id\":[\"$S\"],\"at\":\"$S\"}\n{\"kind\":\"decision\",\"id\":1,\"phase\":\"$S\"}\n{\"kind\":\"$S\",\"x\":\"$S\"}\n{\"kind\":\"event\",\"id\":1,\"event\":{\"type\":\"$S\",\"object\":{\"kind\":\"$S\"}}}\n{\"x\":\"$S\"}\n{\"kind\":\"response\",\"id\":1,\"status\":$N}\n",
            )],
            &[],
        ),
        laden("watch", vec![("w.json", watch_event("ADDED", 105) + &watch_event("MODIFIED", 109) + &watch_event("MODIFIED", 107) + "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"message\":\"$S\",\"code\":410,\"reason\":\"Expired\"}}\n{\"type\":\"ADDED\",\"object\":{\"x\":\"$S\"}}\n{\"type\":\"$S\",\"object\":\"$S\"}\n")], &[]),
        laden("list", vec![("l.json", list), ("p.json", object("Pod", 103)), ("s.json", format!("{}\n{{\n \"kind\": \"Secret\",\n \"apiVersion\": \"v1\",\n \"data\": \"$S\"}}\n", object("Secret", 104)))], &[]),
        laden("etcdctl", vec![("a.log", whole.clone()), ("w.json", stored(100) + &stored(105) + &stored(109) + "{\"Header\":{\"revision\":\"$S\"},\"Events\":[{\"kv\":{\"key\":\"$S\",\"value\":\"$B\"}}]}\n{\"Header\":{\"revision\":110},\"Events\":[{\"type\":\"$S\",\"kv\":{\"key\":\"%%\",\"mod_revision\":-$N,\"value\":\"$B\"}}]}\n")], &["stale-consistent-read"]),
        laden("etcd-report", vec![("r/client-1/operations.json", put(0, 1, 2, "") + &put(0, 2, 3, "") + &range(3, 3) + &put(1, 4, 0, r#","Error":"$S""#) + "{\"ClientId\":\"$S\",\"Input\":{\"Type\":\"$S\"}}\n{\"ClientId\":0,\"Input\":{\"Type\":\"$S\"},\"Call\":70,\"Output\":{\"Revision\":3},\"Return\":75}\n"), ("r/client-1/watch.json", client_watch.to_owned())], &["violat"]),
        laden("edn-broken", vec![("h.edn", edn.to_owned() + "{:process 1, :type :ok, :f :read, :value \"$S\n"), ("g.edn", edn.to_owned() + "{:process 1, :type :$S, :f :read, :value \"$S\"}\n{:process {:x \"$S\"}, :type :ok, :f :read}\n{:$S/process 1, :type :ok, :f :read, :$S/value 1}\n{:process 1 :type :ok :f :read :value \\\\$S}\n{:process 1 :type :ok :f :read :value 1$S}\n")], &["linearizability", ":process 1, :type :ok, :f :read"]),
        laden("jepsen-broken", vec![("j.log", "INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:ok\t:read\t[\"$S\nINFO  jepsen.core - $S\nINFO  jepsen.util - 1\t:ok\t$S\n".to_owned())], &[]),
        laden("operations-broken", vec![("o.jsonl", json.to_owned() + "{\"process\":1,\"type\":\"$S\",\"op\":\"read\"}\n{\"process\":{\"x\":\"$S\"},\"type\":\"ok\",\"op\":\"read\"}\n{\"process\":1,\"type\":\"ok\",\"op\":\"read\",\"at\":\"$S\"}\n{\"process\":1,\"type\":\"ok\",\"op\":\"read\",\"value\":\"$S")], &[]),
        laden("rotated", vec![("a.log", format!("{inside}\n{whole}")), ("b.log", format!("{whole}{cut}\n")), ("c.log", format!("{whole}{cut}"))], &["stale-consistent-read"]),
        laden(
            "audit-odd",
            vec![(
                "a.log",
                whole.clone()
                    + &odd("\"code\":200", "\"code\":\"$S\"")
                    + &odd("2026-03-02T00:00:04.000000Z", "$S")
                    + &odd("\"resourceVersion\":\"112\"", "\"resourceVersion\":\"$S\"")
                    + &odd("{\"username\":\"eve\"", "\"$S, expected $S at line 7\",\"x\":{\"username\":\"eve\"")
                    + &odd("\"stage\":\"ResponseComplete\"", "\"stage\":\"$S\"")
                    + &odd("\"level\":", "\"level\":\"$S\",\"level\":")
                    + &odd("\"sourceIPs\":[\"10.0.0.1\"]", "\"sourceIPs\":$N")
                    + &odd("\"verb\":\"get\"", "\"verb\":\"\\ud83d$S\"")
                    + "{\"msg\":\"$S\"}\n[\"$S\"]\n$S\n\"$S\"\n",
            )],
            &[],
        ),
        laden("ignored", vec![("notes.txt", "password: $S\n".to_owned()), ("x.json", "{\"password\":\"$S\"}\n".to_owned()), ("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  resourceVersion: \"7\"\ndata:\n  p: $S\n".to_owned()), ("legacy.log", "2026-11-20T20:26:45.607755314Z AUDIT: id=\"$S\" stage=\"RequestReceived\" ip=\"$S\"\n".to_owned())], &[]),
    ];
    folders.push(Laden {
        name: "member",
        files: vec![
            ("r/client-1/operations.json", filled(&(put(0, 1, 2, "") + &put(0, 2, 3, ""))).into_bytes()),
            ("r/server-a/member/wal/0000000000000000-0000000000000000.wal", member::log(SECRET.as_bytes())),
            ("r/server-a/member/snap/db", member::database(SECRET.as_bytes())),
        ],
        shown: Vec::new(),
    });
    let (packed, mut binary) = (gzip(&whole.repeat(40)), filled(&whole).into_bytes());
    let half = packed.len() / 2;
    folders.push(Laden {
        name: "gzip",
        files: vec![("a.log.gz", packed.clone()), ("b.log.gz", packed[..half].to_vec())],
        shown: vec!["stale-consistent-read"],
    });
    let at = binary.windows(SECRET.len()).rposition(|window| window == SECRET.as_bytes()).unwrap_or(0);
    binary[at + SECRET.len()] = 0xff;
    binary.extend(b"\0\0\0");
    folders.push(Laden { name: "bytes", files: vec![("a.log", binary)], shown: Vec::new() });
    folders.extend(exports());
    folders
}

/// Exports, whole and cut off, with secrets in their events and beside them.
fn exports() -> Vec<Laden> {
    let events = audit("RequestResponse", "Secret");
    let quoted = |event: &str| serde_json::to_string(event).unwrap();
    let lines = |wrap: &dyn Fn(&str) -> String| events.lines().map(|event| wrap(event) + "\n").collect::<String>();
    let aks = lines(&|event| {
        let log = quoted(event);
        format!(r#"{{"category":"kube-audit","$S":"$S","properties":{{"log":{log},"pod":"p","$S":"$S"}},"note":"$S"}}"#)
    });
    let docker = lines(&|event| format!(r#"{{"log":{},"stream":"stdout","time":"$S"}}"#, quoted(event)));
    let csv = lines(&|event| format!("$S,\"{}\",$S", event.replace('"', "\"\"")));
    let object = object("Secret", 105);
    let gke = format!(
        r#"{{"insertId":"1","logName":"$S","labels":{{"$S":"$S"}},"resource":{{"labels":{{"$S":"$S"}}}},"timestamp":"2026-03-02T00:00:00Z","receiveTimestamp":"2026-03-02T00:00:01Z","protoPayload":{{"serviceName":"k8s.io","methodName":"io.k8s.core.v1.secrets.update","resourceName":"core/v1/namespaces/d/secrets/s","request":{object},"response":{object},"authorizationInfo":["$S"],"$S":"$S"}}}}"#
    ) + "\n";
    let cut = |text: &str| text[..text.len() / 2].to_owned();
    let files = |text: &str| vec![("a.log", text.to_owned()), ("b.log", cut(text))];
    vec![
        laden("aks", files(&aks), &["stale-consistent-read"]),
        laden("docker", files(&docker), &[]),
        laden("csv", files(&csv), &[]),
        laden("gke", files(&gke), &[]),
    ]
}
