//! A network that guests are in is not taken away.

use serde::Deserialize;
use strata_engine::{ErrorClass, ProviderError};
use strata_state::Action;

use super::class::CLASSES;
use super::config::{is_adopted, items};
use crate::api::Params;
use crate::datacenter::Row;
use crate::execute::Work;

#[derive(Deserialize)]
struct GuestRow {
    vmid: u32,
    #[serde(rename = "type")]
    kind: String,
    node: String,
}

/// Looks at every guest, and only where a network is to go. What other stacks of the run delete is gone by then.
pub(super) async fn check(work: &Work<'_>) -> Result<(), ProviderError> {
    let going = going(work);
    if going.is_empty() {
        return Ok(());
    }
    let doing = "see which guests are in the networks that are to go";
    let query = Params::new().with("type", "vm");
    let guests: Vec<GuestRow> =
        work.client.get("/cluster/resources", query).await.map_err(|error| error.explain(doing))?;
    let mut inside = Vec::new();
    for guest in guests {
        let path = format!("/nodes/{}/{}/{}/config", guest.node, guest.kind, guest.vmid);
        let config: Row =
            work.client.get(&path, Params::new()).await.map_err(|error| error.explain(doing))?;
        let devices = config.iter().filter(|(key, _)| key.starts_with("net"));
        let used = devices.filter_map(|(_, value)| bridge(value.as_str()?));
        for vnet in used.filter(|bridge| going.iter().any(|vnet| vnet == bridge)) {
            let what = if guest.kind == "lxc" { "container" } else { "VM" };
            inside.push(format!("{what} {} is in `{vnet}`", guest.vmid));
        }
    }
    if inside.is_empty() {
        return Ok(());
    }
    let message = format!("guests are in networks that would be taken away: {}", inside.join(", "));
    let mut error = ProviderError::new(ErrorClass::Refused, message)
        .hint("give these guests another network first, or keep theirs");
    error.nothing_done = true;
    Err(error)
}

/// `virtio=BC:24:…,bridge=front,tag=5`.
fn bridge(device: &str) -> Option<&str> {
    device.split(',').find_map(|part| part.strip_prefix("bridge="))
}

/// The networks that an operation takes away.
fn going(work: &Work<'_>) -> Vec<String> {
    let operation = work.operation;
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
