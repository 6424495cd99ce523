//! `retrograde record kube` in front of a real API server, with a client of its own, kubectl and Python.

use crate::folder::Folder;
use crate::http::{Answer, ask, open};
use crate::kube_server::{KubeServer, TOKEN};
use crate::proxy::{Proxy, retrograde, whole_files};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Timeout of a start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// The content of a Secret, which no capture may have.
const HIDDEN: &str = "hunter2-and-more";

/// The tests run one after the other, since each expects to be the only writer. The next one already has the servers.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The server and a folder for one test, and the lock that no other test has then. `None`: there is no server.
fn alone() -> Option<(Arc<KubeServer>, Folder, MutexGuard<'static, ()>)> {
    let server = KubeServer::shared()?;
    Some((server, Folder::new(), ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Starts a proxy once the server is ready.
fn ready(server: &KubeServer, arguments: &[&str]) -> Proxy {
    let kubeconfig = server.kubeconfig().display().to_string();
    let begin = Instant::now();
    loop {
        match Proxy::start(&[&["kube", "--kubeconfig", &kubeconfig], arguments].concat()) {
            Ok(proxy) => return proxy,
            Err(why) => assert!(begin.elapsed() < PATIENCE, "{why}\n{}", server.log()),
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Waits until the server serves, then returns the proxy.
fn serving(server: &KubeServer, arguments: &[&str]) -> Proxy {
    let proxy = ready(server, arguments);
    let begin = Instant::now();
    while ask(proxy.address, "GET", "/readyz", &[], "").status != 200 {
        assert!(begin.elapsed() < PATIENCE, "{}", server.log());
        std::thread::sleep(Duration::from_millis(200));
    }
    proxy
}

fn created(answer: &Answer) -> Value {
    assert_eq!(answer.status, 201, "{answer:?}");
    serde_json::from_str(&answer.body).expect("an object")
}

fn map(name: &str) -> String {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "v"}}).to_string()
}

/// The lines of a file of captures.
fn capture<'f>(files: &'f [(String, Vec<Value>)], name: &str) -> &'f [Value] {
    let names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    &files.iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name} among {names:?}")).1
}

fn of_kind<'f>(lines: &'f [Value], kind: &str) -> Vec<&'f Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

fn check(arguments: &[&str]) -> Output {
    retrograde(&[&["check"], arguments].concat()).output().expect("the program runs")
}

#[test]
fn clients_are_recorded_with_the_names_of_the_audit_log_and_without_secrets() {
    let Some((server, folder, _one)) = alone() else { return };
    let captures = folder.text("captures");
    let proxy = serving(&server, &["-o", &captures]);
    let at = proxy.address;

    let list = ask(at, "GET", &format!("/client/watcher-1{CONFIGMAPS}"), &[("User-Agent", "test/1")], "");
    let list: Value = serde_json::from_str(&list.body).expect("a list");
    let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
    let path = format!("/client/watcher-1{CONFIGMAPS}?watch=1&resourceVersion={revision}");
    let mut watch = open(at, "GET", &path, &[("User-Agent", "test/1")], "");
    assert_eq!(watch.status, 200);
    for name in ["a", "b"] {
        let made = created(&ask(at, "POST", CONFIGMAPS, &[("User-Agent", "writer/1")], &map(name)));
        // The event arrives while the watch goes on.
        let event = watch.next().expect("an event");
        let event: Value = serde_json::from_str(event.trim()).expect("one event");
        assert_eq!(event["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    }
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "stringData": {"k": HIDDEN}});
    let secret = created(&ask(at, "POST", SECRETS, &[("User-Agent", "writer/1")], &secret.to_string()));
    let encoded = secret["data"]["k"].as_str().expect("its data").to_owned();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/vnd.kubernetes.protobuf,application/json";
    let as_table = ask(at, "GET", SECRETS, &[("User-Agent", "curl/8"), ("Accept", table)], "");
    assert!(as_table.body.contains("\"Table\""), "{as_table:?}");
    for headers in [[("User-Agent", "curl/8"), ("Impersonate-User", "eve")], [("User-Agent", "curl/8"), ("X", "y")]] {
        ask(at, "GET", CONFIGMAPS, &headers, "");
    }
    for (headers, status) in [
        ([("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")], 501),
        ([("Origin", "http://example.com"), ("X", "y")], 403),
        ([("Host", "example.com"), ("X", "y")], 403),
        ([("Authorization", "Bearer other"), ("X", "y")], 400),
    ] {
        let answer = ask(at, "GET", &format!("{CONFIGMAPS}/a"), &headers, "");
        assert_eq!((answer.status, answer.body.contains("retrograde record: ")), (status, true), "{answer:?}");
    }
    let ended = proxy.end("-TERM");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.took < Duration::from_secs(1), "{ended:?}");
    assert!(ended.said.contains("recorded 8 requests") && ended.said.contains("4 refused"), "{ended:?}");

    let files = whole_files(Path::new(&captures));
    let watcher = capture(&files, "watcher-1.jsonl");
    assert_eq!((watcher[0]["client"].as_str(), of_kind(watcher, "event").len()), (Some("ann"), 2));
    assert_eq!(watcher[0]["incarnation"], "watcher-1");
    let [end] = of_kind(watcher, "end")[..] else { panic!("{watcher:?}") };
    assert_eq!(end["reason"], "closed");
    let writer = capture(&files, "writer_1.jsonl");
    assert_eq!((of_kind(writer, "request").len(), of_kind(writer, "response").len()), (3, 3));
    assert!(of_kind(writer, "response").iter().all(|line| line["audit_id"].is_string() && line["body"].is_object()));
    // Each invocation of a command is a process of its own, and a user who is impersonated has a capture of its own.
    let curls: Vec<&Value> =
        files.iter().filter(|(name, _)| name.starts_with("curl_8")).map(|(_, lines)| &lines[0]).collect();
    let of = |user: &str| curls.iter().filter(|line| line["client"] == user).count();
    assert_eq!((of("ann"), of("eve")), (2, 1), "{curls:?}");
    let clocks: std::collections::BTreeSet<&str> =
        files.iter().filter_map(|(_, lines)| lines[0]["clock"].as_str()).collect();
    assert_eq!(clocks.len(), 1);
    for (name, lines) in &files {
        let text = serde_json::to_string(lines).expect("JSON");
        for hidden in [HIDDEN, &encoded, TOKEN] {
            assert!(!text.contains(hidden), "{name} has {hidden}");
        }
    }
    let audit = server.audit_log().display().to_string();
    let checked = check(&["--json", &captures, &audit, "--source", "audit.log:server=a"]);
    let report: Value = serde_json::from_slice(&checked.stdout).expect("a report");
    assert_eq!((checked.status.code(), &report["verdict"]), (Some(0), &json!("holds")), "{}", report["histories"]);
    // The same captures with a stream that lost its first event.
    let path = folder.path("captures").join("watcher-1.jsonl");
    let text = std::fs::read_to_string(&path).expect("the capture");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(lines.iter().position(|line| line.contains(r#""kind":"event""#)).expect("an event"));
    std::fs::write(&path, lines.join("\n") + "\n").expect("a changed file");
    let checked = check(&["--only", "watch-gap", &captures]);
    assert_eq!(checked.status.code(), Some(1), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn a_client_that_accepts_only_cbor_is_recorded_as_one_that_accepts_json() {
    let Some((server, folder, _one)) = alone() else { return };
    let captures = folder.text("captures");
    let proxy = serving(&server, &["-o", &captures]);
    let at = proxy.address;
    let made = created(&ask(at, "POST", CONFIGMAPS, &[("User-Agent", "writer/1")], &map("listed")));
    // The server itself writes too, so both clients ask for one revision.
    let revision = made["metadata"]["resourceVersion"].as_str().expect("a revision");

    let clients = [("json", "application/json"), ("cbor", "application/cbor")];
    let path = |name: &str, query: &str| format!("/client/{name}{CONFIGMAPS}?resourceVersion={revision}&{query}");
    let exact = "resourceVersionMatch=Exact";
    let [json, cbor] = clients.map(|(name, accept)| ask(at, "GET", &path(name, exact), &[("Accept", accept)], ""));
    assert_eq!((json.status, cbor.status), (200, 200), "{json:?} {cbor:?}");
    assert!(serde_json::from_str::<Value>(&cbor.body).is_err(), "the server answered in JSON");
    let mut watches = clients.map(|(name, accept)| open(at, "GET", &path(name, "watch=1"), &[("Accept", accept)], ""));
    created(&ask(at, "POST", CONFIGMAPS, &[("User-Agent", "writer/1")], &map("watched")));
    assert!(watches.iter_mut().all(|watch| watch.next().is_some()));
    assert_eq!(proxy.end("-TERM").code, Some(0));

    let files = whole_files(Path::new(&captures));
    let [json, cbor] = ["json.jsonl", "cbor.jsonl"].map(|name| {
        let seen = |line: &Value| (line["kind"].clone(), line["body"].clone(), line["event"].clone());
        capture(&files, name)[1..].iter().map(seen).collect::<Vec<_>>()
    });
    assert_eq!(json, cbor);
    assert_eq!(of_kind(capture(&files, "cbor.jsonl"), "event").len(), 1);
}

#[test]
fn kubectl_and_python_are_recorded_as_they_are() {
    let Some((server, folder, _one)) = alone() else { return };
    let captures = folder.text("captures");
    // A certificate instead of a token.
    let proxy = serving(&server, &["--context", "certificate", "-o", &captures]);
    let asked = [kubectl(proxy.address, &folder), python(proxy.address)];
    let ended = proxy.end("-INT");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.took < Duration::from_secs(1), "{ended:?}");
    if asked == [false, false] {
        eprintln!("skipped: there is neither kubectl nor Python with the package kubernetes");
        return;
    }
    let files = whole_files(Path::new(&captures));
    assert!(files.iter().all(|(_, lines)| lines[0]["client"] == "bob"), "{files:?}");
    if asked[0] {
        let watch =
            files.iter().find(|(name, lines)| name.starts_with("kubectl") && !of_kind(lines, "event").is_empty());
        assert!(watch.is_some(), "no events of kubectl");
    }
    if asked[1] {
        assert_eq!(of_kind(capture(&files, "python.jsonl"), "event").len(), 1);
    }
    let checked = check(&[&captures]);
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Whether kubectl is there and did its work.
fn kubectl(at: SocketAddr, folder: &Folder) -> bool {
    let command = |arguments: &str| {
        let mut command = Command::new("kubectl");
        command.env("HOME", folder.root()).args(["--kubeconfig=/dev/null", &format!("--server=http://{at}")]);
        command.args(arguments.split(' ')).stdin(Stdio::null());
        command
    };
    if !command("version --client").output().is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: there is no kubectl");
        return false;
    }
    let done = |arguments: &str| {
        let output = command(arguments).output().expect("kubectl runs");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{arguments}: {text}");
        text
    };
    done("create configmap from-kubectl --from-literal=k=v");
    assert!(done("get configmaps").contains("from-kubectl"));
    let mut watch = command("get configmaps from-kubectl --watch --output=name")
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("its output")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    assert_eq!(next(), "configmap/from-kubectl");
    done("label configmap from-kubectl l=v");
    assert_eq!(next(), "configmap/from-kubectl");
    let _ = watch.kill();
    let _ = watch.wait();
    done("delete configmap from-kubectl");
    done("run pod --image=none --restart=Never");
    // The API server has no node for this pod, and the proxy refuses before it.
    let refused = command("exec pod -- true").output().expect("kubectl runs");
    assert!(!refused.status.success());
    true
}

/// Whether Python is there and did its work. The Python that the caller names must have the package.
fn python(at: SocketAddr) -> bool {
    let named = std::env::var("RETROGRADE_PYTHON").ok();
    let program = named.as_deref().unwrap_or("python3");
    let script = r#"
import sys
from kubernetes import client, watch
api = client.CoreV1Api(client.ApiClient(client.Configuration(host=sys.argv[1])))
revision = api.list_namespaced_config_map("default").metadata.resource_version
api.create_namespaced_config_map("default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="from-python")))
stream = watch.Watch()
for event in stream.stream(api.list_namespaced_config_map, "default", resource_version=revision):
    assert event["object"].metadata.name == "from-python", event
    stream.stop()
api.delete_namespaced_config_map("from-python", "default")
"#;
    let has = Command::new(program).args(["-c", "import kubernetes"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        assert!(named.is_none(), "RETROGRADE_PYTHON={program} has no package kubernetes");
        eprintln!("not tested: {program} has no package kubernetes");
        return false;
    }
    let output = Command::new(program)
        .args(["-c", script, &format!("http://{at}/client/python")])
        .output()
        .expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

#[test]
fn credentials_that_do_not_work_are_named_before_anything_is_recorded() {
    let Some((server, folder, _one)) = alone() else { return };
    let captures = folder.text("captures");
    drop(ready(&server, &["--context", "file", "-o", &folder.text("of-the-file")]));
    let kubeconfig = server.kubeconfig().display().to_string();
    let refused = |arguments: &[&str]| {
        let arguments = [&["kube", "--kubeconfig", &kubeconfig, "-o", &captures], arguments].concat();
        Proxy::start(&arguments).err().unwrap_or_default()
    };
    let program = refused(&["--context", "program"]);
    assert!(program.contains("get-token") && program.contains("exec"), "{program}");
    let wrong = refused(&["--context", "wrong"]);
    assert!(wrong.contains("401") && !wrong.contains("no-such-token"), "{wrong}");
    assert!(refused(&["--context", "none"]).contains("no context none"));
    let elsewhere = ["record", "kube", "--kubeconfig", &kubeconfig, "-o", &captures, "--listen", "0.0.0.0:0"];
    let elsewhere = retrograde(&elsewhere).output().expect("the program runs");
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&elsewhere.stderr).contains("--allow-other-hosts"));
    assert!(!Path::new(&captures).exists(), "a folder was made");
}

#[test]
fn an_earlier_capture_is_kept() {
    let Some((server, folder, _one)) = alone() else { return };
    std::fs::create_dir(folder.path("captures")).expect("a folder");
    std::fs::write(folder.path("captures/only.jsonl"), "kept").expect("a file");
    let proxy = serving(&server, &["--client", "only", "-o", &folder.text("captures")]);
    assert_eq!(ask(proxy.address, "GET", CONFIGMAPS, &[], "").status, 200);
    assert_eq!(proxy.end("-TERM").code, Some(0));
    assert_eq!(std::fs::read_to_string(folder.path("captures/only.jsonl")).expect("the file"), "kept");
    let second = std::fs::read_to_string(folder.path("captures/only-2.jsonl")).expect("the next file");
    assert_eq!(second.lines().count(), 3, "{second}");
}
