//! `strata drift --accept`: what somebody changed is written into the source, and nothing else is.

use serde_json::{Value, json};

use crate::layer0;
use crate::world::World;

const FILE: &str = "stacks/web/stack.yaml";

const STACK: &str = "\
# Everything that serves the web.
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
profiles:
  small: {memory: 512}

vms:
  # asked for by the shop
  db:
    vmId: 9110
    use: [small]
    cores: 2          # enough for now
    disks: {scsi0: 4}
    network: [{bridge: vmbr0}, {bridge: vmbr1, vlan: 30}]
    started: false
    cloudInit: {user: debian, password: {env: APP_PASSWORD}}
  queue: {vmId: 9111, use: [small], disks: {scsi0: 1}, started: false}
  app:
    vmId: 9120
    count: 3
    memory: 512
    disks: {scsi0: 1}
    started: false
  desk:
    disks: {scsi0: 1}
    started: false
    each: {ann: {vmId: 9130}, ben: {vmId: 9131}}
containers:
  dns: {vmId: 9200, image: {url: 'https://images.example/debian-12-standard_12.7-1_amd64.tar.zst'}, disk: 4, started: false}
";

fn applied(stack: &str) -> World {
    let world = World::instant(stack);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

fn set(world: &World, kind: &str, vmid: u32, params: &Value) {
    let change =
        json!({"method": "PUT", "path": format!("/nodes/pve1/{kind}/{vmid}/config"), "params": params});
    assert_eq!(world.sim.control().change(&change)["status"], 200);
}

/// Neither a plan nor drift is left.
fn assert_kept(world: &World) {
    world.assert_settled();
    world.strata().run(&["drift"]).code(0);
}

#[test]
fn d2_drift_is_written_into_the_source() {
    let world = applied(STACK);
    set(&world, "qemu", 9110, &json!({"cores": 4, "memory": 1024, "tags": "shop;db", "onboot": 1}));
    set(&world, "qemu", 9110, &json!({"net1": "virtio=BC:24:11:AA:00:01,bridge=vmbr1,tag=31"}));
    let resize = json!({"method": "PUT", "path": "/nodes/pve1/qemu/9110/resize", "params": {"disk": "scsi0", "size": "6G"}});
    assert_eq!(world.sim.control().change(&resize)["status"], 200);
    set(&world, "lxc", 9200, &json!({"memory": 256}));
    let before = world.export();

    let drift = world.strata().run(&["drift"]).code(2);
    assert!(
        drift.stdout.contains("`strata drift --accept ADDRESS` writes it into the source"),
        "{}",
        drift.all()
    );
    // Nobody is there to agree.
    let asked = world.strata().run(&["drift", "--accept", "web/vm/db"]).code(3);
    assert!(asked.stdout.contains("+    cores: 4          # enough for now"), "{}", asked.all());
    assert_eq!(world.repo.read(FILE), STACK);

    let done = world.strata().run(&["drift", "--accept", "web/vm/db", "web/container/*", "--yes"]).code(0);
    insta::assert_snapshot!(done.stdout, @r"
    --- stacks/web/stack.yaml
    +++ stacks/web/stack.yaml
    @@ -9 +9 @@
       db:
         vmId: 9110
         use: [small]
    -    cores: 2          # enough for now
    -    disks: {scsi0: 4}
    -    network: [{bridge: vmbr0}, {bridge: vmbr1, vlan: 30}]
    +    cores: 4          # enough for now
    +    disks: {scsi0: 6}
    +    network: [{bridge: vmbr0}, {bridge: vmbr1, vlan: 31, mac: BC:24:11:AA:00:01}]
         started: false
         cloudInit: {user: debian, password: {env: APP_PASSWORD}}
    +    memory: 1024
       queue: {vmId: 9111, use: [small], disks: {scsi0: 1}, started: false}
       app:
         vmId: 9120
    @@ -26 +27 @@
         started: false
         each: {ann: {vmId: 9130}, ben: {vmId: 9131}}
     containers:
    -  dns: {vmId: 9200, image: {url: 'https://images.example/debian-12-standard_12.7-1_amd64.tar.zst'}, disk: 4, started: false}
    +  dns: {vmId: 9200, image: {url: 'https://images.example/debian-12-standard_12.7-1_amd64.tar.zst'}, disk: 4, started: false, memory: 256}
    = web/container/dns  memory.size
    = web/vm/db  cpu.cores, disks.scsi0.size, memory.size, networks.net1.mac, networks.net1.vlan
    accepted: the drift of 2 objects; the plan of what was accepted is empty
    ");
    assert_eq!(world.export(), before, "nothing remote changed");
    assert_kept(&world);
    world.strata().run(&["drift", "--accept", "web/vm/db", "--yes"]).code(0);
}

#[test]
fn d2_of_equal_guests_one_is_not_changed_for_another() {
    let world = applied(STACK);
    set(&world, "qemu", 9121, &json!({"cores": 2}));
    let refused = world.strata().run(&["drift", "--accept", "web/vm/app-2", "--yes"]).code(2);
    insta::assert_snapshot!(refused.stdout, @r"
    not accepted: `web/vm/app-2`: `cpu.cores` is written once for all of `count` of `app` (`stacks/web/stack.yaml:18`), and would change `web/vm/app-1` too
      hint: accept them together where all are alike, or give each its own entry with `each`; `strata apply web/vm/app-2` reverts it
    nothing was written
    ");
    assert_eq!(world.repo.read(FILE), STACK);
    // All of them, in the same way.
    for vmid in [9120, 9122] {
        set(&world, "qemu", vmid, &json!({"cores": 2}));
    }
    world.strata().run(&["drift", "--accept", "web/vm/app-*", "--yes"]).code(0);
    assert!(
        world
            .repo
            .read(FILE)
            .contains("    memory: 512\n    disks: {scsi0: 1}\n    started: false\n    cores: 2\n")
    );
    assert_kept(&world);
    // One entry of `each` has a place of its own, and so has one of two guests with the same profile.
    set(&world, "qemu", 9131, &json!({"memory": 256}));
    set(&world, "qemu", 9111, &json!({"memory": 256}));
    world.strata().run(&["drift", "--accept", "web", "--yes"]).code(0);
    let text = world.repo.read(FILE);
    assert!(text.contains("ben: {vmId: 9131, memory: 256}"), "{text}");
    assert!(
        text.contains("queue: {vmId: 9111, use: [small], disks: {scsi0: 1}, started: false, memory: 256}"),
        "{text}"
    );
    assert!(text.contains("small: {memory: 512}"), "{text}");
    assert_kept(&world);
}

#[test]
fn d2_other_environments_keep_what_they_have() {
    let stack = "\
metadata: {name: web, environment: dev}
proxmox: {target: pve, node: pve1}
vms:
  app: {vmId: 9100, name: 'app-{env}', memory: 64, disk: 1, started: false}
";
    let world = World::instant(stack);
    world.repo.write("environments/staging.yaml", "include: [stacks]\noffsets: {vmId: 100}\n");
    world.strata().run(&["apply", "--yes"]).ok();
    world.strata().run(&["-e", "staging", "apply", "--yes"]).ok();
    // The file of the stack is also staging's: what is true of dev alone goes to the file of dev.
    set(&world, "qemu", 9100, &json!({"memory": 128}));
    let done = world.strata().run(&["drift", "--accept", "web/vm/app-dev", "--yes"]).code(0);
    assert_eq!(world.repo.read(FILE), stack, "{}", done.all());
    assert_eq!(
        world.repo.read("environments/dev.yaml"),
        "stacks:\n  web:\n    vms:\n      app:\n        memory: 128\n"
    );
    set(&world, "qemu", 9200, &json!({"cores": 2}));
    world.strata().run(&["-e", "staging", "drift", "--accept", "web/vm/app-staging", "--yes"]).code(0);
    assert_eq!(world.repo.read(FILE), stack);
    assert!(world.repo.read("environments/staging.yaml").contains("cores: 2"));
    for environment in ["dev", "staging"] {
        world.strata().run(&["-e", environment, "plan", "--detailed-exitcode"]).code(0);
        world.strata().run(&["-e", environment, "drift"]).code(0);
    }
}

#[test]
fn d2_what_cannot_be_accepted_is_named_with_the_reason() {
    let world = applied(STACK);
    let gone = json!({"method": "DELETE", "path": "/nodes/pve1/qemu/9111", "params": {}});
    assert_eq!(world.sim.control().change(&gone)["status"], 200);
    let refused = world.strata().run(&["drift", "--accept", "web", "--yes"]).code(2);
    insta::assert_snapshot!(refused.stdout, @r"
    not accepted: `web/vm/queue` is gone: there is nothing to write
      hint: remove its entry (`stacks/web/stack.yaml:17`) and run `strata apply`, which drops it from the state; otherwise `strata apply` makes it again
    nothing was written
    ");
    assert_eq!(world.repo.read(FILE), STACK);
    let lines = world.strata().run(&["drift", "--accept", "web", "--yes", "--json"]).code(2).stdout;
    assert!(lines.contains(r#""event":"not-accepted""#), "{lines}");
    world.strata().run(&["drift", "--accept"]).code(64);
    // What is left to others is no drift, and nothing to accept.
    set(&world, "qemu", 9110, &json!({"cores": 4}));
    world.repo.edit(
        FILE,
        "    use: [small]\n    cores",
        "    use: [small]\n    ignoreChanges: [cpu.cores]\n    cores",
    );
    let nothing = world.strata().run(&["drift", "--accept", "web/vm/db", "--yes"]).code(0);
    assert!(nothing.stdout.contains("nothing to accept"), "{}", nothing.all());
}

/// The files are written first: the same command finishes what a killed one began.
#[test]
fn d2_a_killed_acceptance_is_finished_by_the_same_command() {
    let accept = ["drift", "--accept", "web/vm/queue", "--yes"];
    let mut written = 0;
    for request in [1, 20, 30, 40] {
        let world = applied(STACK);
        set(&world, "qemu", 9111, &json!({"cores": 3}));
        let before = world.export();
        let fault = json!({"kind": "hold-before", "nth": request});
        world.strata().kill_at(&world.sim.control(), &fault, &accept);
        let (text, whole) = (
            world.repo.read(FILE),
            STACK.replace("started: false}\n  app", "started: false, cores: 3}\n  app"),
        );
        assert!(text == STACK || text == whole, "{text}");
        written += usize::from(text == whole);
        assert_eq!(world.export(), before);
        world.strata().run(&accept).code(0);
        assert_kept(&world);
        assert_eq!(world.export(), before);
    }
    assert!((1..4).contains(&written), "{written} of the runs had written the file");
}

#[test]
fn d2_what_the_hosts_have_is_accepted_too() {
    let world = layer0::Datacenter::new(layer0::DATACENTER);
    world.strata().run(&["apply", "--yes"]).ok();
    // Whoever writes over the comment removes the ownership mark in it.
    world.change("PUT", "/pools", json!({"poolid": "web", "comment": "for the shop"}));
    world.change("PUT", "/storage/media", json!({"content": "iso"}));
    world.change("PUT", "/cluster/backup/nightly", json!({"schedule": "03:00"}));
    world.change("PUT", "/access/users/ann@pve", json!({"email": "ann@shop.test"}));
    let done = world.strata().run(&["drift", "--accept", "dc", "--yes"]).code(2);
    assert!(
        done.stdout.contains("not accepted: `dc/pool/web`: somebody changed its ownership mark"),
        "{}",
        done.all()
    );
    let text = world.repo.read(layer0::FILE);
    for line in [
        "content: [iso], options",
        "nightly: {schedule: \"03:00\"",
        "email: \"ann@shop.test\", firstName: Ann",
    ] {
        assert!(text.contains(line), "{line}: {}", done.all());
    }
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(world.repo.read(layer0::FILE), text);
    world.assert_settled();
    world.strata().run(&["drift"]).code(0);
}
