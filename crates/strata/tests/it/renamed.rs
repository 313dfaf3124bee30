//! Objects of ours that stand where another address is wanted: renamed in the source, and nobody wrote it down. The plan is refused, says
//! whose they are, and prints the line that makes it right. Findings, part D1.

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
"#;

fn applied() -> World {
    let world = World::instant(WEB);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

/// What stands in the way, as the user sees it.
fn refused(world: &World) -> String {
    let before = world.export();
    let plan = world.strata().run(&["plan"]).code(3);
    world.strata().run(&["apply", "--yes", "--allow-removed-stacks"]).code(3);
    assert_eq!(world.export(), before, "nothing was changed");
    let text = plan.stdout;
    assert!(!text.contains("by hand"), "{text}");
    let told: Vec<&str> = text.lines().skip_while(|line| !line.contains('✗')).take(3).collect();
    told.join("\n")
}

/// Writes what the hint says where it says it, and applies.
fn follow(world: &World, plan: &str) {
    let (_, rest) = plan.split_once("write `").unwrap_or_else(|| panic!("no line to write in {plan}"));
    let (line, rest) = rest.split_once("` into `").unwrap_or_else(|| panic!("no file in {plan}"));
    let (file, _) = rest.split_once('`').unwrap_or_else(|| panic!("no file in {plan}"));
    world.repo.write(file, &format!("{}\n{line}\n", world.repo.read(file)));
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.stdout.contains("destroy") && !plan.stdout.contains("create"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn d1_a_renamed_key_is_told_with_the_line_to_write() {
    let world = applied();
    world.repo.edit("stacks/web/stack.yaml", "  db:\n", "  database:\n");
    let plan = refused(&world);
    insta::assert_snapshot!(plan, @r"
      ✗ web/vm/database: VM 9110 `db` on `pve1` is `web/vm/db` of this repository
          --> stacks/web/stack.yaml:5
          hint: if it was renamed, write `moved: [{from: web/vm/db, to: web/vm/database}]` into `stacks/web/stack.yaml`; nothing else of it changes
    ");
    follow(&world, &plan);
}

#[test]
fn d1_a_count_is_told_with_the_line_to_write() {
    let world = applied();
    world.repo.edit("stacks/web/stack.yaml", "    vmId: 9110\n", "    count: 2\n    vmId: 9110\n");
    let plan = refused(&world);
    insta::assert_snapshot!(plan, @r"
      ✗ web/vm/db-1: VM 9110 `db` on `pve1` is `web/vm/db` of this repository
          --> stacks/web/stack.yaml:5
          hint: if it was renamed, write `moved: [{from: web/vm/db, to: web/vm/db-1}]` into `stacks/web/stack.yaml`; nothing else of it changes
    ");
}

#[test]
fn d1_another_stack_and_a_renamed_one_are_told_with_the_line_to_write() {
    let world = applied();
    let empty = "metadata: {name: web, environment: test}\nproxmox: {target: pve, node: pve1}\n";
    world.repo.write("stacks/web/stack.yaml", empty);
    world.repo.write("stacks/data/stack.yaml", &WEB.replace("name: web", "name: data"));
    let plan = refused(&world);
    insta::assert_snapshot!(plan, @r"
      ✗ data/vm/db: VM 9110 `db` on `pve1` is `web/vm/db` of this repository
          --> stacks/data/stack.yaml:5
          hint: if it was moved here, write `moved: [{from: web/vm/db, to: data/vm/db}]` into `stacks/data/stack.yaml`; nothing else of it changes
    ");
    follow(&world, &plan);
    world.repo.remove("stacks/data/stack.yaml");
    world.repo.write("stacks/base/stack.yaml", &WEB.replace("name: web", "name: base"));
    let plan = refused(&world);
    insta::assert_snapshot!(plan, @r"
      ✗ base/vm/db: VM 9110 `db` on `pve1` is `data/vm/db` of this repository
          --> stacks/base/stack.yaml:5
          hint: if stack `data` was renamed, write `moved: [{from: data, to: base}]` into `stacks/base/stack.yaml`; nothing else of it changes
    ");
    follow(&world, &plan);
}

#[test]
fn d1_what_only_its_mark_knows_is_recorded_first() {
    let world = applied();
    world.strata().run(&["state", "rm", "web/vm/db"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "  db:\n", "  database:\n");
    let plan = refused(&world);
    insta::assert_snapshot!(plan, @r"
      ✗ web/vm/database: VM 9110 `db` on `pve1` is `web/vm/db` of this repository
          --> stacks/web/stack.yaml:5
          hint: no state knows it: `strata state recover web` records it; then write `moved: [{from: web/vm/db, to: web/vm/database}]` into `stacks/web/stack.yaml`; nothing else of it changes
    ");
    world.strata().run(&["state", "recover", "web"]).ok();
    follow(&world, &plan);
}

#[test]
fn what_is_ours_under_an_address_that_stays_is_not_to_be_moved() {
    let world = applied();
    // `db` gets another VMID, and another guest its former one, in one change.
    world.repo.edit("stacks/web/stack.yaml", "    vmId: 9110\n", "    vmId: 9111\n");
    let other = "  queue:\n    vmId: 9110\n    iso: {url: \"https://images.example/rescue.iso\"}\n    memory: 512\n    disk: 4\n    started: false\n";
    let both = format!("{}{other}", world.repo.read("stacks/web/stack.yaml"));
    world.repo.write("stacks/web/stack.yaml", &both);
    let plan = refused(&world);
    insta::assert_snapshot!(plan, @r"
      ✗ web/vm/queue: VM 9110 `db` on `pve1` is `web/vm/db` of this repository
          --> stacks/web/stack.yaml:11
          hint: its identity is free once `web/vm/db` has left it: apply without `web/vm/queue` first, or give that one another identity
    ");
}
