//! A tower layer between a Kubernetes client and its connection, which writes a capture.
//!
//! A request is recorded before it is sent. An answer that cannot be read is recorded without its body, and its watch
//! stays open, so that no event counts as absent.

use super::body::{End, Tap, Tapped};
use super::content::{Content, Encoding};
use super::media::{Events, Media};
use super::reduction::Reduction;
use crate::assertion::{Capture, Exchange};
use crate::history::{Verb, request};
use crate::ingest::fields::Fields;
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use serde_json::Value;
use std::fmt::Display;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tower_layer::Layer;
use tower_service::Service;

/// Longest body, or line of a watch, in bytes. A longer one is left out of the recorded answer.
const MAX_BYTES: usize = 64 << 20;

/// Records requests of a Kubernetes client and their answers, as a [`Capture`].
///
/// It wraps any HTTP service, such as the client of kube-rs. The second argument of [`KubeLayer::new`] copies a
/// request body that is in memory: `kube::client::Body::try_clone`. `docs/guide-ci.md` has an example. A request is
/// recorded before it is sent; a body that cannot be copied is not recorded.
///
/// Bodies are reduced to the identity of objects and the fields that the shipped declarations name; Secrets to their
/// identity. Requests for tokens, and those that upgrade the connection (exec, attach, port-forward, proxy), are not
/// recorded. Bodies are JSON or CBOR. An answer in protobuf or in an unknown encoding is recorded without its body, and
/// [`Capture::error`] reports it.
#[derive(Debug)]
pub struct KubeLayer<B> {
    capture: Capture,
    fields: Arc<Fields>,
    copy: fn(&B) -> Option<B>,
}

impl<B> KubeLayer<B> {
    /// A layer that writes into a capture.
    pub fn new(capture: Capture, copy: fn(&B) -> Option<B>) -> Self {
        KubeLayer { capture, fields: crate::read_options().fields, copy }
    }

    /// Keeps these fields of bodies instead of those of the shipped declarations. Each object names the kept paths
    /// (`recordedFields`). A rule that reads further paths of a resource gets no evidence from this capture.
    pub fn keeping(mut self, fields: Arc<Fields>) -> Self {
        self.fields = fields;
        self
    }
}

impl<B> Clone for KubeLayer<B> {
    fn clone(&self) -> Self {
        KubeLayer { capture: self.capture.clone(), fields: Arc::clone(&self.fields), copy: self.copy }
    }
}

impl<B, S> Layer<S> for KubeLayer<B> {
    type Service = KubeService<S, B>;

    fn layer(&self, inner: S) -> KubeService<S, B> {
        KubeService { inner, layer: self.clone() }
    }
}

/// The service of a [`KubeLayer`].
#[derive(Debug)]
pub struct KubeService<S, B> {
    inner: S,
    layer: KubeLayer<B>,
}

impl<S: Clone, B> Clone for KubeService<S, B> {
    fn clone(&self) -> Self {
        KubeService { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for KubeService<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Display,
    S::Future: Send + 'static,
    B: Body,
    R: Body<Data = Bytes>,
    R::Error: Display,
{
    type Response = Response<Tapped<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Tapped<R>>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let KubeLayer { capture, fields, copy } = &self.layer;
        let Some(asked) = Asked::of(&request, fields) else {
            let answer = self.inner.call(request);
            return Box::pin(async move { Ok(answer.await?.map(Tapped::plain)) });
        };
        let body = copy(request.body()).and_then(whole);
        let media = Media::of(header(request.headers(), "content-type"));
        let body = body.and_then(|body| media.unwrap_or(Media::Json).value(&body));
        let body = body.map(|body| asked.reduction.apply(&body));
        let exchange = capture.request(request.method().as_str(), &asked.uri, body.as_ref());
        let capture = capture.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            match answer.await {
                Ok(response) => {
                    let receiver = Receiver::new(capture, asked, exchange, response.status(), response.headers());
                    Ok(response.map(|inner| Tapped::new(inner, receiver)))
                }
                Err(error) => {
                    exchange.error(&error.to_string());
                    Err(error)
                }
            }
        })
    }
}

/// Whether a layer records a request.
#[cfg(feature = "proxy")]
pub(crate) fn is_recorded_request<B>(request: &Request<B>) -> bool {
    Asked::of(request, &Fields::default()).is_some()
}

/// The text of a header; empty if it is missing.
fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The bytes of a body that is in memory.
fn whole<B: Body>(body: B) -> Option<Vec<u8>> {
    let mut body = pin!(body);
    let mut context = Context::from_waker(Waker::noop());
    let mut bytes = Vec::new();
    loop {
        match body.as_mut().poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => {
                let Ok(mut data) = frame.into_data() else { continue };
                while data.has_remaining() {
                    let chunk = data.chunk();
                    bytes.extend_from_slice(chunk);
                    data.advance(chunk.len());
                }
            }
            Poll::Ready(None) => return Some(bytes).filter(|bytes| !bytes.is_empty()),
            Poll::Ready(Some(Err(_))) | Poll::Pending => return None,
        }
    }
}

/// The recorded part of a request.
struct Asked {
    uri: String,
    watch: bool,
    reduction: Reduction,
}

impl Asked {
    /// `None`: a request that concerns no objects.
    fn of<B>(request: &Request<B>, fields: &Fields) -> Option<Asked> {
        let uri = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let line = request::parse(&uri)?;
        let review = matches!(&*line.group, "authentication.k8s.io" | "authorization.k8s.io");
        let connection = matches!(&*line.subresource, "exec" | "attach" | "portforward" | "proxy" | "log" | "token");
        let verb = request::verb_of(request.method().as_str(), &line);
        if line.plural.is_empty() || review || connection || verb == Verb::Other {
            return None;
        }
        let reduction = Reduction::of(fields, &line.plural, &line.group);
        Some(Asked { uri, watch: verb == Verb::Watch, reduction })
    }
}

/// Records one answer.
struct Receiver {
    capture: Capture,
    exchange: Exchange,
    reduction: Reduction,
    status: u16,
    audit_id: String,
    media: Media,
    /// `None`: the body cannot be decoded, or no longer.
    content: Option<Content>,
    /// Decoded bytes not yet recorded: a body, or the beginning of an event.
    rest: Vec<u8>,
    /// The events of a watch.
    watch: Option<Events>,
}

impl Receiver {
    fn new(
        capture: Capture,
        asked: Asked,
        mut exchange: Exchange,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Box<Receiver> {
        let (kind, encoding) = (header(headers, "content-type"), header(headers, "content-encoding"));
        let audit_id = header(headers, "audit-id").to_owned();
        let media = Media::of(kind);
        let content = Encoding::of(encoding).filter(|_| media.is_some()).map(Content::new);
        let media = media.unwrap_or(Media::Json);
        let watch = (asked.watch && status.is_success()).then(|| media.events());
        if content.is_none() {
            capture.note(format!(
                "expected JSON or CBOR in the answer to {}, found {kind} {encoding}; its body is not recorded",
                asked.uri
            ));
        } else if watch.is_some() {
            // The stream begins. If no event can be read, the request stays without an answer.
            exchange.response(status.as_u16(), &audit_id, None::<&Value>);
        }
        Box::new(Receiver {
            capture,
            exchange,
            reduction: asked.reduction,
            status: status.as_u16(),
            audit_id,
            media,
            content,
            rest: Vec::new(),
            watch,
        })
    }

    /// Records the complete events of a watch.
    fn events(&mut self) {
        let Some(events) = &mut self.watch else { return };
        let mut at = 0;
        loop {
            let event = match events.end(&self.rest[at..]) {
                Ok(None) => break,
                Ok(Some(length)) => {
                    let event = &self.rest[at..at + length];
                    at += length;
                    if self.media == Media::Json && event.trim_ascii().is_empty() {
                        continue;
                    }
                    self.media.value(event)
                }
                Err(_) => None,
            };
            let Some(event) = event else {
                self.give_up(
                    "expected a watch event as JSON or CBOR, found other content; the rest of the watch is not recorded",
                );
                return;
            };
            self.exchange.event(&self.reduction.event(&event));
        }
        self.rest.drain(..at);
    }

    /// Stops recording this answer. It stays open, so that no event counts as absent.
    fn give_up(&mut self, why: &str) {
        self.capture.note(why.to_owned());
        self.content = None;
        self.rest = Vec::new();
    }
}

impl Tap for Receiver {
    fn data(&mut self, bytes: &[u8]) {
        let Some(content) = &mut self.content else { return };
        if !content.decode(bytes, &mut self.rest) {
            self.give_up("expected an answer in its stated encoding, found damaged content; its body is not recorded");
        } else {
            self.events();
        }
        if self.rest.len() > MAX_BYTES {
            self.give_up("expected an answer or event of at most 64 MiB, found a longer one; its body is not recorded");
        }
    }

    fn end(self: Box<Self>, end: End<'_>) {
        let Receiver { capture, mut exchange, reduction, status, audit_id, media, content, mut rest, watch } = *self;
        let watch = watch.is_some();
        match end {
            // The delivered events are unknown, so the watch stays open.
            _ if watch && content.is_none() => {}
            End::Eof if watch => exchange.end(),
            End::Dropped if watch => exchange.close(),
            // The rest is unknown; a client treats such an answer as none.
            End::Error(why) => exchange.error(why),
            End::Dropped => exchange.response(status, &audit_id, None::<&Value>),
            End::Eof => {
                let last = content.and_then(Content::finish);
                let readable = last.is_some();
                rest.extend(last.unwrap_or_default());
                let body = media.value(&rest).filter(|_| readable).map(|body| reduction.apply(&body));
                if body.is_none() && readable && !rest.trim_ascii().is_empty() {
                    capture.note("expected a body as JSON or CBOR, found other content; it is not recorded".to_owned());
                }
                exchange.response(status, &audit_id, body.as_ref());
            }
        }
    }
}
