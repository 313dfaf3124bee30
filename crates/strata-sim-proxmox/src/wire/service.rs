//! One request from its first byte to its answer, in the order in which the original checks things.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use strata_sim_core::{Cut, Verb, Verdict};

use super::format::{Body, Format, bare, page, plain_error, render};
use super::{multipart, request};
use crate::api::router::MatchedRoute;
use crate::api::{Args, Call, Caller, Effects, NO_WORKER, Refusal, Reply, fuse, no, wrong};
use crate::auth::{self, Credentials};
use crate::datacenter::Datacenter;
use crate::endpoints::router;
use crate::fetch;
use crate::task::drive;

/// Bodies that are no uploads may be this long.
const MOST_POST: u64 = 512 << 10;

/// The parts of a request that its answer depends on.
struct Asked {
    verb: Verb,
    format: Format,
    /// Below `/api2/FORMAT`, decoded.
    path: String,
    credentials: Credentials,
    args: Result<Args, String>,
    /// As it arrived, where it is no upload.
    body: Bytes,
    effects: Effects,
}

pub(crate) async fn answer(
    datacenter: Arc<Datacenter>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Cut> {
    let mut asked = match read(request).await {
        Ok(asked) => asked,
        Err(early) => return Ok(*early),
    };
    let found = router().find(asked.verb, &asked.path);
    let template = found.as_ref().map_or("(unknown)", |f| f.route.template);
    {
        let mut requests = datacenter.shared.count();
        requests.add(asked.verb, template);
        requests.keep(asked.verb, &asked.path);
        if !asked.body.is_empty() {
            requests.keep_body(asked.verb, &asked.path, &asked.body);
        }
    }
    let verdict = datacenter.shared.faults.arrive(asked.verb, &asked.path).await;
    let after = match verdict {
        Verdict::Pass(after) => after,
        Verdict::Task(fault) => {
            asked.effects.task = Some(fault);
            None
        }
        Verdict::Cut => return Err(Cut),
        Verdict::Late(delay) => {
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                respond(datacenter, asked).await;
            });
            return Err(Cut);
        }
        Verdict::Refuse(status, text) => return Ok(render(asked.format, &Err(fuse(status, text)))),
    };
    // Once it arrived, a request is carried out even if its client goes away.
    let handle = tokio::spawn(respond(Arc::clone(&datacenter), asked));
    let response = handle.await.unwrap_or_else(|_| plain_error(500, "the simulator failed to answer\n"));
    let cut = match after {
        Some(fault) => datacenter.shared.faults.finish(fault).await,
        None => false,
    };
    if cut { Err(Cut) } else { Ok(response) }
}

/// Everything up to the point where the request is complete; an early answer if it cannot be one.
async fn read(request: Request<Incoming>) -> Result<Asked, Box<Response<Body>>> {
    let early = |response| Err(Box::new(response));
    let (parts, body) = request.into_parts();
    let Some(verb) = Verb::parse(parts.method.as_str()) else {
        return early(bare(501, &format!("method '{}' not available", parts.method)));
    };
    if parts.headers.contains_key(TRANSFER_ENCODING) {
        return early(plain_error(501, "chunked transfer encoding not supported"));
    }
    let full_path = percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
    let Some((format_name, path)) = split_path(&full_path) else {
        return early(match full_path.as_str() {
            "/" => page("<!DOCTYPE html>\n<title>Proxmox VE (simulated)</title>\n".to_owned()),
            path if path.starts_with("/api2") => plain_error(501, "no such uri"),
            path => plain_error(500, &format!("no such file '{path}'\n")),
        });
    };
    let header = |name| text_header(&parts.headers, name);
    let credentials = Credentials {
        cookie: header(COOKIE.as_str()),
        authorization: header(AUTHORIZATION.as_str()),
        csrf: header("csrfpreventiontoken"),
    };
    let length: u64 = header(CONTENT_LENGTH.as_str()).and_then(|l| l.parse().ok()).unwrap_or_default();
    let content_type = header(CONTENT_TYPE.as_str());
    let query = request::form(parts.uri.query().unwrap_or_default().as_bytes());
    let mut effects = Effects::default();
    let mut args = Ok(Args::default());
    let mut whole = Bytes::new();
    if length > 0 {
        if !matches!(verb, Verb::Put | Verb::Post) {
            return early(plain_error(501, &format!("Unexpected content for method '{}'", verb.name())));
        }
        let kind = content_type.as_deref().unwrap_or_default();
        if verb == Verb::Post && is_upload(path) {
            let Some(boundary) = multipart::boundary(kind) else {
                return early(plain_error(500, &format!("upload 'Content-Type '{kind}' not implemented\n")));
            };
            match multipart::read(body, boundary).await {
                Ok((mut fields, upload)) => {
                    fields.set("filename", upload.filename.clone());
                    effects.upload = Some(upload);
                    args = Ok(fields);
                }
                Err(text) => return early(plain_error(500, &text)),
            }
        } else if length > MOST_POST {
            return early(plain_error(501, "for data too large"));
        } else {
            let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            let bytes = match Limited::new(body, MOST_POST as usize).collect().await {
                Ok(collected) => collected.to_bytes(),
                Err(_) => Bytes::new(),
            };
            args = match essence.as_str() {
                "application/json" => request::json(&bytes),
                "" | "application/x-www-form-urlencoded" => Ok(request::form(&bytes)),
                _ => {
                    return early(plain_error(
                        506,
                        &format!("upload 'Content-Type '{kind}' not implemented"),
                    ));
                }
            };
            whole = bytes;
        }
    }
    if let Ok(args) = &mut args {
        args.0.extend(query.0);
        args.0.shift_remove("_dc");
    }
    let Some(format) = Format::parse(format_name) else {
        return early(plain_error(501, &format!("no formatter for uri {path}, {format_name}")));
    };
    Ok(Asked { verb, format, path: path.to_owned(), credentials, args, body: whole, effects })
}

/// `/api2/json/version` → (`json`, `/version`).
fn split_path(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/api2/")?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (format, path) = rest.split_at(end);
    let named = !format.is_empty() && format.bytes().all(|b| b.is_ascii_lowercase());
    named.then_some((format, if path.is_empty() { "/" } else { path }))
}

fn is_upload(path: &str) -> bool {
    path.starts_with("/nodes/") && path.ends_with("/upload")
}

fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

async fn respond(datacenter: Arc<Datacenter>, asked: Asked) -> Response<Body> {
    let Asked { verb, format, path, credentials, args, effects, .. } = asked;
    let identified = auth::identify(&datacenter.world(), verb, &path, &credentials);
    let caller = match identified {
        Ok(caller) => caller,
        Err(reason) => {
            tokio::time::sleep(datacenter.auth_delay).await;
            return bare(401, &reason);
        }
    };
    let args = match args {
        Ok(args) => args,
        Err(text) => return plain_error(500, &text),
    };
    let reply = execute(&datacenter, verb, &path, caller, args, effects).await;
    if let Err(Refusal::Error { status: 401, .. }) = &reply {
        tokio::time::sleep(datacenter.auth_delay).await;
    }
    render(format, &reply)
}

/// Runs a call: route, permission, node, parameters, code. Waits for locks and fetches on its behalf.
pub(crate) async fn execute(
    datacenter: &Arc<Datacenter>,
    verb: Verb,
    path: &str,
    caller: Caller,
    given: Args,
    mut effects: Effects,
) -> Reply {
    let unknown = || Err(fuse(501, format!("Method '{} {path}' not implemented", verb.name())));
    let Some(MatchedRoute { route, path_args }) = router().find(verb, path) else { return unknown() };
    let mut args: Args = path_args.iter().map(|(k, v)| (*k, v.clone())).collect();
    for (name, value) in given.0 {
        if let Some(fixed) = args.text(&name)
            && value.as_text() != Some(fixed)
        {
            let text = "duplicate parameter (already defined in URI) with conflicting values!";
            return Err(wrong(name, text));
        }
        args.0.insert(name, value);
    }
    if route.ticket_only && caller.is_token {
        let text = format!("URI '{path}' not available with API token, need proper ticket.\n");
        return Err(crate::api::forbidden(text));
    }
    {
        let world = datacenter.world();
        route.perm.check(&world, caller.id.as_deref(), &args)?;
        let node = args.text("node").unwrap_or_default();
        if route.on_node && !world.nodes.contains_key(node) && node != "localhost" {
            return Err(no(format!(
                "hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service not known"
            )));
        }
        if world.nodes.get(node).is_some_and(|node| node.down) && route.on_node {
            return Err(fuse(595, "No route to host\n"));
        }
        if route.on_node && node == "localhost" {
            let first = world.nodes.keys().next().cloned().unwrap_or_default();
            args.set("node", first);
        }
    }
    route.validate(&mut args)?;
    loop {
        let outcome = {
            let mut world = datacenter.world();
            let mut call =
                Call { world: &mut world, caller: caller.clone(), args: args.clone(), effects: &effects };
            let outcome = (route.run)(&mut call);
            drive::pick_up(datacenter, &mut world);
            outcome
        };
        if verb != Verb::Get {
            datacenter.shared.changed();
        }
        match outcome {
            Err(Refusal::Busy(key)) => {
                if !datacenter.wait_free(&key, None).await {
                    return Err(no(key.timeout_text()));
                }
            }
            Err(Refusal::Fetch { url, head }) => effects.fetched = Some(fetch::fetch(url, head).await),
            Err(Refusal::After { seconds, then }) => {
                tokio::time::sleep(datacenter.shared.pace.scale(seconds as f64)).await;
                return Err(*then);
            }
            Ok(answer) if answer.data == NO_WORKER => {
                return Err(no("got no worker upid - start worker failed\n"));
            }
            settled => return settled,
        }
    }
}
