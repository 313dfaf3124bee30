//! `snapshotBefore`: a way back, made directly before a change.

use serde_json::{Value, json};
use strata_sim::Pace;

use crate::world::World;

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
    tags: [db]
    disks: {scsi0: {storage: local-lvm, size: 4}}
    network: [{bridge: vmbr0}]
    snapshotBefore: {changes: [restart, replace, disks], keep: 2, storage: local}
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 1
    memory: 256
    network: [{bridge: vmbr0}]
    snapshotBefore: [disks]
"#;

const FILE: &str = "stacks/web/stack.yaml";

fn world(pace: Pace) -> World {
    let world = World::with(pace, STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

fn ask(world: &World, method: &str, path: &str, params: &Value) -> Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{answer}");
    answer["data"].clone()
}

/// Names, oldest first.
fn snapshots(world: &World, guest: &str) -> Vec<String> {
    let rows = ask(world, "GET", &format!("/nodes/pve1/{guest}/snapshot"), &json!({}));
    let rows = rows.as_array().unwrap().iter().filter(|row| row["name"] != "current");
    let mut rows: Vec<_> = rows.collect();
    assert!(rows.iter().all(|row| row["snapstate"].is_null()), "{rows:?}");
    rows.sort_by_key(|row| row["name"].to_string());
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn numbers(world: &World, guest: &str) -> Vec<String> {
    let own = snapshots(world, guest).into_iter();
    own.filter_map(|name| Some(name.strip_prefix("strata-before-")?.split('-').next()?.to_owned())).collect()
}

fn backups(world: &World) -> Vec<Value> {
    let content =
        ask(world, "GET", "/nodes/pve1/storage/local/content", &json!({"content": "backup", "vmid": 9100}));
    let mut rows = content.as_array().unwrap().clone();
    rows.sort_by_key(|row| row["volid"].to_string());
    rows
}

fn memory(world: &World, from: u32, to: u32) {
    world.repo.edit(FILE, &format!("memory: {from}"), &format!("memory: {to}"));
}

fn as_it_was(world: &World, snapshot: &str) -> Value {
    ask(world, "GET", &format!("/nodes/pve1/qemu/9100/snapshot/{snapshot}/config"), &json!({}))
}

#[test]
fn a_snapshot_is_taken_before_what_it_was_asked_for_and_old_ones_go() {
    let world = world(Pace::INSTANT);
    // Somebody's own, by hand and by the verb: never counted, never pruned.
    ask(&world, "POST", "/nodes/pve1/qemu/9100/snapshot", &json!({"snapname": "strata-before-1-mine"}));
    world.strata().run(&["snapshot", "create", "web/vm/db", "kept"]).ok();
    world.repo.edit(FILE, "tags: [db]", "tags: [db, big]");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(snapshots(&world, "qemu/9100"), ["kept", "strata-before-1-mine"], "tags put nothing at risk");

    memory(&world, 512, 768);
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("a snapshot of it is taken before its restart"), "{plan}");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    let all = snapshots(&world, "qemu/9100");
    let first = all.iter().find(|name| name.starts_with("strata-before-2-")).unwrap().clone();
    assert_eq!(as_it_was(&world, &first)["memory"], "512");
    let listed = world.strata().run(&["snapshot", "list", "web/vm/db"]).ok().stdout;
    assert!(listed.contains(&first) && listed.contains("before its restart"), "{listed}");

    world.repo.edit(FILE, "size: 4", "size: 5");
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("a snapshot of it is taken before its disks change"), "{plan}");
    world.strata().run(&["apply", "--yes"]).ok();
    memory(&world, 768, 512);
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains(&format!("of those before, `{first}` is deleted (2 stay)")), "{plan}");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    let all = snapshots(&world, "qemu/9100");
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(all.contains(&"kept".to_owned()) && all.contains(&"strata-before-1-mine".to_owned()));
    assert!(!all.contains(&first), "{all:?}");

    // What it is for: the guest goes back, and the plan says what the source wants. The same change has a snapshot of its own again.
    let newest = all.iter().find(|name| name.starts_with("strata-before-4-")).unwrap();
    world.strata().run(&["snapshot", "rollback", "web/vm/db", newest, "--yes"]).ok();
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(numbers(&world, "qemu/9100").len(), 3, "two of ours and the one of somebody else");
    assert!(snapshots(&world, "qemu/9100").iter().any(|name| name.starts_with("strata-before-5-")));

    world.repo.edit(FILE, "    disk: 1\n", "    disk: 2\n");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(numbers(&world, "lxc/9200"), ["1"]);
    world.assert_settled();
}

#[test]
fn what_can_have_no_snapshot_is_refused_in_the_plan() {
    let world = World::instant(&STACK.replace("    template: debian\n", "").replace(
        "disks: {scsi0: {storage: local-lvm, size: 4}}",
        "disks: {scsi0: {storage: local, size: 4, format: raw}}",
    ));
    ask(
        &world,
        "PUT",
        "/storage/local",
        &json!({"content": "iso,vztmpl,backup,images,rootdir,import,snippets"}),
    );
    world.strata().run(&["apply", "--yes"]).ok();
    memory(&world, 512, 768);
    let before = world.export();
    for command in [&["plan"][..], &["apply", "--yes"]] {
        let refused = world.strata().run(command);
        assert_ne!(refused.code, 0, "{}", refused.all());
        let said = "no snapshot can be taken before its restart: Proxmox says that a volume of it takes none (its volumes are on `local`)";
        assert!(refused.all().contains(said), "{}", refused.all());
    }
    assert_eq!(world.export(), before, "nothing was touched");
}

#[test]
fn a_volume_that_is_to_be_moved_is_not_pinned_by_a_snapshot() {
    let world = world(Pace::INSTANT);
    world.repo.edit(FILE, "scsi0: {storage: local-lvm, size: 4}", "scsi0: {storage: tank, size: 4}");
    let refused = world.strata().run(&["apply", "--yes"]);
    assert_ne!(refused.code, 0);
    assert!(refused.all().contains("Proxmox moves no volume that has snapshots"), "{}", refused.all());
    assert!(snapshots(&world, "qemu/9100").is_empty());
    world.repo.edit(
        FILE,
        "    snapshotBefore: {changes: [restart, replace, disks], keep: 2, storage: local}\n",
        "",
    );
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn a_replacement_has_a_backup_before_it() {
    let world = world(Pace::INSTANT);
    let plan = world.strata().run(&["plan", "--replace", "web/vm/db"]).ok().stdout;
    assert!(
        plan.contains(
            "it is shut down and backed up to `local` before it is replaced; 2 of these backups stay"
        ),
        "{plan}"
    );
    for _ in 0..3 {
        world.strata().run(&["apply", "--yes", "--replace", "web/vm/db"]).ok();
    }
    world.assert_settled();
    let all = backups(&world);
    assert_eq!(all.len(), 2, "{all:?}");
    let listed = world.strata().run(&["backup", "list", "web/vm/db"]).ok().stdout;
    assert_eq!(listed.matches("before the replacement of ").count(), 2, "{listed}");
    assert!(!listed.contains("of another guest"), "{listed}");
    world.strata().run(&["backup", "restore", "web/vm/db", "latest", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn a_replacement_that_cannot_be_backed_up_is_refused_in_the_plan() {
    let world = World::instant(&STACK.replace("keep: 2, storage: local", "keep: 2, storage: local-lvm"));
    world.strata().run(&["apply", "--yes"]).ok();
    let refused = world.strata().run(&["apply", "--yes", "--replace", "web/vm/db"]);
    assert_ne!(refused.code, 0);
    let said =
        "it cannot be backed up before it is replaced: `pve1` has no storage `local-lvm` that takes backups";
    assert!(refused.all().contains(said), "{}", refused.all());
}

/// A backup that fails leaves the guest as it was, and running.
#[test]
fn a_backup_that_fails_keeps_the_guest() {
    let world = world(Pace::INSTANT);
    let fault = json!({"kind": "fail-task", "path": "/tasks/vzdump/*", "text": "disk on fire"});
    world.sim.control().fault(&fault);
    let run = world.strata().run(&["apply", "--yes", "--replace", "web/vm/db"]).code(1);
    assert!(run.stderr.contains("disk on fire"), "{}", run.all());
    assert_eq!(crate::windows::guest(&world.export(), "9100")["power"], "running");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

/// Kills an apply at its k-th request. False if it ended before it came that far.
fn kill_at(kind: &str, k: u64, replace: bool) -> bool {
    let world = world(Pace::FAST);
    memory(&world, 512, 768);
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(numbers(&world, "qemu/9100"), ["1"]);
    let what = format!("{kind} {k}, replace {replace}");
    let command: &[&str] = match replace {
        true => &["apply", "--yes", "--replace", "web/vm/db"],
        false => {
            memory(&world, 768, 1024);
            &["apply", "--yes"]
        }
    };
    let fault = json!({"kind": kind, "nth": k});
    let struck = world.strata().kill_at(&world.sim.control(), &fault, command).struck_or_good(&what);
    let is_there = !crate::windows::guest(&world.export(), "9100").is_null();
    let run = world.strata().run(&["apply", "--yes"]);
    crate::findings::unlock_as_told(&world, &run.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    if replace {
        // It died before it began, or everything that it deleted is in one backup.
        let backups = backups(&world);
        assert!(backups.len() <= 1 && (is_there || backups.len() == 1), "{what}: {backups:?}");
        return struck;
    }
    assert_eq!(numbers(&world, "qemu/9100"), ["1", "2"], "{what}");
    let all = snapshots(&world, "qemu/9100");
    assert_eq!(as_it_was(&world, &all[1])["memory"], "768", "{what}: as it was before the change");
    struck
}

fn kill_every(step: usize, most: usize) {
    for replace in [false, true] {
        for kind in ["hold-before", "hold-after"] {
            let ks = (3..).step_by(step).take(most);
            let killed = ks.take_while(|k| kill_at(kind, *k, replace)).count();
            println!("replace {replace}: {kind}: killed {killed} times");
        }
    }
}

#[test]
fn a_kill_takes_no_second_snapshot_and_loses_none() {
    kill_every(11, 3);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_around_snapshots_before_changes() {
    let step = std::env::var("STRATA_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(1);
    kill_every(step, usize::MAX);
}
