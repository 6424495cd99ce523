//! The API server behind a proxy, as a service. It adds the credentials to each request.

use super::kubeconfig::Access;
use super::upstream::{Upstream, words};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Parts, PathAndQuery};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A body that is in memory.
pub(super) type Whole = Full<Bytes>;

/// Headers about one connection. `Content-Length` follows from the body.
const OF_CONNECTIONS: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The server, for one connection of a client.
#[derive(Clone)]
pub(super) struct KubeServer {
    access: Arc<Access>,
    http: Upstream<Whole>,
}

impl KubeServer {
    pub(super) fn new(access: Arc<Access>, http: Upstream<Whole>) -> KubeServer {
        KubeServer { access, http }
    }

    /// The server's address, for messages.
    pub(super) fn address(&self) -> &Uri {
        &self.access.server
    }

    fn send(&self, mut request: Request<Whole>) -> Result<Request<Whole>, String> {
        let server = &self.access.server;
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let path = format!("{}{path}", server.path().trim_end_matches('/'));
        let mut parts = Parts::default();
        (parts.scheme, parts.authority) = (server.scheme().cloned(), server.authority().cloned());
        parts.path_and_query = Some(path.parse().map_err(|_| "the path is no path".to_owned())?);
        *request.uri_mut() = Uri::from_parts(parts).map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        remove_those_of_connections(headers);
        let token = self.access.credentials.header().map_err(|error| format!("the token file: {error}"))?;
        if let Some(token) = token {
            let mut token = HeaderValue::from_str(&token).map_err(|_| "the token is no text of a header".to_owned())?;
            token.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, token);
        }
        if !headers.contains_key("impersonate-user") {
            for (name, value) in &self.access.impersonated {
                let value = HeaderValue::from_str(value).map_err(|_| format!("{name} is no text of a header"))?;
                headers.append(HeaderName::from_static(name), value);
            }
        }
        Ok(request)
    }
}

impl Service<Request<Whole>> for KubeServer {
    type Response = Response<Incoming>;
    /// Why there is no answer.
    type Error = String;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, String>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), String>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Whole>) -> Self::Future {
        let sent = self.send(request).map(|request| self.http.request(request));
        Box::pin(async move {
            let mut response = sent?.await.map_err(|error| words(&error))?;
            let length = response.headers().get(header::CONTENT_LENGTH).cloned();
            remove_those_of_connections(response.headers_mut());
            response.headers_mut().extend(length.map(|length| (header::CONTENT_LENGTH, length)));
            Ok(response)
        })
    }
}

fn remove_those_of_connections(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_CONNECTIONS {
        headers.remove(name);
    }
}
