//! One source, several environments: what each has, what is brought from one to the next, and what stays apart.

use serde_json::Value;

use crate::world::World;

const STACK: &str = "\
metadata: {name: web, environment: dev}
proxmox: {target: pve, node: pve1}
vms:
  app: {vmId: 9100, name: 'app-{env}', memory: 64, disk: 1, started: false}
  desk:
    memory: 64
    disk: 1
    started: false
    name: desk-{env}
    each: {ann: {vmId: 9110}, ben: {vmId: 9111}}
outputs: {desks: 'vms.desk[*].name', ann: vms.desk.ann.vmId}
";

const STAGING: &str = "\
# where changes are tried
include: [stacks]
offsets: {vmId: 100} # apart from dev
tags: [staging]
stacks:
  web:
    vms:
      app: {memory: 128}   # as much as prod
";

fn guests(world: &World) -> Vec<(u64, String)> {
    let export = world.export();
    let mut all: Vec<(u64, String)> = export["guests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|guest| {
            (guest["vmid"].as_u64().unwrap(), guest["config"]["name"].as_str().unwrap_or_default().to_owned())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn d8_a_second_environment_comes_up_beside_the_first() {
    let world = World::instant(STACK);
    world.repo.write("environments/staging.yaml", STAGING);
    world.strata().run(&["apply", "--yes"]).ok();
    let applied = world.strata().run(&["-e", "staging", "apply", "--yes"]).ok();
    assert!(applied.stdout.contains("web/vm/desk-staging-ann"), "{}", applied.all());
    let names: Vec<String> = guests(&world).into_iter().map(|(id, name)| format!("{id} {name}")).collect();
    for wanted in ["9100 app-dev", "9110 desk-dev-ann", "9200 app-staging", "9211 desk-staging-ben"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
    }
    let output = world.strata().run(&["-e", "staging", "output", "web", "--json"]).ok().stdout;
    assert!(output.contains("desk-staging-ben") && output.contains("9210"), "{output}");
    // An entry that goes takes only its own guest along.
    world.repo.edit("stacks/web/stack.yaml", "ann: {vmId: 9110}, ", "");
    world.repo.edit("stacks/web/stack.yaml", ", ann: vms.desk.ann.vmId", "");
    let plan = world.strata().run(&["plan"]).code(0);
    assert!(plan.stdout.contains("1 to destroy") || plan.stdout.contains("destroy 1"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    assert!(
        !guests(&world).iter().any(|(id, _)| *id == 9110) && guests(&world).iter().any(|(id, _)| *id == 9111)
    );
}

#[test]
fn d8_what_one_environment_has_is_brought_to_the_next() {
    let world = World::instant(STACK);
    world.repo.write("environments/staging.yaml", STAGING);
    world.repo.write(
        "environments/prod.yaml",
        "include: [stacks]\noffsets: {vmId: 200}\n# ours alone\nstacks: {web: {vms: {app: {protect: true, memory: 64}}}}\n",
    );
    world.strata().run(&["validate"]).ok();
    let asked = world.strata().run(&["promote", "staging", "prod"]).code(3);
    assert!(
        asked.all().contains("+stacks: {web: {vms: {app: {protect: true, memory: 128}}}}"),
        "{}",
        asked.all()
    );
    assert!(
        asked.stdout.contains("offsets.vmId") && asked.stdout.contains("of the environment"),
        "{}",
        asked.all()
    );
    assert!(!world.repo.read("environments/prod.yaml").contains("128"), "nobody agreed");
    world.strata().run(&["promote", "staging", "prod", "web", "--yes"]).ok();
    let prod = world.repo.read("environments/prod.yaml");
    assert_eq!(
        prod,
        "include: [stacks]\noffsets: {vmId: 200}\n# ours alone\nstacks: {web: {vms: {app: {protect: true, memory: 128}}}}\n"
    );
    let again = world.strata().run(&["promote", "staging", "prod", "web", "--yes"]).ok();
    assert!(again.stdout.contains("nothing to bring"), "{}", again.all());
    let events = world.strata().run(&["promote", "staging", "prod", "--json"]).ok().stdout;
    assert!(events.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{events}");
}

#[test]
fn d8_what_would_not_be_valid_is_not_brought_over() {
    let world = World::instant(STACK);
    world.repo.write("environments/staging.yaml", STAGING);
    world.repo.write("environments/prod.yaml", "include: [stacks]\noffsets: {vmId: 200}\n");
    let before = world.repo.read("environments/prod.yaml");
    let refused = world.strata().run(&["promote", "staging", "prod", "--also", "offsets", "--yes"]).code(1);
    assert!(
        refused.stderr.contains("vmid-collision") && refused.stderr.contains("was not written"),
        "{}",
        refused.all()
    );
    assert_eq!(world.repo.read("environments/prod.yaml"), before);
    let unknown = world.strata().run(&["promote", "stagin", "prod"]).code(1);
    assert!(unknown.stderr.contains("did you mean `staging`?"), "{}", unknown.all());
    let nothing = world.strata().run(&["promote", "staging", "prod", "--also", "offset.vmId"]).code(1);
    assert!(nothing.stderr.contains("nothing differs at `offset.vmId`"), "{}", nothing.all());
}
