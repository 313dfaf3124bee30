//! The source that kills and faults are tried on: images, a template, clones, cloud-init data, containers; two versions of it.

use serde_json::json;

use crate::world::{Source, World, volid};

fn drive(content: &str) -> serde_json::Value {
    json!({"cdroms": {"ide2": {"volume": volid(content)}}})
}

fn clone_with(content: &str) -> serde_json::Value {
    json!({"clone": {"template": 9000}, "cdroms": {"ide2": {"volume": volid(content)}}})
}

pub(crate) fn first() -> Source {
    Source::default()
        .image("debian", "debian-12")
        .image("talos", "talos-1")
        .cidata("web-1", "web-1-a")
        .cidata("web-2", "web-2-a")
        .template("base", 9000)
        .needs(&["image/debian"])
        .vm("web-1", 101, clone_with("web-1-a"))
        .password("one")
        .needs(&["template/base", "cidata/web-1"])
        .vm("web-2", 102, clone_with("web-2-a"))
        .needs(&["template/base", "cidata/web-2"])
        .vm("cp-1", 110, drive("talos-1"))
        .needs(&["image/talos"])
        .vm("cp-2", 111, drive("talos-1"))
        .needs(&["image/talos", "vm/cp-1"])
        .container("dns", 120, json!({}))
        .container("log", 121, json!({}))
        .vm("client", 130, json!({"options": {"server": {"$input": "s/container/dns#ip"}}}))
        .needs(&["container/dns"])
}

/// Other cloud-init data, another image, another VMID, another architecture, one gone, one new, fields changed.
pub(crate) fn second() -> Source {
    Source::default()
        .image("debian", "debian-12")
        .image("talos", "talos-2")
        .cidata("web-1", "web-1-b")
        .cidata("web-2", "web-2-a")
        .template("base", 9000)
        .with(json!({"onboot": true}))
        .needs(&["image/debian"])
        .vm("web-1", 101, clone_with("web-1-b"))
        .password("two")
        .needs(&["template/base", "cidata/web-1"])
        .vm("web-2", 202, clone_with("web-2-a"))
        .needs(&["template/base", "cidata/web-2"])
        .vm("web-3", 103, json!({"clone": {"template": 9000}}))
        .needs(&["template/base"])
        .vm("cp-1", 110, drive("talos-2"))
        .with(json!({"cpu": {"cores": 4}}))
        .needs(&["image/talos"])
        .vm("cp-2", 111, drive("talos-2"))
        .with(json!({"arch": "aarch64"}))
        .needs(&["image/talos", "vm/cp-1"])
        .container("dns", 120, json!({"memory": {"size": 2048}}))
        .vm(
            "client",
            130,
            json!({"options": {"server": {"$input": "s/container/dns#ip"}}, "power": "stopped"}),
        )
        .needs(&["container/dns"])
}

/// Others have guests and volumes here too; none of them may ever change.
pub(crate) fn populate(world: &World) {
    world.pve.unmanaged(500, json!({"vmid": 500, "name": "theirs", "power": "running"}));
    world.pve.unmanaged(
        501,
        json!({"vmid": 501, "name": "also-theirs", "mark": "strata: other s/vm/web-1 vmid=501"}),
    );
    world.pve.foreign_volume("local:iso/theirs.iso");
}
