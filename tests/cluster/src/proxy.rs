//! A proxy between an API server and etcd that can hold watch responses.
//!
//! It reads HTTP/2, since an API server sends watches and other calls over the same connections. Only watch responses
//! are held; reads, writes and leases pass.

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// A flow-control window larger than any answer of a small cluster.
const WINDOW: u32 = 64 << 20;

/// The proxy. It ends with its runtime.
pub struct Proxy {
    pub address: SocketAddr,
    held: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Listens on a free port.
    pub async fn start(etcd: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (held, gate) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let gate = gate.clone();
                // Its two ends handle a broken connection.
                tokio::spawn(async move { serve(connection, etcd, gate).await.ok() });
            }
        });
        Ok(Proxy { address, held: Arc::new(held) })
    }

    /// Holds watch responses from now on.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    /// Sends the held responses in order, and holds no more.
    pub fn release(&self) {
        self.held.send_replace(false);
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn serve(connection: TcpStream, etcd: SocketAddr, gate: watch::Receiver<bool>) -> Result<(), Failure> {
    connection.set_nodelay(true)?;
    let upstream = TcpStream::connect(etcd).await?;
    upstream.set_nodelay(true)?;
    let mut client = h2::client::Builder::new();
    client.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let (sender, upstream) = client.handshake::<_, Bytes>(upstream).await?;
    let upstream = tokio::spawn(upstream);
    let mut server = h2::server::Builder::new();
    server.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let mut server = server.handshake::<_, Bytes>(connection).await?;
    while let Some(accepted) = server.accept().await {
        let (request, respond) = accepted?;
        tokio::spawn(relay(request, respond, sender.clone(), gate.clone()));
    }
    upstream.abort();
    Ok(())
}

/// Relays one call.
async fn relay(
    request: Request<RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    sender: h2::client::SendRequest<Bytes>,
    gate: watch::Receiver<bool>,
) -> Result<(), h2::Error> {
    let gate = (request.uri().path() == WATCH).then_some(gate);
    let (head, body) = request.into_parts();
    let (response, upward) = sender.ready().await?.send_request(Request::from_parts(head, ()), false)?;
    let asking = tokio::spawn(pump(body, upward, None));
    let response = match response.await {
        Ok(response) => response,
        Err(error) => {
            respond.send_reset(error.reason().unwrap_or(Reason::INTERNAL_ERROR));
            return Err(error);
        }
    };
    let (head, body) = response.into_parts();
    let ends = body.is_end_stream();
    let downward = respond.send_response(Response::from_parts(head, ()), ends)?;
    if !ends {
        pump(body, downward, gate).await;
    }
    asking.abort();
    Ok(())
}

/// Relays the messages of one direction. With a gate, each waits until it opens.
async fn pump(mut from: RecvStream, mut to: SendStream<Bytes>, mut gate: Option<watch::Receiver<bool>>) {
    while let Some(data) = from.data().await {
        let Ok(data) = data else { return to.send_reset(Reason::CANCEL) };
        if let Some(gate) = &mut gate
            && gate.wait_for(|held| !held).await.is_err()
        {
            return to.send_reset(Reason::CANCEL);
        }
        let length = data.len();
        if to.send_data(data, false).is_err() || from.flow_control().release_capacity(length).is_err() {
            return to.send_reset(Reason::CANCEL);
        }
    }
    // An error here means that the other side has closed.
    let _ = match from.trailers().await {
        Ok(Some(trailers)) => to.send_trailers(trailers),
        Ok(None) => to.send_data(Bytes::new(), true),
        Err(_) => return to.send_reset(Reason::CANCEL),
    };
}
