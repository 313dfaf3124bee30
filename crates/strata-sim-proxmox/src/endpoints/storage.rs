//! The storage configuration: which storages there are, of which kind, for what content.

pub mod kinds;
pub mod params;

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use self::kinds::{Kind, Rule};
use super::section;
use crate::api::args::split_list;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, get, no, post, put, text};
use crate::world::{Storage, World};

/// The room of a storage that someone adds.
const NEW_CAPACITY: u64 = 1 << 40;

pub fn routes() -> Vec<Route> {
    let allocate = || on("/storage", &["Datastore.Allocate"]);
    vec![
        get("/storage", Perm::Anyone, vec![text("type").one_of(kinds::NAMES).opt()], list),
        post("/storage", allocate(), params::create(), create),
        get(
            "/storage/{storage}",
            on("/storage/{storage}", &["Datastore.Allocate"]),
            vec![usual::storage()],
            |call| {
                let storage = call.world.storage(call.args.must("storage"))?;
                Ok(Value::Object(view(storage, &call.world.storage_digest())).into())
            },
        ),
        put("/storage/{storage}", allocate(), params::update(), update),
        delete("/storage/{storage}", allocate(), vec![usual::storage()], remove),
    ]
}

impl World {
    /// The digest of the storage configuration.
    pub fn storage_digest(&self) -> String {
        // A `local` that is only there because there always is one stands in no file.
        let written = self.storages.values().filter(|s| s.prop("priority").is_none());
        section::digest(written.map(|s| (s.kind.as_str(), s.id.as_str(), &s.props)))
    }
}

fn kind_of(name: &str) -> Result<&'static Kind, Refusal> {
    kinds::kind(name).ok_or_else(|| no(format!("unknown section type '{name}'")))
}

fn view(storage: &Storage, digest: &str) -> Map<String, Value> {
    static PARAMS: LazyLock<Vec<Param>> = LazyLock::new(params::create);
    let mut row = section::typed_all(&PARAMS, &storage.props);
    if let Some(priority) = storage.prop("priority") {
        row.insert("priority".into(), section::number(priority));
    }
    row.insert("storage".into(), json!(storage.id));
    row.insert("type".into(), json!(storage.kind));
    row.insert("digest".into(), json!(digest));
    let content = storage.contents().join(",");
    row.insert("content".into(), json!(if content.is_empty() { "none" } else { &content }));
    if storage.is_shared() {
        row.insert("shared".into(), json!(1));
    }
    if let Some(folders) = storage.prop("content-dirs") {
        let pairs = folders.split(',').filter_map(|part| part.split_once('='));
        let folders = pairs.map(|(content, path)| (content.to_owned(), json!(path)));
        row.insert("content-dirs".into(), Value::Object(folders.collect()));
    }
    row
}

fn list(call: &mut Call<'_>) -> Reply {
    let digest = call.world.storage_digest();
    let wanted = call.args.text("type");
    let rows: Vec<Value> = call
        .world
        .storages
        .values()
        .filter(|s| is_visible(call, &s.id) && wanted.is_none_or(|kind| s.kind == kind))
        .map(|s| Value::Object(view(s, &digest)))
        .collect();
    Ok(Value::Array(rows).into())
}

/// Whether the caller sees a storage in lists.
pub fn is_visible(call: &Call<'_>, storage: &str) -> bool {
    call.check_any(&format!("/storage/{storage}"), &["Datastore.Audit", "Datastore.AllocateSpace"]).is_ok()
}

/// The options among the parameters, checked against what the kind takes.
fn options(call: &Call<'_>, kind: &Kind, creating: bool) -> Result<IndexMap<String, String>, Refusal> {
    let mut options = IndexMap::new();
    for (key, arg) in &call.args.0 {
        let key = key.as_str();
        let own = ["storage", "type", "digest", "delete"].contains(&key);
        if own || kind.secrets.contains(&key) || (creating && key == "nodes" && !call.args.has("nodes")) {
            continue;
        }
        let rule = kind.rule(key);
        if !creating && matches!(rule, Some(Rule::Fixed | Rule::FixedOptional)) {
            return Err(no(format!("can't change value of fixed parameter '{key}'")));
        }
        let Some(value) = arg.as_text() else {
            return Err(no(format!("got undefined value for option '{key}'")));
        };
        if rule.is_none() {
            return Err(no(format!("unexpected property '{key}'")));
        }
        options.insert(key.to_owned(), decode(kind, key, value)?);
    }
    Ok(options)
}

/// A value as it is kept: content that the kind cannot hold is dropped with a warning in the original's log.
fn decode(kind: &Kind, key: &str, value: &str) -> Result<String, Refusal> {
    match key {
        "content" => {
            let mut parts: Vec<&str> = Vec::new();
            for part in split_list(value).filter(|part| kind.contents.contains(part)) {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            if parts.contains(&"none") && parts.len() > 1 {
                return Err(no("unable to combine 'none' with other content types"));
            }
            if parts.is_empty() && !kind.contents.contains(&"none") {
                return Err(no("storage does not support content type 'none'"));
            }
            Ok(if parts.is_empty() { "none".to_owned() } else { parts.join(",") })
        }
        "nodes" => Ok(split_list(value).collect::<Vec<_>>().join(",")),
        "content-dirs" => {
            let mut parts: Vec<&str> = split_list(value).collect();
            parts.sort_unstable();
            Ok(parts.join(","))
        }
        _ => Ok(value.to_owned()),
    }
}

/// Errors inside the locked section say what failed.
fn failed(what: &str) -> impl Fn(Refusal) -> Refusal {
    let what = what.to_owned();
    move |refusal| match refusal {
        Refusal::Error { status: 500, message, errors: None } => {
            no(format!("{what}: {}", message.trim_end_matches('\n')))
        }
        other => other,
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("storage").to_owned();
    let kind = kind_of(call.args.must("type"))?;
    let mut props = options(call, kind, true)?;
    if kind.is_mounted() && !props.contains_key("path") {
        props.insert("path".to_owned(), format!("/mnt/pve/{id}"));
    }
    if let Some(missing) = kind.required().find(|option| !props.contains_key(*option)) {
        return Err(no(format!("missing value for required option '{missing}'")));
    }
    if kind.name == "dir"
        && let Some(path) = props.get_mut("path")
    {
        let ok = path.len() > 1 && crate::api::format::only(path, "-/_.@");
        if !ok {
            return Err(no(format!("illegal path for directory storage: {path}")));
        }
        *path = canonical(path);
    }
    if call.world.storages.contains_key(&id) {
        return Err(no(format!("create storage failed: storage ID '{id}' already defined")));
    }
    let config = secrets(call, kind, &mut props).map_err(failed("create storage failed"))?;
    if !props.contains_key("content") {
        props.insert("content".to_owned(), kind.default_content.to_owned());
    }
    let storage =
        Storage { id: id.clone(), kind: kind.name.to_owned(), props, capacity: NEW_CAPACITY, taken: 0 };
    call.world.storages.insert(id.clone(), storage);
    Ok(result(&id, kind.name, config).into())
}

fn result(id: &str, kind: &str, config: Option<Value>) -> Value {
    let mut data = json!({ "storage": id, "type": kind });
    if let Some(config) = config {
        data["config"] = config;
    }
    data
}

/// Without repeated and trailing slashes.
fn canonical(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("/{}", parts.join("/"))
}

/// What a kind does with its secrets. Only backup servers answer with something.
fn secrets(
    call: &Call<'_>,
    kind: &Kind,
    props: &mut IndexMap<String, String>,
) -> Result<Option<Value>, Refusal> {
    if kind.name != "pbs" {
        return Ok(None);
    }
    let mut config = Map::new();
    if let Some(given) = call.args.text("encryption-key") {
        let id = call.args.must("storage");
        let key = if given == "autogen" {
            let data = hex::encode(call.world.derive(&["encryption-key", id]));
            let print: Vec<String> =
                call.world.derive(&["fingerprint", id]).iter().map(|b| format!("{b:02x}")).collect();
            json!({ "kdf": null, "data": data, "fingerprint": print.join(":") }).to_string()
        } else {
            given.to_owned()
        };
        let parsed: Option<Value> = serde_json::from_str(&key).ok().filter(|v: &Value| v["data"].is_string());
        let Some(parsed) = parsed else {
            return Err(no("Value does not seems like a valid, JSON formatted encryption key!"));
        };
        props.insert("encryption-key".into(), parsed["fingerprint"].as_str().unwrap_or("1").to_owned());
        config.insert("encryption-key".into(), json!(key));
    }
    if call.args.has("master-pubkey") {
        if !props.contains_key("encryption-key") {
            return Err(no("'master-pubkey' can only be used together with 'encryption-key'"));
        }
        props.insert("master-pubkey".into(), "1".into());
    }
    Ok(Some(Value::Object(config)))
}

fn update(call: &mut Call<'_>) -> Reply {
    let fail = failed("update storage failed");
    let id = call.args.must("storage").to_owned();
    call.check_digest(&call.world.storage_digest()).map_err(&fail)?;
    let storage = call.world.storage(&id).map_err(&fail)?.clone();
    let kind = kind_of(&storage.kind)?;
    let set = options(call, kind, false).map_err(&fail)?;
    let unset = call.args.list("delete");
    for key in &unset {
        let problem = match kind.rule(key) {
            None => format!("no such option '{key}'"),
            Some(Rule::Fixed | Rule::Required) => format!("unable to delete required option '{key}'"),
            Some(Rule::FixedOptional) => format!("unable to delete fixed option '{key}'"),
            Some(Rule::Optional) if set.contains_key(key) => {
                format!("cannot set and delete property '{key}' at the same time!")
            }
            Some(Rule::Optional) => continue,
        };
        return Err(fail(no(problem)));
    }
    let mut props = storage.props;
    let config = secrets(call, kind, &mut props).map_err(&fail)?;
    for key in &unset {
        props.shift_remove(key);
    }
    props.extend(set);
    // Whatever was only implied is written now.
    props.shift_remove("priority");
    if !props.contains_key("content") {
        props.insert("content".to_owned(), kind.default_content.to_owned());
    }
    if let Some(storage) = call.world.storages.get_mut(&id) {
        storage.props = props;
        if id == "local" {
            // The storage of the node itself knows no restriction.
            storage.props.shift_remove("nodes");
        }
    }
    Ok(result(&id, kind.name, config).into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let fail = failed("delete storage failed");
    let id = call.args.must("storage").to_owned();
    call.world.storage(&id).map_err(&fail)?;
    let base_of_other = call
        .world
        .storages
        .values()
        .any(|s| s.prop("base").and_then(|base| base.split(':').next()) == Some(id.as_str()));
    if base_of_other {
        return Err(fail(no("can't remove storage - storage is used as base of another storage")));
    }
    let old = call.world.storages.shift_remove(&id);
    if let Some(old) = old.filter(|_| id == "local") {
        call.world.storages.shift_insert(0, id.clone(), implied_local(&old));
    }
    call.world.access.acl.remove(&format!("/storage/{id}"));
    for pool in call.world.pools.values_mut() {
        pool.storage.remove(&id);
    }
    Ok(().into())
}

/// There always is a `local`: this one, if the configuration has none.
fn implied_local(old: &Storage) -> Storage {
    let props = [
        ("path", "/var/lib/vz"),
        ("prune-backups", "keep-all=1"),
        ("content", "backup,images,iso,rootdir,snippets,vztmpl"),
        ("priority", "0"),
    ];
    Storage {
        id: "local".into(),
        kind: "dir".into(),
        props: props.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter().collect(),
        capacity: old.capacity,
        taken: old.taken,
    }
}
