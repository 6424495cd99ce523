//! Bodies that are looked at as they pass.

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Who looks at a body.
pub(super) trait Tap: Send {
    /// Bytes came past.
    fn data(&mut self, bytes: &[u8]);

    /// The trailers came past.
    fn trailers(&mut self, _trailers: &HeaderMap) {}

    /// Nothing more will come. Called once, and nothing behind it.
    fn end(self: Box<Self>, end: End<'_>);
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'e> {
    /// Whole.
    Eof,
    /// In an error.
    Error(&'e str),
    /// Whoever read it wanted no more.
    Dropped,
}

/// A body that somebody looks at. Frames pass one by one, as they are asked for and as they came.
pub struct Tapped<B> {
    inner: Pin<Box<B>>,
    tap: Option<Box<dyn Tap>>,
}

impl<B: Body> Tapped<B> {
    pub(super) fn new(inner: B, tap: Box<dyn Tap>) -> Tapped<B> {
        let mut tapped = Tapped { inner: Box::pin(inner), tap: Some(tap) };
        // Whoever sees that nothing comes does not ask.
        if tapped.inner.is_end_stream() {
            tapped.end(End::Eof);
        }
        tapped
    }
}

impl<B> Tapped<B> {
    /// A body that nobody looks at.
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
