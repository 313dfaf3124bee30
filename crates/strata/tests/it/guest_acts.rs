//! Backups and snapshots of one guest, made, listed, verified, restored, rolled back to, deleted.

mod faults;

use serde_json::{Value, json};
use strata_sim::Pace;

use crate::world::World;

/// A VM and a container, with everything that a restore has to bring back.
const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
templates:
  debian: {vmId: 9000, image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2"}, memory: 1024, disk: 3}
vms:
  db:
    template: debian
    vmId: 9100
    memory: 512
    pool: production
    disks: {scsi0: {storage: local-lvm, size: 4}}
    network: [{bridge: vmbr0}]
    cloudInit: {user: debian, password: {env: APP_PASSWORD}}
    firewall: {rules: [{direction: in, action: ACCEPT, protocol: tcp, destinationPort: "5432"}]}
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 1
    memory: 256
    network: [{bridge: vmbr0, ip: 192.0.2.53/24, gateway: 192.0.2.1}]
"#;

const FILE: &str = "stacks/web/stack.yaml";
const GUESTS: [(&str, &str, &str); 2] = [("web/vm/db", "qemu", "9100"), ("web/container/dns", "lxc", "9200")];

fn world(pace: Pace) -> World {
    let world = World::with(pace, STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

fn change(world: &World, method: &str, path: &str, params: &Value) -> Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{answer}");
    answer["data"].clone()
}

fn config(world: &World, kind: &str, vmid: &str) -> Value {
    change(world, "GET", &format!("/nodes/pve1/{kind}/{vmid}/config"), &json!({}))
}

fn backups(world: &World) -> Vec<Value> {
    let content = change(world, "GET", "/nodes/pve1/storage/local/content", &json!({"content": "backup"}));
    let mut rows = content.as_array().unwrap().clone();
    rows.sort_by_key(|row| row["volid"].to_string());
    rows
}

fn newest(world: &World, vmid: &str) -> String {
    let mut rows = backups(world).into_iter().filter(|row| row["vmid"].to_string().trim_matches('"') == vmid);
    rows.next_back().unwrap()["volid"].as_str().unwrap().to_owned()
}

fn is_running(world: &World, vmid: &str) -> bool {
    crate::windows::guest(&world.export(), vmid)["power"] == "running"
}

fn backup_run(world: &World, address: &str) {
    world.strata().run(&["backup", "run", address, "--storage", "local"]).ok();
}

/// What must be the same before and after: what the guest is known by.
fn known_by(world: &World, kind: &str, vmid: &str) -> (Value, Value, Value) {
    let config = config(world, kind, vmid);
    (config["smbios1"].clone(), config["net0"].clone(), config["description"].clone())
}

#[test]
fn a_backup_is_made_listed_verified_and_restored() {
    let world = world(Pace::INSTANT);
    for (address, kind, vmid) in GUESTS {
        let before = known_by(&world, kind, vmid);
        let made =
            world.strata().run(&["backup", "run", address, "--storage", "local", "--notes", "before"]).ok();
        assert!(made.stdout.contains("is backed up: local:backup/vzdump-"), "{}", made.all());
        world.assert_settled();
        let volume = newest(&world, vmid);
        let notes = backups(&world).into_iter().find(|row| row["volid"] == volume.as_str()).unwrap()["notes"]
            .to_string();
        assert!(
            notes.starts_with("\"before [strata ") && notes.ends_with(&format!(" {address}]\"")),
            "{notes}"
        );
        let listed = world.strata().run(&["backup", "list", address]).ok().stdout;
        assert!(listed.contains(&volume) && listed.contains("    before\n"), "{listed}");
        let verified = world.strata().run(&["backup", "verify", address]).ok().stdout;
        let slot = if kind == "qemu" { "in it: `scsi0`" } else { "in it: `rootfs`" };
        assert!(verified.contains(&volume) && verified.contains(slot), "{verified}");
        // The source changes since then: a restore brings back what was, and the plan says what the source wants instead.
        let memory = if kind == "qemu" { ("512", "768") } else { ("256", "384") };
        world.repo.edit(FILE, &format!("memory: {}", memory.0), &format!("memory: {}", memory.1));
        world.strata().run(&["apply", "--yes"]).ok();
        let asked = world.strata().run(&["backup", "restore", address, &volume]).code(3);
        assert!(asked.stderr.contains("what its disks hold since then is lost"), "{}", asked.all());
        assert_eq!(
            config(&world, kind, vmid)["memory"].to_string().trim_matches('"'),
            memory.1,
            "nobody agreed"
        );
        let restored = world.strata().run(&["backup", "restore", address, "latest", "--yes"]).ok();
        assert!(restored.stdout.contains("is restored from"), "{}", restored.all());
        assert_eq!(config(&world, kind, vmid)["memory"].to_string().trim_matches('"'), memory.0);
        assert_eq!(known_by(&world, kind, vmid), before, "the same guest");
        assert!(is_running(&world, vmid));
        let plan = world.strata().run(&["plan"]).ok().stdout;
        assert!(plan.contains("1 to change") && plan.contains("memory"), "{plan}");
        let changed: Vec<&str> = plan.lines().filter(|line| line.contains('→')).collect();
        assert_eq!(changed.len(), 1, "{plan}");
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
    }
}

/// What left the source after the backup comes back with it, and the plan removes it again; a secret that was another one is written again.
#[test]
fn the_plan_after_a_restore_is_what_the_source_changed() {
    let world = world(Pace::INSTANT);
    world.repo.edit(FILE, "size: 4}}", "size: 4}, scsi1: {storage: local-lvm, size: 1}}");
    world.repo.edit(FILE, "    pool: production\n", "    pool: production\n    tags: [then]\n");
    world.strata().run(&["apply", "--yes"]).ok();
    // Versions of the state are told apart by seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    backup_run(&world, "web/vm/db");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    world.repo.edit(FILE, ", scsi1: {storage: local-lvm, size: 1}}", "}");
    world.repo.edit(FILE, "    tags: [then]\n", "");
    world.strata().env("APP_PASSWORD", "another-battery-staple").run(&["apply", "--yes"]).ok();
    assert!(config(&world, "qemu", "9100")["scsi1"].is_null());
    world.strata().run(&["backup", "restore", "web/vm/db", "latest", "--yes"]).ok();
    assert!(config(&world, "qemu", "9100")["scsi1"].is_string());
    let plan = world.strata().env("APP_PASSWORD", "another-battery-staple").run(&["plan"]).ok().stdout;
    for said in ["disks.scsi1", "tags", "cloudinit.password"] {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    assert!(!plan.contains("memory") && !plan.contains("cloudinit.user"), "{plan}");
    world.strata().env("APP_PASSWORD", "another-battery-staple").run(&["apply", "--yes"]).ok();
    let plan = world
        .strata()
        .env("APP_PASSWORD", "another-battery-staple")
        .run(&["plan", "--detailed-exitcode"])
        .ok();
    assert!(config(&world, "qemu", "9100")["scsi1"].is_null(), "{}", plan.all());
}

#[test]
fn a_guest_that_is_gone_is_made_again_from_its_backup() {
    let world = world(Pace::INSTANT);
    for (address, kind, vmid) in GUESTS {
        let before = known_by(&world, kind, vmid);
        backup_run(&world, address);
        world
            .sim
            .control()
            .change(&json!({"power": {"vmid": vmid.parse::<u32>().unwrap(), "running": false}}));
        change(&world, "DELETE", &format!("/nodes/pve1/{kind}/{vmid}"), &json!({"purge": 1}));
        world.strata().run(&["backup", "restore", address, "latest", "--yes"]).ok();
        assert_eq!(known_by(&world, kind, vmid), before, "the same guest");
        assert!(is_running(&world, vmid));
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
    }
    assert!(crate::windows::guest(&world.export(), "9100").to_string().contains("db"));
}

#[test]
fn snapshots_are_taken_listed_rolled_back_to_and_deleted() {
    let world = world(Pace::INSTANT);
    for (address, kind, vmid) in GUESTS {
        let before = known_by(&world, kind, vmid);
        let taken =
            world.strata().run(&["snapshot", "create", address, "before", "--notes", "an upgrade"]).ok();
        assert!(taken.stdout.contains("the snapshot `before`"), "{}", taken.all());
        world.assert_settled();
        let twice = world.strata().run(&["snapshot", "create", address, "before"]).code(1);
        assert!(twice.stderr.contains("has a snapshot `before` already"), "{}", twice.all());
        world.strata().run(&["snapshot", "create", address]).ok();
        change(
            &world,
            "POST",
            &format!("/nodes/pve1/{kind}/{vmid}/snapshot"),
            &json!({"snapname": "byhand"}),
        );
        let listed = world.strata().run(&["snapshot", "list", address]).ok().stdout;
        for said in ["  before\n    an upgrade\n", "  strata-2", "  byhand  taken by somebody else"] {
            assert!(listed.contains(said), "{said}: {listed}");
        }
        let cores = json!({"cpuunits": 77});
        change(&world, "PUT", &format!("/nodes/pve1/{kind}/{vmid}/config"), &cores);
        let asked = world.strata().run(&["snapshot", "rollback", address, "before"]).code(3);
        assert!(asked.stderr.contains("what its disks hold since then is lost"), "{}", asked.all());
        assert!(config(&world, kind, vmid)["cpuunits"] == 77, "nobody agreed");
        world.strata().run(&["snapshot", "rollback", address, "before", "--yes"]).ok();
        assert!(config(&world, kind, vmid)["cpuunits"].is_null());
        assert_eq!(known_by(&world, kind, vmid), before, "the same guest");
        assert!(is_running(&world, vmid));
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
        let refused = world.strata().run(&["snapshot", "delete", address, "byhand", "--yes"]).code(3);
        assert!(refused.stderr.contains("was not made by Strata"), "{}", refused.all());
        world.strata().run(&["snapshot", "delete", address, "before", "--yes"]).ok();
        let listed = world.strata().run(&["snapshot", "list", address]).ok().stdout;
        assert!(!listed.contains("  before") && listed.contains("byhand"), "{listed}");
        let gone = world.strata().run(&["snapshot", "rollback", address, "before", "--yes"]).code(1);
        assert!(gone.stderr.contains("has no snapshot `before`"), "{}", gone.all());
        world.assert_settled();
    }
}

#[test]
fn what_is_protected_or_not_ours_is_refused() {
    let world = world(Pace::INSTANT);
    backup_run(&world, "web/vm/db");
    world.strata().run(&["snapshot", "create", "web/vm/db", "one"]).ok();
    world.repo.edit(FILE, "    memory: 512\n", "    memory: 512\n    protect: true\n");
    let before = world.export();
    for command in [
        ["backup", "restore", "web/vm/db", "latest", "--yes"],
        ["snapshot", "rollback", "web/vm/db", "one", "--yes"],
    ] {
        let refused = world.strata().run(&command).code(3);
        assert!(refused.stderr.contains("is protected"), "{}", refused.all());
    }
    // Adding to what there is disturbs nothing.
    backup_run(&world, "web/vm/db");
    world.repo.edit(FILE, "    protect: true\n", "");
    // Somebody else's guest, and its backup, under our VMID.
    world.sim.control().change(&json!({"power": {"vmid": 9100, "running": false}}));
    change(&world, "DELETE", "/nodes/pve1/qemu/9100", &json!({"purge": 1}));
    let theirs = json!({"vmid": 9100, "name": "theirs", "memory": 64, "scsi0": "local-lvm:1"});
    change(&world, "POST", "/nodes/pve1/qemu", &theirs);
    change(&world, "POST", "/nodes/pve1/vzdump", &json!({"vmid": "9100", "storage": "local"}));
    let foreign =
        backups(&world).into_iter().find(|row| row["volid"].as_str().unwrap().ends_with(".vma")).unwrap();
    let foreign = foreign["volid"].as_str().unwrap().to_owned();
    let listed = world.strata().run(&["backup", "list", "web/vm/db"]).ok().stdout;
    let line = listed.lines().find(|line| line.contains(&format!("{foreign} "))).unwrap();
    assert!(line.contains("of another guest: it carries no ownership mark"), "{listed}");
    for verb in [
        &["backup", "verify", "web/vm/db", &foreign][..],
        &["backup", "restore", "web/vm/db", &foreign, "--yes"],
    ] {
        let refused = world.strata().run(verb).code(3);
        assert!(refused.stderr.contains("is no backup of `web/vm/db`"), "{}", refused.all());
    }
    let theirs = crate::windows::guest(&world.export(), "9100");
    for (verb, code) in [
        (&["backup", "run", "web/vm/db", "--storage", "local"][..], 1),
        (&["backup", "restore", "web/vm/db", "latest", "--yes"], 3),
        (&["snapshot", "create", "web/vm/db", "two"], 1),
        (&["snapshot", "list", "web/vm/db"], 1),
    ] {
        let refused = world.strata().run(verb).code(code);
        assert!(refused.stderr.contains("its uuid is not the one that the state knows"), "{}", refused.all());
    }
    assert_eq!(crate::windows::guest(&world.export(), "9100"), theirs, "it was not touched");
    assert_ne!(before, world.export());
}

#[test]
fn what_is_wrong_is_said_before_anything_is_done() {
    let world = world(Pace::INSTANT);
    let before = world.export();
    for (verb, code, said) in [
        (&["backup", "run", "nonsense"][..], 64, "is no address of a guest"),
        (&["backup", "run", "web/image/debian@pve1"], 64, "neither a VM nor a container"),
        (&["backup", "run", "web/vm/nobody"], 1, "web/vm/nobody"),
        (&["backup", "run", "web/vm/db", "--storage", "tank"], 1, "has no storage `tank` that takes backups"),
        (&["backup", "run", "web/vm/db", "--mode", "stop"], 3, "is shut down and started again"),
        (&["backup", "verify", "web/vm/db"], 1, "no backup of `web/vm/db` is listed"),
        (&["backup", "restore", "web/vm/db", "local:backup/x", "--yes"], 1, "no backup `local:backup/x`"),
        (&["snapshot", "create", "web/vm/db", "9lives"], 64, "is no name of a snapshot"),
        (&["snapshot", "create", "web/vm/db", "current"], 64, "is no name of a snapshot"),
        (&["snapshot", "delete", "web/vm/db", "none", "--yes"], 1, "has no snapshot `none`"),
    ] {
        let refused = world.strata().run(verb).code(code);
        assert!(refused.stderr.contains(said), "{verb:?}: {}", refused.all());
    }
    let empty = world.strata().run(&["backup", "list", "web/vm/db"]).ok().stdout;
    assert!(empty.contains("`web/vm/db` has no backups"), "{empty}");
    assert_eq!(world.export(), before);
    world.assert_settled();
}
