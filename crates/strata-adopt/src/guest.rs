//! What VMs and containers have in common.

use serde_json::Value as Json;
use strata_source::machine::guest::{Guest, Startup};

use crate::fields::{Fields, Object, Put};
use crate::{StackDefaults, firewall};

/// Fields that say where and whose a guest is, or how it was made: none of them is written.
const NOT_WRITTEN: &[&str] =
    &["mark", "template", "clone", "timeouts", "rollout", "snapshot_before", "backup", "force_stop"];

/// The keys at the beginning of an entry. Gives whether the firewall applies.
pub(crate) fn begin(key: &str, left: &mut Fields, stack: &StackDefaults, yaml: &mut Object) -> bool {
    left.forget(NOT_WRITTEN);
    yaml.put(Guest::vm_id, left.int("vmid"));
    yaml.put(Guest::name, left.text("name").filter(|name| name != key));
    yaml.put(Guest::node, left.text("node").filter(|node| stack.node.as_ref() != Some(node)));
    yaml.put(Guest::pool, left.text("pool").filter(|pool| stack.pool.as_ref() != Some(pool)));
    yaml.put_full(Guest::tags, left.texts("tags").unwrap_or_default().into());
    yaml.put(Guest::notes, left.text("notes"));
    yaml.put(Guest::protection, left.unless("protection", false));
    yaml.put(Guest::onboot, left.unless("onboot", false));
    if let Some(mut startup) = left.map("startup") {
        let mut written = Object::new();
        written.put(Startup::order, startup.int("order"));
        written.put(Startup::up_delay, startup.int("up"));
        written.put(Startup::down_delay, startup.int("down"));
        yaml.put_full(Guest::startup, Json::Object(written));
    }
    if left.text("power").as_deref() == Some("stopped") {
        yaml.set(Guest::started, false);
    }
    let firewall = left.map("firewall").and_then(firewall::written);
    let applies = firewall.as_ref().is_some_and(firewall::applies);
    yaml.put(Guest::firewall, firewall);
    applies
}

/// The raw keys at its end.
pub(crate) fn end(left: &mut Fields, more: Object, yaml: &mut Object) {
    let mut options = match left.map("options").unwrap_or_default().raw() {
        Json::Object(options) => options,
        _ => Object::new(),
    };
    options.extend(more);
    yaml.put_full(Guest::options, Json::Object(options));
}
