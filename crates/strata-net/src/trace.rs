//! What went over the wire, for `-v`: never bodies, headers or queries.

use std::time::Duration;

/// One request and what became of it.
#[derive(Debug, Clone)]
pub struct Exchange<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// Its path, without its query.
    pub path: &'a str,
    /// None if no answer came.
    pub status: Option<u16>,
    /// From the first byte sent to the end.
    pub took: Duration,
}

/// Who is told of requests: never of bodies, headers or queries.
pub trait TraceSink: Send + Sync {
    /// One request has ended, with or without an answer.
    fn exchange(&self, exchange: &Exchange<'_>);
}
