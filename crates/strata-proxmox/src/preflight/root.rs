//! Keys that only root@pam may set, with a ticket: an API token never is root, whoever it belongs to.

use std::collections::BTreeSet;

use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use crate::client::Client;
use crate::codec::{GuestKind, create_params, field_of, is_root_only, keys_of};

pub(crate) fn forbidden_keys(client: &Client, operation: &Operation, kind: GuestKind) -> Vec<ProviderError> {
    if client.can_be_root() {
        return Vec::new();
    }
    // What cannot be written at all is told when the operation is done.
    let Ok(params) = create_params(kind, &operation.spec) else { return Vec::new() };
    let touched: Option<Vec<String>> = (operation.action == Action::Update).then(|| {
        operation.changes.iter().flat_map(|change| keys_of(kind, change, &operation.spec)).collect()
    });
    if operation.action == Action::Delete {
        return Vec::new();
    }
    let is_touched =
        |key: &str| touched.as_ref().is_none_or(|keys| keys.iter().any(|touched| touched == key));
    // What an update takes away needs the same rights as what it sets.
    let live = operation.observed.as_ref().filter(|_| touched.is_some());
    let live = live.and_then(|observed| create_params(kind, &observed.spec).ok()).unwrap_or_default();
    let pairs = params.pairs().chain(live.pairs());
    let forbidden = pairs.filter(|(key, value)| is_root_only(kind, key, value) && is_touched(key));
    let keys: BTreeSet<&str> = forbidden.map(|(key, _)| key).collect();
    keys.into_iter().map(|key| refusal(client, kind, operation, key)).collect()
}

fn refusal(client: &Client, kind: GuestKind, operation: &Operation, key: &str) -> ProviderError {
    let field = field_in_options(&operation.spec, key)
        .or_else(|| field_of(kind, key))
        .unwrap_or_else(|| key.to_owned());
    let who = if client.uses_token() {
        "an API token is never root"
    } else {
        "the user of the target is not root@pam"
    };
    let message = format!("`{}`: only root@pam may set `{field}` (`{key}`); {who}", operation.address);
    let hint = match key {
        _ if key.starts_with("hostpci") => {
            "use a PCI mapping instead of a raw device, or give the target `login: {user: root@pam, password: …}`"
        }
        _ if key.starts_with("usb") => {
            "use a USB mapping instead of a raw device, or give the target `login: {user: root@pam, password: …}`"
        }
        _ => "give the target `login: {user: root@pam, password: …}` for such keys",
    };
    let mut error = ProviderError::new(ErrorClass::Refused, message).field(field).hint(hint);
    error.nothing_done = true;
    error
}

fn field_in_options(spec: &Spec, key: &str) -> Option<String> {
    let options = spec.get("options").and_then(Value::as_map)?;
    options.contains_key(key).then(|| format!("options.{key}"))
}
