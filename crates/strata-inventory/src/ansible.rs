//! Ansible's protocol of dynamic inventories: `--list` with the variables of all hosts, `--host NAME` with those of one.

use serde_json::{Map, Value, json};

use crate::host::{Host, Inventory};

/// What `--list` answers.
pub fn list(inventory: &Inventory) -> Value {
    let mut all = Map::new();
    for (group, hosts) in &inventory.groups {
        all.insert(group.clone(), json!({"hosts": hosts}));
    }
    let names: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
    let groups: Vec<&String> = inventory.groups.keys().collect();
    all.insert("all".to_owned(), json!({"hosts": names, "children": groups}));
    let variables: Map<String, Value> =
        inventory.hosts.iter().map(|host| (host.name.clone(), variables(host))).collect();
    all.insert("_meta".to_owned(), json!({"hostvars": variables}));
    Value::Object(all)
}

/// What `--host NAME` answers; nothing of a host that is not there.
pub fn host(inventory: &Inventory, name: &str) -> Value {
    inventory.host(name).map_or_else(|| json!({}), variables)
}

fn variables(host: &Host) -> Value {
    let mut found = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            found.insert(name.to_owned(), value);
        }
    };
    put("ansible_host", json!(host.address));
    put("ansible_user", json!(host.user.as_deref().map(literal)));
    put("strata_stack", json!(literal(&host.stack)));
    put("strata_environment", json!(literal(&host.environment)));
    put("strata_layer", json!(host.layer));
    put("strata_kind", json!(host.kind));
    put("strata_resource", json!(literal(&host.resource.to_string())));
    put("strata_target", json!(literal(&host.target)));
    put("strata_addresses", json!(host.addresses));
    put("strata_vmid", json!(host.vmid));
    put("strata_node", json!(host.node.as_deref().map(literal)));
    put("strata_pool", json!(host.pool.as_deref().map(literal)));
    put("strata_tags", json!(host.tags.iter().map(|tag| literal(tag)).collect::<Vec<_>>()));
    put("strata_role", json!(host.role.as_deref().map(literal)));
    Value::Object(found)
}

/// Ansible evaluates variables: what would open an expression does not.
fn literal(text: &str) -> String {
    text.replace("{{", "__").replace("{%", "_%").replace("{#", "_#")
}
