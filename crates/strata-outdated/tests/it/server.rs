//! A server on the loopback that stands for the whole web: `/HOST/PATH` is `https://HOST/PATH`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strata_net::{DialMap, TlsTrust};
use strata_outdated::{Looked, Tokens, Web, edited, look, pins};
use strata_source::Repository;
use strata_source::world::{Memory, World as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
pub(crate) enum Reply {
    Text(String),
    Status(u16),
    /// To whoever has the token, otherwise 401.
    Guarded(&'static str, String),
    /// To `/HOST/PATH` of this server, or anywhere else.
    Redirect(String),
    /// More than anybody wants to read.
    Endless,
    /// A head, and then nothing.
    Silent,
    Bytes(Vec<u8>),
}

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    /// Of whoever looks.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Server {
    pub(crate) async fn start(pages: &[(&str, Reply)]) -> Self {
        let pages: BTreeMap<String, Reply> =
            pages.iter().map(|(path, reply)| ((*path).to_owned(), reply.clone())).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (pages, log) = (Arc::new(pages), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&pages), Arc::clone(&log)));
            }
        });
        Self { port, asked, variables: BTreeMap::new() }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// What is found for a repository.
    pub(crate) async fn look(&self, world: &Memory) -> Looked {
        let (repository, found) = Repository::load(world);
        let errors: Vec<_> = found.iter().filter(|one| one.is_error()).map(|one| &one.message).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let port = self.port;
        let mirror = move |url: &str| match url.strip_prefix("https://").or(url.strip_prefix("http://")) {
            Some(rest) if !rest.starts_with("127.0.0.1") => format!("http://127.0.0.1:{port}/{rest}"),
            _ => url.to_owned(),
        };
        let timeout = Duration::from_millis(1500);
        let tokens = Tokens::of(&self.variables);
        let web = Web { tls: TlsTrust::System, dial: DialMap::new(), timeout, mirror: &mirror, tokens };
        look(pins(&repository, world), &web).await
    }
}

async fn serve(mut stream: TcpStream, pages: Arc<BTreeMap<String, Reply>>, log: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(path.clone());
    let reply = pages.get(&path).cloned().unwrap_or(Reply::Status(404));
    let text = |status: &str, more: &str, body: &[u8]| {
        let head =
            format!("HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let answer = match reply {
        Reply::Text(body) => text("200 OK", "", body.as_bytes()),
        Reply::Bytes(body) => text("200 OK", "", &body),
        Reply::Guarded(token, body) => {
            let has = head.to_ascii_lowercase().contains(&format!("authorization: bearer {token}\r\n"));
            if has { text("200 OK", "", body.as_bytes()) } else { text("401 No", "", b"who are you?") }
        }
        Reply::Status(status) => text(&format!("{status} No"), "", b"<html>no</html>"),
        Reply::Redirect(to) => text("302 Found", &format!("Location: {to}\r\n"), b""),
        Reply::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await;
            let piece = vec![b'a'; 1 << 20];
            while stream.write_all(&piece).await.is_ok() {}
            return;
        }
        Reply::Silent => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n").await;
            // Until the other side gives up.
            let _ = stream.read_u8().await;
            return;
        }
    };
    let _ = stream.write_all(&answer).await;
}

/// Each pin as `name current next major`, with `-` for none and `?` for what is not known.
pub(crate) fn rows(looked: &Looked) -> Vec<String> {
    for finding in &looked.findings {
        // For the words of a failure.
        println!("{} {:?} {:?}", finding.pin.name, finding.unknown, finding.notes);
    }
    let row = |finding: &strata_outdated::Finding| {
        let of = |proposal: &Option<strata_outdated::Proposal>| {
            proposal.as_ref().map_or_else(|| "-".to_owned(), |one| one.version.clone())
        };
        let next = if finding.unknown.is_some() { "?".to_owned() } else { of(&finding.next) };
        format!("{} {} {next} {}", finding.pin.group, finding.pin.version(), of(&finding.major))
    };
    looked.findings.iter().map(row).collect()
}

/// The files with everything written that can be.
pub(crate) fn write(world: &Memory, looked: &Looked) -> Result<BTreeMap<String, String>, String> {
    let next = looked.findings.iter().filter_map(|finding| finding.next.as_ref()?.edits.as_ref().ok());
    let edits: Vec<_> = next.flatten().cloned().collect();
    edited(&edits, &|path| String::from_utf8(world.read(path).ok()?).ok())
}

pub(crate) fn text(body: impl Into<String>) -> Reply {
    Reply::Text(body.into())
}

pub(crate) fn page(names: &[&str]) -> Reply {
    let links: String = names.iter().map(|name| format!("<a href=\"{name}\">{name}</a>\n")).collect();
    text(format!("<html><body><a href=\"../\">up</a>\n{links}</body></html>"))
}
