//! Reading what a request carries, within limits of size and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::answer::Problem;

/// How long a sender may send nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The next piece, none at the end.
pub(super) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = match tokio::time::timeout(PATIENCE, body.frame()).await {
            Err(_) => {
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the request did not arrive whole"));
            }
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => {
                return Err(Problem::bad(format!("the request did not arrive whole: {error}")));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// All of a body that is small.
pub(super) async fn small(body: &mut Incoming, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("this has at most {limit} bytes"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut all = BytesMut::new();
    while let Some(piece) = next(body).await? {
        if all.len() + piece.len() > limit {
            return Err(too_large());
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

/// Whether anything of a request is still to come.
pub(super) fn is_left(body: &Incoming) -> bool {
    !body.is_end_stream()
}

/// Reads on until the end, so that a client that is still sending sees the answer and not a closed connection. False if it is more than
/// `limit`, or does not come: then the connection has to end with the answer.
pub(super) async fn drain(body: &mut Incoming, limit: u64, patience: Duration) -> bool {
    let mut left = limit;
    let all = async {
        while body.size_hint().lower() <= left {
            match next(body).await {
                Ok(Some(piece)) => left = left.saturating_sub(piece.len() as u64),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        false
    };
    tokio::time::timeout(patience, all).await.unwrap_or(false)
}
