//! `backup: nightly` of a guest: the job has its VMID, whoever wrote the job.

use serde_json::{Value, json};

use crate::world::World;

const DATACENTER: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve, nodes: [pve1]}
backupJobs:
  nightly: {schedule: "02:00", storage: local, guests: [200]}
  weekly: {schedule: "sat 03:30", storage: local}
  pooled: {schedule: "04:00", storage: local, pool: production}
"#;

const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  web:
    count: 2
    vmId: 9100
    memory: 64
    disks: {scsi0: {storage: local-lvm, size: 1}}
    backup: nightly
  db:
    vmId: 9110
    memory: 64
    disks: {scsi0: {storage: local-lvm, size: 1}}
    pool: production
    backup: {job: pooled}
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 1
    network: [{bridge: vmbr0}]
    backup: weekly
"#;

const FILE: &str = "stacks/web/stack.yaml";
const JOBS: &str = "hypervisors/dc.yaml";

fn world() -> World {
    let world = World::instant(STACK);
    world.repo.write(JOBS, DATACENTER);
    world
}

fn ask(world: &World, method: &str, path: &str, params: &Value) -> Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{answer}");
    answer["data"].clone()
}

fn members(world: &World, job: &str) -> String {
    ask(world, "GET", &format!("/cluster/backup/{job}"), &json!({}))["vmid"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_guest_is_a_member_of_the_job_that_it_names() {
    let world = world();
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(members(&world, "nightly"), "200,9100,9101");
    assert_eq!(members(&world, "weekly"), "9200");
    assert_eq!(members(&world, "pooled"), "", "a job about a pool has its members by that");
    // Somebody takes one out and puts another one in: both are seen, and put back.
    ask(&world, "PUT", "/cluster/backup/nightly", &json!({"vmid": "200,9100,300"}));
    let drift = world.strata().run(&["drift"]);
    assert!(drift.all().contains("9101") && drift.all().contains("300"), "{}", drift.all());
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(members(&world, "nightly"), "200,9100,9101");
    // It names another job; one guest more; one that leaves the source.
    world.repo.edit(FILE, "backup: nightly", "backup: weekly");
    world.repo.edit(FILE, "count: 2", "count: 3");
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("backup job nightly") && plan.contains("backup job weekly"), "{plan}");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(members(&world, "nightly"), "200");
    assert_eq!(members(&world, "weekly"), "9100,9101,9102,9200");
    world.repo.edit(FILE, "count: 3", "count: 1");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(members(&world, "weekly"), "9100,9200");
}

#[test]
fn a_job_that_would_not_back_the_guest_up_is_refused_at_once() {
    let cases = [
        ("backup: nightly", "backup: nigthly", "there is no backup job `nigthly` on the Proxmox of `web-1`"),
        (
            "pool: production",
            "pool: other",
            "the backup job `pooled` does not back `db` up: it is about the pool `production`",
        ),
    ];
    for (from, to, said) in cases {
        let world = world();
        world.repo.edit(FILE, from, to);
        let run = world.strata().run(&["validate"]);
        assert_ne!(run.code, 0);
        assert!(run.all().contains(said), "{said}: {}", run.all());
    }
    let world = world();
    world.repo.edit(JOBS, "storage: local, guests: [200]", "storage: local, all: true, exclude: [9101]");
    let run = world.strata().run(&["validate"]);
    assert!(run.all().contains("does not back `web-2` up: it leaves VMID 9101 out"), "{}", run.all());
    let world = self::world();
    world.repo.edit(JOBS, "storage: local, guests: [200]", "storage: local, node: pve2");
    let run = world.strata().run(&["validate"]);
    assert!(run.all().contains("it is about guests on `pve2`"), "{}", run.all());
}

/// Whoever reviews a change of the guests sees that the datacenter changes with it.
#[test]
fn the_datacenter_changes_with_the_guests_that_name_its_jobs() {
    let world = world();
    let git = |arguments: &[&str]| crate::review::git(&world.repo, arguments);
    world.repo.write(".gitignore", "sim-*\n.strata/\n");
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "base"]);
    git(&["checkout", "-q", "-b", "request"]);
    world.repo.edit(FILE, "backup: nightly", "backup: weekly");
    git(&["commit", "-q", "-am", "change"]);
    let changed = world.strata().run(&["review", "changed", "--base", "main"]).ok().stdout;
    assert!(changed.contains("~ dc (test)\n      guests that its backup jobs are about"), "{changed}");
}
