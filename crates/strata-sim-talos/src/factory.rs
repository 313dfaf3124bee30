//! The image factory: schematics and the images made of them, at `factory.talos.dev` of the simulated network.

mod schematic;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use sha2::Digest as _;
use strata_sim_core::network::{listener, web};
use strata_sim_core::{Cut, Verb, Verdict, Visit, synthetic};
use tokio_rustls::TlsAcceptor;

use crate::image::Image;
use crate::world::Machines;

/// The public factory's name.
pub const HOST: &str = "factory.talos.dev";
const PORT: u16 = 443;
const MOST_BODY: usize = 1 << 20;
/// Some of the official extensions, with their tags of the versions before 1.14 and since.
const EXTENSIONS: &[(&str, &str, &str)] = &[
    ("siderolabs/iscsi-tools", "v0.1.13", "v0.1.14"),
    ("siderolabs/qemu-guest-agent", "10.0.2", "10.1.0"),
    ("siderolabs/util-linux-tools", "2.40.4", "2.40.4"),
];
const VERSIONS: &[&str] = &["v1.10.9", "v1.11.6", "v1.12.11", "v1.13.9", "v1.14.0"];

/// Lets the factory listen.
pub fn open(machines: &Arc<Machines>) {
    machines.shared.network.register(HOST, PORT, listener(machines, serve));
}

async fn serve(machines: Arc<Machines>, visit: Visit) {
    let Ok(stream) = TlsAcceptor::from(web::server_config(&visit.host)).accept(visit.stream).await else {
        return;
    };
    let answer = service_fn(move |request| answer(Arc::clone(&machines), request));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer(machines: Arc<Machines>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Cut> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let template = match path.split('/').nth(1) {
        Some("image") => "/factory/image/{schematic}/{version}/{file}".to_owned(),
        _ => format!("/factory{path}"),
    };
    let verb = if parts.method == Method::POST { Verb::Post } else { Verb::Get };
    machines.shared.count().add(verb, template);
    let after = match machines.shared.faults.arrive(verb, &format!("/factory{path}")).await {
        Verdict::Pass(after) => after,
        // There are no tasks here.
        Verdict::Task(_) => None,
        Verdict::Cut | Verdict::Late(_) => return Err(Cut),
        Verdict::Refuse(status, text) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Ok(plain(status, &text));
        }
    };
    let Ok(response) = respond(&machines, &parts.method, &path, body).await;
    let cut = match after {
        Some(fault) => machines.shared.faults.finish(fault).await,
        None => false,
    };
    if cut { Err(Cut) } else { Ok(response) }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())));
    *response.status_mut() = status;
    response
}

fn json_answer(status: StatusCode, value: &serde_json::Value) -> Response<Full<Bytes>> {
    let mut response = plain(status, &value.to_string());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The official extensions of a version, if the path asks for them and there is such a version.
fn extensions(path: &str) -> Option<serde_json::Value> {
    let version = path.strip_prefix("/version/")?.strip_suffix("/extensions/official")?;
    let version = VERSIONS.contains(&version).then(|| crate::version::Version::parse(version))??;
    let one = |(name, before, since): &(&str, &str, &str)| {
        let tag = if version.minor >= 14 { since } else { before };
        let digest = hex::encode(sha2::Sha256::digest(format!("{name}:{tag}")));
        json!({
            "name": name,
            "ref": format!("ghcr.io/{name}:{tag}"),
            "digest": format!("sha256:{digest}"),
            "author": "Sidero Labs",
            "description": "",
        })
    };
    Some(EXTENSIONS.iter().map(one).collect())
}

async fn respond(
    machines: &Machines,
    method: &Method,
    path: &str,
    body: Incoming,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let url = format!("https://{HOST}{path}");
    Ok(match (method, path) {
        (&Method::POST, "/schematics") => {
            let body = match Limited::new(body, MOST_BODY).collect().await {
                Ok(collected) => collected.to_bytes(),
                Err(error) => return Ok(plain(StatusCode::BAD_REQUEST, &error.to_string())),
            };
            match schematic::id(&String::from_utf8_lossy(&body)) {
                Ok((id, canonical)) => {
                    machines.talos().schematics.insert(id.clone(), canonical);
                    machines.shared.changed();
                    json_answer(StatusCode::CREATED, &json!({ "id": id }))
                }
                Err(why) => plain(StatusCode::BAD_REQUEST, &why),
            }
        }
        (&Method::GET, path) if extensions(path).is_some() => {
            json_answer(StatusCode::OK, &extensions(path).unwrap_or_default())
        }
        (&Method::GET, "/versions") => json_answer(StatusCode::OK, &json!(VERSIONS)),
        (&Method::GET | &Method::HEAD, path)
            if path.starts_with("/image/") && Image::from_url(&url).is_some() =>
        {
            let Some(content) = synthetic(&url) else {
                return Ok(plain(StatusCode::NOT_FOUND, "image not found\n"));
            };
            let length = content.len();
            let body = if method == Method::HEAD { Bytes::new() } else { Bytes::from(content) };
            let mut response = Response::new(Full::new(body));
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/x-iso9660-image"));
            response
        }
        _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
    })
}
