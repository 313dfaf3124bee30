//! The loopback port: reads `CONNECT HOST:PORT`, finds who listens there, and hands the connection over.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Nobody, Visit};
use crate::{Shared, Verb, Verdict};

/// A request to connect is a few lines.
const MOST_REQUEST: usize = 16 << 10;

/// Serves the port until told to stop.
pub async fn serve(shared: Arc<Shared>, port: TcpListener, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            accepted = port.accept() => if let Ok((stream, _)) = accepted {
                let (shared, mut stop) = (Arc::clone(&shared), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        _ = connect(shared, stream) => {}
                        _ = stop.changed() => {}
                    }
                });
            },
            _ = stop.changed() => return,
        }
    }
}

impl Nobody {
    fn text(self) -> &'static str {
        match self {
            Self::Unreachable => "no route to host",
            Self::Refused => "connection refused",
        }
    }
}

async fn connect(shared: Arc<Shared>, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some((host, port)) = read_target(&mut stream).await? else {
        let text = "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(text.as_bytes()).await;
    };
    // Only faults that ask for connections count them: they are no requests.
    match shared.faults.arrive_connection(Verb::Post, &format!("/connect/{host}:{port}")).await {
        Verdict::Pass(_) | Verdict::Task(_) => {}
        Verdict::Cut | Verdict::Late(_) => return Ok(()),
        Verdict::Refuse(_, text) => return refuse(&mut stream, text.trim_end()).await,
    }
    shared.advance();
    let found = match shared.network.find(&host, port) {
        Ok(found) => found,
        Err(nobody) => return refuse(&mut stream, nobody.text()).await,
    };
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let answering = (found.listener)(Visit { stream: Box::new(stream), host });
    match found.gone {
        Some(gone) => tokio::select! {
            () = answering => {}
            () = gone => {}
        },
        None => answering.await,
    }
    Ok(())
}

async fn refuse(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    let length = text.len();
    let head = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n";
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{text}").as_bytes()).await
}

/// Reads the request up to the empty line; the place it names, if it is one to connect.
async fn read_target(stream: &mut TcpStream) -> io::Result<Option<(String, u16)>> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        if read.len() >= MOST_REQUEST {
            return Ok(None);
        }
        // Byte by byte: what follows the empty line belongs to whoever is connected.
        read.push(stream.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&read);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != "CONNECT" {
        return Ok(None);
    }
    let Some((host, port)) = target.rsplit_once(':') else { return Ok(None) };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(port.parse().ok().map(|port| (host.to_owned(), port)))
}
