//! A network that guests are in is not taken away.

use serde::Deserialize;
use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::class::CLASSES;
use super::config::{is_adopted, items};
use crate::api::Params;
use crate::client::Client;
use crate::datacenter::Row;
use crate::execute::Work;

#[derive(Deserialize)]
struct GuestRow {
    vmid: u32,
    #[serde(rename = "type")]
    kind: String,
    node: String,
}

/// Before the operation: whatever other stacks of the run were to do to guests is done by then.
pub(super) async fn check(work: &Work<'_>) -> Result<(), ProviderError> {
    match obstacle(work.client, work.operation, &[]).await? {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Why networks cannot be taken away, when the operations of `earlier` are done. Looks at every guest, and only where a network is to go.
pub(super) async fn obstacle(
    client: &Client,
    operation: &Operation,
    earlier: &[Operation],
) -> Result<Option<ProviderError>, ProviderError> {
    let going = going(operation);
    if going.is_empty() {
        return Ok(None);
    }
    let doing = "see which guests are in the networks that are to go";
    let query = Params::new().with("type", "vm");
    let guests: Vec<GuestRow> =
        client.get("/cluster/resources", query).await.map_err(|error| error.explain(doing))?;
    let mut inside = Vec::new();
    for guest in guests {
        let of_it = |operation: &&Operation| {
            crate::kinds::is_guest(operation.address.kind())
                && operation.spec.get("vmid").and_then(Value::as_int) == Some(i64::from(guest.vmid))
        };
        let used: Vec<String> = match earlier.iter().rfind(of_it) {
            Some(gone) if gone.action == Action::Delete => continue,
            Some(changed) if changed.spec.contains_key("networks") => bridges_of(&changed.spec),
            _ => {
                let path = format!("/nodes/{}/{}/{}/config", guest.node, guest.kind, guest.vmid);
                let config: Row =
                    client.get(&path, Params::new()).await.map_err(|error| error.explain(doing))?;
                let devices = config.iter().filter(|(key, _)| key.starts_with("net"));
                devices.filter_map(|(_, value)| Some(bridge(value.as_str()?)?.to_owned())).collect()
            }
        };
        for vnet in used.iter().filter(|bridge| going.contains(bridge)) {
            let what = if guest.kind == "lxc" { "container" } else { "VM" };
            inside.push(format!("{what} {} is in `{vnet}`", guest.vmid));
        }
    }
    if inside.is_empty() {
        return Ok(None);
    }
    let message = format!("guests are in networks that would be taken away: {}", inside.join(", "));
    let mut error = ProviderError::new(ErrorClass::Refused, message)
        .hint("give these guests another network first, or keep theirs");
    error.nothing_done = true;
    Ok(Some(error))
}

fn bridges_of(spec: &Spec) -> Vec<String> {
    let networks = spec.get("networks").and_then(Value::as_map).into_iter().flat_map(Spec::values);
    networks.filter_map(|network| Some(network.as_map()?.get("bridge")?.as_text()?.to_owned())).collect()
}

/// `virtio=BC:24:…,bridge=front,tag=5`.
fn bridge(device: &str) -> Option<&str> {
    device.split(',').find_map(|part| part.strip_prefix("bridge="))
}

/// The networks that an operation takes away.
fn going(operation: &Operation) -> Vec<String> {
    let Some(vnets) = CLASSES.iter().find(|class| class.field == "vnets") else { return Vec::new() };
    let wanted = items(&operation.spec, vnets);
    if operation.action == Action::Delete {
        let own = wanted.into_iter().filter(|(_, own)| !is_adopted(own));
        return own.map(|(name, _)| name.to_owned()).collect();
    }
    let touched = operation.changes.iter().filter(|change| change.path.first() == Some(vnets.field));
    let names = touched.filter_map(|change| change.path.keys().get(1));
    names.filter(|name| !wanted.contains_key(name.as_str())).cloned().collect()
}
