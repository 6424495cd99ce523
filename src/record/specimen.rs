//! HTTP bodies and a runtime for tests.

use super::body::Tapped;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// A body of one erased type, like that of a client's channel.
pub(super) struct Boxed(pub Pin<Box<dyn Body<Data = Bytes, Error = io::Error> + Send>>);

impl Boxed {
    pub(super) fn tapped(body: Tapped<Boxed>) -> Boxed {
        Boxed(Box::pin(body))
    }
}

impl Body for Boxed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.as_mut().poll_frame(context)
    }
}

/// A body of pieces. `None` among them: the connection breaks.
pub(super) struct Pieces(pub VecDeque<Option<Frame<Bytes>>>);

impl Clone for Pieces {
    fn clone(&self) -> Self {
        let copy = |frame: &Frame<Bytes>| match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) => Frame::data(data.clone()),
            (None, trailers) => Frame::trailers(trailers.cloned().unwrap_or_default()),
        };
        Pieces(self.0.iter().map(|frame| frame.as_ref().map(copy)).collect())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.pop_front();
        Poll::Ready(piece.map(|piece| piece.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))))
    }
}

pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}

pub(super) async fn read(mut body: Boxed) -> (Vec<u8>, Option<io::Error>) {
    let mut bytes = Vec::new();
    loop {
        match std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            Some(Ok(frame)) => bytes.extend(frame.into_data().unwrap_or_default()),
            Some(Err(error)) => return (bytes, Some(error)),
            None => return (bytes, None),
        }
    }
}
