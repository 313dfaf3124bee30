//! Guests for other programs, as those programs read them.

use std::process::Command;

use serde_json::{Value, json};
use strata_testkit::{Repo, Strata};

use crate::cluster::lab::{Lab, Shape};
use crate::world::{BINARY, STACK, World};

fn applied() -> World {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

#[test]
fn guests_are_listed_in_every_format() {
    let world = applied();
    let run = |arguments: &[&str]| world.strata().run(arguments).ok().stdout;
    let list: Value = serde_json::from_str(&run(&["inventory", "--format", "ansible", "--list"])).unwrap();
    assert_eq!(list["tag_app"]["hosts"], json!(["app-1", "app-2"]));
    assert_eq!(list["pool_production"]["hosts"], json!(["own"]));
    assert_eq!(list["_meta"]["hostvars"]["app-2"]["ansible_host"], "192.0.2.11");
    assert_eq!(list["_meta"]["hostvars"]["app-1"]["ansible_user"], "debian");
    let one: Value =
        serde_json::from_str(&run(&["inventory", "--format", "ansible", "--host", "dns"])).unwrap();
    assert_eq!((&one["strata_vmid"], &one["strata_kind"]), (&json!(9200), &json!("container")));
    assert_eq!(
        run(&["inventory", "--format", "hosts"]),
        "192.0.2.10 app-1\n192.0.2.11 app-2\n192.0.2.53 dns\n"
    );
    let targets: Value =
        serde_json::from_str(&run(&["inventory", "--format", "prometheus", "--port", "9182"])).unwrap();
    assert_eq!(targets[0]["targets"], json!(["192.0.2.10:9182"]));
    let guests = run(&["output", "--guests", "--pool", "production"]);
    assert_eq!(guests, "own  -  9110  pve1  web\n");
    assert_eq!(run(&["output", "web", "--guests"]).lines().count(), 5);
    world.strata().run(&["inventory", "--host", "nobody"]).code(1);
    let all = run(&["inventory"]);
    assert!(!all.contains("correct-horse") && !all.contains("$secret"), "{all}");
}

#[test]
fn nodes_of_a_cluster_have_roles_and_addresses() {
    let lab = Lab::new(&Shape::new(1, 1));
    lab.run(&["apply", "--yes"]).ok();
    let list: Value =
        serde_json::from_str(&lab.run(&["inventory", "--format", "ansible"]).ok().stdout).unwrap();
    for role in ["role_controlplane", "role_worker"] {
        let hosts = list[role]["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 1, "{list}");
        let variables = &list["_meta"]["hostvars"][hosts[0].as_str().unwrap()];
        assert!(variables["ansible_host"].is_string() && variables["strata_vmid"].is_i64(), "{list}");
    }
}

/// Whoever lists guests has none of the variables of those who apply.
#[test]
fn no_variable_is_needed() {
    let world = applied();
    let hosts = Strata::new(BINARY, &world.repo).run(&["inventory", "--format", "hosts"]).ok();
    assert_eq!(hosts.stdout.lines().count(), 3, "{}", hosts.all());
}

/// Nothing has to be applied for a question; an inventory of nothing is an inventory.
#[test]
fn before_the_first_apply_there_is_nothing() {
    let world = World::instant(STACK);
    assert_eq!(world.strata().run(&["inventory", "--format", "ssh"]).ok().stdout, "");
    let list = world.strata().run(&["inventory", "--format", "ansible"]).ok().stdout;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap()["_meta"], json!({"hostvars": {}}));
    let nowhere = Repo::empty();
    Strata::new(BINARY, &nowhere).run(&["inventory"]).code(1);
}

#[test]
#[ignore = "needs ssh: just interop ansible-inventory"]
fn ssh_reads_the_file() {
    let world = applied();
    world.repo.write("ssh_config", &world.strata().run(&["inventory", "--format", "ssh"]).ok().stdout);
    let file = world.repo.file("ssh_config");
    let said = Command::new("ssh").arg("-G").arg("-F").arg(&file).arg("app-2").output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    for line in ["hostname 192.0.2.11", "user debian", "hostkeyalias app-2"] {
        assert!(said.lines().any(|own| own == line), "{line}: {said}");
    }
}

/// `tests/interop/run ansible-inventory` runs it with the real program.
#[test]
#[ignore = "needs ansible-inventory: just interop ansible-inventory"]
fn ansible_reads_the_inventory() {
    let program = std::env::var("STRATA_ANSIBLE_INVENTORY").unwrap();
    let world = applied();
    let script = format!(
        "#!/bin/sh\nexec {BINARY} -C '{}' inventory --format ansible \"$@\"\n",
        world.repo.path().display()
    );
    world.repo.write("inventory.sh", &script);
    let file = world.repo.file("inventory.sh");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ask = |arguments: &[&str]| {
        let output = Command::new(&program)
            .args(["-i", file.to_str().unwrap()])
            .args(arguments)
            .env("ANSIBLE_INVENTORY_ENABLED", "script")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !errors.to_lowercase().contains("warning"), "{errors}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let list = ask(&["--list"]);
    assert_eq!(list["tag_app"]["hosts"], json!(["app-1", "app-2"]), "{list}");
    assert_eq!(list["_meta"]["hostvars"]["app-2"]["ansible_host"], "192.0.2.11");
    let host = ask(&["--host", "dns"]);
    assert_eq!((&host["ansible_host"], &host["strata_node"]), (&json!("192.0.2.53"), &json!("pve1")));
}
