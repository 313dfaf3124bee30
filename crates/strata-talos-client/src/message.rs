//! Messages on the wire: five bytes before each, and a status after the last.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use prost::Message;

use crate::channel::Connection;
use crate::error::TalosReason;
use crate::status::{Code, Status};

/// A flag that says whether the message is compressed, and its length.
const PREFIX: usize = 5;
/// What Talos itself takes at most.
pub(crate) const LARGEST: usize = 32 << 20;

/// A message as it is sent.
pub(crate) fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).expect("messages are far smaller than four gigabytes"));
    message.encode(&mut bytes).expect("the buffer grows");
    bytes.freeze()
}

/// The messages of an answer, one after the other.
pub(crate) struct Messages<T> {
    body: Incoming,
    connection: Arc<Connection>,
    buffer: BytesMut,
    status: Option<Result<(), Status>>,
    of: PhantomData<fn() -> T>,
}

impl<T: Message + Default> Messages<T> {
    pub(crate) fn new(
        response: Response<Incoming>,
        connection: Arc<Connection>,
    ) -> Result<Self, TalosReason> {
        let (head, body) = response.into_parts();
        // An answer without messages has its status in the head.
        let status = Status::read(&head.headers);
        if status.is_none() && head.status != http::StatusCode::OK {
            return Err(match head.status.as_u16() {
                429 | 502..=504 => TalosReason::Unavailable(format!("HTTP status {}", head.status)),
                _ => TalosReason::Malformed(format!("HTTP status {}", head.status)),
            });
        }
        Ok(Self { body, connection, buffer: BytesMut::new(), status, of: PhantomData })
    }

    /// The next message; none after the last, if the call succeeded.
    pub(crate) async fn next(&mut self) -> Result<Option<T>, TalosReason> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            if let Some(status) = &self.status {
                return match status {
                    Ok(()) if self.buffer.is_empty() => Ok(None),
                    Ok(()) => Err(TalosReason::Malformed("it ends within a message".to_owned())),
                    Err(status) => Err(status.clone().into()),
                };
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => self.status = frame.trailers_ref().and_then(Status::read),
                },
                Some(Err(error)) => return Err(self.connection.why(&error).await),
                // Without a status nobody knows whether the last message was the last one.
                None => {
                    let message = "it ends without a status".to_owned();
                    self.status = Some(Err(Status { code: Code::UNAVAILABLE, message }));
                }
            }
        }
    }

    /// A whole message from the buffer, if there is one.
    fn take(&mut self) -> Result<Option<T>, TalosReason> {
        let Some((flag, length)) = self.buffer.get(..PREFIX).map(|prefix| {
            (prefix[0], u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize)
        }) else {
            return Ok(None);
        };
        if flag != 0 {
            return Err(TalosReason::Malformed("it is compressed, which nobody asked for".to_owned()));
        }
        if length > LARGEST {
            return Err(TalosReason::Malformed(format!("a message of {length} bytes is too large")));
        }
        if self.buffer.len() < PREFIX + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        let message = self.buffer.split_to(length).freeze();
        T::decode(message).map(Some).map_err(|error| TalosReason::Malformed(error.to_string()))
    }
}
