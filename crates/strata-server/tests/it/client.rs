//! A client that sends exactly what it is told to.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

pub(crate) struct Client {
    address: SocketAddr,
    pub(crate) authorization: Option<String>,
    connection: Option<BufReader<TcpStream>>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{} {}", self.status, String::from_utf8_lossy(&self.body)))
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, authorization: Option<&str>) -> Self {
        Self { address, authorization: authorization.map(str::to_owned), connection: None }
    }

    /// Sends and expects an answer.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Response {
        self.send_with(method, path, &[], body)
    }

    pub(crate) fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// An error means that nobody knows what became of it.
    pub(crate) fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Response> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
        if let Some(authorization) = &self.authorization {
            head.push_str(&format!("Authorization: {authorization}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        // One write for what is small, so that no packet waits for another.
        let whole = body.len() <= 64 * 1024;
        if whole {
            bytes.extend_from_slice(body);
        }
        let sent = self.exchange(&bytes, if whole { b"" } else { body }, method == "HEAD");
        if sent.is_err() {
            self.connection = None;
        }
        sent
    }

    fn exchange(&mut self, head: &[u8], body: &[u8], no_body: bool) -> std::io::Result<Response> {
        if self.connection.is_none() {
            let stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            self.connection = Some(BufReader::with_capacity(64 * 1024, stream));
        }
        let connection = self.connection.as_mut().unwrap();
        connection.get_mut().write_all(head)?;
        connection.get_mut().write_all(body)?;
        let response = read_response(connection, no_body)?;
        if response.header("connection") == Some("close") {
            self.connection = None;
        }
        Ok(response)
    }
}

pub(crate) fn read_response(reader: &mut impl BufRead, no_body: bool) -> std::io::Result<Response> {
    let bad = |what: &str| std::io::Error::other(what.to_owned());
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(bad("the connection ended"));
    }
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| bad(&line))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(bad("the connection ended"));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse());
    let mut body = vec![0; length.transpose().map_err(|_| bad("no length"))?.unwrap_or(0)];
    if no_body {
        body.clear();
    }
    reader.read_exact(&mut body)?;
    Ok(Response { status, headers, body })
}
