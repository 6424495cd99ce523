//! KubeLayer over HTTP bodies and a server without a network.

use super::kube::KubeLayer;
use super::media::tests::cbor;
use super::specimen::{Boxed, Pieces, read, run};
use crate::assertion::{Capture, Subject};
use crate::check::testing::trial::declared;
use crate::check::{Kind, Verdict};
use crate::history::{self, Domains};
use crate::ingest::{self, ReadOptions};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tower_layer::Layer;
use tower_service::Service;

/// A capture whose file is removed at the end.
struct Recorded {
    path: PathBuf,
    capture: Capture,
}

impl Recorded {
    fn new() -> Recorded {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("retrograde-kube-{}-{number}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let subject =
            Subject { client: "system:node:n1".to_owned(), incarnation: "1".to_owned(), ..Subject::default() };
        let capture = Capture::create(&path, &subject).unwrap();
        Recorded { path, capture }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    /// Lines without their times and without the header.
    fn lines(&self) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|mut line| {
                line.as_object_mut().unwrap().remove("at").unwrap();
                line
            })
            .collect()
    }

    /// The verdict, and the rules with a violation or a suspect.
    fn judged(&self) -> (Verdict, Vec<&'static str>) {
        let inputs = ingest::inputs(std::slice::from_ref(&self.path), &[], &[]).unwrap();
        let history = history::load(inputs, &crate::read_options(), &Domains::default(), &());
        assert!(history.problems.is_empty(), "{:?}", history.problems);
        let judgement = crate::judge(&history, &crate::Options::default());
        let grave = judgement.findings.iter().filter(|finding| finding.kind != Kind::Hazard);
        let rules = grave.map(|finding| finding.rule).collect();
        (judgement.verdict.clone(), rules)
    }

    fn ask(&self, method: &str, uri: &str, body: &str, answer: Response<Boxed>) -> (Vec<u8>, Option<io::Error>) {
        self.ask_through(KubeLayer::new(self.capture.clone(), copied), method, uri, body, answer)
    }

    fn ask_through(
        &self,
        layer: KubeLayer<Asking>,
        method: &str,
        uri: &str,
        body: &str,
        answer: Response<Boxed>,
    ) -> (Vec<u8>, Option<io::Error>) {
        let mut service = layer.layer(Server(Arc::new(Mutex::new(Some(Ok(answer))))));
        let body = asking(body);
        let request = Request::builder().method(method).uri(uri).body(body).unwrap();
        run(async { read(Boxed::tapped(service.call(request).await.unwrap().into_body())).await })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Copies a request body.
fn copied(body: &Asking) -> Option<Asking> {
    Some(body.clone())
}

/// Answers once, after it has read the request.
#[derive(Clone)]
struct Server(Arc<Mutex<Option<io::Result<Response<Boxed>>>>>);

impl Service<Request<Asking>> for Server {
    type Response = Response<Boxed>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Boxed>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Asking>) -> Self::Future {
        let answer = self.0.lock().unwrap().take();
        Box::pin(async move {
            read(Boxed(Box::pin(request.into_body()))).await;
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

/// The body type of requests.
type Asking = Pieces;

fn asking(text: &str) -> Asking {
    let pieces = (!text.is_empty()).then(|| Some(Frame::data(Bytes::copy_from_slice(text.as_bytes()))));
    Pieces(pieces.into_iter().collect())
}

/// A body of these pieces; `None`: the connection breaks.
fn boxed<'t>(pieces: impl IntoIterator<Item = Option<&'t str>>) -> Boxed {
    bytes(pieces.into_iter().map(|piece| piece.map(str::as_bytes)))
}

fn bytes<'t>(pieces: impl IntoIterator<Item = Option<&'t [u8]>>) -> Boxed {
    let data = |piece: &[u8]| Frame::data(Bytes::copy_from_slice(piece));
    let pieces: VecDeque<_> = pieces.into_iter().map(|piece| piece.map(data)).collect();
    Boxed(Box::pin(Pieces(pieces)))
}

fn answer(status: u16, kind: &str, body: Boxed) -> Response<Boxed> {
    let builder = Response::builder().status(status).header("content-type", kind).header("audit-id", "a-1");
    builder.body(body).unwrap()
}

fn in_pieces(body: &[u8], size: usize) -> Boxed {
    bytes(body.chunks(size).map(Some))
}

fn pod(name: &str, version: u32) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("u-{name}"), "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "m"}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "env": [{"name": "PASSWORD", "value": "hunter2"}]}]},
        "status": {"phase": "Running"},
    })
}

fn list(version: u32, pods: &[Value]) -> String {
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version.to_string()}, "items": pods})
        .to_string()
}

fn event(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string() + "\n"
}

const JSON: &str = "application/json";
const PODS: &str = "/api/v1/pods";
const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=105";

/// A way to write a text of JSON, with its media types for a body and for a stream.
type Written = (fn(&str) -> Vec<u8>, [&'static str; 2]);

const WRITTEN: [Written; 2] = [
    (|text| text.as_bytes().to_vec(), [JSON, "application/json;stream=watch"]),
    (|text| cbor(&serde_json::from_str(text).unwrap()), ["application/cbor", "application/cbor-seq"]),
];

/// A client that lists, watches and lists again, the second time at this version.
fn relisting(version: &str, of: u32, size: usize, (written, [body, stream]): Written) -> Recorded {
    let recorded = Recorded::new();
    let first = written(&list(105, &[pod("web-0", 100)]));
    let passed = recorded.ask("GET", PODS, "", answer(200, body, in_pieces(&first, size)));
    assert_eq!(passed.0, first);
    let events = [event("MODIFIED", &pod("web-0", 110)), event("DELETED", &pod("web-0", 115))];
    let events = events.map(|event| written(&event)).concat();
    let passed = recorded.ask("GET", WATCH, "", answer(200, stream, in_pieces(&events, size)));
    assert_eq!(passed.0, events);
    let pods = if of < 115 { vec![pod("web-0", 100)] } else { vec![] };
    let last = written(&list(of, &pods));
    recorded.ask("GET", &format!("{PODS}{version}"), "", answer(200, body, in_pieces(&last, size)));
    recorded
}

#[test]
fn a_stale_relist_is_convicted_and_a_fresh_one_is_not_wherever_the_stream_is_cut() {
    for written in WRITTEN {
        for size in (1..50).chain([1 << 20]) {
            let stale = relisting("?resourceVersion=0", 105, size, written);
            let (verdict, rules) = stale.judged();
            assert_eq!((verdict, rules), (Verdict::Violated, vec!["monotonic-reads"]), "{}", stale.text());
            assert_eq!(stale.capture.error(), None);
            assert_eq!(relisting("", 120, size, written).judged(), (Verdict::Holds, vec![]));
        }
    }
}

#[test]
fn a_request_in_cbor_is_recorded_as_the_same_request_in_json() {
    let [json, binary] = WRITTEN.map(|(written, [kind, _])| {
        let recorded = Recorded::new();
        let body = written(&pod("a", 7).to_string());
        let answer = answer(201, kind, bytes([Some(&*body)]));
        let mut service =
            KubeLayer::new(recorded.capture.clone(), copied).layer(Server(Arc::new(Mutex::new(Some(Ok(answer))))));
        let body = Pieces([Some(Frame::data(Bytes::from(body)))].into());
        let request = Request::post("/api/v1/namespaces/default/pods").header("content-type", kind).body(body).unwrap();
        run(async { read(Boxed::tapped(service.call(request).await.unwrap().into_body())).await });
        recorded.lines()
    });
    assert_eq!(json, binary);
    assert_eq!((json.len(), &json[0]["body"]["metadata"]["name"]), (2, &json!("a")));
}

#[test]
fn a_watch_in_cbor_that_is_malformed_stays_open() {
    let recorded = Recorded::new();
    let mut stream = cbor(&json!({"type": "ADDED", "object": pod("a", 106)}));
    stream.extend([0xff, 0xff]);
    recorded.ask("GET", WATCH, "", answer(200, "application/cbor-seq", in_pieces(&stream, 10)));
    let kinds: Vec<Value> = recorded.lines().iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["request", "response", "event"]);
    assert!(recorded.capture.error().is_some());
}

#[test]
fn events_are_noted_as_they_pass_and_nothing_is_asked_for_ahead() {
    let recorded = Recorded::new();
    let (one, two) = (event("ADDED", &pod("a", 106)), event("ADDED", &pod("b", 107)));
    let service = Server(Arc::new(Mutex::new(Some(Ok(answer(200, JSON, boxed([Some(&*one), Some(&*two)])))))));
    let mut service = KubeLayer::new(recorded.capture.clone(), copied).layer(service);
    let request = Request::builder().uri(WATCH).body(asking("")).unwrap();
    let mut body = run(service.call(request)).unwrap().into_body();
    let kinds = || recorded.lines().iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(kinds(), ["request", "response"]);
    let mut poll = || {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        }
    };
    assert_eq!(poll().unwrap(), one.as_bytes());
    assert_eq!(kinds(), ["request", "response", "event"]);
    assert_eq!(poll().unwrap(), two.as_bytes());
    assert_eq!(kinds(), ["request", "response", "event", "event"]);
    assert_eq!(poll(), None);
    assert_eq!(recorded.lines().last().unwrap()["reason"], "eof");
}

#[test]
fn how_an_answer_ends_is_told() {
    let end = |recorded: &Recorded| recorded.lines().last().cloned().unwrap();
    let one = event("ADDED", &pod("a", 106));
    // The connection breaks in the middle of an event.
    let broken = Recorded::new();
    let (_, error) = broken.ask("GET", WATCH, "", answer(200, JSON, boxed([Some(&*one), Some("{\"type\":"), None])));
    assert!(error.is_some());
    assert_eq!(end(&broken)["reason"], "error");
    assert_eq!(broken.lines().len(), 4);
    // The client hangs up.
    let dropped = Recorded::new();
    let service = Server(Arc::new(Mutex::new(Some(Ok(answer(200, JSON, boxed([Some(&*one)])))))));
    let mut service = KubeLayer::new(dropped.capture.clone(), copied).layer(service);
    drop(run(service.call(Request::builder().uri(WATCH).body(asking("")).unwrap())));
    assert_eq!(end(&dropped)["reason"], "closed");
    // No connection, and no answer.
    let failed = Recorded::new();
    let service = Server(Arc::new(Mutex::new(Some(Err(io::Error::from(io::ErrorKind::ConnectionReset))))));
    let mut service = KubeLayer::new(failed.capture.clone(), copied).layer(service);
    assert!(run(service.call(Request::builder().uri(PODS).body(asking("")).unwrap())).is_err());
    assert_eq!(end(&failed)["reason"], "error");
    let silent = Recorded::new();
    let mut service = KubeLayer::new(silent.capture.clone(), copied).layer(Server(Arc::default()));
    let put = asking("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}");
    let request = Request::builder().method("POST").uri("/api/v1/namespaces/default/pods").body(put).unwrap();
    let mut future = pin!(service.call(request));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(silent.lines().len(), 1);
    assert_eq!(silent.lines()[0]["body"]["metadata"]["name"], "a");
    // A list that breaks off is no list; a status of an error is complete.
    let half = Recorded::new();
    half.ask("GET", PODS, "", answer(200, JSON, boxed([Some("{\"kind\":\"PodList\""), None])));
    assert_eq!(end(&half)["reason"], "error");
    let gone = Recorded::new();
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410})
        .to_string();
    gone.ask("GET", WATCH, "", answer(410, JSON, boxed([Some(&*status)])));
    assert_eq!((&end(&gone)["status"], &end(&gone)["body"]["code"]), (&json!(410), &json!(410)));
    assert_eq!(end(&gone)["audit_id"], "a-1");
}

#[test]
fn of_bodies_only_what_identifies_and_what_is_declared_is_kept_and_nothing_of_secrets() {
    let recorded = Recorded::new();
    let secret = json!({
        "kind": "Secret", "apiVersion": "v1", "data": {"token": "aHVudGVyMg=="}, "stringData": {"token": "hunter2"},
        "metadata": {
            "name": "s", "namespace": "default", "uid": "u", "resourceVersion": "7",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":\"aHVudGVyMg==\"}"},
        },
    });
    let text = secret.to_string();
    recorded.ask("POST", "/api/v1/namespaces/default/secrets", &text, answer(201, JSON, boxed([Some(&*text)])));
    let all =
        json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [secret]})
            .to_string();
    recorded.ask("GET", "/api/v1/secrets", "", answer(200, JSON, boxed([Some(&*all)])));
    recorded.ask("GET", "/api/v1/secrets?watch=1", "", answer(200, JSON, boxed([Some(&*event("ADDED", &secret))])));
    let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "9"}, "rows": [{"cells": ["hunter2"], "object": secret}]});
    recorded.ask(
        "GET",
        "/api/v1/namespaces/default/secrets?limit=5",
        "",
        answer(200, JSON, boxed([Some(&*table.to_string())])),
    );
    let patch = r#"[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"replace","path":"/data/token","value":"hunter2"}]"#;
    recorded.ask("PATCH", "/api/v1/namespaces/default/secrets/s", patch, answer(200, JSON, boxed([Some(&*text)])));
    let token = json!({"kind": "TokenRequest", "status": {"token": "hunter2"}}).to_string();
    recorded.ask(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/a/token",
        &token,
        answer(201, JSON, boxed([Some(&*token)])),
    );
    let review = json!({"kind": "TokenReview", "spec": {"token": "hunter2"}}).to_string();
    recorded.ask(
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        &review,
        answer(201, JSON, boxed([Some(&*review)])),
    );
    recorded.ask(
        "GET",
        "/api/v1/namespaces/default/pods/a",
        "",
        answer(200, JSON, boxed([Some(&*pod("a", 8).to_string())])),
    );
    let text = recorded.text();
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    let lines = recorded.lines();
    assert_eq!(lines.len(), 14);
    assert_eq!(lines[0]["body"]["metadata"]["uid"], "u");
    let answered = &lines.last().unwrap()["body"];
    assert_eq!(answered["spec"]["nodeName"], "n1");
    assert_eq!(answered["metadata"].get("managedFields"), None);
    assert_eq!(lines.iter().filter(|line| line["body"].is_array()).count(), 1);
}

#[test]
fn options_of_a_deletion_are_kept_without_their_kind() {
    let recorded = Recorded::new();
    let options = r#"{"dryRun":["All"],"gracePeriodSeconds":0,"metadata":{}}"#;
    let gone = r#"{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"u1"}}"#;
    recorded.ask(
        "DELETE",
        "/api/v1/namespaces/default/pods/web-0",
        options,
        answer(200, JSON, in_pieces(gone.as_bytes(), 9)),
    );
    let request = &recorded.lines()[0]["body"];
    assert_eq!((&request["dryRun"], &request["gracePeriodSeconds"]), (&json!(["All"]), &json!(0)));
}

#[test]
fn what_the_layer_left_out_is_not_missing_for_a_rule_that_reads_it() {
    const RULES: &str = r#"
        [[invariant]]
        name = "has-a-class"
        title = "a pod names its class"
        resource = "pods"
        expression = "has(self.spec.priorityClassName)"
    "#;
    let declarations = declared(RULES);
    let judged = |keeping: bool, class: &str| {
        let recorded = Recorded::new();
        let layer = KubeLayer::new(recorded.capture.clone(), copied);
        let layer = if keeping { layer.keeping(declarations.fields()) } else { layer };
        let mut pod = pod("web-0", 110);
        if !class.is_empty() {
            pod["spec"]["priorityClassName"] = json!(class);
        }
        let asked =
            recorded.ask_through(layer, "GET", WATCH, "", answer(200, JSON, boxed([Some(&*event("ADDED", &pod))])));
        assert!(asked.1.is_none());
        let inputs = ingest::inputs(std::slice::from_ref(&recorded.path), &[], &[]).unwrap();
        let options = ReadOptions { fields: declarations.fields(), ..crate::read_options() };
        let history = history::load(inputs, &options, &Domains::default(), &());
        let check = crate::check::Options { declarations: Arc::clone(&declarations), ..Default::default() };
        let options = crate::Options { check, ..crate::Options::default() };
        let judgement = crate::judge(&history, &options);
        judgement.rules.iter().find(|rule| rule.rule == "invariant").unwrap().verdict.clone()
    };
    assert_eq!(judged(true, ""), Verdict::Violated);
    assert_eq!(judged(true, "low"), Verdict::Holds);
    assert!(!matches!(judged(false, ""), Verdict::Violated | Verdict::Holds));
    assert!(!matches!(judged(false, "low"), Verdict::Violated | Verdict::Holds));
}

#[test]
fn what_cannot_be_read_passes_and_leaves_less_known() {
    let recorded = Recorded::new();
    let protobuf = "application/vnd.kubernetes.protobuf";
    let (passed, _) = recorded.ask("GET", PODS, "", answer(200, protobuf, boxed([Some("k8s\0\x01\x02")])));
    assert_eq!(passed, b"k8s\0\x01\x02");
    recorded.ask("GET", WATCH, "", answer(200, &format!("{protobuf};stream=watch"), boxed([Some("k8s\0")])));
    recorded.ask(
        "GET",
        WATCH,
        "",
        answer(200, JSON, boxed([Some(&*event("ADDED", &pod("a", 106))), Some("no event\n")])),
    );
    let kinds: Vec<_> = recorded.lines().iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["request", "response", "request", "request", "response", "event"]);
    assert!(recorded.capture.error().unwrap().contains("protobuf"));
    assert_ne!(recorded.judged().0, Verdict::Violated);
}

#[cfg(feature = "compress")]
#[test]
fn compressed_answers_are_read_as_they_come() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let (one, two) = (event("ADDED", &pod("a", 106)), event("ADDED", &pod("b", 107)));
    encoder.write_all(one.as_bytes()).unwrap();
    encoder.flush().unwrap();
    let first = encoder.get_ref().len();
    encoder.write_all(two.as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    for size in [1, 7, first, whole.len()] {
        let recorded = Recorded::new();
        let mut answer = answer(200, JSON, bytes(whole.chunks(size).map(Some)));
        answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        let (passed, _) = recorded.ask("GET", WATCH, "", answer);
        assert_eq!(passed, whole);
        assert_eq!(recorded.lines().iter().filter(|line| line["kind"] == "event").count(), 2);
        assert_eq!(recorded.capture.error(), None);
    }
    let recorded = Recorded::new();
    let mut broken = answer(200, JSON, bytes([Some(&b"\x1f\x8b no gzip at all"[..])]));
    broken.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    recorded.ask("GET", PODS, "", broken);
    assert_eq!(recorded.lines().last().unwrap().get("body"), None);
    assert!(recorded.capture.error().is_some());
}

#[test]
fn requests_of_other_kinds_pass_unrecorded() {
    let recorded = Recorded::new();
    for uri in [
        "/healthz",
        "/api/v1",
        "/apis",
        "/api/v1/namespaces/default/pods/a/exec?command=ls",
        "/api/v1/namespaces/default/pods/a/log",
    ] {
        let (passed, _) = recorded.ask("GET", uri, "", answer(200, "text/plain", boxed([Some("ok")])));
        assert_eq!(passed, b"ok");
    }
    assert_eq!(recorded.lines().len(), 0);
    assert_eq!(recorded.capture.error(), None);
}
