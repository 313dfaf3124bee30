//! The subscription of a node. No key is ever confirmed.

use serde_json::json;

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Perm, Reply, Route, delete, flag, get, post, put, text};

const URL: &str = "https://www.proxmox.com/en/proxmox-virtual-environment/pricing";

pub fn routes() -> Vec<Route> {
    let path = "/nodes/{node}/subscription";
    let modify = || on("/nodes/{node}", &["Sys.Modify"]);
    let key = text("key").pattern(r"\s*pve([1248])([cbsp])-[0-9a-f]{10}\s*").max_len(32);
    vec![
        get(path, Perm::Anyone, vec![usual::node()], show),
        put(path, modify(), vec![usual::node(), key], |call| {
            let (node, key) = (call.node(), call.args.must("key").trim().to_owned());
            if let Some(node) = call.world.nodes.get_mut(&node) {
                node.subscription = Some(key);
            }
            Ok(().into())
        }),
        post(path, modify(), vec![usual::node(), flag("force").opt()], |_| Ok(().into())),
        delete(path, modify(), vec![usual::node()], |call| {
            let node = call.node();
            if let Some(node) = call.world.nodes.get_mut(&node) {
                node.subscription = None;
            }
            Ok(().into())
        }),
    ]
}

/// Those who may not look at the node are told neither its id nor its key.
fn show(call: &mut Call<'_>) -> Reply {
    let name = call.args.must("node");
    let mut row = match &call.world.nodes[name].subscription {
        None => json!({ "status": "notfound", "message": "There is no subscription key", "url": URL }),
        Some(key) => json!({
            "status": "new", "message": "subscription has not been confirmed", "url": URL, "key": key,
            "level": key.chars().nth(4).map(String::from),
            "sockets": key.chars().nth(3).and_then(|c| c.to_digit(10)),
        }),
    };
    if call.may(&format!("/nodes/{name}"), "Sys.Audit") {
        row["serverid"] = json!(hex::encode_upper(&call.world.derive(&["serverid", name])[..16]));
    } else if let Some(row) = row.as_object_mut() {
        row.remove("key");
    }
    Ok(row.into())
}
