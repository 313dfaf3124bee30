//! The directory listings of the API: which parts are below a path.

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::{Call, Perm, Reply, Route, get};

pub fn routes() -> Vec<Route> {
    vec![
        get("/", Perm::Anyone, vec![], |_| {
            subdirs(&["version", "cluster", "nodes", "storage", "access", "pools"])
        }),
        get("/version", Perm::Anyone, vec![], version),
        get("/nodes/{node}/version", Perm::Anyone, vec![usual::node()], version),
    ]
}

/// The release that is simulated.
pub const VERSION: &str = "9.1.7";
pub const RELEASE: &str = "9.1";
pub const REPOSITORY_ID: &str = "0307225d4bc8b3ed";

fn version(_: &mut Call<'_>) -> Reply {
    Ok(json!({ "version": VERSION, "release": RELEASE, "repoid": REPOSITORY_ID }).into())
}

/// A listing with the key most of them use.
pub fn subdirs(names: &[&str]) -> Reply {
    listing("subdir", names)
}

pub fn listing(key: &str, names: &[&str]) -> Reply {
    let rows: Vec<Value> = names.iter().map(|name| json!({ key: name })).collect();
    Ok(Value::Array(rows).into())
}
