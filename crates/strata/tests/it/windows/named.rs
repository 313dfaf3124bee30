//! Somebody acts at one request that is named by its method and path: the windows that a count of requests hits only by chance.

use serde_json::{Value, json};

use super::{APPLY, requests};
use crate::layer0::{FILE, datacenter};
use crate::story::edited;
use crate::world::World;

/// Runs a command whose request matches a fault; lets somebody act when it has struck, and the run go on. Gives what the run said.
fn act_at(world: &World, command: &[&str], fault: &Value, act: &dyn Fn()) -> String {
    let control = world.sim.control();
    let id = control.fault(fault);
    let running = std::thread::scope(|scope| {
        let run = scope.spawn(|| world.strata().run(command));
        assert!(control.wait_fault(id, 60.0), "{fault} did not strike");
        act();
        control.release(id);
        run.join().unwrap()
    });
    control.clear_faults();
    assert_ne!(running.code, 0, "{}\n{:#?}", running.all(), requests(world));
    running.all()
}

fn change(world: &World, method: &str, path: &str, params: Value) {
    let change = json!({"method": method, "path": path, "params": params});
    let answer = world.sim.control().change(&change);
    assert_eq!(answer["status"], 200, "{answer}");
}

fn node(world: &World) -> Value {
    let export = world.export();
    export["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "pve1").unwrap().clone()
}

const NETWORK: &str = "/nodes/pve1/network";
/// `bond0` is staged before `vmbr5`.
const BRIDGES: &str = "metadata: {name: dc, environment: test}\nproxmox: {target: pve, node: pve1}\nnetwork:\n  bond0: {mode: active-backup}\n  vmbr5: {comment: for storage}\n";

/// A bridge of somebody with a name of ours: as ours is to be, or with another comment.
fn bridge(comment: &str) -> Value {
    json!({"iface": "vmbr5", "type": "bridge", "autostart": 1, "comments": comment})
}

/// Neither the next apply nor a destroy touches what somebody staged; once they have brought it into effect, that is so too.
fn assert_theirs(world: &World, comment: &str) {
    for command in [&APPLY[..], &["destroy", "--yes"]] {
        let refused = world.strata().run(command);
        assert_ne!(refused.code, 0, "{command:?}: {}", refused.all());
        assert!(
            refused.all().contains("staged that this repository did not make (`vmbr5`)"),
            "{}",
            refused.all()
        );
        let node = node(world);
        assert!(node["staged"]["vmbr5"].to_string().contains(comment), "{command:?}: {node}");
        assert!(node["interfaces"]["vmbr5"].is_null(), "{command:?}: it was brought into effect");
    }
    change(world, "PUT", NETWORK, json!({}));
    world.strata().run(&["plan"]).code(3);
    world.strata().run(&["destroy", "--yes"]).ok();
    let node = node(world);
    assert!(node["interfaces"]["vmbr5"].to_string().contains(comment), "{node}");
    assert!(node["interfaces"]["bond0"].is_null(), "ours is gone: {node}");
}

#[test]
fn a_bridge_that_somebody_stages_between_two_of_ours_is_not_ours() {
    for comment in ["of somebody", "for storage"] {
        let world = datacenter(BRIDGES);
        let first = json!({"kind": "hold-after", "method": "POST", "path": NETWORK});
        let told = act_at(&world, &APPLY, &first, &|| change(&world, "POST", NETWORK, bridge(comment)));
        assert!(told.contains("somebody else stages changes of the network of `pve1` (vmbr5)"), "{told}");
        assert_theirs(&world, comment);
    }
}

/// The request for ours is on its way: the server refuses it, and what is staged is not taken back with ours.
#[test]
fn a_bridge_that_somebody_stages_in_the_moment_of_ours_is_not_ours() {
    for comment in ["of somebody", "for storage"] {
        let world = datacenter(BRIDGES);
        let second = json!({"kind": "hold-before", "method": "POST", "path": NETWORK, "nth": 2});
        act_at(&world, &APPLY, &second, &|| change(&world, "POST", NETWORK, bridge(comment)));
        assert_theirs(&world, comment);
    }
}

#[test]
fn a_bridge_that_somebody_stages_after_a_kill_is_not_ours() {
    let world = datacenter(BRIDGES);
    let control = world.sim.control();
    let fault = control.fault(&json!({"kind": "hold-after", "method": "POST", "path": NETWORK}));
    let mut child = world.strata().spawn(&APPLY);
    assert!(control.wait_fault(fault, 60.0));
    child.kill().unwrap();
    child.wait().unwrap();
    control.clear_faults();
    change(&world, "POST", NETWORK, bridge("of somebody"));
    assert_theirs(&world, "of somebody");
}

const ACCESS: &str = "metadata: {name: dc, environment: test}\nproxmox: {target: pve, node: pve1}\nroles:\n  Ops: [VM.Audit, VM.Console]\ngroups:\n  ops: {comment: operators}\npools:\n  web: {comment: for the web}\n";

fn made(source: &str, edits: &[(&str, &str)]) -> World {
    let world = datacenter(source);
    world.strata().run(&APPLY).ok();
    world.repo.write(FILE, &edited(source, edits));
    world
}

fn add_privilege(world: &World) {
    change(world, "PUT", "/access/roles/Ops", json!({"privs": "VM.Backup", "append": 1}));
}

/// Between our change and the look that proves it.
#[test]
fn what_somebody_adds_to_what_was_just_changed_is_not_undone() {
    let world = made(ACCESS, &[("[VM.Audit, VM.Console]", "[VM.Audit]")]);
    let put = json!({"kind": "hold-after", "method": "PUT", "path": "/access/roles/Ops"});
    let told = act_at(&world, &APPLY, &put, &|| add_privilege(&world));
    assert!(told.contains("somebody else changed role `Ops` at the same time"), "{told}");
    assert_eq!(world.export()["roles"]["Ops"], json!(["VM.Audit", "VM.Backup"]));
    let world = made(ACCESS, &[("for the web", "for all")]);
    let put = json!({"kind": "hold-after", "method": "PUT", "path": "/pools*"});
    let comment = || change(&world, "PUT", "/pools/web", json!({"comment": "of somebody"}));
    act_at(&world, &APPLY, &put, &comment);
    assert_eq!(world.export()["pools"]["web"]["comment"], "of somebody");
}

/// A lock of the server holds our change up; what happens meanwhile is looked at before it is sent again.
#[test]
fn what_somebody_does_while_a_lock_holds_us_up_is_not_undone() {
    let world = made(ACCESS, &[("[VM.Audit, VM.Console]", "[VM.Audit]")]);
    let locked = json!({"kind": "refuse", "method": "PUT", "path": "/access/roles/Ops", "count": 4, "status": 500,
        "text": "VM is locked (backup)"});
    let told = act_at(&world, &APPLY, &locked, &|| add_privilege(&world));
    assert!(told.contains("somebody else changed role `Ops`"), "{told}");
    assert_eq!(world.export()["roles"]["Ops"], json!(["VM.Audit", "VM.Backup", "VM.Console"]));
}

/// What somebody makes under the name of what we have just deleted is theirs.
#[test]
fn what_somebody_makes_where_we_deleted_is_not_deleted() {
    let made_again = [
        ("/access/roles/Ops", "/access/roles", json!({"roleid": "Ops", "privs": "VM.Audit,VM.Console"})),
        ("/access/groups/ops", "/access/groups", json!({"groupid": "ops", "comment": "of somebody"})),
        ("/pools*", "/pools", json!({"poolid": "web", "comment": "of somebody"})),
    ];
    for (path, list, params) in made_again {
        let world = made(ACCESS, &[]);
        let delete = json!({"kind": "hold-after", "method": "DELETE", "path": path});
        let told =
            act_at(&world, &["destroy", "--yes"], &delete, &|| change(&world, "POST", list, params.clone()));
        assert!(told.contains("after it was deleted"), "{told}");
        let export = world.export();
        let there = [&export["roles"]["Ops"], &export["groups"]["ops"], &export["pools"]["web"]];
        assert_eq!(there.iter().filter(|one| !one.is_null()).count(), 1, "{list}: {there:?}");
    }
}
