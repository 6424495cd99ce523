//! A proxy of gRPC in front of etcd. It passes every method, and records those that read or may change keys.

use super::clients::{self, MAX_CLIENTS};
use super::listener::{self, Listening};
use super::tally::{Summary, Tally};
use super::tls::Files;
use super::upstream::{self, BoxError, Passing, Upstream, words};
use super::{Caller, TO_DROP, runtime};
use crate::record::{EtcdLayer, EtcdRecorder, is_recorded};
use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Settings of a proxy in front of etcd.
#[derive(Clone, Debug)]
pub struct EtcdProxy {
    /// Members, such as `http://127.0.0.1:2379`. A connection of a client is to one of them.
    pub endpoints: Vec<String>,
    /// Its own address.
    pub listen: Listening,
    /// The name of all clients. By default a client is a User-Agent.
    pub client: Option<String>,
    /// TLS towards etcd.
    pub tls: Files,
    /// The folder of the recording, which must be empty or not exist.
    pub output: PathBuf,
}

impl EtcdProxy {
    /// Runs until the caller stops it.
    ///
    /// # Errors
    /// If a setting is wrong, the folder is not empty, or the address is in use.
    pub fn run(&self, caller: Caller<'_>) -> anyhow::Result<Summary> {
        let members = members(&self.endpoints)?;
        let tls = self.tls.read()?.config()?;
        let runtime = runtime()?;
        let listener = runtime.block_on(self.listen.bind())?;
        let recorder = EtcdRecorder::in_folder(&self.output)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            recorder,
            fixed: self.client.clone(),
            members,
            next: AtomicUsize::new(0),
            connector: upstream::connector(tls, None, false),
            names: Mutex::default(),
            tally: Tally::default(),
        });
        (caller.tell)(&format!("recording http://{address} into {}; Ctrl-C ends it", self.output.display()));
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().auto_date_header(false);
        http.http2()
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .adaptive_window(true)
            .max_concurrent_streams(None)
            .max_header_list_size(1 << 20);
        let each = || Connection::new(Arc::clone(&shared));
        runtime.block_on(listener::serve(listener, http, caller, each));
        // Tasks of connections to etcd hold bodies.
        runtime.shutdown_timeout(TO_DROP);
        Ok(shared.tally.summary("call", shared.recorder.error()))
    }
}

/// A member's address.
#[derive(Clone, Debug)]
struct Member {
    scheme: Scheme,
    authority: Authority,
}

fn members(endpoints: &[String]) -> anyhow::Result<Vec<Member>> {
    let read = |text: &String| {
        let expected = || format!("expected an endpoint such as http://127.0.0.1:2379, found {text}");
        let text = if text.contains("://") { text.clone() } else { format!("http://{text}") };
        let Parts { scheme, authority, path_and_query, .. } = text.parse::<Uri>().with_context(expected)?.into_parts();
        let (Some(scheme), Some(authority)) = (scheme, authority) else { bail!(expected()) };
        let is_bare = path_and_query.is_none_or(|path| path == "/");
        if !is_bare || !matches!(scheme.as_str(), "http" | "https") {
            bail!(expected());
        }
        Ok(Member { scheme, authority })
    };
    let members: Vec<Member> = endpoints.iter().map(read).collect::<Result<_, _>>()?;
    if members.is_empty() { Err(anyhow!("expected an endpoint, found none")) } else { Ok(members) }
}

/// What all connections share.
struct Shared {
    recorder: EtcdRecorder,
    fixed: Option<String>,
    members: Vec<Member>,
    /// The member of the next connection.
    next: AtomicUsize,
    connector: HttpsConnector<HttpConnector>,
    names: Mutex<BTreeSet<String>>,
    tally: Tally,
}

impl Shared {
    /// The client of a request; `None` if there are too many.
    fn client(&self, headers: &HeaderMap) -> Option<String> {
        let name = self.fixed.clone().unwrap_or_else(|| clients::agent(headers));
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(&name) {
            if names.len() >= MAX_CLIENTS {
                return None;
            }
            names.insert(name.clone());
        }
        Some(name)
    }
}

/// One connection of a client.
#[derive(Clone)]
struct Connection {
    shared: Arc<Shared>,
    channel: Channel,
}

impl Connection {
    fn new(shared: Arc<Shared>) -> Connection {
        let at = shared.next.fetch_add(1, Ordering::Relaxed);
        let http = upstream::settings().http2_only(true).build(shared.connector.clone());
        let channel = Channel { shared: Arc::clone(&shared), http, at: Arc::new(AtomicUsize::new(at)) };
        Connection { shared, channel }
    }

    async fn answer(self, request: Request<Incoming>) -> Response<Passing> {
        let Connection { shared, mut channel } = self;
        if request.version() != Version::HTTP_2 {
            shared.tally.refused.add();
            return refusal();
        }
        let path = request.uri().path();
        let is_recorded = is_recorded(path);
        let client = shared.client(request.headers());
        let request = request.map(|body| body.map_err(BoxError::from).boxed_unsync());
        let answer = match client.filter(|_| is_recorded) {
            Some(name) => {
                shared.tally.recorded.add();
                EtcdLayer::new(shared.recorder.client(&name), Passing::new).layer(channel).call(request).await
            }
            None => {
                if is_recorded { &shared.tally.missed } else { &shared.tally.passed }.add();
                channel.call(request).await.map_err(Into::into)
            }
        };
        answer.unwrap_or_else(|error| unavailable(&*error))
    }
}

impl HyperService<Request<Incoming>> for Connection {
    type Response = Response<Passing>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Passing>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let answer = self.clone().answer(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

/// The connection to one member. After a failure to connect, the next request goes to the next member.
#[derive(Clone)]
struct Channel {
    shared: Arc<Shared>,
    http: Upstream<Passing>,
    at: Arc<AtomicUsize>,
}

impl Service<Request<Passing>> for Channel {
    type Response = Response<Passing>;
    type Error = hyper_util::client::legacy::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Passing>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Passing>) -> Self::Future {
        let at = self.at.load(Ordering::Relaxed);
        let member = &self.shared.members[at % self.shared.members.len()];
        let mut parts = Parts::default();
        parts.scheme = Some(member.scheme.clone());
        parts.authority = Some(member.authority.clone());
        let path = request.uri().path_and_query().cloned();
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        // The parts are those of valid addresses.
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
        let (next, answer) = (Arc::clone(&self.at), self.http.request(request));
        Box::pin(async move {
            let answer = answer.await;
            if answer.as_ref().is_err_and(hyper_util::client::legacy::Error::is_connect) {
                // Of many requests that failed at once, one moves on.
                let _ = next.compare_exchange(at, at + 1, Ordering::Relaxed, Ordering::Relaxed);
            }
            Ok(answer?.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        })
    }
}

/// The answer if etcd gave none: gRPC's Unavailable, as a client without a proxy would see it.
fn unavailable(error: &dyn std::error::Error) -> Response<Passing> {
    let printable = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let text: String = words(error).chars().map(printable).map(|c| if c == '%' { '?' } else { c }).collect();
    let mut response = Response::new(Empty::<Bytes>::new().map_err(BoxError::from).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static("14"));
    headers.extend(HeaderValue::from_str(&text).ok().map(|text| (http::HeaderName::from_static("grpc-message"), text)));
    response
}

/// The answer to a request that is no gRPC.
fn refusal() -> Response<Passing> {
    let text = "retrograde record etcd passes gRPC over HTTP/2 only, not etcd's JSON gateway or its metrics; ask etcd itself\n";
    let mut response =
        Response::new(Full::new(Bytes::from_static(text.as_bytes())).map_err(BoxError::from).boxed_unsync());
    *response.status_mut() = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
    response
}
