//! Reading a container's configuration.

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
        get("/nodes/{node}/lxc/{vmid}/config", audit(), read, read_config),
        get("/nodes/{node}/lxc/{vmid}/pending", audit(), own(), read_pending),
    ]
}

/// The name of a snapshot.
pub fn snapname(name: &'static str) -> Param {
    text(name).format(format::configid).max_len(40)
}

/// A configuration as the API shows it.
pub fn show(config: &Config, digest: Option<String>) -> Map<String, Value> {
    let mut data: Map<String, Value> =
        config.iter().map(|(key, value)| (key.clone(), schema::shown(key, value))).collect();
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
    let vmid = call.vmid();
    let guest = call.world.guest(call.args.must("node"), vmid, GuestKind::Lxc)?;
    let digest = Some(guest.digest());
    let mut config = match snapshot {
        Some(name) => {
            let snapshot = guest.snapshots.get(&name).cloned();
            snapshot.ok_or_else(|| no(format!("snapshot '{name}' does not exist")))?
        }
        None if call.args.is_set("current") => guest.config.clone(),
        None => with_pending(guest),
    };
    // Environments can hold secrets.
    if !call.may(&format!("/vms/{vmid}"), "VM.Config.Options") {
        config.remove("env");
    }
    Ok(Value::Object(show(&config, digest)).into())
}

fn read_pending(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
    let mut rows: Vec<Value> = Vec::new();
    for (key, value) in &guest.config {
        let mut row = json!({ "key": key, "value": schema::shown(key, value) });
        match guest.pending.get(key) {
            Some(Pending::Set(new)) => row["pending"] = schema::shown(key, new),
            Some(Pending::Delete { .. }) => row["delete"] = json!(1),
            None => {}
        }
        rows.push(row);
    }
    for (key, change) in guest.pending.iter().filter(|(key, _)| !guest.config.contains_key(*key)) {
        match change {
            Pending::Set(new) => rows.push(json!({ "key": key, "pending": schema::shown(key, new) })),
            Pending::Delete { .. } => rows.push(json!({ "key": key, "delete": 1 })),
        }
    }
    rows.push(json!({ "key": "digest", "value": guest.digest() }));
    Ok(Value::Array(rows).into())
}
