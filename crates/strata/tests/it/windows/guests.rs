//! Somebody works on a guest while it is created, changed or deleted: its settings, and what high availability does about it.

use std::cell::RefCell;

use serde_json::json;
use strata_sim::Pace;

use super::{APPLY, APPLY_PLAN, FILE, PLAN, Window, act_at, guest, overwritten_knowingly, requests};
use crate::findings::wait_for_ha;
use crate::world::{STACK, World};

pub(super) const WINDOWS: [Window; 4] = [
    ("deletes", survives_deletes),
    ("managed while it is deleted", managed_while_deleted),
    ("settings while it is made", setting_survives_creates),
    ("managed while it is changed", managed_in_between),
];

/// One of each kind: a template, a clone, one with an ISO of its own, one from an ISO, a container.
const OURS: [(&str, &str); 5] = [
    ("9000", "/nodes/pve1/qemu/9000"),
    ("9100", "/nodes/pve1/qemu/9100"),
    ("9110", "/nodes/pve1/qemu/9110"),
    ("9120", "/nodes/pve1/qemu/9120"),
    ("9200", "/nodes/pve1/lxc/9200"),
];

/// Sets something that the source says nothing about, wherever that is possible. Gives where it was.
fn set_units(world: &World) -> Vec<(&'static str, &'static str)> {
    let set = |(_, path): &&(&str, &str)| {
        let path = format!("{path}/config");
        let change = json!({"method": "PUT", "path": path, "params": {"cpuunits": 77}});
        world.sim.control().change(&change)["status"] == 200
    };
    OURS.iter().filter(set).copied().collect()
}

fn has_units(world: &World, vmid: &str) -> bool {
    guest(&world.export(), vmid).to_string().contains("77")
}

/// A guest that was changed after the plan is not deleted, unless the change came after the last look.
fn survives_deletes(k: u64) -> bool {
    let world = World::instant(STACK);
    world.strata().run(&APPLY).ok();
    world.strata().run(&["plan", "--destroy", "-o", PLAN]).ok();
    let set = RefCell::new(Vec::new());
    let acted = act_at(&world, &APPLY_PLAN, k, &|| *set.borrow_mut() = set_units(&world));
    if let Some(acted) = acted {
        let requests = requests(&world);
        for (vmid, path) in set.into_inner() {
            let alive = has_units(&world, vmid);
            let (look, write) = (format!("GET {path}/pending"), format!("DELETE {path}"));
            let known = overwritten_knowingly(&requests, acted, &look, &write);
            assert!(alive || !known, "{k}: {vmid} was changed and deleted: {requests:#?}");
        }
    }
    // What is planned again is deleted with the change.
    let ended = world.strata().run(&["destroy", "--yes"]);
    assert_eq!(ended.code, 0, "{k}: {}", ended.all());
    assert!(OURS.iter().all(|(vmid, _)| guest(&world.export(), vmid).is_null()), "{k}");
    acted.is_some()
}

fn setting_survives_creates(k: u64) -> bool {
    let world = World::new();
    let set = RefCell::new(Vec::new());
    let acted = act_at(&world, &APPLY, k, &|| *set.borrow_mut() = set_units(&world));
    let again = world.strata().run(&APPLY);
    assert_eq!(again.code, 0, "{k}: {}", again.all());
    for (vmid, _) in set.into_inner() {
        assert!(has_units(&world, vmid), "{k}: the setting of {vmid} is lost");
    }
    world.assert_settled();
    acted.is_some()
}

/// Gives a VM and a container to high availability, and waits until its manager knows them: what is asked of it before is dropped.
fn manage(world: &World) {
    for sid in ["vm:9100", "ct:9200"] {
        let change = json!({"method": "POST", "path": "/cluster/ha/resources", "params": {"sid": sid}});
        world.sim.control().change(&change);
        wait_for_ha(world, sid, "started");
    }
}

/// High availability is given a VM and a container while they are shut down and deleted: it starts again what it was not asked to stop.
fn managed_while_deleted(k: u64) -> bool {
    let world = World::with(Pace::FAST, STACK);
    world.strata().run(&APPLY).ok();
    world.strata().run(&["plan", "--destroy", "-o", PLAN]).ok();
    let acted = act_at(&world, &APPLY_PLAN, k, &|| {
        for sid in ["vm:9100", "ct:9200"] {
            let change = json!({"method": "POST", "path": "/cluster/ha/resources", "params": {"sid": sid}});
            world.sim.control().change(&change);
        }
    });
    let ended = world.strata().run(&["destroy", "--yes"]);
    assert_eq!(ended.code, 0, "{k}: {}", ended.all());
    assert!(OURS.iter().all(|(vmid, _)| guest(&world.export(), vmid).is_null()), "{k}");
    acted.is_some()
}

/// High availability takes a VM and a container over while they are changed and restarted.
fn managed_in_between(k: u64) -> bool {
    let world = World::with(Pace::FAST, STACK);
    world.strata().run(&APPLY).ok();
    let more = STACK
        .replace("memory: 4096", "memory: 6144")
        .replace("{user: debian, password", "{user: admin, password")
        .replace("memory: 256", "memory: 512");
    world.repo.write(FILE, &more);
    let acted = act_at(&world, &APPLY, k, &|| manage(&world));
    let again = world.strata().run(&APPLY);
    assert_eq!(again.code, 0, "{k}: {}", again.all());
    for vmid in ["9100", "9200"] {
        let guest = guest(&world.export(), vmid);
        assert_eq!(guest["power"], "running", "{k}: {guest}");
    }
    assert!(guest(&world.export(), "9100").to_string().contains("6144"), "{k}");
    world.assert_settled();
    acted.is_some()
}
