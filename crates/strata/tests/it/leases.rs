//! Addresses that nobody wrote: guests report them once they run, and outputs, inventories and other stacks have them.

use serde_json::{Value, json};
use strata_testkit::Strata;

use crate::driven::{by_hand, fake};
use crate::world::World;

const FILE: &str = "stacks/web/stack.yaml";
const WEB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: tank}}
vms:
  app:
    vmId: 9101
    iso: {url: "https://images.example/live.iso"}
    memory: 512
    disk: 4
    agent: true
    network: [{bridge: vmbr0}]
containers:
  dns:
    vmId: 9202
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    memory: 256
    network: [{bridge: vmbr0, ip: dhcp}]
outputs:
  app: vms.app.address
  dns: containers.dns.address
"#;
const ASKED: &str = "*/agent/network-get-interfaces";
const NOT_RUNNING: &str = "QEMU guest agent is not running";

fn output(world: &World, name: &str) -> String {
    world.strata().run(&["output", "web", name]).ok().stdout.trim().to_owned()
}

fn state(world: &World) -> Value {
    serde_json::from_str(&world.repo.read(".strata/state/test/web/state.json")).unwrap()
}

fn silent(world: &World, count: u64) -> u64 {
    let fault = json!({"kind": "refuse", "path": ASKED, "count": count, "status": 500, "text": NOT_RUNNING});
    world.sim.control().fault(&fault)
}

fn events(run: &str, name: &str) -> Vec<Value> {
    let lines = run.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|event| event["event"] == name).collect()
}

#[test]
fn guests_report_the_addresses_of_their_network_devices() {
    let world = World::instant(WEB);
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.stdout.contains("+ web/vm/app"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(
        (output(&world, "app").as_str(), output(&world, "dns").as_str()),
        ("192.0.2.101", "192.0.2.102")
    );
    let hosts = world.strata().run(&["inventory", "--format", "hosts"]).ok().stdout;
    assert_eq!(
        hosts, "192.0.2.101 app\n192.0.2.102 dns\n",
        "the bridge inside of the VM is none of its devices"
    );
    world.assert_settled();
    world.strata().run(&["drift"]).code(0);
    // What somebody changes about the guest does not make it forgotten, and a plan asks no guest.
    world.repo.edit(FILE, "memory: 512", "memory: 768");
    let asked = silent(&world, 0);
    world.strata().run(&["plan"]).ok();
    assert!(!world.sim.control().wait_fault(asked, 0.0), "a plan asked a guest");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(output(&world, "app"), "192.0.2.101");
    world.sim.control().clear_faults();
    // Another network: what it reported is not true any more.
    world.repo.edit(FILE, "[{bridge: vmbr0}]", "[{bridge: vmbr0, ip: 192.0.2.77/24}]");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(output(&world, "app"), "192.0.2.77");
    let hosts = world.strata().run(&["inventory", "--format", "hosts"]).ok().stdout;
    assert_eq!(hosts, "192.0.2.77 app\n192.0.2.102 dns\n");
}

/// An agent comes up after its VM: an apply waits for what an output needs, and says so.
#[test]
fn an_answer_that_comes_late_is_waited_for() {
    let world = World::instant(WEB);
    silent(&world, 3);
    let run = world.strata().run(&["--json", "apply", "--yes"]).ok().stdout;
    let awaited = events(&run, "report-awaited");
    assert_eq!((awaited.len(), &awaited[0]["address"]), (1, &json!("web/vm/app")), "{awaited:?}");
    assert_eq!(events(&run, "report-missing").len(), 0);
    assert_eq!(output(&world, "app"), "192.0.2.101");
    // Nothing needs that of a container without an output: it is asked once, and not waited for.
    let world = World::instant(&WEB.replace("  app: vms.app.address\n", ""));
    silent(&world, 1);
    let run = world.strata().run(&["--json", "apply", "--yes"]).ok().stdout;
    assert_eq!(events(&run, "report-awaited").len(), 0);
    let hosts = world.strata().run(&["inventory", "--format", "hosts"]).ok().stdout;
    assert_eq!(hosts, "192.0.2.102 dns\n");
    // The next apply has nothing to do, and asks.
    world.strata().run(&["apply", "--yes"]).ok();
    let hosts = world.strata().run(&["inventory", "--format", "hosts"]).ok().stdout;
    assert_eq!(hosts, "192.0.2.101 app\n192.0.2.102 dns\n");
}

/// An agent that never answers holds nothing up for longer than a start may take, and makes nothing fail that was done.
#[test]
fn an_agent_that_does_not_run_leaves_its_output_out() {
    let world =
        World::instant(&WEB.replace("    memory: 512\n", "    memory: 512\n    timeouts: {start: 1}\n"));
    silent(&world, 0);
    let run = world.strata().run(&["apply", "--yes"]).ok();
    assert!(
        run.all().contains("no output can have its address: its guest agent does not answer"),
        "{}",
        run.all()
    );
    let unknown = world.strata().run(&["output", "web", "app"]).code(1);
    assert!(unknown.stderr.contains("`web` has no output `app`"), "{}", unknown.all());
    assert_eq!(output(&world, "dns"), "192.0.2.102");
    world.assert_settled();
    world.sim.control().clear_faults();
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(output(&world, "app"), "192.0.2.101");
    // A login that may not ask learns what it lacks, at once.
    let refused = json!({"kind": "refuse", "path": ASKED, "count": 0, "status": 403,
        "text": "Permission check failed (/vms/9101, VM.GuestAgent.Audit)"});
    let other = World::instant(WEB);
    other.sim.control().fault(&refused);
    let run = other.strata().run(&["apply", "--yes"]).ok();
    assert!(run.all().contains("before Proxmox VE 9 `VM.Monitor`"), "{}", run.all());
    let role = other.strata().run(&["doctor", "--role"]).ok();
    assert!(role.stdout.contains("VM.GuestAgent.Audit"), "{}", role.all());
}

/// Nobody could ever report it: that is known before anything is made.
#[test]
fn an_output_that_nobody_can_report_is_refused() {
    let world = World::instant(&WEB.replace("    agent: true\n", ""));
    let refused = world.strata().run(&["plan"]).code(1);
    assert!(
        refused.stderr.contains("`vms.app.address` is written nowhere, and nothing reports it"),
        "{}",
        refused.all()
    );
    assert!(refused.stderr.contains("`agent: true`"), "{}", refused.all());
    world.repo.edit(FILE, "  app: vms.app.address\n", "");
    world.strata().run(&["apply", "--yes"]).ok();
    let hosts = world.strata().run(&["inventory", "--format", "hosts"]).ok().stdout;
    assert_eq!(hosts, "192.0.2.102 dns\n");
}

/// A stack that takes such an address is planned when it is known: after the guest, in the same run.
#[test]
fn a_stack_that_needs_the_address_waits_for_it() {
    let world = World::instant(WEB);
    by_hand(&world.repo, "top", "metadata: {environment: test}\ntofu: {inputs: {given: web.app}}\n", "at-");
    let tofu = fake(&world.repo);
    let strata: Strata = world.strata().env("STRATA_TOFU", &tofu);
    let shown = strata.run(&["plan"]).ok();
    assert!(shown.stdout.contains("not planned yet: it needs `web.app`"), "{}", shown.all());
    strata.run(&["apply", "--yes"]).ok();
    assert_eq!(world.repo.read("stacks/top/state"), "\"at-192.0.2.101\"\n");
    strata.run(&["plan", "--detailed-exitcode"]).code(0);
    // A change that has nothing to do with its network leaves it known.
    world.repo.edit(FILE, "memory: 512", "memory: 640");
    let shown = strata.run(&["plan"]).ok();
    assert!(!shown.stdout.contains("not planned yet"), "{}", shown.all());
    // Where the guest does not report it, only what needs it fails.
    world.repo.edit(FILE, "vmId: 9101", "vmId: 9103\n    timeouts: {start: 1}");
    silent(&world, 0);
    let failed = strata.run(&["apply", "--yes"]).code(1);
    assert!(failed.stderr.contains("`web` has no output `app` yet"), "{}", failed.all());
    assert!(failed.stderr.contains("`strata apply web` asks for it"), "{}", failed.all());
    world.sim.control().clear_faults();
    strata.run(&["apply", "--yes"]).ok();
    assert_eq!(world.repo.read("stacks/top/state"), "\"at-192.0.2.103\"\n");
}

/// Everything is made, and the run dies while it asks: the next one asks again, and nothing else is done.
#[test]
fn a_run_that_dies_while_it_asks_loses_nothing() {
    for kind in ["hold-before", "hold-after"] {
        for path in [ASKED, "*/lxc/9202/interfaces"] {
            let world = World::instant(WEB);
            let fault = json!({"kind": kind, "path": path});
            let killed = world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]);
            assert!(killed.struck, "{kind} {path}");
            world.sim.control().clear_faults();
            let made = world.export();
            world.strata().run(&["apply", "--yes"]).ok();
            assert_eq!(world.export(), made, "{kind} {path}");
            assert_eq!(output(&world, "app"), "192.0.2.101");
            let facts = state(&world)["resources"]["web/container/dns"]["facts"].clone();
            assert_eq!(facts["addresses"], json!({"net0": ["192.0.2.102"]}), "{facts}");
            world.assert_settled();
        }
    }
}

/// Where a guest is, is listed: the place that the source says may not be it.
#[test]
fn a_guest_that_moved_is_asked_where_it_is() {
    let world = World::instant(WEB);
    world.strata().run(&["apply", "--yes"]).ok();
    let moved = json!({"method": "POST", "path": "/nodes/pve1/lxc/9202/migrate", "params": {"target": "pve2", "restart": 1}});
    let answer = world.sim.control().change(&moved);
    assert_eq!(answer["status"], 200, "{answer}");
    world.repo.edit(FILE, "node: pve1", "node: any");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(output(&world, "dns"), "192.0.2.102");
}
