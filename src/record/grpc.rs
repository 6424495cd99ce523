//! A tower layer between a gRPC client of etcd and its channel.
//!
//! Messages follow a prefix of five bytes. The status is in the trailers, or in the headers if there is nothing else.
//! An answer counts only with its status.
//!
//! Source: gRPC over HTTP/2 (`doc/PROTOCOL-HTTP2.md` of grpc/grpc).

use super::body::{End, Tap, Tapped};
use super::etcd::{EtcdCall, EtcdClient, EtcdWatches, is_recorded_call};
use crate::assertion::lines::lock;
use crate::ingest::etcd::Fields;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use std::error::Error;
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;

const WATCH: &str = "/etcdserverpb.Watch/Watch";
const RANGE: &str = "/etcdserverpb.KV/Range";
/// A read whose answer comes in parts (etcd 3.7). It is recorded as the Range that it equals.
const RANGE_STREAM: &str = "/etcdserverpb.KV/RangeStream";

/// Bytes of an answer in parts, at most. The recorder calls the outcome of a longer one unknown.
const MAX_BYTES: usize = 64 << 20;

/// Whether a layer records the calls of a method.
#[cfg(feature = "proxy")]
pub(crate) fn is_recorded(path: &str) -> bool {
    path == WATCH || path == RANGE_STREAM || is_recorded_call(path)
}

/// Records requests of an etcd client and their answers.
///
/// It wraps any HTTP service with one type of body for requests and answers, such as a channel of tonic. The second
/// argument of [`EtcdLayer::new`] converts a recorded body to that type: `tonic::body::Body::new`. `docs/guide-ci.md`
/// has an example with the crate `etcd-client`.
#[derive(Debug)]
pub struct EtcdLayer<B> {
    client: EtcdClient,
    body: fn(Tapped<B>) -> B,
}

impl<B> EtcdLayer<B> {
    /// A layer that records as this client.
    pub fn new(client: EtcdClient, body: fn(Tapped<B>) -> B) -> Self {
        EtcdLayer { client, body }
    }
}

impl<B> Clone for EtcdLayer<B> {
    fn clone(&self) -> Self {
        EtcdLayer { client: self.client.clone(), body: self.body }
    }
}

impl<B, S> Layer<S> for EtcdLayer<B> {
    type Service = EtcdService<S, B>;

    fn layer(&self, inner: S) -> EtcdService<S, B> {
        EtcdService { inner, layer: self.clone() }
    }
}

/// The service of an [`EtcdLayer`].
#[derive(Debug)]
pub struct EtcdService<S, B> {
    inner: S,
    layer: EtcdLayer<B>,
}

impl<S: Clone, B> Clone for EtcdService<S, B> {
    fn clone(&self) -> Self {
        EtcdService { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S, B> Service<Request<B>> for EtcdService<S, B>
where
    S: Service<Request<B>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Display,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let EtcdLayer { client, body } = self.layer.clone();
        let in_parts = request.uri().path() == RANGE_STREAM;
        let path = if in_parts { RANGE } else { request.uri().path() }.to_owned();
        let exchange = if path == WATCH {
            Exchange::Watches(Arc::new(client.watches()))
        } else if is_recorded_call(&path) {
            Exchange::Call(Arc::new(Mutex::new(Call { client, path, in_parts, sent: None, answer: None })))
        } else {
            let answer = self.inner.call(request);
            return Box::pin(async move { answer.await.map_err(Into::into) });
        };
        let sender = Box::new(Messages { exchange: exchange.clone(), frames: Frames::default(), sends: true });
        let answer = self.inner.call(request.map(|inner| body(Tapped::new(inner, sender))));
        Box::pin(async move {
            let response = match answer.await.map_err(Into::into) {
                Ok(response) => response,
                Err(error) => {
                    exchange.broken(&*error);
                    return Err(error);
                }
            };
            // A status in the headers is the whole answer. Without one, this does nothing.
            exchange.status(response.headers());
            let receiver = Box::new(Messages { exchange, frames: Frames::default(), sends: false });
            Ok(response.map(|inner| body(Tapped::new(inner, receiver))))
        })
    }
}

/// One HTTP request and its answer.
#[derive(Clone)]
enum Exchange {
    Call(Arc<Mutex<Call>>),
    Watches(Arc<EtcdWatches>),
}

struct Call {
    client: EtcdClient,
    path: String,
    /// Whether each message of the answer is a part of it.
    in_parts: bool,
    sent: Option<EtcdCall>,
    /// The message of the answer, which counts once the status is known. The inner `None`: it cannot be decoded.
    answer: Option<Option<Vec<u8>>>,
}

impl Call {
    fn received(&mut self, message: Option<&[u8]>) {
        if !self.in_parts {
            self.answer = Some(message.map(<[u8]>::to_vec));
            return;
        }
        // Protobuf merges messages whose bytes are joined, and the merged parts are the answer to a Range.
        let part = message.and_then(part);
        match (self.answer.get_or_insert_with(|| Some(Vec::new())), part) {
            (Some(whole), Some(part)) if whole.len() + part.len() <= MAX_BYTES => whole.extend_from_slice(part),
            (answer, _) => *answer = None,
        }
    }
}

/// The `RangeResponse` in a `RangeStreamResponse`. `None`: it cannot be decoded.
fn part(message: &[u8]) -> Option<&[u8]> {
    let mut part: &[u8] = &[];
    for field in Fields::of(message) {
        if let (1, response) = field.ok()? {
            part = response.bytes().ok()?;
        }
    }
    Some(part)
}

impl Exchange {
    fn sent(&self, message: Option<&[u8]>) {
        match (self, message) {
            (Exchange::Call(call), message) => {
                let mut call = lock(call);
                let sent = match message {
                    Some(message) => call.client.call(&call.path, message),
                    None => call.client.call_unread(&call.path),
                };
                call.sent = Some(sent);
            }
            (Exchange::Watches(watches), Some(message)) => watches.sent(message),
            (Exchange::Watches(watches), None) => watches.unread(),
        }
    }

    fn received(&self, message: Option<&[u8]>) {
        match (self, message) {
            (Exchange::Call(call), message) => lock(call).received(message),
            (Exchange::Watches(watches), Some(message)) => watches.received(message),
            (Exchange::Watches(watches), None) => watches.failed("a response that cannot be read"),
        }
    }

    /// Reads the status of headers or trailers, if they have one.
    fn status(&self, headers: &HeaderMap) {
        let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let Some(status) = text("grpc-status") else { return };
        let message = decoded(&text("grpc-message").unwrap_or_default());
        match self {
            Exchange::Call(call) => {
                let mut call = lock(call);
                let answer = call.answer.take();
                match (status.as_str(), call.sent.take(), answer) {
                    ("0", Some(sent), Some(Some(answer))) => sent.answer(&answer),
                    // An answer that is missing or cannot be decoded leaves the outcome unknown.
                    ("0", ..) => {}
                    (_, Some(sent), _) => sent.failed(code(&status), &message),
                    (_, None, _) => {}
                }
            }
            Exchange::Watches(watches) if status != "0" => watches.failed(&message),
            Exchange::Watches(_) => {}
        }
    }

    /// The request failed without an answer.
    fn broken(&self, error: &(dyn Error + 'static)) {
        let mut never_sent = false;
        let mut source = Some(error);
        while let Some(error) = source {
            let io = error.downcast_ref::<io::Error>();
            never_sent |= io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            source = error.source();
        }
        match self {
            Exchange::Call(call) => {
                let Some(sent) = lock(call).sent.take() else { return };
                match never_sent {
                    true => sent.never_sent(&error.to_string()),
                    false => sent.failed("Unavailable", &error.to_string()),
                }
            }
            Exchange::Watches(watches) => watches.failed(&error.to_string()),
        }
    }
}

/// Finds the messages in a body.
struct Messages {
    exchange: Exchange,
    frames: Frames,
    sends: bool,
}

impl Tap for Messages {
    fn data(&mut self, bytes: &[u8]) {
        let Messages { exchange, frames, sends } = self;
        frames.push(bytes, |message| if *sends { exchange.sent(message) } else { exchange.received(message) });
    }

    fn trailers(&mut self, trailers: &HeaderMap) {
        if !self.sends {
            self.exchange.status(trailers);
        }
    }

    fn end(self: Box<Self>, end: End<'_>) {
        if let (false, End::Error(text)) = (self.sends, end) {
            match &self.exchange {
                Exchange::Watches(watches) => watches.failed(text),
                Exchange::Call(call) => {
                    if let Some(sent) = lock(call).sent.take() {
                        sent.failed("Unavailable", text);
                    }
                }
            }
        }
    }
}

/// Joins the parts of messages.
#[derive(Default)]
struct Frames {
    rest: Vec<u8>,
}

impl Frames {
    /// Passes each complete message to `take`; `None`: it is compressed.
    fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Option<&[u8]>)) {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(([compressed, a, b, c, d], rest)) = self.rest[at..].split_first_chunk::<5>() {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            let Some(message) = rest.get(..length) else { break };
            take((*compressed == 0).then_some(message));
            at += 5 + length;
        }
        self.rest.drain(..at);
    }
}

/// Decodes a percent-encoded status message.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The name of a gRPC code, in Go's spelling.
fn code(status: &str) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    ];
    status.parse::<usize>().ok().and_then(|at| NAMES.get(at)).copied().unwrap_or("Unknown")
}
