//! Somebody works on the objects of `hypervisors/` while they are made, changed or deleted.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::{APPLY, PLAN, Window, act_at, overwritten_knowingly, requests};
use crate::layer0::{DATACENTER, FILE, datacenter};
use crate::story::edited;
use crate::world::World;

pub(super) const WINDOWS: [Window; 3] = [
    ("a datacenter is made", survives_creates),
    ("a datacenter is changed", survives_updates),
    ("a datacenter is deleted", survives_deletes),
];

/// One object after the other: a look that is followed by a write belongs to it, and a number names the same window in each run.
const ONE_BY_ONE: [&str; 5] = ["apply", PLAN, "--yes", "--parallelism", "1"];

/// What somebody does, and how it shows.
struct Act {
    name: &'static str,
    change: (&'static str, &'static str, Value),
    shows: fn(&Value) -> bool,
    /// The look that would show it, and the write that undoes it where it comes after the last look. Nothing undoes it without these.
    window: Option<(&'static str, &'static str)>,
}

impl Act {
    fn new(
        name: &'static str,
        change: (&'static str, &'static str, Value),
        shows: fn(&Value) -> bool,
        window: Option<(&'static str, &'static str)>,
    ) -> Self {
        Self { name, change, shows, window }
    }
}

fn has(value: &Value, text: &str) -> bool {
    value.to_string().contains(text)
}

fn node(export: &Value) -> &Value {
    export["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "pve1").unwrap()
}

fn rule(comment: &str) -> Value {
    json!({"type": "in", "action": "DROP", "proto": "tcp", "dport": "9", "enable": 1, "comment": comment})
}

/// Objects with names of ours.
fn creates() -> Vec<Act> {
    let comment = "of somebody";
    vec![
        Act::new(
            "pool",
            ("POST", "/pools", json!({"poolid": "web", "comment": comment})),
            |export| has(&export["pools"]["web"], "of somebody"),
            None,
        ),
        Act::new(
            "role",
            ("POST", "/access/roles", json!({"roleid": "Ops", "privs": "VM.Backup"})),
            |export| export["roles"]["Ops"] == json!(["VM.Backup"]),
            None,
        ),
        Act::new(
            "group",
            ("POST", "/access/groups", json!({"groupid": "ops", "comment": comment})),
            |export| has(&export["groups"]["ops"], "of somebody"),
            None,
        ),
        Act::new(
            "user",
            ("POST", "/access/users", json!({"userid": "ann@pve", "comment": comment})),
            |export| has(&export["users"]["ann@pve"], "of somebody"),
            None,
        ),
        Act::new(
            "storage",
            ("POST", "/storage", json!({"storage": "media", "type": "dir", "path": "/srv/media"})),
            |export| has(&export["storages"], "/srv/media"),
            None,
        ),
        Act::new(
            "mapping",
            (
                "POST",
                "/cluster/mapping/pci",
                json!({"id": "gpu", "description": comment, "map": ["node=pve2,path=0000:02:00.0,id=10de:1111"]}),
            ),
            |export| has(&export["cluster"]["files"], "10de:1111"),
            None,
        ),
        Act::new(
            "alias",
            (
                "POST",
                "/cluster/firewall/aliases",
                json!({"name": "admin", "cidr": "198.51.100.1", "comment": comment}),
            ),
            |export| has(&export["firewall"], "198.51.100.1"),
            None,
        ),
        Act::new(
            "IP set",
            ("POST", "/cluster/firewall/ipset", json!({"name": "trusted", "comment": "a set of somebody"})),
            |export| has(&export["firewall"], "a set of somebody"),
            None,
        ),
        Act::new(
            "rule",
            ("POST", "/cluster/firewall/rules", rule("a rule of somebody")),
            |export| has(&export["firewall"], "a rule of somebody"),
            None,
        ),
        Act::new(
            "interface",
            (
                "POST",
                "/nodes/pve1/network",
                json!({"iface": "vmbr5", "type": "bridge", "autostart": 1, "comments": comment}),
            ),
            |export| has(node(export), "of somebody"),
            None,
        ),
    ]
}

/// Changes of what the source says nothing about, and of what it does.
fn updates() -> Vec<Act> {
    vec![
        Act::new(
            "user",
            ("PUT", "/access/users/ann@pve", json!({"lastname": "Somebody"})),
            |export| has(&export["users"]["ann@pve"], "Somebody"),
            None,
        ),
        Act::new(
            "storage",
            ("PUT", "/storage/backup", json!({"nodes": "pve1"})),
            |export| {
                let mut storages = export["storages"].as_array().unwrap().iter();
                storages.any(|row| row["storage"] == "backup" && row["options"]["nodes"] == "pve1")
            },
            None,
        ),
        Act::new(
            "member of a pool",
            ("PUT", "/pools/web", json!({"storage": "local"})),
            |export| has(&export["pools"]["web"], "local"),
            None,
        ),
        Act::new(
            "role",
            ("PUT", "/access/roles/Ops", json!({"privs": "VM.Backup", "append": 1})),
            |export| has(&export["roles"]["Ops"], "VM.Backup"),
            Some(("GET /access/roles", "PUT /access/roles/Ops")),
        ),
        Act::new(
            "address",
            ("POST", "/cluster/firewall/ipset/trusted", json!({"cidr": "198.51.100.77"})),
            |export| has(&export["firewall"], "198.51.100.77"),
            None,
        ),
        Act::new(
            "rule of a security group",
            ("POST", "/cluster/firewall/groups/web", rule("in the group of somebody")),
            |export| has(&export["firewall"], "in the group of somebody"),
            None,
        ),
        Act::new(
            "rule",
            ("POST", "/cluster/firewall/rules", rule("a rule of somebody")),
            |export| has(&export["firewall"], "a rule of somebody"),
            None,
        ),
        Act::new(
            "staged interface",
            ("POST", "/nodes/pve1/network", json!({"iface": "vmbr9", "type": "bridge", "autostart": 1})),
            |export| !has(&node(export)["interfaces"], "vmbr9") && has(&node(export)["staged"], "vmbr9"),
            Some(("GET /nodes/pve1/network", "PUT /nodes/pve1/network")),
        ),
    ]
}

fn deletes() -> Vec<Act> {
    let window = |look, write| Some((look, write));
    vec![
        Act::new(
            "pool",
            ("PUT", "/pools/web", json!({"comment": "of somebody"})),
            |export| has(&export["pools"]["web"], "of somebody"),
            window("GET /pools", "DELETE /pools"),
        ),
        Act::new(
            "user",
            ("PUT", "/access/users/ann@pve", json!({"lastname": "Somebody"})),
            |export| has(&export["users"]["ann@pve"], "Somebody"),
            window("GET /access/users", "DELETE /access/users/ann@pve"),
        ),
        Act::new(
            "role",
            ("PUT", "/access/roles/Ops", json!({"privs": "VM.Backup", "append": 1})),
            |export| has(&export["roles"]["Ops"], "VM.Backup"),
            window("GET /access/roles", "DELETE /access/roles/Ops"),
        ),
        Act::new(
            "group",
            ("PUT", "/access/groups/ops", json!({"comment": "of somebody"})),
            |export| has(&export["groups"]["ops"], "of somebody"),
            window("GET /access/groups", "DELETE /access/groups/ops"),
        ),
        Act::new(
            "storage",
            ("PUT", "/storage/backup", json!({"nodes": "pve1"})),
            |export| {
                let mut storages = export["storages"].as_array().unwrap().iter();
                storages.any(|row| row["storage"] == "backup" && row["options"]["nodes"] == "pve1")
            },
            window("GET /storage", "DELETE /storage/backup"),
        ),
        Act::new(
            "alias",
            (
                "PUT",
                "/cluster/firewall/aliases/admin",
                json!({"cidr": "198.51.100.1", "comment": "of somebody"}),
            ),
            |export| has(&export["firewall"], "198.51.100.1"),
            window("GET /cluster/firewall/aliases", "DELETE /cluster/firewall/aliases/admin"),
        ),
        Act::new(
            "address",
            ("POST", "/cluster/firewall/ipset/trusted", json!({"cidr": "198.51.100.77"})),
            |export| has(&export["firewall"], "198.51.100.77"),
            window("GET /cluster/firewall/ipset/trusted", "DELETE /cluster/firewall/ipset/trusted"),
        ),
        Act::new(
            "rule of a security group",
            ("POST", "/cluster/firewall/groups/web", rule("in the group of somebody")),
            |export| has(&export["firewall"], "in the group of somebody"),
            None,
        ),
        Act::new(
            "rule",
            ("POST", "/cluster/firewall/rules", rule("a rule of somebody")),
            |export| has(&export["firewall"], "a rule of somebody"),
            None,
        ),
    ]
}

/// Lets somebody do all of it after the k-th request of a run that was planned before. Gives what they did.
fn act(world: &World, acts: Vec<Act>, creates: bool, k: u64) -> (Option<usize>, Vec<Act>) {
    let done = RefCell::new(Vec::new());
    let acted = act_at(world, &ONE_BY_ONE, k, &|| {
        // A list of rules is one object: what somebody adds to ours is drift, which the next plan shows and takes back.
        let firewall = &world.export()["firewall"];
        let ours = creates && ["8006", "SSH", "\"type\":\"group\""].iter().any(|rule| has(firewall, rule));
        for act in &acts {
            if act.name == "rule" && ours {
                done.borrow_mut().push(false);
                continue;
            }
            let (method, path, params) = &act.change;
            let change = json!({"method": method, "path": path, "params": params});
            done.borrow_mut().push(world.sim.control().change(&change)["status"] == 200);
        }
    });
    let done = done.into_inner();
    (acted, acts.into_iter().zip(done).filter(|(_, done)| *done).map(|(act, _)| act).collect())
}

fn assert_shown(world: &World, acted: usize, acts: &[Act], k: u64) {
    let (requests, export) = (requests(world), world.export());
    for act in acts.iter().filter(|act| !(act.shows)(&export)) {
        let late =
            act.window.is_some_and(|(look, write)| !overwritten_knowingly(&requests, acted, look, write));
        assert!(late, "{k}: what somebody did is lost: {}\n{requests:#?}", act.name);
    }
}

fn survives_creates(k: u64) -> bool {
    let world = datacenter(DATACENTER);
    world.strata().run(&["plan", "-o", PLAN]).ok();
    let (acted, acts) = act(&world, creates(), true, k);
    assert_shown(&world, acted.unwrap_or_default(), &acts, k);
    // Neither by the next apply, nor with everything that is ours.
    let again = world.strata().run(&APPLY);
    assert!(!again.all().contains("panicked"), "{k}: {}", again.all());
    world.strata().run(&["destroy", "--yes"]);
    assert_shown(&world, acted.unwrap_or_default(), &acts, k);
    acted.is_some()
}

fn survives_updates(k: u64) -> bool {
    let world = datacenter(DATACENTER);
    world.strata().run(&APPLY).ok();
    let changed = edited(
        DATACENTER,
        &[
            ("{comment: for the web}", "{comment: for all}"),
            ("[VM.Audit, VM.PowerMgmt, VM.Console]", "[VM.Audit]"),
            ("email: ann@example.test", "email: ann@other.test"),
            ("username: strata@pbs", "username: other@pbs"),
            ("mtu: 1400", "mtu: 1500"),
            ("192.0.2.0/24, \"!192.0.2.99\", admin", "198.51.100.0/24, 203.0.113.0/24"),
            (
                "destinationPort: \"80,443\"}",
                "destinationPort: \"443\"}, {direction: in, action: ACCEPT, macro: Ping}",
            ),
            (
                "    - {direction: group, action: web}\n",
                "    - {direction: in, action: ACCEPT, macro: Ping}\n",
            ),
            ("source: +trusted, macro: SSH", "source: +trusted, macro: HTTPS"),
        ],
    );
    world.repo.write(FILE, &changed);
    world.strata().run(&["plan", "-o", PLAN]).ok();
    let (acted, acts) = act(&world, updates(), false, k);
    assert_shown(&world, acted.unwrap_or_default(), &acts, k);
    acted.is_some()
}

fn survives_deletes(k: u64) -> bool {
    let world = datacenter(DATACENTER);
    world.strata().run(&APPLY).ok();
    world.strata().run(&["plan", "--destroy", "-o", PLAN]).ok();
    let (acted, acts) = act(&world, deletes(), false, k);
    assert_shown(&world, acted.unwrap_or_default(), &acts, k);
    acted.is_some()
}
