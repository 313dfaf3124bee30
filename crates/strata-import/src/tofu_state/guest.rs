//! What machines and containers have in common in a state, as a source says it.

use crate::records::{Guest, Nic, Startup};
use serde_json::{Value as Json, json};
use strata_resource::Mark;

use crate::output::{Object, Put, tags};
use strata_tofu::Attributes;

/// The fields that stand first.
pub(super) fn common(
    attributes: Attributes<'_>,
    stack_node: &str,
    on_boot: &str,
    pool: Option<&str>,
) -> Object {
    let mut guest = Object::new();
    let node = attributes.text("node_name").filter(|node| *node != stack_node);
    guest.put(Guest::node, node);
    guest.put(Guest::pool, attributes.text("pool_id").or(pool));
    guest.put_full(Guest::notes, json!(notes(attributes)));
    let own: Vec<String> = attributes.texts("tags").into_iter().map(str::to_owned).collect();
    guest.put_full(Guest::tags, tags(&own));
    guest.put(Guest::protection, attributes.flag("protection").filter(|protection| *protection));
    guest.put(Guest::onboot, attributes.flag(on_boot).filter(|onboot| *onboot));
    guest.put_full(Guest::startup, startup(attributes));
    guest
}

/// What people wrote, without a mark that a rendered project may have put there.
fn notes(attributes: Attributes<'_>) -> String {
    Mark::split_from_notes(attributes.text("description").unwrap_or_default()).1
}

fn startup(attributes: Attributes<'_>) -> Json {
    let mut startup = Object::new();
    if let Some(block) = attributes.block("startup") {
        for (key, field) in
            [(Startup::order, "order"), (Startup::up_delay, "up_delay"), (Startup::down_delay, "down_delay")]
        {
            startup.put(key, block.int(field).filter(|number| *number >= 0));
        }
    }
    Json::Object(startup)
}

/// The addresses of one network device.
pub(super) fn addresses(device: &mut Object, config: Option<Attributes<'_>>) {
    let Some(config) = config else { return };
    for (block, address, gateway) in [("ipv4", Nic::ip, Nic::gateway), ("ipv6", Nic::ip6, Nic::gateway6)] {
        if let Some(inner) = config.block(block) {
            device.put(address, inner.text("address"));
            device.put(gateway, inner.text("gateway"));
        }
    }
}

/// A rate as a number that reads well.
pub(super) fn number(number: f64) -> Json {
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}
