//! Every line of `--json` is an event of the schema that `strata schema events` prints, whatever the verb.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::Value;
use strata_testkit::Output;

use crate::cluster::lab::{Lab, Shape};
use crate::world::{STACK, World};

/// The contract, and the events that were held to it.
struct Contract {
    lines: Validator,
    seen: BTreeSet<String>,
}

impl Contract {
    fn new(world: &World) -> Self {
        Self { lines: schema(world, "events"), seen: BTreeSet::new() }
    }

    /// Holds every line to the schema; returns them.
    fn hold(&mut self, output: &Output) -> Vec<Value> {
        let mut lines = Vec::new();
        for line in output.stdout.lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if let Err(error) = self.lines.validate(&event) {
                panic!("{error}: {line}");
            }
            self.seen.insert(event["event"].as_str().unwrap().to_owned());
            lines.push(event);
        }
        lines
    }
}

fn schema(world: &World, name: &str) -> Validator {
    let printed = world.strata().run(&["schema", name]).ok().stdout;
    jsonschema::validator_for(&serde_json::from_str(&printed).unwrap()).unwrap()
}

#[test]
fn d9_every_line_of_every_verb_is_an_event_of_the_schema() {
    let world = World::instant(STACK);
    let mut contract = Contract::new(&world);
    let verbs: &[(&[&str], i32)] = &[
        (&["validate"], 0),
        (&["graph"], 0),
        (&["plan"], 0),
        (&["plan", "-o", "saved.plan"], 0),
        (&["show", "saved.plan"], 0),
        (&["apply", "saved.plan", "--yes"], 0),
        (&["apply", "--yes"], 0),
        (&["plan", "--detailed-exitcode"], 0),
        (&["output"], 0),
        (&["output", "web", "addresses"], 0),
        (&["output", "--guests"], 0),
        (&["output", "--guests", "--pool", "production"], 0),
        (&["inventory"], 0),
        (&["inventory", "--host", "dns"], 0),
        (&["drift"], 0),
        (&["doctor"], 0),
        (&["doctor", "--role"], 0),
        (&["backup", "run", "web/vm/own", "--storage", "local"], 0),
        (&["backup", "list", "web/vm/own"], 0),
        (&["backup", "verify", "web/vm/own"], 0),
        (&["backup", "restore", "web/vm/own", "latest", "--yes"], 0),
        (&["snapshot", "create", "web/vm/own", "one"], 0),
        (&["snapshot", "list", "web/vm/own"], 0),
        (&["snapshot", "rollback", "web/vm/own", "one", "--yes"], 0),
        (&["snapshot", "delete", "web/vm/own", "one", "--yes"], 0),
        (&["state", "list"], 0),
        (&["state", "show", "web/vm/rescue"], 0),
        (&["state", "pull", "web"], 0),
        (&["state", "history", "web"], 0),
        (&["state", "diff", "web"], 0),
        (&["state", "mv", "web/vm/rescue", "web/vm/other"], 0),
        (&["state", "mv", "web/vm/other", "web/vm/rescue"], 0),
        (&["state", "rm", "web/vm/rescue"], 0),
        (&["plan"], 0),
        (&["drift", "--orphans"], 2),
        (&["recover", "--yes"], 0),
        (&["state", "rm", "web/vm/rescue"], 0),
        (&["state", "recover", "web"], 0),
        (&["drift", "--orphans"], 0),
        (&["state", "rollback", "web"], 0),
        (&["state", "rollback", "web"], 0),
        (&["unlock", "web"], 0),
        (&["sync"], 0),
        (&["sync", "--check"], 0),
        (&["policy", "check"], 0),
        (&["explain", "unknown-key"], 0),
        (&["schema", "stack"], 0),
        (&["schema", "stack", "--markdown"], 0),
        (&["schema", "events"], 0),
        (&["schema", "--write", "schemas"], 0),
        (&["completions", "bash"], 0),
        (&["version"], 0),
        (&["secrets", "list"], 0),
        (&["-C", "elsewhere", "init"], 0),
        (&["output", "web", "nothing"], 1),
        (&["fmt", "--check"], 2),
        (&["fmt"], 0),
        (&["plan", "--no-such-flag"], 64),
        (&["no-such-verb"], 64),
        (&["destroy", "--yes"], 0),
    ];
    for (arguments, code) in verbs {
        let whole: Vec<&str> = ["--json"].iter().chain(*arguments).copied().collect();
        let output = world.strata().run(&whole).code(*code);
        let lines = contract.hold(&output);
        // A plan that finds nothing has its summary; nothing has an empty answer but what looks for something and finds none.
        let may_be_silent = matches!(arguments.first(), Some(&"drift" | &"secrets" | &"policy"))
            || matches!(*arguments, ["state", "recover" | "diff", ..]);
        assert!(may_be_silent || !lines.is_empty(), "`strata {}` says nothing", whole.join(" "));
    }
    for (name, event) in [("plan", "planned"), ("apply", "step-done"), ("graph", "graph"), ("show", "bound")]
    {
        assert!(contract.seen.contains(event), "{name}: {:?}", contract.seen);
    }
}

#[test]
fn d9_a_mistake_drift_and_a_refusal_are_events_too() {
    let world = World::instant(STACK);
    let mut contract = Contract::new(&world);
    world.strata().run(&["apply", "--yes"]).ok();
    let change =
        serde_json::json!({"method": "PUT", "path": "/nodes/pve1/qemu/9100/config", "params": {"cores": 3}});
    assert_eq!(world.sim.control().change(&change)["status"], 200);
    let drift = contract.hold(&world.strata().run(&["--json", "drift"]).code(2));
    assert!(drift.iter().any(|line| line["event"] == "drift" && line["stack"] == "web"), "{drift:?}");
    world.repo.edit("stacks/web/stack.yaml", "vmId: 9120", "vmId: 200");
    let refused = contract.hold(&world.strata().run(&["--json", "plan"]).code(3));
    assert!(refused.iter().any(|line| line["event"] == "problem"), "{refused:?}");
    world.repo.edit("stacks/web/stack.yaml", "vmId: 200", "vmid: 200");
    for verb in ["validate", "plan", "graph"] {
        let wrong = contract.hold(&world.strata().run(&["--json", verb]).code(1));
        assert!(wrong.iter().any(|line| line["event"] == "diagnostic" && line["line"].is_u64()), "{wrong:?}");
    }
}

/// Each line of a run says which stack it is about: the lines of stacks that run at the same time interleave.
#[test]
fn d9_what_is_about_a_stack_names_it() {
    let world = World::instant(STACK);
    let second = "
metadata: {name: shop, environment: test}
proxmox: {target: pve, node: pve2, storage: {iso: local, disk: local-lvm}}
vms:
  shop:
    count: 2
    vmId: 7100
    iso: {url: \"https://images.example/rescue.iso\"}
    disk: {storage: local-lvm, size: 4}
    network: [{bridge: vmbr1}]
";
    world.repo.write("stacks/shop/stack.yaml", second);
    let mut contract = Contract::new(&world);
    let lines = contract.hold(&world.strata().run(&["--json", "apply", "--yes"]).ok());
    for line in lines.iter().filter(|line| line["address"].is_string()) {
        let address = line["address"].as_str().unwrap();
        let stack = address.split(['/', ':']).next().unwrap();
        assert_eq!(line["stack"], stack, "{line}");
        assert_eq!(line["environment"], "test", "{line}");
    }
    for stack in ["web", "shop"] {
        let of = |event: &str| lines.iter().any(|line| line["event"] == event && line["stack"] == stack);
        assert!(of("planned") && of("step-done") && of("apply-done"), "{stack}");
    }
}

#[test]
fn what_is_not_in_the_schema_is_refused() {
    let world = World::instant(STACK);
    let lines = schema(&world, "events");
    let valid = serde_json::json!({"event": "valid", "version": 1, "time": "2026-01-01T00:00:00Z", "stacks": 1, "objects": 2});
    assert!(lines.is_valid(&valid));
    let with = |key: &str, value: Value| {
        let mut changed = valid.clone();
        changed[key] = value;
        lines.is_valid(&changed)
    };
    assert!(!with("event", "unheard-of".into()) && !with("more", 1.into()) && !with("version", 2.into()));
    assert!(!with("time", "yesterday".into()) && !with("stack", "web".into()));
}

#[test]
fn d9_documents_are_as_their_schemas_say() {
    let world = World::instant(STACK);
    world.strata().run(&["plan", "-o", "saved.plan"]).ok();
    let plan: Value = serde_json::from_str(&world.repo.read("saved.plan")).unwrap();
    schema(&world, "plan-file").validate(&plan).unwrap();
    world.strata().run(&["apply", "--yes"]).ok();
    let state: Value =
        serde_json::from_str(&world.strata().run(&["state", "pull", "web"]).ok().stdout).unwrap();
    schema(&world, "state").validate(&state).unwrap();
    let inventory = world.strata().run(&["inventory"]).ok().stdout;
    schema(&world, "inventory").validate(&serde_json::from_str(&inventory).unwrap()).unwrap();
}

#[test]
fn a_cluster_is_told_in_events() {
    let lab = Lab::new(&Shape::new(1, 1));
    let world = World::instant(STACK);
    let mut contract = Contract::new(&world);
    for (arguments, code) in [
        (&["--json", "plan"][..], 0),
        (&["--json", "apply", "--yes"], 0),
        (&["--json", "output", "--guests"], 0),
    ] {
        contract.hold(&lab.run(arguments).code(code));
    }
    assert!(contract.seen.contains("step-progress"), "{:?}", contract.seen);
}

/// `.strata/` is not in git: the first run in a clone writes the schemas that files name.
#[test]
fn d10_a_clone_gets_its_schemas() {
    let repo = strata_testkit::Repo::empty();
    let strata = strata_testkit::Strata::new(crate::world::BINARY, &repo);
    let made = strata.run(&["init", "made"]).ok();
    assert!(made.stdout.contains("keep a copy of `age.key`"), "{}", made.all());
    std::fs::remove_dir_all(repo.file("made/.strata")).unwrap();
    strata.run(&["-C", "made", "validate"]).ok();
    let schema = repo.read("made/.strata/schema/stack.json");
    assert_eq!(schema, strata.run(&["schema", "stack"]).ok().stdout);
}
