//! The call that makes a guest, as data: a pure function of its spec. No IO.

use http::Method;
use strata_resource::{Spec, Value};

use super::{Call, Patience};
use crate::api::Params;
use crate::client::Rights;
use crate::codec::{CodecError, create_params, is_root_only};
use crate::guest::Guest;

/// The template that a guest is cloned from.
pub(crate) fn clone_source(spec: &Spec) -> Option<u32> {
    let source = spec.get("clone")?.as_map()?.get("template")?.as_int()?;
    u32::try_from(source).ok()
}

/// The hypervisor that the template is on, where the spec says it.
pub(crate) fn template_node(spec: &Spec) -> Option<&str> {
    spec.get("clone")?.as_map()?.get("node")?.as_text()
}

/// A new guest, with everything that its spec says.
pub(crate) fn create(guest: &Guest, spec: &Spec) -> Result<Call, CodecError> {
    let mut params = create_params(guest.kind, spec)?;
    params.set("vmid", guest.vmid);
    if let Some(pool) = spec.get("pool").and_then(Value::as_text) {
        params.set("pool", pool);
    }
    let root = params.pairs().any(|(key, value)| is_root_only(guest.kind, key, value));
    Ok(Call {
        method: Method::POST,
        path: format!("/nodes/{}/{}", guest.node, guest.kind.path()),
        params,
        rights: if root { Rights::Root } else { Rights::Usual },
        doing: format!("create {guest} on `{}`", guest.node),
        patience: Patience::Create.of(spec),
    })
}

/// A clone of a VM, straight to its storage, with the mark in its notes. Where the template is elsewhere, it is cloned from there.
pub(crate) fn clone(guest: &Guest, spec: &Spec, source: u32, from: &str) -> Result<Call, CodecError> {
    let empty = Spec::new();
    let clone = spec.get("clone").and_then(Value::as_map).unwrap_or(&empty);
    let full = clone.get("full").and_then(Value::as_bool).unwrap_or(true);
    let mut params = Params::new().with("newid", guest.vmid).with("full", u8::from(full));
    let described = create_params(guest.kind, spec)?;
    for (key, value) in described.pairs().filter(|(key, _)| matches!(*key, "name" | "description")) {
        params.set(key, value);
    }
    if let Some(pool) = spec.get("pool").and_then(Value::as_text) {
        params.set("pool", pool);
    }
    if let Some(storage) = clone.get("storage").and_then(Value::as_text).filter(|_| full) {
        params.set("storage", storage);
    }
    if from != guest.node {
        params.set("target", &guest.node);
    }
    Ok(Call {
        method: Method::POST,
        path: format!("/nodes/{from}/{}/{source}/clone", guest.kind.path()),
        params,
        rights: Rights::Usual,
        doing: format!("clone {guest} on `{}` from template {source}", guest.node),
        patience: Patience::Clone.of(spec),
    })
}
