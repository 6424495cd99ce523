//! The address of a proxy, and its connections.

use super::upstream::Passing;
use super::{Caller, TO_FINISH, until};
use anyhow::{Context, bail};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Wait after an error of `accept`, such as too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(50);

/// The address that a proxy listens on.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// Address and port; port 0 is any free one.
    pub address: SocketAddr,
    /// Whether other hosts may reach it.
    pub other_hosts: bool,
}

impl Listening {
    /// Listens. Refuses an address that other hosts reach, unless the user allows it.
    pub(super) async fn bind(self) -> anyhow::Result<TcpListener> {
        let address = self.address;
        if !address.ip().is_loopback() && !self.other_hosts {
            bail!(
                "expected a loopback address such as 127.0.0.1:{}, found {address}: other hosts reach it, and the proxy \
                 lends them its credentials; add --allow-other-hosts if you want that",
                address.port()
            );
        }
        TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))
    }
}

/// Serves connections until the caller stops. Then requests in progress get [`TO_FINISH`].
pub(super) async fn serve<S>(
    listener: TcpListener,
    http: Builder<TokioExecutor>,
    caller: Caller<'_>,
    each: impl Fn() -> S,
) where
    S: Service<Request<Incoming>, Response = Response<Passing>, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let (ending, ended) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stopped = pin!(until(caller.stopped));
    loop {
        tokio::select! {
            () = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, http.clone(), each(), ended.clone()));
                }
                Err(_) => tokio::time::sleep(AFTER_ERROR).await,
            },
        }
    }
    drop(listener);
    let _ = ending.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(TO_FINISH, all).await;
    // What is still open ends here. Dropped bodies write the end of their watches.
    connections.shutdown().await;
}

/// One connection of a client. An error of it concerns the client alone, which sees it.
async fn connection<S>(stream: TcpStream, http: Builder<TokioExecutor>, service: S, mut ended: watch::Receiver<bool>)
where
    S: Service<Request<Incoming>, Response = Response<Passing>, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let _ = stream.set_nodelay(true);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ended.wait_for(|ended| *ended) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
