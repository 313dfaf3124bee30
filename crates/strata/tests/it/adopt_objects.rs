//! `strata adopt` of what a datacenter has besides guests: one object by its address, or one of everything.

use serde_json::{Value, json};
use strata_sim::ROOT_TOKEN;
use strata_testkit::{Repo, Strata, TestSim};

use crate::layer0::{DATACENTER, Datacenter, REALMS, SDN, SERVICES};
use crate::world::BINARY;

struct World {
    sim: TestSim,
    repo: Repo,
}

const HOSTS: &str = "\
# What everything stands on.
metadata: {environment: test}
proxmox: {target: pve}

pools:
  web: {comment: ours}   # made by us
";

impl World {
    fn new() -> Self {
        let sim = TestSim::start();
        let repo = Repo::on(&sim);
        repo.write("sim-token", ROOT_TOKEN);
        repo.write("hypervisors/hosts.yaml", HOSTS);
        let world = Self { sim, repo };
        world.change("POST", "/pools", json!({"poolid": "shop", "comment": "The real ones"}));
        world.change("POST", "/access/roles", json!({"roleid": "Ops", "privs": "VM.Audit,VM.PowerMgmt"}));
        world.change("POST", "/access/groups", json!({"groupid": "ops"}));
        let entry = json!({"path": "/pool/shop", "roles": "Ops", "groups": "ops", "propagate": 0});
        world.change("PUT", "/access/acl", entry);
        world
    }

    fn change(&self, method: &str, path: &str, params: Value) {
        change(&self.sim, method, path, params);
    }

    fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo)
    }

    fn assert_empty_plan(&self) {
        let plan = self.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{}", plan.all());
    }
}

fn change(sim: &TestSim, method: &str, path: &str, params: Value) {
    let answer = sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
}

const ENTRY: &str = "hosts/acl/ops=Ops=~pool~shop";

#[test]
fn objects_are_adopted_by_their_addresses() {
    let world = World::new();
    world.strata().run(&["apply", "--yes"]).ok();
    let wanted = ["hosts/pool/shop", "hosts/role/Ops", "hosts/group/ops", ENTRY];
    let all: Vec<&str> = ["adopt", "--yes"].iter().chain(&wanted).copied().collect();
    let adopted = world.strata().run(&all);
    assert_eq!(adopted.code, 0, "{}", adopted.all());
    insta::assert_snapshot!(adopted.stdout, @r"
    hypervisors/hosts.yaml
      …
        
        pools:
          web: {comment: ours}   # made by us
      +   shop: {comment: The real ones, adopt: true}
      + 
      + roles:
      +   Ops: {privileges: [VM.Audit, VM.PowerMgmt], adopt: true}
      + 
      + groups:
      +   ops: {adopt: true}
      + 
      + acl:
      +   - {path: /pool/shop, role: Ops, group: ops, propagate: false, adopt: true}
    = hosts/acl/ops=Ops=~pool~shop  permission `Ops for ops on /pool/shop`
    = hosts/group/ops  group `ops`
    = hosts/pool/shop  pool `shop`
    = hosts/role/Ops  role `Ops`
    adopted: 4 objects, 2 marked; the plan of what was adopted is empty
    ");
    let text = world.repo.read("hypervisors/hosts.yaml");
    assert!(text.starts_with(HOSTS), "{text}");
    let export = world.sim.export();
    let comment = export["pools"]["shop"]["comment"].as_str().unwrap();
    assert!(
        comment.starts_with("The real ones [strata ") && comment.ends_with("hosts/pool/shop]"),
        "{comment}"
    );
    world.assert_empty_plan();

    // Again there is nothing to write.
    assert_eq!(world.strata().run(&all).ok().code, 0);
    assert_eq!(world.repo.read("hypervisors/hosts.yaml"), text);

    // It was there before: removed from the source, it stays. What was made here goes.
    world.repo.write("hypervisors/hosts.yaml", "metadata: {environment: test}\nproxmox: {target: pve}\n");
    world.strata().run(&["apply", "--yes"]).ok();
    let export = world.sim.export();
    assert!(export["pools"]["web"].is_null() && export["pools"]["shop"].is_object(), "{export}");
    assert!(export["roles"]["Ops"].is_array() && export["groups"]["ops"].is_object(), "{export}");
}

#[test]
fn what_is_built_in_elsewhere_or_not_there_is_refused() {
    let world = World::new();
    let mark = "[strata 0123456789ab other/pool/shop]";
    world.change("PUT", "/pools", json!({"poolid": "shop", "comment": mark}));
    let refused = |address: &str| {
        let run = world.strata().run(&["adopt", "--yes", address]);
        assert_ne!(run.code, 0, "{}", run.all());
        assert_eq!(world.repo.read("hypervisors/hosts.yaml"), HOSTS);
        run.stderr
    };
    let told = [
        refused("hosts/role/Administrator"),
        refused("hosts/user/root@pam"),
        refused("hosts/pool/shop"),
        refused("hosts/pool/nowhere"),
        refused("hosts/vm/shop"),
    ];
    insta::assert_snapshot!(told.concat(), @r"
    error: `hosts/role/Administrator`: role `Administrator` cannot be adopted: it is built into Proxmox
    error: `hosts/user/root@pam`: user `root@pam` cannot be adopted: root@pam is nobody's to manage
    error: `hosts/pool/shop`: pool `shop` carries the ownership mark of `other/pool/shop`
      hint: `strata recover` records what this repository made; otherwise remove it from the state there, and the mark from its comment
    error: `hosts/pool/nowhere`: `pve` has no pool `nowhere`
      hint: its login may lack the right to see it; a guest is named with its VMID: `ADDRESS=VMID`
    error: `hosts/vm/shop` does not say as what the guest is adopted
      hint: write `ADDRESS=VMID`, such as `web/vm/db=9110`, or name the address with `--as`
    ");
}

#[test]
fn without_marks_comments_stay_as_they_are() {
    let world = World::new();
    world.strata().run(&["apply", "--yes"]).ok();
    let before = world.sim.export();
    world.strata().run(&["adopt", "--yes", "--no-mark", "hosts/pool/shop", ENTRY]).ok();
    assert_eq!(world.sim.export()["pools"], before["pools"]);
    world.assert_empty_plan();
}

/// Whatever a run was killed at, the same command finishes it.
#[test]
fn killed_at_every_request_an_object_is_adopted_once() {
    let adopt = ["adopt", "--yes", "hosts/pool/shop", ENTRY];
    let reference = World::new();
    reference.strata().run(&adopt).ok();
    let (export, text) = (reference.sim.export(), reference.repo.read("hypervisors/hosts.yaml"));
    for kind in ["hold-before", "hold-after"] {
        let killed = (1..60).take_while(|request| {
            let world = World::new();
            let fault = json!({"kind": kind, "nth": request});
            let struck = world.strata().kill_at(&world.sim.control(), &fault, &adopt).struck;
            world.strata().run(&adopt).ok();
            let what = format!("{kind} {request}");
            assert_eq!(world.repo.read("hypervisors/hosts.yaml"), text, "{what}");
            for part in ["pools", "acl", "roles", "groups", "users"] {
                assert_eq!(world.sim.export()[part], export[part], "{what}");
            }
            struck
        });
        assert!(killed.count() > 3);
    }
}

#[test]
fn hosts_are_adopted_with_their_firewalls() {
    let world = World::new();
    world.change(
        "PUT",
        "/nodes/pve1/config",
        json!({"description": "rack 1", "wakeonlan": "BC:24:11:00:00:01"}),
    );
    world.change("PUT", "/nodes/pve1/firewall/options", json!({"log_level_in": "info", "nosmurfs": 0}));
    let rule = json!({"type": "in", "action": "ACCEPT", "macro": "SSH", "enable": 1});
    world.change("POST", "/nodes/pve1/firewall/rules", rule);
    let wanted = ["hosts/hostfirewall/pve1", "hosts/hostoptions/pve1"];
    let all: Vec<&str> = ["adopt", "--yes"].iter().chain(&wanted).copied().collect();
    let adopted = world.strata().run(&all);
    assert_eq!(adopted.code, 0, "{}", adopted.all());
    let text = world.repo.read("hypervisors/hosts.yaml");
    insta::assert_snapshot!(text.strip_prefix(HOSTS).unwrap().trim(), @r"
    hosts:
      pve1: {notes: rack 1, wakeOnLan: {mac: BC:24:11:00:00:01}, firewall: {logLevelIn: info, noSmurfs: false, rules: [{direction: in, action: ACCEPT, macro: SSH}], adopt: true}}
    ");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_empty_plan();
}

/// What a repository made, and nobody knows any more: its marks are taken off, its files and states are gone.
#[test]
fn one_of_everything_is_adopted_and_the_plan_is_empty() {
    let dc = Datacenter::new(DATACENTER);
    dc.strata().run(&["apply", "--yes"]).ok();
    let sim = &dc.sim;
    change(sim, "PUT", "/pools", json!({"poolid": "web", "comment": "for the web"}));
    change(sim, "PUT", "/pools", json!({"poolid": "web/dev", "comment": ""}));
    change(sim, "PUT", "/access/groups/ops", json!({"comment": "operators"}));
    change(sim, "PUT", "/access/users/ann@pve", json!({"comment": ""}));
    for token in ["ci", "other"] {
        change(sim, "PUT", &format!("/access/users/ann@pve/token/{token}"), json!({"comment": "by hand"}));
    }
    change(sim, "PUT", "/cluster/backup/nightly", json!({"comment": "every night"}));
    let gpu = "node=pve1,path=0000:01:00.0,id=10de:2204,iommugroup=12";
    change(sim, "PUT", "/cluster/mapping/pci/gpu", json!({"description": "the big one", "map": [gpu]}));
    let key = json!({"delete": "description", "map": ["node=pve2,id=1050:0407"]});
    change(sim, "PUT", "/cluster/mapping/usb/key", key);
    let alias = json!({"cidr": "192.0.2.200", "comment": "boss"});
    change(sim, "PUT", "/cluster/firewall/aliases/admin", alias);
    let set = json!({"name": "trusted", "rename": "trusted", "comment": ""});
    change(sim, "POST", "/cluster/firewall/ipset", set);
    change(sim, "POST", "/cluster/firewall/groups", json!({"group": "web", "rename": "web", "comment": "x"}));
    std::fs::remove_file(dc.repo.file("hypervisors/dc.yaml")).unwrap();
    std::fs::remove_dir_all(dc.repo.file(".strata/state")).unwrap();

    let adopted = dc.strata().run(&["adopt", "--all", "--yes"]);
    assert_eq!(adopted.code, 0, "{}", adopted.all());
    let text = adopted.all();
    let left_out: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("left out: ")).collect();
    let is_written = |line: &&&str| !line.ends_with("`strata adopt` does not write objects of this kind");
    assert_eq!(left_out.iter().find(is_written), None, "{text}");
    let plan = dc.strata().run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
    insta::assert_snapshot!("datacenter", dc.repo.read("hypervisors/pve.yaml"));
    insta::assert_snapshot!("host", dc.repo.read("hypervisors/pve-pve1.yaml"));
    // Nothing that was there before is deleted.
    let before = dc.export();
    dc.strata().run(&["destroy", "--yes"]).ok();
    let after = dc.export();
    for part in ["pools", "roles", "groups", "users", "acl", "storages", "firewall"] {
        assert_eq!(after[part], before[part], "{part}");
    }
}

/// Options, statistics, notifications, networks and realms. What of them is secret cannot be read, and stays.
#[test]
fn what_a_cluster_does_by_itself_is_adopted() {
    let mail = "/cluster/notifications/endpoints";
    let services = [
        format!("{mail}/smtp/ops"),
        format!("{mail}/webhook/chat"),
        format!("{mail}/gotify/phone"),
        format!("{mail}/sendmail/local"),
        "/cluster/notifications/matchers/errors".to_owned(),
    ];
    let realms = ["/access/domains/corp", "/access/domains/sso", "/access/users/ann@corp"].map(str::to_owned);
    for (name, source, with_comments) in
        [("services", SERVICES, &services[..]), ("sdn", SDN, &[]), ("realms", REALMS, &realms[..])]
    {
        let dc = Datacenter::new(source);
        dc.strata().run(&["apply", "--yes"]).ok();
        for path in with_comments {
            change(&dc.sim, "PUT", path, json!({"comment": "by hand"}));
        }
        if name == "realms" {
            let job = json!({"comment": "by hand", "schedule": "hourly"});
            change(&dc.sim, "PUT", "/cluster/jobs/realm-sync/people", job);
        }
        std::fs::remove_file(dc.repo.file("hypervisors/dc.yaml")).unwrap();
        std::fs::remove_dir_all(dc.repo.file(".strata/state")).unwrap();
        let adopted = dc.strata().run(&["adopt", "--all", "--yes"]);
        assert_eq!(adopted.code, 0, "{name}: {}", adopted.all());
        let is_written = |line: &&str| !line.ends_with("`strata adopt` does not write objects of this kind");
        let all = adopted.all();
        let left_out = all.lines().filter(|line| line.starts_with("left out: ")).find(is_written);
        assert_eq!(left_out, None, "{name}: {all}");
        let plan = dc.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{name}: {}", plan.all());
        let text = dc.repo.read("hypervisors/pve.yaml");
        let begin = ["options:", "sdn:", "realms:"].iter().filter_map(|key| text.find(key)).min().unwrap();
        insta::assert_snapshot!(format!("own_{name}"), &text[begin..]);
        for (path, bytes) in dc.repo.all_files() {
            let held = String::from_utf8_lossy(&bytes);
            assert!(!held.contains(crate::layer0::PBS), "`{}` holds a secret", path.display());
        }
        // One of them is changed, and nothing else is sent.
        let (from, to) = match name {
            "services" => ("comment: by hand", "comment: for ops"),
            "sdn" => ("mtu: 1400", "mtu: 1500"),
            _ => ("comment: by hand", "comment: everybody"),
        };
        dc.repo.edit("hypervisors/pve.yaml", from, to);
        dc.strata().run(&["apply", "--yes"]).ok();
        let plan = dc.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{name}: {}", plan.all());
        // It was there before: it stays.
        let before = dc.export()["cluster"].clone();
        dc.strata().run(&["destroy", "--yes"]).ok();
        assert_eq!(dc.export()["cluster"]["files"], before["files"], "{name}");
    }
}
