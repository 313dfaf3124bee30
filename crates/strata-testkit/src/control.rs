//! A client of the simulator's control port. Plain HTTP, one request a connection: it needs no library.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Clone)]
pub struct Control {
    address: String,
}

impl Control {
    /// From `http://127.0.0.1:PORT`.
    pub fn new(url: &str) -> Self {
        Self { address: url.trim_start_matches("http://").to_owned() }
    }

    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {text}");
        if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            return serde_json::from_str(&unchunked(body)).unwrap_or(Value::Null);
        }
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    pub fn export(&self) -> Value {
        self.call("GET", "/_sim/export", None)
    }

    pub fn requests(&self) -> Value {
        self.call("GET", "/_sim/requests", None)
    }

    pub fn reset_requests(&self) {
        self.call("DELETE", "/_sim/requests", None);
    }

    /// Orders a fault and gives its id.
    pub fn fault(&self, order: &Value) -> u64 {
        let answer = self.call("POST", "/_sim/faults", Some(order));
        answer["id"].as_u64().unwrap_or_else(|| panic!("no id in {answer}"))
    }

    /// Whether the fault struck within the time.
    pub fn wait_fault(&self, id: u64, seconds: f64) -> bool {
        let answer = self.call("GET", &format!("/_sim/wait-fault?id={id}&timeout={seconds}"), None);
        answer["hit"].as_u64().unwrap_or(0) > 0 || answer["hit"] == json!(true)
    }

    pub fn release(&self, id: u64) {
        self.call("POST", &format!("/_sim/faults/{id}/release"), None);
    }

    pub fn clear_faults(&self) {
        self.call("DELETE", "/_sim/faults", None);
    }

    /// Somebody else's change.
    pub fn change(&self, change: &Value) -> Value {
        self.call("POST", "/_sim/change", Some(change))
    }
}

fn unchunked(body: &str) -> String {
    let mut text = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        if size == 0 || after.len() < size {
            break;
        }
        text.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    text
}
