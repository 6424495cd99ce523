//! HTTP bodies that are recorded while they pass.
//!
//! Frames pass unchanged, one for each poll, so that recording never delays or buffers a body.

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Receiver of the parts of a body.
pub(super) trait Tap: Send {
    /// Data of one frame.
    fn data(&mut self, bytes: &[u8]);

    /// Trailers of the body.
    fn trailers(&mut self, _trailers: &HeaderMap) {}

    /// The end of the body. It is the last call.
    fn end(self: Box<Self>, end: End<'_>);
}

/// End of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'e> {
    /// The body is complete.
    Eof,
    /// The connection failed.
    Error(&'e str),
    /// The reader dropped the body.
    Dropped,
}

/// A body that is recorded while it passes. Frames pass one by one, as the reader polls them.
pub struct Tapped<B> {
    inner: Pin<Box<B>>,
    tap: Option<Box<dyn Tap>>,
}

impl<B: Body> Tapped<B> {
    pub(super) fn new(inner: B, tap: Box<dyn Tap>) -> Tapped<B> {
        let mut tapped = Tapped { inner: Box::pin(inner), tap: Some(tap) };
        // A reader that sees the end in advance does not poll.
        if tapped.inner.is_end_stream() {
            tapped.end(End::Eof);
        }
        tapped
    }
}

impl<B> Tapped<B> {
    /// A body without a tap.
    pub(super) fn plain(inner: B) -> Tapped<B> {
        Tapped { inner: Box::pin(inner), tap: None }
    }

    fn end(&mut self, end: End<'_>) {
        if let Some(tap) = self.tap.take() {
            tap.end(end);
        }
    }
}

impl<B> fmt::Debug for Tapped<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tapped")
    }
}

impl<B> Body for Tapped<B>
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(self.inner.as_mut().poll_frame(context));
        let this = &mut *self;
        match &frame {
            Some(Ok(frame)) => {
                if let Some(tap) = &mut this.tap {
                    if let Some(data) = frame.data_ref() {
                        tap.data(data);
                    } else if let Some(trailers) = frame.trailers_ref() {
                        tap.trailers(trailers);
                    }
                }
                if this.inner.is_end_stream() {
                    this.end(End::Eof);
                }
            }
            Some(Err(error)) => this.end(End::Error(&error.to_string())),
            None => this.end(End::Eof),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> Drop for Tapped<B> {
    fn drop(&mut self) {
        self.end(End::Dropped);
    }
}
