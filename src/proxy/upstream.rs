//! Connections to the server.
//!
//! Each connection of a client has a connection of its own to the server. A client that stops reading then delays no
//! other one.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::time::Duration;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// A body that passes.
pub(super) type Passing = UnsyncBoxBody<Bytes, BoxError>;

/// Connections to the server for one connection of a client.
pub(super) type Upstream<B> = Client<HttpsConnector<HttpConnector>, B>;

const TO_CONNECT: Duration = Duration::from_secs(10);

/// Interval of pings, which find a server that is gone without a word.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Makes connections. Without `http1`, they are HTTP/2, also without TLS.
pub(super) fn connector(
    tls: ClientConfig,
    name: Option<ServerName<'static>>,
    http1: bool,
) -> HttpsConnector<HttpConnector> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(TO_CONNECT));
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = name {
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    match http1 {
        true => builder.enable_all_versions().wrap_connector(tcp),
        false => builder.enable_http2().wrap_connector(tcp),
    }
}

/// An error with its causes.
pub(super) fn words(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The settings of a client's connections to the server.
pub(super) fn settings() -> Builder {
    let mut settings = Client::builder(TokioExecutor::new());
    settings
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(KEEP_ALIVE);
    settings
}
