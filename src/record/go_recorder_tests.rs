//! Files that this crate and the Go recorder (`recorders/go`) have in common. Its tests read the same ones.
//!
//! `UPDATE=1` writes them anew.

use super::etcd::EtcdRecorder;
use super::kube::KubeLayer;
use super::specimen::{Boxed, Pieces, read, run};
use crate::assertion::{Capture, Subject};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use serde_json::Value;
use std::fmt::Write as _;
use std::future::{Ready, ready};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::{env, fs, io};
use tower_layer::Layer;
use tower_service::Service;

fn of_the_recorder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorders/go").join(name)
}

/// Compares a file with what this crate says, or writes it.
fn compare(name: &str, expected: &str) {
    let path = of_the_recorder(name);
    if env::var_os("UPDATE").is_some_and(|update| update == "1") {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{}: write it anew with UPDATE=1", path.display());
}

#[test]
fn the_go_recorder_keeps_the_fields_that_the_shipped_rules_read() {
    let mut lines: Vec<String> =
        crate::read_options().fields.declared().iter().map(|(resource, path)| format!("{resource} {path}\n")).collect();
    lines.dedup();
    compare("internal/reduction/kept_fields.txt", &lines.concat());
}

/// Answers once.
struct Server(Option<Response<Boxed>>);

impl Service<Request<Pieces>> for Server {
    type Response = Response<Boxed>;
    type Error = io::Error;
    type Future = Ready<io::Result<Response<Boxed>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Pieces>) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::Error::other("no connection")))
    }
}

/// A text as it is, or any other value as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The bytes of an answer: its text, its body, or its events line by line.
fn content(exchange: &Value) -> Vec<u8> {
    let mut plain = exchange.get("answer").map(text).unwrap_or_default();
    for event in exchange["events"].as_array().into_iter().flatten() {
        let _ = writeln!(plain, "{}", text(event));
    }
    if exchange["gzip"] != true {
        return plain.into_bytes();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn pieces(bytes: &[u8]) -> Pieces {
    let frames = bytes.chunks(100).map(|piece| Some(Frame::data(Bytes::copy_from_slice(piece))));
    Pieces(frames.collect())
}

/// Sends one request through the layer and reads its answer as the exchange says.
fn exchange(layer: &KubeLayer<Pieces>, exchange: &Value) {
    let field = |name: &str| exchange[name].as_str().unwrap_or_default();
    let answer = (field("end") != "refused").then(|| {
        let mut body = pieces(&content(exchange));
        if field("end") == "error" {
            body.0.push_back(None);
        }
        let kind = if field("content_type").is_empty() { "application/json" } else { field("content_type") };
        let status = u16::try_from(exchange["status"].as_u64().unwrap_or(200)).unwrap();
        let mut builder = Response::builder().status(status).header("content-type", kind);
        if !field("audit_id").is_empty() {
            builder = builder.header("audit-id", field("audit_id"));
        }
        if exchange["gzip"] == true {
            builder = builder.header("content-encoding", "gzip");
        }
        builder.body(Boxed(Box::pin(body))).unwrap()
    });
    let mut service = layer.layer(Server(answer));
    let body = exchange.get("body").map(text).unwrap_or_default();
    let request = Request::builder().method(field("method")).uri(field("uri")).body(pieces(body.as_bytes())).unwrap();
    let Ok(response) = run(service.call(request)) else { return };
    let mut body = Boxed::tapped(response.into_body());
    if field("end") != "closed" {
        run(read(body));
        return;
    }
    // The client closes the connection after the last byte of the last event.
    let size = content(exchange).len();
    let mut seen = 0;
    while seen < size {
        let frame =
            run(std::future::poll_fn(|context| http_body::Body::poll_frame(std::pin::Pin::new(&mut body), context)));
        seen += frame.unwrap().unwrap().into_data().unwrap().len();
    }
}

#[test]
fn the_go_recorder_writes_the_same_capture() {
    let path = env::temp_dir().join(format!("retrograde-exchanges-{}.jsonl", std::process::id()));
    let _ = fs::remove_file(&path);
    let subject = Subject { client: "system:node:n1".to_owned(), incarnation: "1".to_owned(), ..Subject::default() };
    let layer = KubeLayer::new(Capture::create(&path, &subject).unwrap(), |body: &Pieces| Some(body.clone()));
    let exchanges = fs::read_to_string(of_the_recorder("testdata/exchanges.json")).unwrap();
    let exchanges: Vec<Value> = serde_json::from_str(&exchanges).unwrap();
    for one in &exchanges {
        exchange(&layer, one);
    }
    let written = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!written.contains("hunter2") && !written.contains("aHVudGVyMg"));
    let untimed = written.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("at");
        format!("{line}\n")
    });
    compare("testdata/capture.jsonl", &untimed.collect::<String>());
}

/// The bytes of hexadecimal digits.
fn bytes(message: &Value, name: &str) -> Option<Vec<u8>> {
    let digits = message.get(name)?.as_str()?;
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    Some((0..digits.len()).step_by(2).map(byte).collect())
}

/// A line of a recording of etcd without its times.
fn untimed(line: &str) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap();
    let fields = line.as_object_mut().unwrap();
    fields.remove("Call");
    fields.remove("Return");
    for response in fields.get_mut("Responses").and_then(Value::as_array_mut).into_iter().flatten() {
        response.as_object_mut().unwrap().remove("Time");
    }
    format!("{line}\n")
}

#[test]
fn the_go_recorder_writes_the_same_recording_of_etcd() {
    let folder = env::temp_dir().join(format!("retrograde-etcd-exchanges-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let recorder = EtcdRecorder::in_folder(&folder).unwrap();
    let client = recorder.client("ann");
    let messages = fs::read_to_string(of_the_recorder("testdata/etcd_exchanges.json")).unwrap();
    let messages: Vec<Value> = serde_json::from_str(&messages).unwrap();
    let watches = client.watches();
    for message in &messages {
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        let (sent, received) = (bytes(message, "sent"), bytes(message, "received"));
        if text("path").is_empty() {
            match (sent, received) {
                (Some(sent), _) => watches.sent(&sent),
                (None, Some(received)) => watches.received(&received),
                (None, None) => watches.failed(text("text")),
            }
            continue;
        }
        let call = client.call(text("path"), &sent.unwrap());
        match received {
            Some(received) => call.answer(&received),
            None if text("code").is_empty() => drop(call),
            None => call.failed(text("code"), text("text")),
        }
    }
    assert_eq!(recorder.error(), None);
    let mut lines = String::new();
    for name in ["operations.json", "watch.json"] {
        let written = fs::read_to_string(folder.join("client-ann").join(name)).unwrap();
        lines.extend(written.lines().map(untimed));
    }
    fs::remove_dir_all(&folder).unwrap();
    compare("testdata/etcd_recording.jsonl", &lines);
}
