//! Plans of a part of a stack: addresses and patterns, with what they need. What is not selected is left as it is, whatever became of it.

use serde_json::json;

use crate::kill::assert_same;
use crate::world::World;

const WEB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  db:
    vmId: 9110
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    started: false
  dev:
    vmId: 9111
    iso: {url: "https://images.example/other.iso"}
    memory: 512
    disk: 4
    started: false
  mail:
    vmId: 9112
    iso: {url: "https://images.example/mail.iso"}
    memory: 512
    disk: 4
    started: false
"#;

const FILE: &str = "stacks/web/stack.yaml";

fn world() -> World {
    World::instant(WEB)
}

/// The VMIDs of ours that are there.
fn guests(world: &World) -> Vec<u64> {
    let export = world.export();
    let all = export["guests"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<u64> = all.iter().filter_map(|guest| guest["vmid"].as_u64()).collect();
    found.retain(|vmid| *vmid > 9000);
    found.sort_unstable();
    found
}

fn known(world: &World) -> Vec<String> {
    let listed = world.strata().run(&["state", "list", "web"]);
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    listed.stdout.lines().map(first).filter(|address| address.contains('/')).collect()
}

fn set_memory(world: &World, vmid: u32, memory: u32) {
    let path = format!("/nodes/pve1/qemu/{vmid}/config");
    let change = json!({"method": "PUT", "path": path, "params": {"memory": memory}});
    assert_eq!(world.sim.control().change(&change)["status"], 200);
}

#[test]
fn d2_one_guest_is_made_with_what_it_needs_and_the_rest_is_told() {
    let world = world();
    let plan = world.strata().run(&["plan", "web/vm/db"]).ok();
    insta::assert_snapshot!(plan.stdout, @r"
    web (workloads, test/web)
      + web/image/db@pve1  local:iso/strata-bcd45a29c4e9-rescue-9b04da79413daf39.iso on pve1
          url  https://images.example/rescue.iso
      + web/vm/db  VM 9110 on pve1
          cpu          type x86-64-v2-AES, cores 1
          memory       512 MiB
          disks.scsi0  4 GiB on local-lvm
          cdroms.ide2  volume local:iso/strata-bcd45a29c4e9-rescue-9b04da79413daf39.iso
          power        stopped
          boot         scsi0, ide2
          ostype       l26
          scsihw       virtio-scsi-single
      · left out, not selected: web/image/dev@pve1, web/image/mail@pve1, web/vm/dev, web/vm/mail

    2 to create, 4 left out
    blast radius: workloads: 2 in 1 stack
    ");
    world.strata().run(&["apply", "web/vm/db", "--yes"]).ok();
    assert_eq!(guests(&world), [9110]);
    assert_eq!(known(&world), ["web/image/db@pve1", "web/vm/db"]);
    world.strata().run(&["plan", "web/vm/db", "--detailed-exitcode"]).code(0);
    world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    let whole = self::world();
    whole.strata().run(&["apply", "--yes"]).ok();
    assert_same(&world.export(), &whole.export(), "in two parts, or at once");
}

#[test]
fn d2_what_is_not_selected_is_neither_changed_nor_removed_nor_forgotten() {
    let world = world();
    let old = WEB.replace("name: web", "name: old").replace("91", "92");
    world.repo.write("stacks/old/stack.yaml", old.split("  dev:").next().unwrap_or_default());
    world.strata().run(&["apply", "--yes"]).ok();
    // One leaves the source, one stack does; one is deleted by somebody, and all that are left change.
    world.repo.remove("stacks/old/stack.yaml");
    let source = world.repo.read(FILE);
    let (before, rest) = source.split_once("  dev:").unwrap_or_default();
    let (_, mail) = rest.split_once("  mail:").unwrap_or_default();
    world.repo.write(FILE, &format!("{before}  mail:{mail}").replace("memory: 512", "memory: 768"));
    let gone = json!({"method": "DELETE", "path": "/nodes/pve1/qemu/9112"});
    assert_eq!(world.sim.control().change(&gone)["status"], 200);
    let states = known(&world);
    world.strata().run(&["drift", "web/vm/db"]).code(0);
    let drift = world.strata().run(&["drift", "web/vm/*"]).code(2);
    assert!(drift.stdout.contains("web/vm/mail"), "{}", drift.all());
    let applied = world.strata().run(&["apply", "web/vm/d[b]", "--yes"]).code(1);
    assert!(applied.all().contains("nothing is called"), "{}", applied.all());
    let applied = world.strata().run(&["apply", "*/vm/?b", "--yes"]).ok();
    assert!(applied.all().contains("3 left out"), "{}", applied.all());
    assert_eq!(guests(&world), [9110, 9111, 9210]);
    assert_eq!(known(&world), states, "what was deleted, and what left the source, is still known");
    world.strata().run(&["apply", "--yes", "--allow-removed-stacks"]).ok();
    assert_eq!(guests(&world), [9110, 9112]);
    world.assert_settled();
}

#[test]
fn d2_a_destroy_takes_what_depends_on_the_selected_with_it() {
    let world = world();
    world.strata().run(&["apply", "--yes"]).ok();
    let plan = world.strata().run(&["plan", "--destroy", "web/image/db@pve1"]).ok();
    assert!(plan.stdout.contains("- web/vm/db") && plan.stdout.contains("2 to destroy"), "{}", plan.all());
    world.strata().run(&["destroy", "web/image/db@pve1", "--yes"]).ok();
    assert_eq!(guests(&world), [9111, 9112]);
    world.strata().run(&["destroy", "web/vm/*", "--yes"]).ok();
    assert_eq!(guests(&world), Vec::<u64>::new());
    assert_eq!(
        known(&world),
        ["web/image/dev@pve1", "web/image/mail@pve1"],
        "nothing of these was asked for"
    );
    // A protected one is refused by name, too.
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit(FILE, "    vmId: 9110\n", "    vmId: 9110\n    protect: true\n");
    world.strata().run(&["destroy", "web/vm/db", "--yes"]).code(3);
    world.strata().run(&["destroy", "web/vm/dev", "--yes"]).ok();
    assert_eq!(guests(&world), [9110, 9112]);
}

#[test]
fn d2_a_name_of_nothing_is_told_with_the_nearest() {
    let world = world();
    let told = |arguments: &[&str]| world.strata().run(arguments).code(1).all();
    let near = told(&["plan", "web/vm/bd"]);
    assert!(
        near.contains("nothing is called `web/vm/bd`") && near.contains("did you mean `web/vm/db`?"),
        "{near}"
    );
    let kind = told(&["apply", "web/vmm/db", "--yes"]);
    assert!(kind.contains("did you mean `web/vm/db`?"), "{kind}");
    let stack = told(&["destroy", "wob/vm/db", "--yes"]);
    assert!(stack.contains("did you mean `web`?"), "{stack}");
    let both = told(&["drift", "web", "web/container/*"]);
    assert!(both.contains("nothing is called `web/container/*`"), "{both}");
    assert_eq!(guests(&world), Vec::<u64>::new());
}

#[test]
fn d2_a_saved_plan_is_bound_to_its_selection_and_to_nothing_else() {
    let world = world();
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write(FILE, &world.repo.read(FILE).replace("memory: 512", "memory: 768"));
    let file = world.repo.file("part.plan");
    let file = file.to_str().unwrap_or_default();
    world.strata().run(&["plan", "web/vm/d*", "-o", file]).ok();
    set_memory(&world, 9112, 640);
    let mut text = world.repo.read("part.plan");
    text = text.replace("web/vm/d*", "web/vm/*");
    world.repo.write("other.plan", &text);
    let other = world.repo.file("other.plan");
    let widened = world.strata().run(&["apply", other.to_str().unwrap_or_default(), "--yes"]).code(3);
    assert!(widened.all().contains("web"), "{}", widened.all());
    world.strata().run(&["apply", file, "--yes"]).ok();
    world.strata().run(&["plan", "web/vm/d*", "--detailed-exitcode"]).code(0);
    let rest = world.strata().run(&["plan"]).ok();
    assert!(rest.stdout.contains("web/vm/mail") && !rest.stdout.contains("web/vm/db"), "{}", rest.all());
    // What was selected moves: then it is stale.
    world.repo.write(FILE, &world.repo.read(FILE).replace("memory: 768", "memory: 896"));
    world.strata().run(&["plan", "web/vm/db", "-o", file]).ok();
    set_memory(&world, 9110, 640);
    let stale = world.strata().run(&["apply", file, "--yes"]).code(3);
    assert!(stale.all().contains("`web/vm/db` was changed"), "{}", stale.all());
}

/// A part is killed at some request, then everything is applied: as if nothing had happened.
fn kill_part(step: usize) {
    let world = world();
    world.sim.control().reset_requests();
    world.strata().run(&["apply", "web/vm/d*", "--yes"]).ok();
    let requests = world.sim.requests();
    world.strata().run(&["apply", "--yes"]).ok();
    let expected = world.export();
    for kind in ["hold-before", "hold-after"] {
        for k in (1..=requests).step_by(step) {
            let world = self::world();
            let fault = json!({"kind": kind, "nth": k});
            world.strata().kill_at(&world.sim.control(), &fault, &["apply", "web/vm/d*", "--yes"]);
            world.strata().run(&["apply", "--yes"]).ok();
            world.assert_settled();
            assert_same(&world.export(), &expected, &format!("{kind} {k}"));
        }
    }
}

#[test]
fn a_kill_at_some_requests_of_a_part_loses_nothing() {
    kill_part(11);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_a_part() {
    kill_part(1);
}
