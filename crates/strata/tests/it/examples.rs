//! Every example: plan, apply, an empty plan, drift seen and corrected, destroy, nothing left.

use serde_json::json;
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::layer0::without_settings;
use crate::world::BINARY;

fn play(example: &str, environments: &[&str], changed: (&str, u32)) {
    let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    strata.run(&["init", "--example", example, "."]).ok();
    // The example names the fixed port of the default world; this simulator has another.
    repo.edit("strata.yaml", "https://127.0.0.1:18006", &sim.endpoint());
    if repo.read("strata.yaml").contains("http://127.0.0.1:18008") {
        repo.edit("strata.yaml", "http://127.0.0.1:18008", &format!("http://{}", sim.gateway()));
    }
    strata.run(&["validate"]).ok();
    let before = sim.export();
    for environment in environments {
        let with = |arguments: &[&'static str]| -> Vec<String> {
            let chosen = ["-e".to_owned(), (*environment).to_owned()];
            let own = arguments.iter().map(|argument| (*argument).to_owned());
            if environment.is_empty() { own.collect() } else { chosen.into_iter().chain(own).collect() }
        };
        let run = |arguments: &[&'static str]| {
            let arguments = with(arguments);
            strata.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        };
        run(&["plan", "--detailed-exitcode"]).code(2);
        run(&["apply", "--yes"]).ok();
        run(&["plan", "--detailed-exitcode"]).ok();
        run(&["drift"]).ok();
    }
    let (node, vmid) = changed;
    let answer = sim.control().change(&json!({
        "method": "PUT", "path": format!("/nodes/{node}/qemu/{vmid}/config"), "params": {"onboot": 0, "description": "hm"},
    }));
    assert_eq!(answer["status"], 200, "{answer}");
    strata.run(&["drift"]).code(2);
    strata.run(&["apply", "--yes"]).ok();
    strata.run(&["drift"]).ok();
    for environment in environments {
        match *environment {
            "" => strata.run(&["destroy", "--yes"]).ok(),
            chosen => strata.run(&["-e", chosen, "destroy", "--yes"]).ok(),
        };
    }
    let (after, before) = (without_settings(sim.export()), without_settings(before));
    crate::kill::assert_same(&after, &before, "destroy leaves the datacenter as it was");
}

#[test]
fn homelab() {
    play("homelab", &[""], ("pve1", 800));
}

#[test]
fn datacenter() {
    play("datacenter", &[""], ("pve1", 9100));
}

#[test]
fn prod() {
    play("prod", &[""], ("pve1", 9100));
}

#[test]
fn environments() {
    play("environments", &["", "staging", "prod"], ("pve1", 9310));
}

#[test]
fn what_is_protected_is_not_destroyed() {
    for (flag, said) in [("protect: true", "it is protected"), ("protection: true", "Proxmox protects it")] {
        let world = crate::world::World::instant(&format!(
            "metadata: {{name: web, environment: test}}\nproxmox: {{target: pve, node: pve1}}\nvms:\n  a: {{vmId: 9100, memory: 64, disk: 1, started: false, {flag}}}\n"
        ));
        // Also what the source protects since the last apply.
        if flag == "protect: true" {
            world.repo.edit("stacks/web/stack.yaml", "protect: true", "protect: false");
            world.strata().run(&["apply", "--yes"]).ok();
            world.repo.edit("stacks/web/stack.yaml", "protect: false", "protect: true");
            world.strata().run(&["destroy", "--yes"]).code(3);
        }
        world.strata().run(&["apply", "--yes"]).ok();
        let before = world.export();
        let refused = world.strata().run(&["destroy", "--yes"]).code(3);
        assert!(refused.stdout.contains(said), "{}", refused.all());
        assert_eq!(world.export(), before);
        world.repo.edit("stacks/web/stack.yaml", "true", "false");
        world.strata().run(&["apply", "--yes"]).ok();
        world.strata().run(&["destroy", "--yes"]).ok();
    }
}

#[test]
fn the_tree_that_flux_follows_is_begun_once() {
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    strata.run(&["init", "--example", "homelab", "."]).ok();
    strata.run(&["sync"]).ok();
    let overlay = "infrastructure/core/overlays/homelab/kustomization.yaml";
    assert!(repo.read(overlay).contains("cert-manager"), "{}", repo.read(overlay));
    repo.write(overlay, "mine\n");
    strata.run(&["sync"]).ok();
    strata.run(&["sync", "--check"]).ok();
    assert_eq!(repo.read(overlay), "mine\n", "it belongs to its readers");
}
