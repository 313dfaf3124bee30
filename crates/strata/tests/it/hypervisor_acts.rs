//! Hosts that are emptied, updated and rebooted, one after the other.

use serde_json::{Value, json};
use strata_sim::Pace;

use crate::world::World;

const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
templates:
  debian: {vmId: 9000, image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2"}, memory: 1024, disk: 3}
vms:
  app:
    count: 2
    template: debian
    vmId: 9100
    memory: 512
    disks: {scsi0: {storage: local-lvm, size: 4}}
    network: [{bridge: vmbr0}]
  off:
    vmId: 9110
    memory: 64
    disks: {scsi0: {storage: local-lvm, size: 1}}
    started: false
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 1
    memory: 256
    network: [{bridge: vmbr0}]
"#;

fn world() -> World {
    let world = World::with(Pace::FAST, STACK);
    // The usual one may not reboot hosts.
    world.repo.write("sim-token", strata_sim::ROOT_TOKEN);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

fn ask(world: &World, method: &str, path: &str, params: &Value) -> Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{answer}");
    answer["data"].clone()
}

fn place(world: &World, vmid: &str) -> (String, String) {
    let guest = crate::windows::guest(&world.export(), vmid);
    (guest["node"].as_str().unwrap().to_owned(), guest["power"].as_str().unwrap().to_owned())
}

fn at(node: &str, power: &str) -> (String, String) {
    (node.to_owned(), power.to_owned())
}

fn notes(world: &World, node: &str) -> String {
    let config = ask(world, "GET", &format!("/nodes/{node}/config"), &json!({}));
    config["description"].as_str().unwrap_or_default().trim_end().to_owned()
}

fn uptime(world: &World, node: &str) -> i64 {
    ask(world, "GET", &format!("/nodes/{node}/status"), &json!({}))["uptime"].as_i64().unwrap()
}

fn is_rebooted(world: &World, node: &str) -> bool {
    uptime(world, node) < 3600
}

/// Nothing is left of it, and everything is where the source has it.
fn assert_home(world: &World) {
    for node in ["pve1", "pve2", "pve3"] {
        assert!(!notes(world, node).contains("strata maintenance"), "{node}: {}", notes(world, node));
    }
    for vmid in ["9100", "9101", "9200"] {
        assert_eq!(place(world, vmid), at("pve1", "running"), "{vmid}");
    }
    assert_eq!(place(world, "9110"), at("pve1", "stopped"));
    world.assert_settled();
}

#[test]
fn a_host_is_drained_and_kept_empty_until_its_guests_return() {
    let world = world();
    ask(&world, "PUT", "/nodes/pve1/config", &json!({"description": "rack 4"}));
    // Somebody's own guest is off: nobody minds it.
    let drain = ["hypervisor", "drain", "pve1"];
    let asked = world.strata().run(&drain).code(3);
    let said = "web/vm/app-1 (VM 9100) moves to pve";
    assert!(
        asked.stdout.contains(said)
            && asked.stdout.contains("web/container/dns (container 9200) is restarted on pve"),
        "{}",
        asked.all()
    );
    assert_eq!(place(&world, "9100"), at("pve1", "running"), "nobody agreed");
    assert_eq!(notes(&world, "pve1"), "rack 4");
    world.strata().run(&["hypervisor", "drain", "pve1", "--yes"]).ok();
    for vmid in ["9100", "9101", "9200"] {
        let (node, power) = place(&world, vmid);
        assert!(node != "pve1" && power == "running", "{vmid}: {node} {power}");
    }
    assert_eq!(place(&world, "9110"), at("pve1", "stopped"), "what is off stays");
    let marked = notes(&world, "pve1");
    assert!(
        marked.starts_with("rack 4\nstrata maintenance: ") && marked.ends_with("stage=empty"),
        "{marked}"
    );
    // An apply does not bring them back into the middle of it.
    let refused = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(refused.stderr.contains("`pve1` is being maintained (drain of"), "{}", refused.all());
    assert!(refused.stderr.contains("strata hypervisor return pve1"), "{}", refused.all());
    // Another thing that is to be done to it is refused; the same again changes nothing.
    let other = world.strata().run(&["hypervisor", "reboot", "pve1", "--yes"]).code(3);
    assert!(other.stderr.contains("in the middle of `strata hypervisor drain pve1`"), "{}", other.all());
    world.strata().run(&["hypervisor", "drain", "pve1", "--yes"]).ok();
    world.strata().run(&["hypervisor", "return", "pve1"]).ok();
    assert_eq!(notes(&world, "pve1"), "rack 4");
    assert_home(&world);
}

#[test]
fn hosts_reboot_one_after_the_other_and_get_their_guests_back() {
    let world = world();
    let run = world.strata().run(&["--json", "hypervisor", "reboot", "pve1", "pve2", "--yes"]).ok();
    let steps: Vec<String> = run
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["event"] == "host-step" && line["planned"] == false)
        .map(|line| format!("{}: {}", line["host"].as_str().unwrap(), line["what"].as_str().unwrap()))
        .collect();
    let order: Vec<usize> =
        ["pve1: reboots", "pve1: is back", "pve1: healthy", "pve2: reboots", "pve2: healthy"]
            .iter()
            .map(|what| {
                steps
                    .iter()
                    .position(|step| step.starts_with(what))
                    .unwrap_or_else(|| panic!("{what}: {steps:?}"))
            })
            .collect();
    assert!(order.is_sorted(), "{steps:?}");
    assert!(is_rebooted(&world, "pve1") && is_rebooted(&world, "pve2") && !is_rebooted(&world, "pve3"));
    assert_home(&world);
}

#[test]
fn an_update_waits_for_the_proof_of_it() {
    let world = world();
    let packages = json!([["pve-manager", "9.1.9"], ["qemu-server", "9.1.8"]]);
    world.sim.control().change(&json!({"updates": {"node": "pve1", "packages": packages}}));
    let update = ["hypervisor", "update", "pve1", "--yes", "--wait", "2"];
    let late = world.strata().run(&update).code(1);
    assert!(
        late.stdout.contains("a person updates it")
            && late.stdout.contains("waits for a person: `apt dist-upgrade` there (2 packages)"),
        "{}",
        late.all()
    );
    assert!(late.stderr.contains("`pve1` still lists pending updates"), "{}", late.all());
    assert!(!is_rebooted(&world, "pve1"), "not before it is updated");
    assert!(place(&world, "9100").0 != "pve1");
    world.sim.control().change(&json!({"updates": {"node": "pve1", "packages": []}}));
    let done = world.strata().run(&["hypervisor", "update", "pve1", "--yes", "--wait", "60"]).ok();
    assert!(
        done.stdout.contains("an interrupted run is continued")
            && done.stdout.contains("no updates are pending"),
        "{}",
        done.all()
    );
    assert!(is_rebooted(&world, "pve1"));
    assert_home(&world);
    // What somebody opted in to is run here, once for each host, with its name; without a reboot where that was said.
    let file = world.repo.path().join("ran");
    world.sim.control().change(&json!({"updates": {"node": "pve2", "packages": packages}}));
    let command = format!("echo {{node}} >> {}; false", file.display());
    let failed = world
        .strata()
        .run(&["hypervisor", "update", "pve2", "--yes", "--no-reboot", "--run", &command])
        .code(1);
    assert!(failed.stderr.contains("ended with exit status: 1"), "{}", failed.all());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "pve2\n");
    world.sim.control().change(&json!({"updates": {"node": "pve2", "packages": []}}));
    world.strata().run(&["hypervisor", "update", "pve2", "--yes", "--no-reboot"]).ok();
    assert!(!is_rebooted(&world, "pve2"));
    assert_home(&world);
}

#[test]
fn what_stands_in_the_way_is_told_before_anything_is_done() {
    let world = world();
    let before = world.export();
    // A guest of somebody else runs there.
    world.sim.control().change(&json!({"power": {"vmid": 200, "running": true}}));
    let refused = world.strata().run(&["hypervisor", "reboot", "pve1", "--yes"]).code(3);
    assert!(
        refused.stderr.contains("VM 200 `stranger` runs there and is not managed by this repository"),
        "{}",
        refused.all()
    );
    let unknown = world.strata().run(&["hypervisor", "drain", "pve9", "--yes"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("there is no host `pve9`"), "{}", unknown.all());
    // Without it the others have no majority.
    world.sim.control().change(&json!({"host": {"node": "pve3", "up": false}}));
    let refused = world.strata().run(&["hypervisor", "reboot", "pve1", "--yes", "--leave-others"]).code(3);
    assert!(refused.stderr.contains("have no majority of the votes"), "{}", refused.all());
    world.sim.control().change(&json!({"host": {"node": "pve3", "up": true}}));
    world.sim.control().change(&json!({"power": {"vmid": 200, "running": false}}));
    assert_eq!(place(&world, "9100"), at("pve1", "running"));
    assert_eq!(world.export()["guests"], before["guests"], "nothing was touched");
    // A mark of another repository.
    let mark = "strata maintenance: by=other verb=reboot hosts=pve1,pve2 stage=planned";
    ask(&world, "PUT", "/nodes/pve2/config", &json!({"description": mark}));
    let refused = world.strata().run(&["hypervisor", "drain", "pve2", "--yes"]).code(3);
    assert!(refused.stderr.contains("`pve2` is being maintained by `other` (reboot)"), "{}", refused.all());
    assert_eq!(notes(&world, "pve2"), mark);
}

/// A guest with an ISO of its host in a drive cannot leave it: it goes down and comes up with its host, if that was agreed to.
#[test]
fn what_cannot_be_moved_is_shut_down_where_that_was_asked_for() {
    let world = world();
    let iso = json!({"volid": "local:iso/tools.iso", "node": "pve1", "size": 1 << 20, "content": "iso"});
    world.sim.control().change(&json!({"volume": iso}));
    let drive = json!({"ide3": "local:iso/tools.iso,media=cdrom"});
    world.sim.control().change(&json!({"edit": {"vmid": 9100, "set": drive}}));
    let refused = world.strata().run(&["hypervisor", "reboot", "pve1", "--yes"]).code(3);
    let said = "(`web/vm/app-1`) cannot be moved: `local:iso/tools.iso` in a drive of it is only there";
    assert!(refused.stderr.contains(said), "{}", refused.all());
    let run = world.strata().run(&["hypervisor", "reboot", "pve1", "--yes", "--shut-down"]).ok();
    assert!(run.stdout.contains("web/vm/app-1 (VM 9100) is shut down"), "{}", run.all());
    assert!(run.stdout.contains("pve1: web/vm/app-1 runs again"), "{}", run.all());
    assert_eq!(place(&world, "9100"), at("pve1", "running"));
    assert_eq!(place(&world, "9101"), at("pve1", "running"));
}

/// Kills it at its k-th request. False if it ended before it came that far.
fn kill_at(kind: &str, k: u64, command: &[&str]) -> bool {
    let world = world();
    let what = format!("{} {kind} {k}", command.join(" "));
    let fault = json!({"kind": kind, "nth": k});
    let struck = world.strata().kill_at(&world.sim.control(), &fault, command).struck_or_good(&what);
    let again = world.strata().run(command);
    assert_eq!(again.code, 0, "{what}: {}", again.all());
    if command.contains(&"drain") {
        assert!(place(&world, "9100").0 != "pve1", "{what}");
        world.strata().run(&["hypervisor", "return", "pve1"]).ok();
    } else {
        assert!(is_rebooted(&world, "pve1"), "{what}");
    }
    assert_home(&world);
    struck
}

fn kill_every(step: usize, most: usize) {
    for command in
        [&["hypervisor", "drain", "pve1", "--yes"][..], &["hypervisor", "reboot", "pve1", "pve2", "--yes"]]
    {
        for kind in ["hold-before", "hold-after"] {
            let killed = (4..).step_by(step).take(most).take_while(|k| kill_at(kind, *k, command)).count();
            println!("{}: {kind}: killed {killed} times", command[1]);
        }
    }
}

#[test]
fn a_run_that_was_killed_is_gone_on_with() {
    kill_every(31, 2);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_acts_on_hosts() {
    let step = std::env::var("STRATA_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(1);
    kill_every(step, usize::MAX);
}
