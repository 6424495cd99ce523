//! A proxy of HTTP in front of an API server of Kubernetes. It lends clients the credentials of a kubeconfig.

use super::clients::{self, Captures, Who};
use super::identity;
use super::kube_server::{KubeServer, Whole};
use super::kubeconfig;
use super::listener::{self, Listening};
use super::refusal::{Refusal, refused};
use super::tally::{Summary, Tally};
use super::upstream::{self, BoxError, Passing};
use super::{Caller, TO_DROP, runtime};
use crate::ingest::fields::Fields;
use crate::record::{KubeLayer, is_recorded_request};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tower_layer::Layer;
use tower_service::Service;

/// Longest body of a request, in bytes. API servers accept a few MiB.
const MAX_BYTES: usize = 64 << 20;

/// The path before a client's name.
const CLIENT: &str = "/client/";

/// Settings of a proxy in front of an API server.
#[derive(Clone, Debug)]
pub struct KubeProxy {
    /// The kubeconfig.
    pub kubeconfig: PathBuf,
    /// Its context; by default the current one.
    pub context: Option<String>,
    /// Its own address.
    pub listen: Listening,
    /// The name of all clients. By default the path or the User-Agent tells clients apart.
    pub client: Option<String>,
    /// The user, as the audit log names it. By default the server is asked.
    pub user: Option<String>,
    /// The name of the clock. By default no other recording has it.
    pub clock: Option<String>,
    /// The fields of objects to keep.
    pub fields: Arc<Fields>,
    /// The folder of the captures.
    pub output: PathBuf,
}

impl KubeProxy {
    /// Runs until the caller stops it.
    ///
    /// # Errors
    /// If a setting is wrong, the server cannot be reached, or the address is in use.
    pub fn run(&self, caller: Caller<'_>) -> anyhow::Result<Summary> {
        let access = Arc::new(kubeconfig::read(&self.kubeconfig, self.context.as_deref())?);
        let connector = upstream::connector(access.pem.config()?, access.server_name.clone(), true);
        let runtime = runtime()?;
        let listener = runtime.block_on(self.listen.bind())?;
        let server = KubeServer::new(Arc::clone(&access), upstream::settings().build(connector.clone()));
        let user = match &self.user {
            Some(user) => user.clone(),
            None => runtime.block_on(identity::user(server, caller))?,
        };
        let captures = Captures::new(self.output.clone(), self.clock.clone())?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            captures,
            server: access,
            connector,
            user,
            fixed: self.client.clone(),
            fields: Arc::clone(&self.fields),
            local: !self.listen.other_hosts,
            connections: AtomicU64::new(0),
            tally: Tally::default(),
        });
        let output = self.output.display();
        (caller.tell)(&format!(
            "recording http://{address} as {:?} into {output}; processes that run at once need names: \
             http://{address}{CLIENT}NAME; Ctrl-C ends it",
            shared.user
        ));
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().auto_date_header(false);
        http.http2()
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .adaptive_window(true)
            .max_concurrent_streams(None);
        runtime.block_on(listener::serve(listener, http, caller, || Connection::new(&shared)));
        // Tasks of connections to the server hold bodies.
        runtime.shutdown_timeout(TO_DROP);
        Ok(shared.tally.summary("request", shared.captures.error()))
    }
}

/// What all connections share.
struct Shared {
    captures: Captures,
    server: Arc<kubeconfig::Access>,
    connector: HttpsConnector<HttpConnector>,
    user: String,
    fixed: Option<String>,
    fields: Arc<Fields>,
    /// Whether only this host may reach the proxy.
    local: bool,
    connections: AtomicU64,
    tally: Tally,
}

/// One connection of a client.
#[derive(Clone)]
struct Connection {
    own: Arc<Own>,
    server: KubeServer,
}

/// Closes the captures of a connection with it.
struct Own {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.shared.captures.close(self.number);
    }
}

impl Connection {
    fn new(shared: &Arc<Shared>) -> Connection {
        let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let http = upstream::settings().build(shared.connector.clone());
        let server = KubeServer::new(Arc::clone(&shared.server), http);
        Connection { own: Arc::new(Own { shared: Arc::clone(shared), number }), server }
    }

    async fn answer(mut self, request: Request<Incoming>) -> Response<Passing> {
        let shared = Arc::clone(&self.own.shared);
        match self.pass(request).await {
            Ok(response) => response,
            Err(refusal) => {
                if !matches!(refusal, Refusal::Server(_)) {
                    shared.tally.refused.add();
                }
                refused(&refusal)
            }
        }
    }

    async fn pass(&mut self, request: Request<Incoming>) -> Result<Response<Passing>, Refusal> {
        let shared = &self.own.shared;
        admit(&request, shared.local)?;
        let (mut parts, body) = request.into_parts();
        let name = take_name(&mut parts.uri)?;
        let who = self.who(name, &parts.headers);
        prefer_what_is_read(&mut parts.headers);
        let body = Limited::new(body, MAX_BYTES).collect().await.map_err(|_| Refusal::Body)?.to_bytes();
        let request: Request<Whole> = Request::from_parts(parts, Full::new(body));
        let is_recorded = is_recorded_request(&request);
        let capture = if is_recorded { shared.captures.of(&who) } else { None };
        match (capture, is_recorded) {
            (Some(capture), _) => {
                shared.tally.recorded.add();
                let layer = KubeLayer::new(capture, |body: &Whole| Some(body.clone()));
                let layer = layer.keeping(Arc::clone(&shared.fields));
                let answer = layer.layer(self.server.clone()).call(request).await;
                Ok(answer.map_err(Refusal::Server)?.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            }
            (None, missed) => {
                if missed { &shared.tally.missed } else { &shared.tally.passed }.add();
                let answer = self.server.call(request).await;
                Ok(answer.map_err(Refusal::Server)?.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            }
        }
    }

    /// The client of a request. A request that impersonates a user is that user's.
    fn who(&self, name: Option<String>, headers: &HeaderMap) -> Who {
        let shared = &self.own.shared;
        let other = headers.get("impersonate-user").map(|user| String::from_utf8_lossy(user.as_bytes()));
        let user = other.as_deref().unwrap_or(&shared.user);
        match name.as_deref().or(shared.fixed.as_deref()) {
            Some(name) => Who::named(name, user),
            None => Who::by_agent(clients::agent(headers), user, self.own.number),
        }
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

/// Refuses requests that must not get the credentials, and those that no proxy of single requests can pass.
fn admit<B>(request: &Request<B>, local: bool) -> Result<(), Refusal> {
    let headers = request.headers();
    // A page in a browser can send requests to this host, also under a name of its own.
    let is_of_browser = ["origin", "sec-fetch-site"].iter().any(|name| headers.contains_key(*name));
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(host).unwrap_or_default();
    if is_of_browser || (local && !is_local(host)) {
        return Err(Refusal::Stranger);
    }
    let connection = headers.get_all(header::CONNECTION).iter();
    let asks = connection.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    let upgrades = asks.map(str::trim).any(|word| word.eq_ignore_ascii_case("upgrade"));
    if upgrades || headers.contains_key(header::UPGRADE) || request.method() == Method::CONNECT {
        return Err(Refusal::Upgrade);
    }
    if headers.contains_key(header::AUTHORIZATION) {
        return Err(Refusal::Credentials);
    }
    Ok(())
}

/// Whether a host, with or without port, is this one.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default();
    let address: Option<std::net::IpAddr> = name.parse().ok();
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

/// Takes the name of a client out of a path: `/client/NAME/api/v1/pods`.
fn take_name(uri: &mut Uri) -> Result<Option<String>, Refusal> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let Some(rest) = path.strip_prefix(CLIENT) else { return Ok(None) };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if !clients::is_name(name) {
        return Err(Refusal::Name);
    }
    let (name, rest) = (name.to_owned(), if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") });
    *uri = rest.parse().map_err(|_| Refusal::Name)?;
    Ok(Some(name))
}

/// Leaves JSON and CBOR as the only accepted content, if the client accepts one of them and others that the recorder does
/// not read.
fn prefer_what_is_read(headers: &mut HeaderMap) {
    let accepted = headers.get_all(header::ACCEPT).iter().map(|value| value.to_str().unwrap_or_default());
    let accepted: Vec<&str> = accepted.flat_map(|value| value.split(',')).map(str::trim).collect();
    let is_read = |kind: &&&str| {
        let kind = kind.to_ascii_lowercase();
        ["application/json", "application/cbor"].iter().any(|read| kind.starts_with(read))
    };
    let read: Vec<&str> = accepted.iter().filter(is_read).copied().collect();
    if read.is_empty() || read.len() == accepted.len() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&read.join(", ")) {
        headers.insert(header::ACCEPT, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn admitted(headers: &[(&str, &str)], local: bool) -> Option<Refusal> {
        let mut request = Request::builder().uri("/api/v1/pods");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        admit(&request.body(Bytes::new()).unwrap(), local).err()
    }

    #[test]
    fn only_programs_on_this_host_get_the_credentials() {
        for host in ["localhost", "LOCALHOST:8001", "127.0.0.1:8001", "127.9.9.9", "[::1]:8001", "[::1]"] {
            assert!(admitted(&[("host", host)], true).is_none(), "{host}");
        }
        for host in ["example.com:8001", "localhost.example.com", "10.0.0.1:8001", "[fe80::1]:80", ""] {
            assert!(matches!(admitted(&[("host", host)], true), Some(Refusal::Stranger)), "{host}");
            assert!(admitted(&[("host", host)], false).is_none(), "{host}");
        }
        assert!(matches!(admitted(&[], true), Some(Refusal::Stranger)));
        for header in ["origin", "sec-fetch-site"] {
            let found = admitted(&[("host", "localhost"), (header, "null")], false);
            assert!(matches!(found, Some(Refusal::Stranger)), "{header}");
        }
    }

    #[test]
    fn upgrades_and_credentials_of_the_client_are_refused() {
        let of = |name, value| admitted(&[("host", "localhost"), (name, value)], true);
        assert!(matches!(of("connection", "keep-alive, Upgrade"), Some(Refusal::Upgrade)));
        assert!(matches!(of("upgrade", "SPDY/3.1"), Some(Refusal::Upgrade)));
        assert!(matches!(of("authorization", "Bearer t"), Some(Refusal::Credentials)));
        assert!(of("connection", "keep-alive").is_none());
    }

    #[test]
    fn a_path_may_name_the_client() {
        let taken = |path: &str| {
            let mut uri: Uri = path.parse().unwrap();
            take_name(&mut uri).map(|name| (name, uri.to_string())).map_err(|_| ())
        };
        let named = |name: &str, path: &str| Ok((Some(name.to_owned()), path.to_owned()));
        assert_eq!(taken("/client/a-1/api/v1/pods?watch=1"), named("a-1", "/api/v1/pods?watch=1"));
        assert_eq!(taken("/client/a"), named("a", "/"));
        assert_eq!(taken("/client/a?x=1"), named("a", "/?x=1"));
        assert_eq!(taken("/api/v1/pods"), Ok((None, "/api/v1/pods".to_owned())));
        for path in ["/client/", "/client//api", "/client/..%2f/api", "/client/../api", "/client/a%20b/api"] {
            assert_eq!(taken(path), Err(()), "{path}");
        }
    }

    #[test]
    fn content_that_the_recorder_reads_is_preferred() {
        for (asked, passed) in [
            ("application/vnd.kubernetes.protobuf,application/json", "application/json"),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            ),
            ("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"),
            ("application/cbor, application/json;q=0.9, */*", "application/cbor, application/json;q=0.9"),
            ("*/*", "*/*"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, asked.parse().unwrap());
            prefer_what_is_read(&mut headers);
            assert_eq!(headers[header::ACCEPT], passed);
        }
    }
}
