//! gRPC on HTTP/2: messages in their frames, and a status at the end.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tokio::sync::mpsc;

/// A snapshot may be this long, with all its frames.
const MOST_REQUEST: usize = 64 << 20;
/// What must be escaped in a status text, besides what is no ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    pub message: String,
}

impl Status {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// What a Go server makes of an error that is no status.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(Code::Unknown, message)
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("grpc-status"), HeaderValue::from(self.code as u16));
        let text = utf8_percent_encode(&self.message, ESCAPED).to_string();
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(HeaderName::from_static("grpc-message"), value);
        }
        headers
    }
}

/// What a call gives.
pub enum Reply {
    /// All messages, at once.
    Messages(Vec<Vec<u8>>),
    /// Messages as they come; an error is the last.
    Stream(mpsc::Receiver<Result<Vec<u8>, Status>>),
}

impl Reply {
    pub fn one(message: Vec<u8>) -> Self {
        Self::Messages(vec![message])
    }
}

pub type Outcome = Result<Reply, Status>;

/// The messages of a request.
pub async fn read(body: Incoming) -> Result<Vec<Bytes>, Status> {
    let collected = Limited::new(body, MOST_REQUEST).collect().await;
    let mut bytes = collected.map_err(|_| Status::new(Code::Internal, "the request broke off"))?.to_bytes();
    let mut messages = Vec::new();
    while bytes.remaining() >= 5 {
        let compressed = bytes.get_u8() != 0;
        let length = bytes.get_u32() as usize;
        if compressed {
            return Err(Status::new(Code::Unimplemented, "grpc: Decompressor is not installed"));
        }
        if bytes.remaining() < length {
            return Err(Status::new(Code::Internal, "unexpected EOF"));
        }
        messages.push(bytes.split_to(length));
    }
    Ok(messages)
}

/// The body of a reply: frames, then trailers with the status.
pub struct Frames {
    ready: VecDeque<Frame<Bytes>>,
    stream: Option<mpsc::Receiver<Result<Vec<u8>, Status>>>,
    /// How it ends, if with an error.
    failed: Option<Status>,
    ended: bool,
}

fn framed(message: &[u8]) -> Frame<Bytes> {
    let mut out = BytesMut::with_capacity(message.len() + 5);
    out.put_u8(0);
    out.put_u32(message.len() as u32);
    out.put_slice(message);
    Frame::data(out.freeze())
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(frame) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(stream) = &mut self.stream {
            match stream.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(message))) => return Poll::Ready(Some(Ok(framed(&message)))),
                Poll::Ready(Some(Err(status))) => {
                    self.failed = Some(status);
                    self.stream = None;
                }
                Poll::Ready(None) => self.stream = None,
            }
        }
        if self.ended {
            return Poll::Ready(None);
        }
        self.ended = true;
        let status = self.failed.take().unwrap_or_else(|| Status::new(Code::Ok, ""));
        let trailers = status.headers();
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    /// An answer that is only headers must end with them.
    fn is_end_stream(&self) -> bool {
        self.ended && self.ready.is_empty() && self.stream.is_none()
    }
}

pub fn response(outcome: Outcome) -> Response<Frames> {
    let (ready, stream, failed) = match outcome {
        Ok(Reply::Messages(messages)) => (messages.iter().map(|m| framed(m)).collect(), None, None),
        Ok(Reply::Stream(stream)) => (VecDeque::new(), Some(stream), None),
        Err(status) => (VecDeque::new(), None, Some(status)),
    };
    // An error is all in the headers; there is nothing after them.
    let ended = failed.is_some();
    let mut response = Response::new(Frames { ready, stream, failed: None, ended });
    *response.status_mut() = StatusCode::OK;
    if let Some(status) = failed {
        response.headers_mut().extend(status.headers());
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}
