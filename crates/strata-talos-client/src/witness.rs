//! A stream that remembers what TLS said when it failed: HTTP/2 keeps only the words of an error.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::TlsProblem;
use crate::tls;

pub(crate) struct Witness<S> {
    stream: S,
    seen: Arc<OnceLock<TlsProblem>>,
}

impl<S> Witness<S> {
    /// The stream, and where to look later.
    pub(crate) fn new(stream: S) -> (Self, Arc<OnceLock<TlsProblem>>) {
        let seen = Arc::new(OnceLock::new());
        (Self { stream, seen: seen.clone() }, seen)
    }

    fn look<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Some(problem) = result.as_ref().err().and_then(tls::problem_in) {
            self.seen.get_or_init(|| problem);
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Witness<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        Poll::Ready(self.look(result))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Witness<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        Poll::Ready(self.look(result))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.stream).poll_flush(context));
        Poll::Ready(self.look(result))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.stream).poll_shutdown(context));
        Poll::Ready(self.look(result))
    }
}
