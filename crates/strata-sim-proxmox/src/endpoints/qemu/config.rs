//! Reading a VM's configuration: with pending values, without, or that of a snapshot.

use serde_json::{Map, Value, json};

use super::schema;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Reply, Route, flag, format, get, no, text, wrong_many};
use crate::world::guest::{Config, Pending};
use crate::world::{Guest, GuestKind};

pub fn routes() -> Vec<Route> {
    let audit = || on("/vms/{vmid}", &["VM.Audit"]);
    let own = || vec![usual::node(), usual::vmid()];
    let read = [own(), vec![flag("current").opt(), snapname("snapshot").opt()]].concat();
    vec![
        get("/nodes/{node}/qemu/{vmid}/config", audit(), read, read_config),
        get("/nodes/{node}/qemu/{vmid}/pending", audit(), own(), read_pending),
    ]
}

/// The name of a snapshot.
pub fn snapname(name: &'static str) -> Param {
    text(name).format(format::configid).max_len(40)
}

const MASK: &str = "**********";

/// A configuration as the API shows it.
pub fn show(config: &Config, digest: Option<String>, mask: bool) -> Map<String, Value> {
    let mut data = Map::with_capacity(config.len() + 1);
    for (key, value) in config {
        let shown = if mask && key == "cipassword" { json!(MASK) } else { schema::shown(key, value) };
        data.insert(key.clone(), shown);
    }
    if let Some(digest) = digest {
        data.insert("digest".into(), json!(digest));
    }
    data
}

/// The configuration as it will be after the next start.
pub fn with_pending(guest: &Guest) -> Config {
    let mut config = guest.config.clone();
    for (key, change) in &guest.pending {
        match change {
            Pending::Set(value) => config.insert(key.clone(), value.clone()),
            Pending::Delete { .. } => config.remove(key),
        };
    }
    config
}

fn read_config(call: &mut Call<'_>) -> Reply {
    let snapshot = call.args.owned("snapshot");
    if snapshot.is_some() && call.args.is_set("current") {
        let text = json!("cannot use 'snapshot' parameter with 'current'");
        let errors = [("snapshot", text.clone()), ("current", text)];
        return Err(wrong_many(errors.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()));
    }
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    let digest = Some(guest.digest());
    let data = match snapshot {
        Some(name) => {
            let snapshot = guest.snapshots.get(&name);
            show(snapshot.ok_or_else(|| no(format!("snapshot '{name}' does not exist")))?, digest, true)
        }
        None if call.args.is_set("current") || guest.pending.is_empty() => show(&guest.config, digest, true),
        None => show(&with_pending(guest), digest, true),
    };
    Ok(Value::Object(data).into())
}

fn read_pending(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    let mask = |key: &str, value: &str| match key {
        "cipassword" => json!(MASK),
        _ => schema::shown(key, value),
    };
    let mut rows: Vec<Value> = Vec::new();
    for (key, value) in &guest.config {
        let mut row = json!({ "key": key, "value": mask(key, value) });
        match guest.pending.get(key) {
            Some(Pending::Set(new)) => row["pending"] = mask(key, new),
            Some(Pending::Delete { force }) => row["delete"] = json!(if *force { 2 } else { 1 }),
            None => {}
        }
        rows.push(row);
    }
    for (key, change) in guest.pending.iter().filter(|(key, _)| !guest.config.contains_key(*key)) {
        match change {
            Pending::Set(value) => rows.push(json!({ "key": key, "pending": mask(key, value) })),
            Pending::Delete { force } => {
                rows.push(json!({ "key": key, "delete": if *force { 2 } else { 1 } }))
            }
        }
    }
    rows.push(json!({ "key": "digest", "value": guest.digest() }));
    Ok(Value::Array(rows).into())
}
