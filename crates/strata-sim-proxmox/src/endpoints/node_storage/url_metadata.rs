//! Asking a web server about a file. Servers on the loopback are asked; all others are made up.

use serde_json::{Value, json};
use strata_sim_core::synthetic;

use crate::api::param::usual;
use crate::api::permission::Check;
use crate::api::{Call, Perm, Reply, Route, flag, get, no, text};
use crate::fetch;

pub fn routes() -> Vec<Route> {
    let params = vec![usual::node(), text("url").pattern("https?://.*"), flag("verify-certificates").opt()];
    vec![get("/nodes/{node}/query-url-metadata", Perm::Check(may_reach_out()), params, query)]
}

/// Who may make a node talk to the network.
pub fn may_reach_out() -> Check {
    Check::Or(vec![
        Check::All("/", &["Sys.Audit", "Sys.Modify"]),
        Check::All("/nodes/{node}", &["Sys.AccessNetwork"]),
    ])
}

fn query(call: &mut Call<'_>) -> Reply {
    let url = call.args.must("url").to_owned();
    let mut data = json!({});
    if fetch::loopback(&url).is_some() {
        let found = call.fetch(&url, true)?;
        if found.failed.is_some() {
            let (host, port) = fetch::loopback(&url).unwrap_or_default();
            let why = format!("500 Can't connect to {host}:{port} (Connection refused)");
            return Err(no(format!("invalid server response: '{why}'")));
        }
        if found.status != 200 {
            return Err(no(format!("invalid server response: '{} {}'", found.status, found.reason)));
        }
        let size = found.header("content-length").and_then(|l| l.parse::<u64>().ok()).filter(|l| *l > 0);
        set(&mut data, "size", size.map(|s| json!(s)));
        let kind = found.header("content-type").map(|t| t.split(';').next().unwrap_or(t).to_owned());
        set(&mut data, "mimetype", kind.map(|k| json!(k)));
        let named = found.header("content-disposition").and_then(disposition);
        set(&mut data, "filename", named.or_else(|| last_part(&url)).map(|n| json!(n)));
    } else {
        let Some(bytes) = synthetic(&url) else {
            return Err(no("invalid server response: '404 Not Found'"));
        };
        set(&mut data, "size", Some(json!(bytes.len())));
        set(&mut data, "mimetype", Some(json!("application/octet-stream")));
        set(&mut data, "filename", last_part(&url).map(|n| json!(n)));
    }
    Ok(data.into())
}

fn set(data: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        data[key] = value;
    }
}

/// `filename=…` of a Content-Disposition header.
fn disposition(header: &str) -> Option<String> {
    let rest = &header[header.find("filename=")? + "filename=".len()..];
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split(';').next()?,
    };
    Some(name.to_owned())
}

/// The last part of the path.
fn last_part(url: &str) -> Option<String> {
    let path = url.split('?').next()?;
    let name = path.rsplit('/').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}
