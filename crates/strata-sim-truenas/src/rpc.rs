//! The methods: which there are, what they take, who may call them.

use serde_json::{Map, Value, json};
use strata_sim_core::Verb;

use super::error::{ENOENT, ENOTAUTHENTICATED, Error, Outcome, invalid};
use super::{TRUENAS_API_KEY, TrueNas, USER, VERSION, filter};

/// One client.
#[derive(Debug, Default)]
pub struct Session {
    authenticated: bool,
}

/// A call, read from a message.
#[derive(Debug)]
pub struct Call {
    /// None for a call that wants no answer.
    pub id: Option<Value>,
    pub method: String,
    pub params: Vec<Value>,
}

impl Call {
    /// Reads a message; the answer to one that is no call.
    pub fn read(text: &str) -> Result<Self, Option<Value>> {
        let error = |id: Value, code: i64, message: &str| {
            let error = Error::Protocol(code, message.to_owned()).to_json();
            json!({ "jsonrpc": "2.0", "error": error, "id": id })
        };
        let message: Value = serde_json::from_str(text)
            .map_err(|problem| Some(error(Value::Null, -32700, &problem.to_string())))?;
        let id = message.get("id").cloned();
        let refuse = |why: &str| id.clone().map(|id| error(id, -32600, why));
        if message.get("jsonrpc").is_none() {
            return Err(refuse("Missing 'jsonrpc' member"));
        }
        if message["jsonrpc"] != "2.0" {
            return Err(refuse("'jsonrpc' member must be of type string and must be exactly '2.0'"));
        }
        let method = match message.get("method") {
            None => return Err(refuse("Missing 'method' member")),
            Some(Value::String(method)) if !method.is_empty() => method.clone(),
            Some(_) => return Err(refuse("'method' member must be of type string")),
        };
        let params = match message.get("params") {
            None => Vec::new(),
            Some(Value::Array(params)) => params.clone(),
            Some(_) => return Err(refuse("'params' member must be of type array")),
        };
        Ok(Self { id, method, params })
    }

    /// What it would be if it were HTTP, for faults and counts.
    pub fn verb(&self) -> Verb {
        match self.method.as_str() {
            "pool.dataset.create" | "pool.snapshot.create" => Verb::Post,
            "pool.dataset.update" => Verb::Put,
            "pool.dataset.delete" | "pool.snapshot.delete" => Verb::Delete,
            _ => Verb::Get,
        }
    }

    fn text(&self, index: usize, name: &str) -> Outcome<&str> {
        match self.params.get(index) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(invalid(name, "Input should be a valid string")),
            None => Err(invalid(name, "Field required")),
        }
    }

    fn object(&self, index: usize, name: &str) -> Outcome<&Map<String, Value>> {
        match self.params.get(index) {
            Some(Value::Object(map)) => Ok(map),
            Some(_) => Err(invalid(name, "Input should be a valid dictionary or instance")),
            None => Err(invalid(name, "Field required")),
        }
    }

    fn param(&self, index: usize) -> &Value {
        self.params.get(index).unwrap_or(&Value::Null)
    }
}

/// The whole answer to a call.
pub fn answer(id: &Value, outcome: Outcome<Value>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "result": result, "id": id }),
        Err(error) => json!({ "jsonrpc": "2.0", "error": error.to_json(), "id": id }),
    }
}

pub fn carry_out(nas: &mut TrueNas, session: &mut Session, call: &Call, now: i64) -> Outcome<Value> {
    match call.method.as_str() {
        "core.ping" => return Ok(json!("pong")),
        "auth.login_with_api_key" => {
            session.authenticated = call.text(0, "api_key")? == TRUENAS_API_KEY;
            return Ok(json!(session.authenticated));
        }
        "auth.login_ex" => return login(session, call),
        "auth.mechanism_choices" => return Ok(json!(["API_KEY_PLAIN"])),
        "auth.logout" => {
            session.authenticated = false;
            return Ok(json!(true));
        }
        method if !METHODS.contains(&method) => {
            return Err(Error::Protocol(-32601, "Method does not exist".to_owned()));
        }
        _ => {}
    }
    if !session.authenticated {
        return Err(Error::Failed(ENOTAUTHENTICATED, "Not authenticated".to_owned()));
    }
    match call.method.as_str() {
        "auth.me" => Ok(json!({ "pw_name": USER, "pw_uid": 950, "privilege": { "webui_access": true } })),
        "system.info" => Ok(json!({
            "version": VERSION, "hostname": "truenas", "physmem": 34_359_738_368_u64, "model": "Simulated",
            "cores": 8, "uptime_seconds": 3600.0, "timezone": "UTC", "system_manufacturer": "QEMU",
        })),
        "system.version" => Ok(json!(VERSION)),
        "system.ready" => Ok(json!(true)),
        "pool.query" => filter::query(pools(nas), call.param(0), call.param(1)),
        "pool.dataset.query" => {
            let options = call.param(1);
            let flat = options["extra"].get("flat") != Some(&Value::Bool(false));
            let children = options["extra"].get("retrieve_children") != Some(&Value::Bool(false));
            let names = nas.datasets.keys().filter(|name| flat || !name.contains('/'));
            let entries = names.map(|name| nas.entry(name, children)).collect();
            filter::query(entries, call.param(0), options)
        }
        "pool.dataset.get_instance" => nas.instance(call.text(0, "id")?),
        "pool.dataset.create" => nas.create(call.object(0, "data")?, now),
        "pool.dataset.update" => nas.update(call.text(0, "id")?, call.object(1, "data")?),
        "pool.dataset.delete" => nas.delete(call.text(0, "id")?, call.param(1)["recursive"] == true),
        "pool.dataset.attachments" => nas.instance(call.text(0, "id")?).map(|_| json!([])),
        "pool.snapshot.query" | "zfs.snapshot.query" => {
            filter::query(snapshots(nas), call.param(0), call.param(1))
        }
        "filesystem.stat" => stat(nas, call.text(0, "path")?),
        "filesystem.listdir" => {
            let entries = files(nas, call.text(0, "path")?)?;
            filter::query(entries, call.param(1), call.param(2))
        }
        _ => Err(Error::Protocol(-32601, "Method does not exist".to_owned())),
    }
}

/// Those for which one must be logged in.
const METHODS: &[&str] = &[
    "auth.me",
    "system.info",
    "system.version",
    "system.ready",
    "pool.query",
    "pool.dataset.query",
    "pool.dataset.get_instance",
    "pool.dataset.create",
    "pool.dataset.update",
    "pool.dataset.delete",
    "pool.dataset.attachments",
    "pool.snapshot.query",
    "zfs.snapshot.query",
    "filesystem.stat",
    "filesystem.listdir",
];

fn login(session: &mut Session, call: &Call) -> Outcome<Value> {
    let data = call.object(0, "login_data")?;
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("mechanism") != "API_KEY_PLAIN" {
        return Err(invalid("login_data", "Input tag does not match any of the expected tags"));
    }
    session.authenticated = text("username") == USER && text("api_key") == TRUENAS_API_KEY;
    Ok(if session.authenticated {
        json!({ "response_type": "SUCCESS", "authenticator": "LEVEL_1", "user_info": { "pw_name": USER, "pw_uid": 950 } })
    } else {
        json!({ "response_type": "AUTH_ERR" })
    })
}

fn pools(nas: &TrueNas) -> Vec<Value> {
    let pool = |(index, (name, size)): (usize, (&String, &u64))| {
        let used = nas.used(name);
        json!({
            "id": index + 1, "name": name, "guid": (index + 1).to_string(), "path": format!("/mnt/{name}"),
            "status": "ONLINE", "healthy": true, "warning": false, "status_code": "OK", "status_detail": null,
            "size": size, "allocated": used, "free": size.saturating_sub(used), "is_upgraded": true,
        })
    };
    nas.pools.iter().enumerate().map(pool).collect()
}

fn snapshots(nas: &TrueNas) -> Vec<Value> {
    let all =
        nas.datasets.iter().flat_map(|(name, dataset)| dataset.snapshots.iter().map(move |s| (name, s)));
    all.map(|(name, snapshot)| {
        let id = format!("{name}@{snapshot}");
        json!({ "id": id, "name": id, "type": "SNAPSHOT", "dataset": name, "snapshot_name": snapshot,
            "pool": name.split('/').next() })
    })
    .collect()
}

fn at_path<'p>(nas: &TrueNas, path: &'p str) -> Outcome<&'p str> {
    let name = path.strip_prefix("/mnt/").map(|rest| rest.trim_end_matches('/')).unwrap_or_default();
    let there = nas.datasets.get(name).is_some_and(|dataset| dataset.volume.is_none());
    if there { Ok(name) } else { Err(Error::Failed(ENOENT, format!("Path {path} not found"))) }
}

fn stat(nas: &TrueNas, path: &str) -> Outcome<Value> {
    let name = at_path(nas, path)?;
    let links = files(nas, path)?.len();
    Ok(json!({
        "realpath": format!("/mnt/{name}"), "type": "DIRECTORY", "size": links + 2, "allocation_size": 512,
        "mode": 16877, "uid": 0, "gid": 0, "user": "root", "group": "root", "acl": false,
        "is_mountpoint": true, "is_ctldir": false, "nlink": links + 2,
    }))
}

/// What is in a directory: files, and the datasets that are mounted in it.
fn files(nas: &TrueNas, path: &str) -> Outcome<Vec<Value>> {
    let name = at_path(nas, path)?;
    let own = nas.datasets[name].files.iter();
    let mut entries: Vec<Value> = own
        .map(|(file, size)| json!({ "name": file, "path": format!("/mnt/{name}/{file}"), "type": "FILE", "size": size }))
        .collect();
    let mounted = nas.children(name).into_iter().filter(|child| nas.datasets[*child].volume.is_none());
    entries.extend(mounted.map(|child| {
        let last = child.rsplit('/').next();
        json!({ "name": last, "path": format!("/mnt/{child}"), "type": "DIRECTORY", "size": 2 })
    }));
    Ok(entries)
}
