//! States that were lost are rebuilt from what the objects themselves say; with git and the age key alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::kill::assert_same;
use crate::layer0::{DATACENTER, Datacenter, FILE};
use crate::world::{BINARY, STACK, World};

const SMALL: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  app:
    vmId: 9100
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    started: false
"#;

/// Every state of the local store, without what no two runs have in common: serials, and all that is made with a key.
fn states(repo: &Repo) -> BTreeMap<String, Value> {
    let root = repo.file(".strata/state");
    let mut found = BTreeMap::new();
    for (path, bytes) in repo.all_files() {
        let Ok(below) = path.strip_prefix(&root) else { continue };
        let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
        if let [environment, stack, "state.json"] = parts.as_slice() {
            let mut state: Value = serde_json::from_slice(&bytes).unwrap();
            for own in ["serial", "folded", "digest_key", "written_by"] {
                state.as_object_mut().unwrap().remove(own);
            }
            // What was seen last, which a look after an apply has already and a state right after it has not.
            for record in state["resources"].as_object_mut().unwrap().values_mut() {
                for seen in ["config_digest", "firewall_digest"] {
                    record.get_mut("facts").and_then(Value::as_object_mut).map(|facts| facts.remove(seen));
                }
            }
            hide_digests(&mut state);
            found.insert(format!("{environment}/{stack}"), state);
        }
    }
    assert!(!found.is_empty(), "no state in {}", root.display());
    found
}

fn hide_digests(value: &mut Value) {
    match value {
        Value::Object(map) if map.len() == 1 && map.keys().all(|key| key.starts_with('$')) => {
            *value = json!("(made with a key)");
        }
        Value::Object(map) => map.values_mut().for_each(hide_digests),
        Value::Array(items) => items.iter_mut().for_each(hide_digests),
        _ => {}
    }
}

/// The store, the runner and whatever else was not in git.
fn lose_everything(repo: &Repo) {
    std::fs::remove_dir_all(repo.file(".strata")).unwrap();
}

fn assert_states(repo: &Repo, expected: &BTreeMap<String, Value>, what: &str) {
    let found = states(repo);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (key, state) in &found {
        let resources = |state: &Value| state["resources"].as_object().cloned().unwrap_or_default();
        let (mine, others) = (resources(state), resources(&expected[key]));
        for (address, record) in &others {
            assert_eq!(mine.get(address), Some(record), "{what}: {key}: {address}");
        }
        assert_eq!(state, &expected[key], "{what}: {key}");
    }
}

/// Applies an example, loses its states, recovers them, and goes on with them.
fn play(example: &str, environments: &[&str], edit: (&str, &str, &str)) {
    let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    strata.run(&["init", "--example", example, "."]).ok();
    repo.edit("strata.yaml", "https://127.0.0.1:18006", &sim.endpoint());
    if environments == [""] {
        repo.edit("strata.yaml", "http://127.0.0.1:18008", &format!("http://{}", sim.gateway()));
    }
    let run = |environment: &str, arguments: &[&str]| match environment {
        "" => strata.run(arguments),
        chosen => strata.run(&[&["-e", chosen], arguments].concat()),
    };
    for environment in environments {
        run(environment, &["apply", "--yes"]).ok();
    }
    let (before, live) = (states(&repo), sim.export());
    lose_everything(&repo);
    for environment in environments {
        let recovered = run(environment, &["recover", "--yes"]);
        assert_eq!(recovered.code, 0, "{environment}: {}", recovered.all());
        run(environment, &["plan", "--detailed-exitcode"]).ok();
    }
    assert_same(&sim.export(), &live, "recovering changes no object");
    assert_states(&repo, &before, example);
    // What was recovered is worked with as if nothing had happened.
    let (file, from, to) = edit;
    repo.edit(file, from, to);
    for environment in environments {
        run(environment, &["apply", "--yes"]).ok();
        run(environment, &["plan", "--detailed-exitcode"]).ok();
    }
    for environment in environments.iter().rev() {
        run(environment, &["destroy", "--yes"]).ok();
    }
}

#[test]
fn homelab_with_its_cluster() {
    play("homelab", &[""], ("stacks/pihole/stack.yaml", "memory: 512", "memory: 640"));
}

#[test]
fn prod_with_its_datacenter() {
    play("prod", &[""], ("stacks/web/stack.yaml", "memory: 1024", "memory: 1280"));
}

#[test]
fn every_environment_by_itself() {
    play(
        "environments",
        &["", "staging", "prod"],
        ("stacks/app/stack.yaml", "tags: [app]", "tags: [app, kept]"),
    );
}

#[test]
fn one_of_everything_in_a_datacenter() {
    let datacenter = Datacenter::new(DATACENTER);
    datacenter.strata().run(&["apply", "--yes"]).ok();
    let (before, live) = (states(&datacenter.repo), datacenter.export());
    lose_everything(&datacenter.repo);
    let recovered = datacenter.strata().run(&["recover", "--yes"]).ok();
    // What can carry no mark is told apart.
    assert!(recovered.all().contains("it can carry no ownership mark"), "{}", recovered.all());
    assert_same(&datacenter.export(), &live, "recovering changes no object");
    assert_states(&datacenter.repo, &before, "datacenter");
    datacenter.strata().run(&["plan", "--detailed-exitcode"]).ok();
    datacenter.repo.edit(FILE, "comment: operators", "comment: the operators");
    datacenter.strata().run(&["apply", "--yes"]).ok();
    datacenter.strata().run(&["plan", "--detailed-exitcode"]).ok();
}

#[test]
fn one_of_every_guest() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let (before, live) = (states(&world.repo), world.export());
    lose_everything(&world.repo);
    let asked = world.strata().run(&["recover"]).code(3);
    assert!(asked.all().contains("nothing was recorded"), "{}", asked.all());
    assert!(!world.repo.file(".strata/state/test/web/state.json").exists());
    let recovered = world.strata().run(&["recover", "--yes"]).ok();
    assert!(recovered.all().contains("proven:"), "{}", recovered.all());
    assert!(recovered.all().contains("cloudinit.password"), "{}", recovered.all());
    assert_same(&world.export(), &live, "recovering changes no object");
    assert_states(&world.repo, &before, "web");
    world.assert_settled();
    // Nothing is left to do.
    let again = world.strata().run(&["recover", "--yes"]).ok();
    assert!(!again.all().contains("recorded"), "{}", again.all());
    assert_states(&world.repo, &before, "web, again");
    world.repo.edit("stacks/web/stack.yaml", "tags: [app]", "tags: [app, kept]");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn a_state_that_is_there_is_only_added_to() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let before = states(&world.repo);
    let forgot = world.strata().run(&["state", "rm", "web/vm/app-2", "web/container/dns"]).ok();
    assert!(forgot.all().contains("strata recover web"), "{}", forgot.all());
    let recovered = world.strata().run(&["recover", "web", "--yes", "--json"]).ok();
    let found: Value = recovered
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|event: &Value| event["event"] == "recoverable")
        .unwrap();
    let addresses: Vec<&str> =
        found["found"].as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(addresses, ["web/container/dns", "web/vm/app-2"]);
    assert_states(&world.repo, &before, "web");
}

#[test]
fn what_is_not_proven_is_listed_and_not_taken() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    lose_everything(&world.repo);
    // Somebody took the mark away, and somebody else's guest stands where one of ours was.
    let edit = |vmid: u32, notes: &str| {
        let change = json!({"edit": {"vmid": vmid, "set": {"description": notes}}});
        assert_eq!(world.sim.control().change(&change)["status"], 200);
    };
    edit(9101, "mine now");
    edit(9120, "strata: 0123456789abcdef0123456789abcdef shop/vm/rescue vmid=9120");
    let live = world.export();
    let recovered = world.strata().run(&["recover", "--yes"]).code(2);
    for vmid in ["9101", "9120"] {
        assert!(recovered.all().contains(vmid), "{}", recovered.all());
    }
    assert!(recovered.all().contains("left out"), "{}", recovered.all());
    assert_same(&world.export(), &live, "recovering changes no object");
    let state = &states(&world.repo)["test/web"]["resources"];
    assert!(
        state["web/vm/app-1"].is_object()
            && state["web/vm/app-2"].is_null()
            && state["web/vm/rescue"].is_null()
    );
}

#[test]
fn what_a_token_may_not_see_is_unknown_and_not_guessed() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let before = states(&world.repo);
    lose_everything(&world.repo);
    let permit = |role: &str, delete: u8| {
        let change = json!({"method": "PUT", "path": "/access/acl", "params": {
            "path": "/vms/9101", "users": "strata@pve", "roles": role, "delete": delete,
        }});
        assert_eq!(world.sim.control().change(&change)["status"], 200);
    };
    permit("NoAccess", 0);
    let recovered = world.strata().run(&["recover", "--yes"]).code(2);
    assert!(recovered.all().contains("? web/vm/app-2"), "{}", recovered.all());
    assert!(states(&world.repo)["test/web"]["resources"]["web/vm/app-2"].is_null());
    permit("NoAccess", 1);
    world.strata().run(&["recover", "--yes"]).ok();
    assert_states(&world.repo, &before, "after all can be seen");
}

#[test]
fn a_kill_at_any_request_loses_nothing() {
    let world = World::instant(SMALL);
    world.strata().run(&["apply", "--yes"]).ok();
    let (before, live) = (states(&world.repo), world.export());
    lose_everything(&world.repo);
    world.sim.control().reset_requests();
    world.strata().run(&["recover", "--yes"]).ok();
    let requests = world.sim.requests();
    assert!(requests > 10, "{requests}");
    for nth in 1..=requests {
        lose_everything(&world.repo);
        let fault = json!({"kind": "hold-before", "nth": nth});
        world.strata().kill_at(&world.sim.control(), &fault, &["recover", "--yes"]);
        let again = world.strata().run(&["recover", "--yes"]);
        assert_eq!(again.code, 0, "killed at {nth}: {}", again.all());
        assert_states(&world.repo, &before, &format!("killed at {nth}"));
    }
    assert_same(&world.export(), &live, "recovering changes no object");
}

#[test]
fn drift_lists_everything_that_no_state_knows() {
    let datacenter = Datacenter::new(DATACENTER);
    datacenter.repo.write("stacks/web/stack.yaml", SMALL);
    datacenter.strata().run(&["apply", "--yes"]).ok();
    let none = datacenter.strata().run(&["drift", "--orphans"]).ok();
    assert!(none.all().contains("no orphans"), "{}", none.all());
    lose_everything(&datacenter.repo);
    let listed = datacenter.strata().run(&["drift", "--orphans"]).code(2).all();
    for what in
        ["VM 9100", "pool `web`", "token `ann@pve!ci`", "mapping `pci/gpu`", "volume `local:iso/strata-"]
    {
        assert!(listed.contains(what), "{what}: {listed}");
    }
    let json = datacenter.strata().run(&["drift", "--orphans", "--json"]).code(2).stdout;
    let events: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let vm = events.iter().find(|event| event["vmid"] == 9100).unwrap();
    assert_eq!(
        (&vm["event"], &vm["address"], &vm["target"]),
        (&json!("orphan"), &json!("web/vm/app"), &json!("pve"))
    );
    datacenter.strata().run(&["recover", "--yes"]).ok();
    datacenter.strata().run(&["drift", "--orphans"]).ok();
}
