//! The Talos API of one machine: TLS, HTTP/2, faults, and calls that are passed on to other machines.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use strata_sim_core::{Cut, Verb, Verdict, Visit};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;

use super::api::{self, Caller};
use super::certificate;
use super::grpc::{self, Code, Frames, Outcome, Reply, Status};
use super::place::Presence;
use super::wire::{Metadata, RpcStatus, field};
use crate::world::{Machines, gone};

/// How long calls that are under way may take when their machine goes down.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves a connection to a machine until it or the machine goes away.
pub async fn answer(machines: Arc<Machines>, visit: Visit, presence: Presence) {
    let config = machines.certificates.of(&machines.world(), &presence);
    let Some(config) = config else { return };
    let Ok(stream) = TlsAcceptor::from(config).accept(visit.stream).await else { return };
    let peer = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let roles = peer.map(certificate::organizations).unwrap_or_default();
    let caller = Arc::new(Caller { presence: presence.clone(), roles, address: visit.host });
    let machine = Arc::clone(&machines);
    let cut = Arc::new(Notify::new());
    let service = {
        let cut = Arc::clone(&cut);
        service_fn(move |request| {
            let (machines, caller, cut) = (Arc::clone(&machines), Arc::clone(&caller), Arc::clone(&cut));
            async move {
                let answered = call(machines, caller, request).await;
                if answered.is_err() {
                    // Not only this stream: the whole connection is cut.
                    cut.notify_one();
                }
                answered
            }
        })
    };
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        () = cut.notified() => return,
        () = gone(&machine, &presence) => {}
    }
    if machine.world().is_off(&presence.machine) {
        return;
    }
    // It goes down in an orderly way: what was asked is still answered, and nothing more.
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = &mut connection => {}
        () = cut.notified() => {}
        () = tokio::time::sleep(LAST_WORDS) => {}
    }
}

async fn call(
    machines: Arc<Machines>,
    caller: Arc<Caller>,
    request: Request<Incoming>,
) -> Result<Response<Frames>, Cut> {
    let (parts, body) = request.into_parts();
    let method = parts.uri.path().to_owned();
    let messages = match grpc::read(body).await {
        Ok(messages) => messages,
        Err(status) => return Ok(grpc::response(Err(status))),
    };
    let verb = if api::is_read(&method) { Verb::Get } else { Verb::Post };
    machines.shared.count().add(verb, format!("/talos/{{node}}{method}"));
    let target = node_of(&parts.headers).unwrap_or_else(|| caller.address.clone());
    let verdict = machines.shared.faults.arrive(verb, &format!("/talos/{target}{method}")).await;
    let after = match verdict {
        Verdict::Pass(after) => after,
        // There are no tasks here.
        Verdict::Task(_) => None,
        Verdict::Cut | Verdict::Late(_) => return Err(Cut),
        Verdict::Refuse(status, text) => {
            return Ok(grpc::response(Err(Status::new(code_of(status), text.trim_end()))));
        }
    };
    // Once it arrived, a call is carried out even if its client goes away.
    let handle = {
        let machines = Arc::clone(&machines);
        tokio::spawn(async move { route(&machines, &caller, &parts.headers, &method, &messages) })
    };
    let outcome = handle.await.unwrap_or_else(|_| Err(Status::new(Code::Internal, "the simulator failed")));
    machines.advance();
    let cut = match after {
        Some(fault) => machines.shared.faults.finish(fault).await,
        None => false,
    };
    if cut { Err(Cut) } else { Ok(grpc::response(outcome)) }
}

/// The first node that a call names.
fn node_of(headers: &HeaderMap) -> Option<String> {
    let named = headers.get("node").or_else(|| headers.get("nodes"))?;
    let first = named.to_str().ok()?.split(',').next()?.trim();
    Some(first.to_owned())
}

/// The status that stands for one of HTTP.
fn code_of(status: u16) -> Code {
    match status {
        400 => Code::InvalidArgument,
        401 | 403 => Code::PermissionDenied,
        404 => Code::NotFound,
        409 => Code::AlreadyExists,
        412 => Code::FailedPrecondition,
        501 => Code::Unimplemented,
        502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

/// Carries a call out here, or at the machines that it names.
fn route(
    machines: &Arc<Machines>,
    caller: &Caller,
    headers: &HeaderMap,
    method: &str,
    messages: &[bytes::Bytes],
) -> Outcome {
    machines.advance();
    let values = |name: &str| -> Vec<String> {
        let all = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|value| value.split(',')).map(|node| node.trim().to_owned()).collect()
    };
    let (node, nodes) = (values("node"), values("nodes"));
    if caller.presence.maintenance || (node.is_empty() && nodes.is_empty()) {
        return api::call(machines, caller, &caller.presence, method, messages);
    }
    if !nodes.is_empty() {
        let services = ["/machine.MachineService/", "/time.TimeService/", "/storage.StorageService/"];
        if !services.iter().any(|service| method.starts_with(service)) {
            let text = format!("one-2-many proxying is not supported for method {method}");
            return Err(Status::new(Code::InvalidArgument, text));
        }
        let mut gathered = Vec::new();
        for node in &nodes {
            let outcome = passed_on(machines, caller, node, method, messages);
            // What does not end is passed on from one node only.
            if let Ok(Reply::Stream(stream)) = outcome {
                return Ok(Reply::Stream(marked_stream(node, stream)));
            }
            gathered.extend(marked(node, outcome, is_list(method)));
        }
        // Lists of several nodes are one list.
        return Ok(match is_list(method) {
            true => Reply::one(gathered.concat()),
            false => Reply::Messages(gathered),
        });
    }
    passed_on(machines, caller, &node[0], method, messages)
}

/// Another machine of the same cluster carries the call out: it has the same authority.
fn passed_on(
    machines: &Arc<Machines>,
    caller: &Caller,
    node: &str,
    method: &str,
    messages: &[bytes::Bytes],
) -> Outcome {
    let target = {
        let world = machines.world();
        let found = world.talos_presence(node).filter(|presence| !presence.maintenance);
        let trusted = |presence: &Presence| {
            let ours = world.signing_authority(&caller.presence.machine).map(|(certificate, _)| certificate);
            world.signing_authority(&presence.machine).map(|(certificate, _)| certificate) == ours
        };
        found.filter(trusted)
    };
    match target {
        Some(presence) => api::call(machines, caller, &presence, method, messages),
        None => {
            let text = format!(
                "connection error: desc = \"transport: Error while dialing: dial tcp {node}:50000: connect: no route to host\""
            );
            Err(Status::new(Code::Unavailable, text))
        }
    }
}

/// The reply is a list of messages, one for each node.
fn is_list(method: &str) -> bool {
    let streams = [
        "/EtcdSnapshot",
        "/Kubeconfig",
        "/Read",
        "/Events",
        "/Logs",
        "/Dmesg",
        "/List",
        "/DiskUsage",
        "/ImageList",
    ];
    !streams.iter().any(|end| method.ends_with(end))
}

/// Says in each message where it comes from; an error becomes a message too.
fn marked(node: &str, outcome: Outcome, list: bool) -> Vec<Vec<u8>> {
    let metadata = |error: Option<&Status>| Metadata {
        hostname: node.to_owned(),
        error: error
            .map(|status| format!("rpc error: code = {:?} desc = {}", status.code, status.message))
            .unwrap_or_default(),
        status: error.map(|status| RpcStatus { code: status.code as i32, message: status.message.clone() }),
    };
    let mark = |error: Option<&Status>| field(1, &metadata(error).encode_to_vec());
    match outcome {
        Ok(Reply::Messages(messages)) if list => messages
            .iter()
            .flat_map(|reply| entries(reply))
            .map(|entry| field(1, &[&mark(None), entry].concat()))
            .collect(),
        Ok(Reply::Messages(messages)) => {
            messages.iter().map(|message| [mark(None), message.clone()].concat()).collect()
        }
        Ok(Reply::Stream(_)) => Vec::new(),
        Err(status) if list => vec![field(1, &mark(Some(&status)))],
        Err(status) => vec![mark(Some(&status))],
    }
}

type Streamed = mpsc::Receiver<Result<Vec<u8>, Status>>;

/// Says where messages come from as they come.
fn marked_stream(node: &str, mut from: Streamed) -> Streamed {
    let metadata = Metadata { hostname: node.to_owned(), ..Metadata::default() };
    let mark = field(1, &metadata.encode_to_vec());
    let (to, marked) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(message) = from.recv().await {
            let message = message.map(|message| [mark.clone(), message].concat());
            if to.send(message).await.is_err() {
                return;
            }
        }
    });
    marked
}

/// The messages in a reply that is a list of them.
fn entries(mut reply: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !reply.is_empty() {
        let Ok(tag) = prost::encoding::decode_varint(&mut reply) else { break };
        let Ok(length) = prost::encoding::decode_varint(&mut reply) else { break };
        let length = (length as usize).min(reply.len());
        let (entry, rest) = reply.split_at(length);
        if tag == 0x0a {
            found.push(entry);
        }
        reply = rest;
    }
    found
}
