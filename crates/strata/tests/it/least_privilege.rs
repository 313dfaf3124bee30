//! A token with just the role that Strata computed is enough; without any one of its privileges the preflight names what is missing.

use serde_json::{Value, json};

use crate::world::{STACK, World};

pub(crate) fn root(world: &World, method: &str, path: &str, params: &Value) -> Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
    answer["data"].clone()
}

/// The privileges that `strata doctor --role` asks for.
pub(crate) fn computed(world: &World) -> Vec<String> {
    computed_by(world, &["--json", "doctor", "--role"])
}

fn computed_by(world: &World, command: &[&str]) -> Vec<String> {
    let output = world.strata().run(command).ok();
    let event: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    event["privileges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|privilege| privilege.as_str().unwrap().to_owned())
        .collect()
}

/// A new user with a token that has just these privileges.
pub(crate) fn become_somebody_with(world: &World, privileges: &[String]) {
    root(world, "POST", "/access/roles", &json!({"roleid": "Computed", "privs": privileges.join(",")}));
    root(world, "POST", "/access/users", &json!({"userid": "least@pve"}));
    root(world, "PUT", "/access/acl", &json!({"path": "/", "users": "least@pve", "roles": "Computed"}));
    let token = root(world, "POST", "/access/users/least@pve/token/least", &json!({"privsep": 0}));
    world.repo.write("sim-token", &format!("least@pve!least={}", token["value"].as_str().unwrap()));
}

#[test]
fn the_computed_role_is_enough() {
    let world = World::instant(STACK);
    become_somebody_with(&world, &computed(&world));
    let before = world.export();
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    world.repo.edit("stacks/web/stack.yaml", "memory: 4096", "memory: 3072");
    world.strata().run(&["apply", "--yes"]).ok();
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_eq!(world.export(), before);
}

/// What the state knows of a guest needs rights too: a pool that it leaves is in the source no more.
#[test]
fn the_computed_role_is_enough_for_what_leaves_or_changes_its_pool() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "    pool: production\n", "");
    become_somebody_with(&world, &computed(&world));
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    world.repo.edit("stacks/web/stack.yaml", "    memory: 256\n", "    memory: 256\n    pool: production\n");
    let privileges = computed(&world).join(",");
    root(&world, "PUT", "/access/roles/Computed", &json!({"privs": privileges}));
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn each_missing_privilege_is_named_before_anything_is_done() {
    let world = World::instant(STACK);
    let all = computed(&world);
    become_somebody_with(&world, &all);
    for missing in &all {
        let rest: Vec<&str> =
            all.iter().filter(|privilege| *privilege != missing).map(String::as_str).collect();
        root(&world, "PUT", "/access/roles/Computed", &json!({"privs": rest.join(",")}));
        let mut before = world.export()["guests"].clone();
        let mut refused = world.strata().run(&["apply", "--yes"]);
        if refused.code == 0 {
            // What only taking down needs.
            before = world.export()["guests"].clone();
            refused = world.strata().run(&["destroy", "--yes"]);
        }
        assert_ne!(refused.code, 0, "{missing} is not needed: {}", refused.all());
        assert!(refused.all().contains(missing.as_str()), "{missing} is not named: {}", refused.all());
        assert_eq!(world.export()["guests"], before, "{missing}: something was done");
        root(&world, "PUT", "/access/roles/Computed", &json!({"privs": all.join(",")}));
        world.strata().run(&["destroy", "--yes"]).ok();
    }
}

/// The role of a stack, with what is done outside its plans: enough for all of that.
#[test]
fn the_role_of_acts_is_enough_for_them() {
    let world = World::instant(STACK);
    let all = computed_by(&world, &["--json", "doctor", "--role", "--acts"]);
    let plans = computed(&world);
    assert!(plans.iter().all(|privilege| all.contains(privilege)) && plans.len() < all.len(), "{all:?}");
    become_somebody_with(&world, &all);
    world.strata().run(&["apply", "--yes"]).ok();
    let guest = "web/vm/own";
    for command in [
        &["backup", "run", guest, "--storage", "local"][..],
        &["backup", "verify", guest],
        &["snapshot", "create", guest, "one"],
        &["snapshot", "rollback", guest, "one", "--yes"],
        &["snapshot", "delete", guest, "one", "--yes"],
        &["backup", "restore", guest, "latest", "--yes"],
        &["hypervisor", "drain", "pve1", "--yes", "--shut-down"],
        &["hypervisor", "return", "pve1"],
        &["hypervisor", "update", "pve2", "--yes", "--no-reboot"],
        &["hypervisor", "reboot", "pve1", "--yes", "--shut-down"],
    ] {
        world.strata().run(command).ok();
    }
    world.assert_settled();
}
