//! What went over the wire, for `-v`: never bodies, headers or queries.

use std::time::Duration;

/// One request and what became of it.
#[derive(Debug, Clone)]
pub struct Exchange<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// None if no answer came.
    pub status: Option<u16>,
    pub took: Duration,
}

pub trait TraceSink: Send + Sync {
    fn exchange(&self, exchange: &Exchange<'_>);
}
