//! Fetches files from web servers on this machine's loopback, and from nowhere else.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Larger files are cut off.
const MOST: u64 = 256 << 20;

/// What a web server answered.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    pub url: String,
    pub status: u16,
    pub reason: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// There was no answer, for this reason.
    pub failed: Option<String>,
}

impl Fetched {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }
}

/// Host and port of an `http` URL on the loopback; none for any other URL, which is then simulated.
pub fn loopback(url: &str) -> Option<(String, u16)> {
    let rest = url.strip_prefix("http://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, 80),
    };
    matches!(host, "127.0.0.1" | "localhost").then(|| (host.to_owned(), port))
}

/// Fetches a loopback URL; the result says so if that failed.
pub async fn fetch(url: String, head: bool) -> Fetched {
    let asked = url.clone();
    let result = tokio::task::spawn_blocking(move || fetch_now(&url, head)).await;
    match result {
        Ok(Ok(fetched)) => fetched,
        Ok(Err(error)) => Fetched { url: asked, failed: Some(error.to_string()), ..Fetched::default() },
        Err(error) => Fetched { url: asked, failed: Some(error.to_string()), ..Fetched::default() },
    }
}

fn fetch_now(url: &str, head: bool) -> io::Result<Fetched> {
    let (host, port) = loopback(url).ok_or_else(|| io::Error::other("not a loopback URL"))?;
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let path = rest.find('/').map_or("/", |at| &rest[at..]);
    let path = path.split('#').next().unwrap_or("/");
    let mut stream = TcpStream::connect((host.as_str(), port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let method = if head { "HEAD" } else { "GET" };
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
    let mut raw = Vec::new();
    stream.take(MOST).read_to_end(&mut raw)?;
    parse(url, &raw).ok_or_else(|| io::Error::other("malformed answer"))
}

fn parse(url: &str, raw: &[u8]) -> Option<Fetched> {
    let end = raw.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&raw[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut status_line = lines.next()?.splitn(3, ' ');
    let _version = status_line.next()?;
    let status = status_line.next()?.parse().ok()?;
    let reason = status_line.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(k, v)| (k.trim().to_ascii_lowercase(), v.trim().to_owned()))
        .collect();
    Some(Fetched {
        url: url.to_owned(),
        status,
        reason,
        headers,
        body: raw[end + 4..].to_vec(),
        failed: None,
    })
}
