//! Storages as a node sees them: what is active, how much room there is, and what lies on them.

pub mod content;
pub mod download;
pub mod file;
pub mod prune;
pub mod upload;
pub mod url_metadata;

use serde_json::{Map, Value, json};

use super::storage::{is_visible, kinds, params};
use crate::api::param::usual;
use crate::api::permission::on_any;
use crate::api::{Call, Param, Perm, Reply, Route, flag, format, get, text, wrong};
use crate::world::{Storage, World};

pub fn routes() -> Vec<Route> {
    let list_params = vec![
        usual::node(),
        usual::storage().opt(),
        text("content").each(params::content).opt(),
        flag("enabled").opt(),
        text("target").format(format::node).opt(),
        flag("format").opt(),
    ];
    let mut routes = vec![
        get("/nodes/{node}/storage", Perm::Anyone, list_params, list),
        get("/nodes/{node}/storage/{storage}", audit(), one(), |_| {
            super::index::subdirs(&[
                "content",
                "download-url",
                "file-restore",
                "import-metadata",
                "oci-registry-pull",
                "prunebackups",
                "rrd",
                "rrddata",
                "status",
                "upload",
            ])
        })
        .anywhere(),
        get("/nodes/{node}/storage/{storage}/status", audit(), one(), status),
        get("/nodes/{node}/storage/{storage}/rrddata", audit(), history_params(), |call| {
            Ok(history_of(call).into())
        }),
    ];
    routes.extend(content::routes());
    routes.extend(prune::routes());
    routes.extend(upload::routes());
    routes.extend(download::routes());
    routes.extend(url_metadata::routes());
    routes
}

/// Whoever may look at the storage.
pub fn audit() -> Perm {
    on_any("/storage/{storage}", &["Datastore.Audit", "Datastore.AllocateSpace"])
}

/// The parameters that name a storage on a node.
pub fn one() -> Vec<Param> {
    vec![usual::node(), usual::storage()]
}

/// What a node knows about a storage: sizes are zero where it is not active.
fn info(world: &World, storage: &Storage, node: &str, with_format: bool) -> Map<String, Value> {
    let enabled = !storage.is_disabled() && storage.is_on(node);
    let (total, used) = if enabled { (storage.capacity, world.storage_used(storage, node)) } else { (0, 0) };
    let mut row = Map::new();
    row.insert("type".into(), json!(storage.kind));
    row.insert("content".into(), json!(storage.contents().join(",")));
    row.insert("shared".into(), json!(u8::from(storage.is_shared())));
    row.insert("enabled".into(), json!(u8::from(enabled)));
    row.insert("active".into(), json!(u8::from(enabled)));
    row.insert("total".into(), json!(total));
    row.insert("used".into(), json!(used));
    row.insert("avail".into(), json!(total.saturating_sub(used)));
    if let Some(kind) = kinds::kind(&storage.kind).filter(|_| with_format && enabled) {
        let default = storage.prop("format").unwrap_or(kind.default_format);
        let valid: Map<String, Value> = kind.formats.iter().map(|f| ((*f).to_owned(), json!(1))).collect();
        row.insert("formats".into(), json!({ "supported": kind.formats, "default": default }));
        row.insert("format".into(), json!([valid, default]));
        if kind.select_existing {
            row.insert("select_existing".into(), json!(1));
        }
    }
    row
}

fn list(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let args = &call.args;
    let wanted_content = args.list("content");
    let target = args.text("target").filter(|t| *t != node && *t != "localhost");
    let considered = |s: &&Storage| {
        let enabled = !s.is_disabled() && s.is_on(&node);
        !args.has("content") || (enabled && wanted_content.iter().any(|c| s.holds(c)))
    };
    if let Some(id) = args.text("storage")
        && !call.world.storages.get(id).as_ref().is_some_and(considered)
    {
        return Err(wrong("storage", "No such storage."));
    }
    let rows: Vec<Value> = call
        .world
        .storages
        .values()
        .filter(considered)
        .filter(|s| is_visible(call, &s.id))
        .filter(|s| args.text("storage").is_none_or(|id| s.id == id))
        .filter(|s| !(args.is_set("enabled") && s.is_disabled()))
        .filter(|s| target.is_none_or(|target| s.is_shared() && s.is_on(&node) && s.is_on(target)))
        .map(|s| {
            let mut row = info(call.world, s, &node, args.is_set("format"));
            row.insert("storage".into(), json!(s.id));
            let total = row["total"].as_f64().unwrap_or_default();
            if total > 0.0 {
                let used = row["used"].as_f64().unwrap_or_default();
                row.insert("used_fraction".into(), json!(used / total));
            }
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn status(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let storage = call.world.storages.get(call.args.must("storage"));
    let storage = storage.ok_or_else(|| wrong("storage", "No such storage."))?;
    Ok(Value::Object(info(call.world, storage, &node, false)).into())
}

fn history_params() -> Vec<Param> {
    let mut params = one();
    params.push(text("timeframe").one_of(&["hour", "day", "week", "month", "year"]));
    params.push(text("cf").one_of(&["AVERAGE", "MAX"]).opt());
    params
}

/// Nothing is measured here, so the history has times and no values.
pub fn history_of(call: &Call<'_>) -> Value {
    let step = match call.args.must("timeframe") {
        "hour" => 60,
        "day" => 1800,
        "week" => 10_800,
        "month" => 43_200,
        _ => 604_800,
    };
    let now = call.world.now() / step * step;
    (0..70).rev().map(|n| json!({ "time": now - n * step })).collect()
}
