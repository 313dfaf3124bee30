//! A small client of the Talos API, through the gateway.

use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use strata_sim::Sim;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::configs::Client;
use super::wire;

/// A status of gRPC, or a connection that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// -1 where there was no answer.
    pub code: i32,
    pub text: String,
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure { code: -1, text: error.to_string() }
}

/// Opens a connection to a place in the simulated network.
pub async fn tunnel(sim: &Sim, place: &str) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(sim.gateway()).await.map_err(broken)?;
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.map_err(broken)?);
    }
    if answer.starts_with(b"HTTP/1.1 200") {
        return Ok(stream);
    }
    let mut why = String::new();
    stream.read_to_string(&mut why).await.map_err(broken)?;
    Err(broken(why))
}

/// A connection to one machine.
pub struct Talos {
    send: SendRequest<Full<Bytes>>,
    /// Sent with every call.
    pub nodes: Vec<String>,
}

impl Talos {
    pub async fn insecure(sim: &Sim, address: &str) -> Result<Self, Failure> {
        Self::with(sim, address, super::configs::trusting()).await
    }

    pub async fn connect(sim: &Sim, address: &str, client: &Client) -> Result<Self, Failure> {
        Self::with(sim, address, client.tls()).await
    }

    async fn with(sim: &Sim, address: &str, mut tls: ClientConfig) -> Result<Self, Failure> {
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let stream = tunnel(sim, &format!("{address}:50000")).await?;
        let name = ServerName::try_from(address.to_owned()).unwrap();
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.map_err(broken)?;
        let (send, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let mut talos = Self { send, nodes: Vec::new() };
        // A certificate that is refused shows with the first call only.
        match talos.call("/machine.MachineService/Version", &[&wire::Flag::default()]).await {
            Err(failure) if failure.code == -1 => Err(failure),
            _ => Ok(talos),
        }
    }

    /// Sends messages to a method and gives the messages of the reply.
    pub async fn call(&mut self, method: &str, messages: &[&dyn Encoded]) -> Result<Vec<Bytes>, Failure> {
        let mut body = BytesMut::new();
        for message in messages {
            let bytes = message.bytes();
            body.put_u8(0);
            body.put_u32(bytes.len() as u32);
            body.put_slice(&bytes);
        }
        let mut request =
            Request::post(format!("http://talos{method}")).header("content-type", "application/grpc");
        for node in &self.nodes {
            request = request.header("nodes", node);
        }
        let request = request.body(Full::new(body.freeze())).unwrap();
        let response = self.send.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let collected = body.collect().await.map_err(broken)?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let status = parts.headers.get("grpc-status").or(trailers.get("grpc-status"));
        let code: i32 =
            status.and_then(|s| s.to_str().ok()?.parse().ok()).ok_or_else(|| broken("no status"))?;
        if code != 0 {
            let text = parts.headers.get("grpc-message").map(|m| m.to_str().unwrap().to_owned());
            return Err(Failure { code, text: text.unwrap_or_default() });
        }
        let mut bytes = collected.to_bytes();
        let mut replies = Vec::new();
        while bytes.remaining() >= 5 {
            assert_eq!(bytes.get_u8(), 0);
            let length = bytes.get_u32() as usize;
            replies.push(bytes.split_to(length));
        }
        Ok(replies)
    }

    async fn machine(&mut self, method: &str, message: &dyn Encoded) -> Result<Vec<Bytes>, Failure> {
        self.call(&format!("/machine.MachineService/{method}"), &[message]).await
    }

    pub async fn version(&mut self) -> Result<String, Failure> {
        let list =
            wire::VersionList::decode(self.machine("Version", &wire::Flag::default()).await?[0].clone())
                .unwrap();
        Ok(list.messages[0].version.clone().unwrap().tag)
    }

    pub async fn versions(&mut self) -> Vec<wire::Version> {
        let replies = self.machine("Version", &wire::Flag::default()).await.unwrap();
        wire::VersionList::decode(replies[0].clone()).unwrap().messages
    }

    pub async fn apply(&mut self, config: &str, mode: i32) -> Result<wire::Applied, Failure> {
        self.apply_as(wire::Apply { data: config.as_bytes().to_vec(), mode, ..wire::Apply::default() }).await
    }

    pub async fn apply_as(&mut self, request: wire::Apply) -> Result<wire::Applied, Failure> {
        let replies = self.machine("ApplyConfiguration", &request).await?;
        Ok(wire::AppliedList::decode(replies[0].clone()).unwrap().messages.remove(0))
    }

    pub async fn bootstrap(&mut self, recover: bool) -> Result<(), Failure> {
        self.machine("Bootstrap", &wire::Flag { on: recover }).await.map(drop)
    }

    pub async fn members(&mut self) -> Result<Vec<wire::Member>, Failure> {
        let replies = self.machine("EtcdMemberList", &wire::Flag::default()).await?;
        Ok(wire::MembersList::decode(replies[0].clone()).unwrap().messages.remove(0).members)
    }

    pub async fn remove_member(&mut self, id: u64) -> Result<(), Failure> {
        self.machine("EtcdRemoveMemberByID", &wire::Number { value: id }).await.map(drop)
    }

    pub async fn leave(&mut self) -> Result<(), Failure> {
        self.machine("EtcdLeaveCluster", &wire::Flag::default()).await.map(drop)
    }

    pub async fn snapshot(&mut self) -> Result<Vec<u8>, Failure> {
        let pieces = self.machine("EtcdSnapshot", &wire::Flag::default()).await?;
        assert!(pieces.len() > 1);
        Ok(pieces.into_iter().flat_map(|piece| wire::Data::decode(piece).unwrap().bytes).collect())
    }

    pub async fn recover(&mut self, snapshot: &[u8]) -> Result<(), Failure> {
        let pieces: Vec<wire::Data> =
            snapshot.chunks(10_000).map(|piece| wire::Data { bytes: piece.to_vec() }).collect();
        let messages: Vec<&dyn Encoded> = pieces.iter().map(|piece| piece as &dyn Encoded).collect();
        self.call("/machine.MachineService/EtcdRecover", &messages).await.map(drop)
    }

    pub async fn reboot(&mut self) -> Result<(), Failure> {
        self.machine("Reboot", &wire::Flag::default()).await.map(drop)
    }

    pub async fn reset(&mut self, request: &wire::Reset) -> Result<(), Failure> {
        self.machine("Reset", request).await.map(drop)
    }

    pub async fn boot_id(&mut self) -> String {
        let path = wire::Text { value: "/proc/sys/kernel/random/boot_id".to_owned() };
        let replies = self.machine("Read", &path).await.unwrap();
        String::from_utf8(wire::Data::decode(replies[0].clone()).unwrap().bytes).unwrap()
    }

    /// The content of one resource, as it is encoded.
    pub async fn get(&mut self, namespace: &str, kind: &str, id: &str) -> Result<Vec<u8>, Failure> {
        let request = wire::Get { namespace: namespace.to_owned(), kind: kind.to_owned(), id: id.to_owned() };
        let replies = self.call("/cosi.resource.State/Get", &[&request]).await?;
        Ok(wire::Got::decode(replies[0].clone()).unwrap().resource.unwrap().spec.unwrap().proto)
    }
}

/// A message whatever its type.
pub trait Encoded: Sync {
    fn bytes(&self) -> Vec<u8>;
}

impl<M: Message> Encoded for M {
    fn bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}
