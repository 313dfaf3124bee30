//! Layer 0: what `hypervisors/` says is made, kept, changed and taken away like anything else.

pub(crate) mod certificates;
mod hosts;
mod realms;
mod sdn;
mod services;

pub(crate) use self::{certificates::ACME, hosts::HOSTS, realms::REALMS, sdn::SDN, services::SERVICES};

use serde_json::{Value, json};
use strata_sim::{ROOT_PASSWORD, ROOT_TOKEN};
use strata_testkit::{Repo, Strata, TestSim};

use crate::kill::assert_same;
use crate::world::{BINARY, World};

/// One of everything.
pub(crate) const DATACENTER: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve, nodes: [pve1, pve2]}
pools:
  web: {comment: for the web}
  web/dev: {}
roles:
  Ops: [VM.Audit, VM.PowerMgmt, VM.Console]
groups:
  ops: {comment: operators}
users:
  ann@pve: {groups: [ops], email: ann@example.test, firstName: Ann, password: {env: ANN_PASSWORD}}
tokens:
  ann@pve!ci: {secret: ci_token, comment: for the pipeline}
  ann@pve!other: {privilegeSeparation: false, expire: 1999999999}
acl:
  - {path: /pool/web, role: Ops, group: ops}
  - {path: /vms, role: PVEAuditor, token: "ann@pve!ci"}
  - {path: /, role: PVEAuditor, user: ann@pve, propagate: false}
storages:
  backup: {type: pbs, server: 192.0.2.30, datastore: main, username: strata@pbs, password: {env: PBS_PASSWORD}, content: [backup]}
  media: {type: nfs, server: 192.0.2.31, export: /media, content: [iso, vztmpl], options: {prune-backups: keep-last=3}}
backupJobs:
  nightly: {schedule: "02:00", storage: backup, all: true, exclude: [9000], mode: snapshot, compress: zstd, keep: {daily: 7, weekly: 4}, comment: every night}
mappings:
  pci:
    gpu: {comment: the big one, devices: [{node: pve1, path: "0000:01:00.0", id: "10de:2204", iommuGroup: 12}]}
  usb:
    key: {devices: [{node: pve2, id: "1050:0407"}]}
network:
  vmbr5: {address: 10.9.0.1/24, mtu: 1400, comment: for storage}
  vmbr5.50: {address: 10.50.0.1/24, nodes: [pve1]}
  bond0: {mode: active-backup, nodes: [pve1]}
dns: {servers: [192.0.2.53, 192.0.2.54], searchDomain: lab.test}
timezone: Europe/Paris
firewall:
  enabled: true
  policyIn: DROP
  aliases: {admin: 192.0.2.200/32}
  ipSets: {trusted: [192.0.2.0/24, "!192.0.2.99", admin]}
  groups:
    web: {comment: for the web, rules: [{direction: in, action: ACCEPT, protocol: tcp, destinationPort: "80,443"}]}
  rules:
    - {direction: in, action: ACCEPT, source: +trusted, macro: SSH}
    - {direction: in, action: ACCEPT, source: admin, protocol: tcp, destinationPort: "8006"}
    - {direction: group, action: web}
"#;

pub(crate) const FILE: &str = "hypervisors/dc.yaml";
const PASSWORD: &str = "correct-horse-battery";
pub(crate) const PBS: &str = "MARKER-9c1d-pbs";

pub(crate) struct Datacenter {
    pub(crate) sim: TestSim,
    pub(crate) repo: Repo,
}

impl Datacenter {
    pub(crate) fn new(source: &str) -> Self {
        let sim = TestSim::start();
        let repo = Repo::on(&sim);
        repo.write("sim-token", ROOT_TOKEN);
        repo.write(FILE, source);
        let own = Repo::empty();
        Strata::new(BINARY, &own).run(&["init", "."]).ok();
        for file in ["age.key", ".sops.yaml"] {
            repo.write(file, &own.read(file));
        }
        repo.write("secrets.sops.yaml", "# ours\nother: kept\n");
        let settings = repo.read("strata.yaml");
        repo.write("strata.yaml", &format!("{settings}secrets:\n  - sops: secrets.sops.yaml\n"));
        let datacenter = Self { sim, repo };
        datacenter.strata().run(&["secrets", "encrypt", "secrets.sops.yaml"]).ok();
        datacenter
    }

    /// Every live object; the order in which storages were made means nothing.
    pub(crate) fn export(&self) -> Value {
        let mut export = self.sim.export();
        let storages = export["storages"].as_array_mut().unwrap();
        storages.sort_by_key(|storage| storage["storage"].to_string());
        export
    }

    fn without_settings(&self) -> Value {
        without_settings(self.export())
    }

    pub(crate) fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo).env("ANN_PASSWORD", PASSWORD).env("PBS_PASSWORD", PBS)
    }

    /// As somebody who may also log in.
    fn with_login(&self) {
        self.repo.edit(
            "strata.yaml",
            "token: {file: sim-token}",
            "token: {file: sim-token}\n      login: {user: root@pam, password: {file: root-password}}",
        );
        self.repo.write("root-password", ROOT_PASSWORD);
    }

    pub(crate) fn change(&self, method: &str, path: &str, params: Value) {
        let answer = self.sim.control().change(&json!({"method": method, "path": path, "params": params}));
        assert_eq!(answer["status"], 200, "{answer}");
    }

    #[track_caller]
    fn apply(&self) -> String {
        self.strata().run(&["apply", "--yes"]).ok().all()
    }

    /// An edit of the source is something to do, and done by one apply.
    #[track_caller]
    fn assert_edited(&self, from: &str, to: &str) {
        self.repo.edit(FILE, from, to);
        let applied = self.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{to}:\n{}", applied.all());
        assert!(!applied.all().contains("nothing to do"), "{to}:\n{}", applied.all());
        let plan = self.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{to}:\n{}", plan.all());
    }

    #[track_caller]
    pub(crate) fn assert_settled(&self) {
        let plan = self.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{}", plan.all());
        assert!(!self.repo.file(".strata/state/test/dc/journal").exists(), "the journal is not empty");
    }

    /// The value that the repository keeps of a token lets somebody in.
    #[track_caller]
    fn assert_token_works(&self) {
        let plain = self.strata().run(&["secrets", "decrypt", "secrets.sops.yaml"]).ok().stdout;
        let kept = plain
            .lines()
            .find_map(|line| line.strip_prefix("ci_token: "))
            .unwrap_or_else(|| panic!("{plain}"));
        assert!(plain.contains("other: kept"), "{plain}");
        self.repo.write("sim-token", kept.trim_matches(['"', '\'']));
        let told = self.strata().run(&["drift"]);
        self.repo.write("sim-token", ROOT_TOKEN);
        assert!(!told.all().contains("uthenticat"), "{}", told.all());
    }
}

/// A world with such a datacenter and nothing else.
pub(crate) fn datacenter(source: &str) -> World {
    let Datacenter { sim, repo } = Datacenter::new(source);
    World { sim, repo }
}

/// A host cannot be without name servers and a time zone, nor a datacenter without options: they stay as they were set.
pub(crate) fn without_settings(mut export: Value) -> Value {
    export["cluster"]["options"] = Value::Null;
    // The keeper of addresses remembers zones in which nothing is any more.
    if let Some(zones) = export["ipam"].as_object_mut() {
        zones.retain(|_, zone| zone.as_object().is_none_or(|zone| !zone.is_empty()));
    }
    for node in export["nodes"].as_array_mut().unwrap() {
        node["dns"] = Value::Null;
        node["timezone"] = Value::Null;
        node["config"] = Value::Null;
        node["repositories"] = Value::Null;
    }
    export
}

#[test]
fn a_datacenter_is_made_kept_and_taken_away() {
    let dc = Datacenter::new(DATACENTER);
    let before = dc.export();
    dc.strata().run(&["validate"]).ok();
    let plan = dc.strata().run(&["plan"]).ok().stdout;
    insta::assert_snapshot!(plan, @r"
    dc (hypervisors, test/dc)
      + dc/pool/web  pool web
          comment  for the web
      + dc/pool/web~dev  pool web/dev
      + dc/role/Ops  role Ops
          privileges  VM.Audit, VM.Console, VM.PowerMgmt
      + dc/group/ops  group ops
          comment  operators
      + dc/user/ann@pve  user ann@pve
          email       ann@example.test
          first_name  Ann
          groups      ops
          password    (secret)
      + dc/token/ann@pve!ci  API token ann@pve!ci
          comment  for the pipeline
          secret   ci_token
      + dc/token/ann@pve!other  API token ann@pve!other
          nobody gets to know its value: `secret: NAME` keeps it, encrypted
          expire   1999999999
          privsep  no
      + dc/acl/ann@pve!ci=PVEAuditor=~vms  PVEAuditor for ann@pve!ci on /vms
      + dc/acl/ann@pve=PVEAuditor=~  PVEAuditor for ann@pve on /
          propagate  no
      + dc/acl/ops=Ops=~pool~web  Ops for ops on /pool/web
      + dc/mapping/pci-gpu  PCI device gpu
          comment     the big one
          devices[0]  id 10de:2204 iommu_group 12 node pve1 path 0000:01:00.0
      + dc/mapping/usb-key  USB device key
          devices[0]  id 1050:0407 node pve2
      ~ dc/dns/pve1  name servers of pve1
          search   example.test → lab.test
          servers  192.0.2.53 → 192.0.2.53, 192.0.2.54
      ~ dc/dns/pve2  name servers of pve2
          search   example.test → lab.test
          servers  192.0.2.53 → 192.0.2.53, 192.0.2.54
      ~ dc/timezone/pve1  time zone of pve1
          zone  UTC → Europe/Paris
      ~ dc/timezone/pve2  time zone of pve2
          zone  UTC → Europe/Paris
      ~ dc/network/pve1  network of pve1
          the network of `pve1` is reloaded
          interfaces.bond0     + type bond, autostart, mode active-backup
          interfaces.vmbr5     + 10.9.0.1/24, type bridge, autostart, comment for storage, mtu 1400
          interfaces.vmbr5.50  + 10.50.0.1/24, type vlan, autostart
      ~ dc/network/pve2  network of pve2
          the network of `pve2` is reloaded
          interfaces.vmbr5  + 10.9.0.1/24, type bridge, autostart, comment for storage, mtu 1400
      + dc/alias/admin  alias admin
          cidr  192.0.2.200
      + dc/ipset/trusted  IP set trusted
          addresses  !192.0.2.99, 192.0.2.0/24, admin
      + dc/securitygroup/web  security group web
          comment   for the web
          rules[0]  in ACCEPT tcp dport 80,443
      + dc/firewall/datacenter  firewall of the datacenter
          the hosts then drop what no rule lets in, except from their own network
          options   enable, policy_in DROP
          rules[0]  in ACCEPT macro SSH source +trusted
          rules[1]  in ACCEPT tcp dport 8006 source admin
          rules[2]  group web
      + dc/storage/backup  storage backup, pbs
          content    backup
          datastore  main
          password   (secret)
          server     192.0.2.30
          username   strata@pbs
      + dc/backupjob/nightly  backup job nightly
          all       yes
          comment   every night
          compress  zstd
          exclude   9000
          keep      daily 7, weekly 4
          schedule  02:00
          storage   backup
      + dc/storage/media  storage media, nfs
          content  iso, vztmpl
          export   /media
          options  prune-backups keep-last=3
          server   192.0.2.31

    19 to create, 6 to change
    blast radius: hypervisors: 25 in 1 stack
    ");
    let applied = dc.apply();
    assert!(!applied.contains(PASSWORD) && !applied.contains(PBS), "{applied}");
    dc.assert_settled();
    dc.assert_token_works();
    let drift = dc.strata().run(&["drift"]).ok().all();
    assert!(drift.contains("no drift") || drift.contains("nothing"), "{drift}");
    let listed = dc.strata().run(&["state", "list", "dc"]).ok().stdout;
    assert!(listed.contains("dc/acl/ann@pve!ci=PVEAuditor=~vms"), "{listed}");
    dc.strata().run(&["graph"]).ok();
    dc.strata().run(&["output", "dc"]).ok();
    // Nothing secret is in any file.
    let secret = dc.strata().run(&["secrets", "decrypt", "secrets.sops.yaml"]).ok().stdout;
    let secret =
        secret.lines().find_map(|line| line.strip_prefix("ci_token: ")).unwrap().trim_matches('"').to_owned();
    let value = secret.rsplit('=').next().unwrap();
    for (path, bytes) in dc.repo.all_files() {
        let text = String::from_utf8_lossy(&bytes);
        for marker in [PASSWORD, PBS, value] {
            assert!(!text.contains(marker), "`{}` holds a secret", path.display());
        }
    }
    let gone = dc.strata().run(&["destroy", "--yes"]).ok().all();
    assert!(gone.contains("only its definition goes"), "{gone}");
    assert_same(&dc.without_settings(), &without_settings(before), "destroy leaves the datacenter as it was");
}

#[test]
fn each_field_can_change() {
    let dc = Datacenter::new(DATACENTER);
    dc.with_login();
    dc.apply();
    let edits = [
        ("{comment: for the web}", "{comment: for all}"),
        ("[VM.Audit, VM.PowerMgmt, VM.Console]", "[VM.Audit, VM.Config.CPU]"),
        ("{comment: operators}", "{}"),
        ("email: ann@example.test, firstName: Ann", "enabled: false, lastName: Lee, expire: 1999999999"),
        ("{env: ANN_PASSWORD}", "{env: OTHER_PASSWORD}"),
        ("comment: for the pipeline", "expire: 1888888888"),
        ("{privilegeSeparation: false, expire: 1999999999}", "{}"),
        ("user: ann@pve, propagate: false", "user: ann@pve"),
        ("username: strata@pbs", "username: other@pbs"),
        ("{env: PBS_PASSWORD}", "{env: OTHER_PASSWORD}"),
        ("content: [iso, vztmpl]", "content: [iso], nodes: [pve1], enabled: false"),
        ("weekly: 4}", "weekly: 4}, fleecing: {storage: local-lvm}, notificationMode: notification-system"),
        ("fleecing: {storage: local-lvm}", "fleecing: {storage: big}, bandwidthLimit: 5000"),
        ("keep-last=3", "keep-last=4"),
        ("export: /media", "export: /other"),
        ("comment: the big one", "mediated: true"),
        ("id: \"1050:0407\"", "id: \"1050:0408\""),
        ("mtu: 1400", "mtu: 1500"),
        ("comment: for storage", "vlanAware: true"),
        ("mode: active-backup", "mode: balance-xor"),
        ("10.50.0.1/24", "10.50.0.2/24"),
        ("address: 10.50.0.2/24, nodes: [pve1]", "nodes: [pve1]"),
        ("  vmbr5.50: {nodes: [pve1]}\n", ""),
        ("servers: [192.0.2.53, 192.0.2.54]", "servers: [192.0.2.54]"),
        ("searchDomain: lab.test", "searchDomain: other.test"),
        ("Europe/Paris", "Europe/Berlin"),
        ("policyIn: DROP", "policyIn: REJECT\n  policyOut: ACCEPT"),
        ("admin: 192.0.2.200/32", "admin: {address: 192.0.2.201, comment: one}"),
        ("[192.0.2.0/24, \"!192.0.2.99\", admin]", "[192.0.2.0/25, 192.0.2.99]"),
        (
            "comment: for the web, rules: [{direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"80,443\"}]",
            "rules: [{direction: in, action: ACCEPT, macro: Ping}, {direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"443\"}]",
        ),
        ("    - {direction: group, action: web}\n", ""),
        (
            "    - {direction: in, action: ACCEPT, source: +trusted",
            "    - {direction: in, action: DROP, protocol: udp}\n    - {direction: in, action: ACCEPT, source: +trusted",
        ),
        ("  enabled: true\n  policyIn: REJECT", "  enabled: false\n  policyIn: REJECT"),
    ];
    for (from, to) in edits {
        dc.repo.edit(FILE, from, to);
        let strata = dc.strata().env("OTHER_PASSWORD", "another-long-one");
        let applied = strata.run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{to}:\n{}", applied.all());
        assert!(!applied.all().contains("nothing to do"), "{to}:\n{}", applied.all());
        let plan = strata.run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{to}:\n{}", plan.all());
    }
    let export = dc.export();
    assert_eq!(export["users"]["ann@pve"]["fields"]["lastname"], "Lee");
    assert_eq!(export["users"]["ann@pve"]["fields"]["email"], Value::Null);
    let users = dc.sim.control().change(&json!({
        "method": "POST", "path": "/access/ticket", "params": {"username": "ann@pve", "password": "another-long-one"},
    }));
    // The user is switched off, so only the password is told apart: a wrong one is refused in the same words.
    assert!(users["status"] == 200 || users["status"] == 401, "{users}");
}

#[test]
fn drift_is_seen_and_mended() {
    let dc = Datacenter::new(DATACENTER);
    dc.apply();
    dc.change("PUT", "/access/roles/Ops", json!({"privs": "VM.Audit"}));
    dc.change("PUT", "/access/users/ann@pve", json!({"comment": "edited by hand", "enable": 0}));
    dc.change("DELETE", "/pools", json!({"poolid": "web/dev"}));
    dc.change("PUT", "/storage/media", json!({"disable": 1}));
    dc.change(
        "PUT",
        "/access/acl",
        json!({"path": "/pool/web", "groups": "ops", "roles": "Ops", "propagate": 0}),
    );
    dc.change("PUT", "/nodes/pve1/dns", json!({"search": "lab.test", "dns1": "192.0.2.99"}));
    dc.change("PUT", "/nodes/pve1/network/vmbr5", json!({"type": "bridge", "cidr": "10.9.0.9/24"}));
    dc.change("PUT", "/nodes/pve1/network", json!({}));
    dc.change("PUT", "/nodes/pve2/time", json!({"timezone": "UTC"}));
    dc.change("POST", "/cluster/firewall/rules", json!({"type": "in", "action": "DROP", "enable": 1}));
    dc.change("POST", "/cluster/firewall/ipset/trusted", json!({"cidr": "198.51.100.1"}));
    dc.change("DELETE", "/cluster/firewall/groups/web/0", json!({}));
    let drift = dc.strata().run(&["drift"]).all();
    for address in [
        "dc/network/pve1",
        "dc/dns/pve1",
        "dc/timezone/pve2",
        "dc/firewall/datacenter",
        "dc/ipset/trusted",
        "dc/securitygroup/web",
        "dc/role/Ops",
        "dc/user/ann@pve",
        "dc/pool/web~dev",
        "dc/storage/media",
        "dc/acl/ops=Ops=~pool~web",
    ] {
        assert!(drift.contains(address), "{address}:\n{drift}");
    }
    dc.apply();
    dc.assert_settled();
    assert_eq!(dc.export()["users"]["ann@pve"]["enable"], true);
}

#[test]
fn what_others_made_stays_as_it_is() {
    let dc = Datacenter::new(DATACENTER);
    dc.change("POST", "/pools", json!({"poolid": "web", "comment": "mine"}));
    dc.change("POST", "/access/roles", json!({"roleid": "Ops", "privs": "VM.Audit"}));
    dc.change("POST", "/access/groups", json!({"groupid": "ops"}));
    dc.change("POST", "/storage", json!({"storage": "media", "type": "dir", "path": "/srv/media"}));
    dc.change("POST", "/cluster/firewall/rules", json!({"type": "in", "action": "DROP", "enable": 1}));
    dc.change("POST", "/cluster/firewall/ipset", json!({"name": "trusted"}));
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    for name in [
        "firewall of the `datacenter`",
        "IP set `trusted`",
        "pool `web`",
        "role `Ops`",
        "group `ops`",
        "storage `media`",
    ] {
        assert!(refused.contains(name), "{name}:\n{refused}");
    }
    assert!(refused.contains("`adopt: true`"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    // Taken over where the source says so; a mark of somebody else is stronger than that.
    for (from, to) in [
        ("{comment: for the web}", "{comment: for the web, adopt: true}"),
        ("Ops: [VM.Audit, VM.PowerMgmt, VM.Console]", "Ops: {privileges: [VM.Audit], adopt: true}"),
        ("{comment: operators}", "{comment: operators, adopt: true}"),
        ("export: /media,", "export: /media, adopt: true,"),
        ("  policyIn: DROP", "  adopt: true\n  policyIn: DROP"),
        (
            "trusted: [192.0.2.0/24, \"!192.0.2.99\", admin]",
            "trusted: {addresses: [192.0.2.0/24], adopt: true}",
        ),
    ] {
        dc.repo.edit(FILE, from, to);
    }
    dc.change(
        "PUT",
        "/access/groups/ops",
        json!({"groupid": "ops", "comment": "[strata 0123456789ab other/group/ops]"}),
    );
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(
        refused.contains("its ownership mark names `other/group/ops`") && !refused.contains("role `Ops`"),
        "{refused}"
    );
    dc.change("PUT", "/access/groups/ops", json!({"groupid": "ops", "comment": "by hand"}));
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("differs in what cannot be changed: `export`, `server`, `type`"), "{refused}");
    dc.change("DELETE", "/storage/media", json!({}));
    let nfs = json!({"storage": "media", "type": "nfs", "server": "192.0.2.31", "export": "/media", "content": "iso"});
    dc.change("POST", "/storage", nfs);
    dc.apply();
    dc.assert_settled();
    assert!(dc.export()["pools"]["web"]["comment"].as_str().unwrap().starts_with("for the web [strata "));
    // What was there before stays when everything goes.
    let gone = dc.strata().run(&["destroy", "--yes"]).ok().all();
    assert!(gone.contains("it was there before Strata"), "{gone}");
    let export = dc.export();
    assert!(
        export["pools"]["web"].is_object()
            && export["roles"]["Ops"].is_array()
            && export["groups"]["ops"].is_object()
    );
    assert!(export["users"]["ann@pve"].is_null());
}

const RULES: &str = "metadata: {name: dc, environment: test}\nproxmox: {target: pve, node: pve1}\nfirewall:\n  enabled: true\n  policyIn: DROP\n  rules:\n    - {direction: in, action: ACCEPT, macro: ssh}\n    - {direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"8006\"}\n    - {direction: in, action: DROP, protocol: tcp}\n";

impl Datacenter {
    fn get(&self, path: &str) -> Value {
        let answer = self.sim.control().change(&json!({"method": "GET", "path": path, "params": {}}));
        assert_eq!(answer["status"], 200, "{answer}");
        answer["data"].clone()
    }

    /// The actions of the datacenter's rules that are on.
    fn actions(&self) -> Vec<String> {
        let rules = self.get("/cluster/firewall/rules");
        let on = rules.as_array().unwrap().iter().filter(|rule| rule["enable"] == 1);
        on.map(|rule| rule["action"].as_str().unwrap().to_owned()).collect()
    }

    /// Lets a run come to the call that sets the options, and gives what was in force then.
    fn at_the_options(&self) -> (Vec<String>, Value) {
        let control = self.sim.control();
        let order = json!({"kind": "hold-before", "method": "PUT", "path": "/cluster/firewall/options"});
        let fault = control.fault(&order);
        let mut child = self.strata().spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(fault, 60.0));
        let seen = (self.actions(), self.get("/cluster/firewall/options"));
        control.release(fault);
        assert!(child.wait().unwrap().success());
        control.clear_faults();
        self.assert_settled();
        seen
    }
}

#[test]
fn a_firewall_opens_before_its_rules_go_and_closes_after_they_came() {
    let dc = Datacenter::new(RULES);
    let (actions, options) = dc.at_the_options();
    assert_eq!(
        (actions, &options["enable"]),
        (["ACCEPT", "ACCEPT", "DROP"].map(str::to_owned).to_vec(), &Value::Null)
    );
    // It opens, and the rules go.
    let rules = RULES.split_once("  rules:").unwrap().1.to_owned();
    dc.repo.edit(FILE, &format!("  rules:{rules}"), "  rules: []\n");
    dc.repo.edit(FILE, "policyIn: DROP", "policyIn: ACCEPT");
    assert_eq!(dc.at_the_options().0.len(), 3);
    assert!(dc.actions().is_empty());
    // Somebody else switched it on, and the source only says what is dropped.
    let dc = Datacenter::new(&RULES.replace("  enabled: true\n", "  adopt: true\n"));
    dc.change("PUT", "/cluster/firewall/options", json!({"enable": 1, "policy_in": "ACCEPT"}));
    let plan = dc.strata().run(&["plan"]).ok().all();
    assert!(plan.contains("the hosts then drop what no rule lets in"), "{plan}");
    let (actions, options) = dc.at_the_options();
    assert_eq!((actions.len(), &options["policy_in"]), (3, &json!("ACCEPT")));
}

#[test]
fn a_rule_that_drops_is_never_on_before_those_that_let_in() {
    for nth in 1.. {
        let dc = Datacenter::new(RULES);
        let control = dc.sim.control();
        let order = json!({"kind": "refuse", "writes": true, "path": "/cluster/firewall/rules*", "nth": nth,
            "count": 0, "status": 400, "text": "no more"});
        control.fault(&order);
        let first = dc.strata().run(&["apply", "--yes"]);
        let actions = dc.actions();
        let dropped = actions.contains(&"DROP".to_owned());
        assert!(!dropped || actions.len() == 3, "{nth}: {actions:?}");
        control.clear_faults();
        dc.apply();
        dc.assert_settled();
        assert_eq!(dc.actions(), ["ACCEPT", "ACCEPT", "DROP"]);
        if first.code == 0 {
            assert!(nth > 3);
            break;
        }
    }
}

#[test]
fn a_storage_does_not_take_keys_and_permissions_of_others_along() {
    let dc = Datacenter::new(DATACENTER);
    dc.repo.edit(FILE, "acl:\n", "acl:\n  - {path: /storage/media, role: PVEDatastoreUser, user: ann@pve}\n");
    dc.apply();
    dc.assert_settled();
    dc.change("PUT", "/storage/backup", json!({"encryption-key": "autogen"}));
    dc.change(
        "PUT",
        "/access/acl",
        json!({"path": "/storage/media", "groups": "ops", "roles": "PVEDatastoreAdmin"}),
    );
    dc.strata().run(&["plan", "--detailed-exitcode"]).code(0);
    let before = dc.export();
    let source = dc.repo.read(FILE);
    // Recreated, or taken away. What Proxmox cannot change is a replacement.
    dc.repo.edit(FILE, "server: 192.0.2.30", "server: 192.0.2.40");
    dc.repo.edit(FILE, "server: 192.0.2.31", "server: 192.0.2.41");
    for arguments in [["apply", "--yes"], ["destroy", "--yes"]] {
        let refused = dc.strata().run(&arguments).code(3).all();
        for text in [
            "the encryption key of the storage `backup`",
            "permissions on the storage `media`",
            "PVEDatastoreAdmin for ops on /storage/media",
        ] {
            assert!(refused.contains(text), "{text}:\n{refused}");
        }
        // Our own go with it only where everything goes.
        assert_eq!(
            refused.contains("media, PVEDatastoreUser for ann@pve"),
            arguments[0] == "apply",
            "{refused}"
        );
        assert_same(&dc.export(), &before, "nothing is touched");
    }
    dc.repo.write(FILE, &source);
    dc.change(
        "PUT",
        "/access/acl",
        json!({"path": "/storage/media", "groups": "ops", "roles": "PVEDatastoreAdmin", "delete": 1}),
    );
    dc.change("PUT", "/storage/backup", json!({"delete": "encryption-key"}));
    dc.strata().run(&["destroy", "--yes"]).ok();
}

#[test]
fn what_a_server_would_write_in_another_way_is_refused() {
    for (from, to, told) in [
        ("trusted: [", "trusted: [192.0.2.7/24, ", "write `192.0.2.0/24`"),
        ("trusted: [", "Trusted: [", "lower-case letters"),
        (
            "    web: {comment: for the web, rules",
            "    Web: {comment: for the web, rules",
            "lower-case letters",
        ),
        ("servers: [192.0.2.53,", "servers: [192.0.2.1, 192.0.2.2, 192.0.2.53,", "up to three name servers"),
        ("prune-backups: keep-last=3", "keyring: x", "`keyring` of the storage `media` is a secret"),
        ("prune-backups: keep-last=3", "password: x", "beside `options`"),
        (
            "media: {type: nfs, server: 192.0.2.31, export: /media",
            "media: {type: dir, path: /srv//media/",
            "write `/srv/media`",
        ),
    ] {
        let dc = Datacenter::new(&DATACENTER.replacen(from, to, 1));
        let refused = dc.strata().run(&["validate"]);
        assert!(refused.code != 0 && refused.all().contains(told), "{to}:\n{}", refused.all());
    }
}

#[test]
fn what_the_server_says_we_made_is_ours_even_if_it_looks_different_at_once() {
    let dc = Datacenter::new(DATACENTER);
    let control = dc.sim.control();
    let fault = control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "/storage"}));
    let mut child = dc.strata().spawn(&["apply", "--yes", "--parallelism", "1"]);
    assert!(control.wait_fault(fault, 60.0));
    dc.change("PUT", "/storage/backup", json!({"disable": 1}));
    control.release(fault);
    assert!(child.wait().unwrap().success());
    let plan = dc.strata().run(&["plan"]).ok().all();
    assert!(plan.contains("~ dc/storage/backup") && plan.contains("enabled"), "{plan}");
    dc.apply();
    dc.assert_settled();
}

const BRIDGES: &str =
    "metadata: {name: dc, environment: test}\nproxmox: {target: pve, node: pve1}\nnetwork:\n  vmbr5: {}\n";

#[test]
fn what_others_stage_is_never_brought_into_effect() {
    let dc = Datacenter::new(BRIDGES);
    dc.change("POST", "/nodes/pve1/network", json!({"iface": "vmbr9", "type": "bridge"}));
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("vmbr9") && refused.contains("staged"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.change("DELETE", "/nodes/pve1/network", json!({}));
    let applied = dc.apply();
    assert!(applied.contains("the network of `pve1` is reloaded"), "{applied}");
    dc.assert_settled();
    // Also where they come between our own and the reload.
    dc.repo.edit(FILE, "vmbr5: {}", "vmbr5: {mtu: 1400}");
    let control = dc.sim.control();
    let fault =
        control.fault(&json!({"kind": "hold-after", "method": "PUT", "path": "/nodes/pve1/network/vmbr5"}));
    let mut child = dc.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    dc.change("POST", "/nodes/pve1/network", json!({"iface": "vmbr9", "type": "bridge"}));
    control.release(fault);
    assert!(!child.wait().unwrap().success());
    assert!(dc.export()["nodes"][0]["interfaces"]["vmbr9"].is_null(), "somebody else's bridge was made");
    dc.change("DELETE", "/nodes/pve1/network", json!({}));
    dc.apply();
    dc.assert_settled();
}

#[test]
fn a_server_that_refuses_a_part_leaves_nothing_staged() {
    let dc = Datacenter::new(&BRIDGES.replace("vmbr5: {}", "vmbr5: {}\n  vmbr6: {ports: [eno1]}"));
    let before = dc.export();
    let failed = dc.strata().run(&["apply", "--yes"]).code(1).all();
    assert!(failed.contains("already used on interface"), "{failed}");
    assert_same(&dc.export(), &before, "nothing is staged");
}

#[test]
fn the_interface_that_a_host_is_reached_by_needs_consent() {
    let dc = Datacenter::new(&BRIDGES.replace("vmbr5: {}", "vmbr0: {mtu: 1400}"));
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("`vmbr0` of `pve1` exists and is not managed"), "{refused}");
    dc.repo.edit(FILE, "vmbr0: {mtu: 1400}", "vmbr0: {mtu: 1400, adopt: true}");
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(
        refused.contains("`vmbr0` carries `192.0.2.11`") && refused.contains("mayCutConnection"),
        "{refused}"
    );
    dc.repo.edit(FILE, "vmbr0: {mtu: 1400, adopt: true}", "eno1: {type: eth, mtu: 9000}");
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("`eno1` carries"), "{refused}");
    dc.repo.edit(FILE, "eno1: {type: eth, mtu: 9000}", "eno9: {type: eth, mtu: 9000}");
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("there is no interface `eno9`"), "{refused}");
    dc.repo.edit(
        FILE,
        "eno9: {type: eth, mtu: 9000}",
        "vmbr0: {mtu: 1400, adopt: true, mayCutConnection: true}",
    );
    let before = dc.export()["nodes"][0]["interfaces"]["vmbr0"].clone();
    dc.apply();
    dc.assert_settled();
    let after = dc.export()["nodes"][0]["interfaces"]["vmbr0"].clone();
    assert!(after.to_string().contains("1400") && !before.to_string().contains("1400"), "{after}");
    assert!(after.to_string().contains("192.0.2.11/24"), "its address is still there: {after}");
    // What was there before stays.
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert!(dc.export()["nodes"][0]["interfaces"]["vmbr0"].is_object());
}

#[test]
fn what_others_stage_on_our_interfaces_is_not_ours() {
    let dc = Datacenter::new(&BRIDGES.replace("vmbr5: {}", "vmbr0: {adopt: true, comment: uplink}"));
    dc.apply();
    dc.change("PUT", "/nodes/pve1/network/vmbr0", json!({"type": "bridge", "cidr": "203.0.113.66/24"}));
    let before = dc.export();
    for command in [&["plan"][..], &["apply", "--yes"]] {
        let refused = dc.strata().run(command).code(3).all();
        assert!(refused.contains("are staged that this repository did not make (`vmbr0`)"), "{refused}");
        assert!(refused.contains("`pvesh delete /nodes/pve1/network`"), "{refused}");
    }
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.change("DELETE", "/nodes/pve1/network", json!({}));
    dc.assert_settled();
}

#[test]
fn a_network_is_not_forgotten_while_others_stage_changes_of_it() {
    let dc = Datacenter::new(BRIDGES);
    let before = dc.export();
    dc.apply();
    dc.change("POST", "/nodes/pve1/network", json!({"iface": "vmbr9", "type": "bridge"}));
    let refused = dc.strata().run(&["destroy", "--yes"]).code(3).all();
    assert!(refused.contains("`vmbr9`") && refused.contains("`pvesh set /nodes/pve1/network`"), "{refused}");
    assert!(!refused.contains("adopt"), "{refused}");
    dc.repo.edit(FILE, "network:\n  vmbr5: {}\n", "");
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("`vmbr9`"), "{refused}");
    assert!(dc.export()["nodes"][0]["interfaces"]["vmbr5"].is_object());
    dc.change("DELETE", "/nodes/pve1/network", json!({}));
    dc.apply();
    assert_same(&dc.export(), &before, "our bridge is gone");
}

#[test]
fn a_way_to_the_host_is_neither_changed_nor_taken_without_consent() {
    let dc = Datacenter::new(&BRIDGES.replace("vmbr5: {}", "vmbr5: {address: 192.0.2.11/24}"));
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("`vmbr5` would take `192.0.2.11`"), "{refused}");
    assert!(refused.contains("`vmbr0` has it"), "{refused}");
    dc.repo.edit(FILE, "192.0.2.11/24", "192.0.2.12/24, mayCutConnection: true");
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("it is that of `pve2`"), "{refused}");
    // The default gateway, on an interface that nobody knows the host by.
    dc.change(
        "PUT",
        "/nodes/pve1/network/vmbr0",
        json!({"type": "bridge", "cidr": "192.0.2.11/24", "bridge_ports": "eno1", "delete": "gateway"}),
    );
    dc.change(
        "PUT",
        "/nodes/pve1/network/vmbr1",
        json!({"type": "bridge", "cidr": "198.51.100.2/24", "gateway": "198.51.100.1"}),
    );
    dc.change("PUT", "/nodes/pve1/network", json!({}));
    dc.repo.edit(
        FILE,
        "vmbr5: {address: 192.0.2.12/24, mayCutConnection: true}",
        "vmbr1: {adopt: true, mtu: 1400}",
    );
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("`vmbr1` carries the default gateway `198.51.100.1`"), "{refused}");
    dc.repo.edit(FILE, "mtu: 1400", "mtu: 1400, mayCutConnection: true");
    dc.apply();
    dc.assert_settled();
}

#[test]
fn a_reload_whose_end_nobody_saw_is_done_again() {
    let dc = Datacenter::new(BRIDGES);
    let control = dc.sim.control();
    let fault = control.fault(&json!({"kind": "hold-after", "method": "PUT", "path": "/nodes/pve1/network"}));
    let mut child = dc.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    child.kill().unwrap();
    child.wait().unwrap();
    control.release(fault);
    control.clear_faults();
    let plan = dc.strata().run(&["plan"]).ok().all();
    assert!(plan.contains("staged") && plan.contains("the network of `pve1` is reloaded"), "{plan}");
    let applied = dc.apply();
    assert!(applied.contains("the network of `pve1` is reloaded"), "{applied}");
    dc.assert_settled();
}

/// What a dead run staged about an interface goes with it, also while a VLAN on it goes first: nobody else is taken for who staged it.
#[test]
fn what_a_dead_run_staged_goes_with_its_interface() {
    for vlan in ["", "\n  vmbr5.50: {address: 10.50.0.1/24}"] {
        let interfaces = format!("vmbr5: {{mtu: 1400}}{vlan}");
        let dc = Datacenter::new(&BRIDGES.replace("vmbr5: {}", &interfaces));
        let before = dc.export();
        dc.apply();
        dc.repo.edit(FILE, "mtu: 1400", "mtu: 1500");
        let control = dc.sim.control();
        let change = json!({"kind": "hold-after", "method": "PUT", "path": "/nodes/pve1/network/vmbr5"});
        let fault = control.fault(&change);
        let mut child = dc.strata().spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(fault, 60.0));
        child.kill().unwrap();
        child.wait().unwrap();
        control.clear_faults();
        dc.strata().run(&["destroy", "--yes"]).ok();
        assert_same(&dc.export(), &before, "our interfaces are gone");
    }
}

#[test]
fn guests_and_what_they_stand_on_are_made_in_one_go() {
    let dc = Datacenter::new(DATACENTER);
    dc.repo.write(
        "stacks/web/stack.yaml",
        "metadata: {name: web, environment: test}\nproxmox: {target: pve, node: pve1, storage: {iso: media, disk: local-lvm}}\nvms:\n  a:\n    vmId: 9100\n    memory: 64\n    disk: 1\n    started: false\n    pool: web\n    iso: {url: \"https://images.example/rescue.iso\"}\n",
    );
    let before = dc.export();
    dc.apply();
    dc.strata().run(&["plan", "--detailed-exitcode"]).code(0);
    assert_eq!(dc.export()["pools"]["web"]["vms"], json!([9100]));
    // Alone, it stands on what is not there any more.
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &without_settings(before), "destroy leaves the datacenter as it was");
    let refused = dc.strata().run(&["apply", "--yes", "web"]).code(3).all();
    assert!(refused.contains("there is no pool `web`"), "{refused}");
}

#[test]
fn an_api_token_cannot_change_a_password() {
    let dc = Datacenter::new(DATACENTER);
    dc.apply();
    dc.repo.edit(FILE, "{env: ANN_PASSWORD}", "{env: OTHER_PASSWORD}");
    let other = dc.strata().env("OTHER_PASSWORD", "another-long-one");
    let refused = other.run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("an API token cannot change a password"), "{refused}");
    dc.with_login();
    other.run(&["apply", "--yes"]).ok();
    other.run(&["plan", "--detailed-exitcode"]).code(0);
}

#[test]
fn protected_parts_stay() {
    let dc = Datacenter::new(
        &DATACENTER.replace("{comment: for the web}", "{comment: for the web, protect: true}"),
    );
    dc.apply();
    let refused = dc.strata().run(&["destroy", "--yes"]).code(3).all();
    assert!(refused.contains("dc/pool/web") && refused.contains("protected"), "{refused}");
}

#[test]
fn a_token_without_a_place_for_its_value_is_refused_before_anything_is_made() {
    let dc = Datacenter::new(DATACENTER);
    dc.repo.edit(FILE, "secret: ci_token", "secret: other");
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("another secret of this name"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
}

#[test]
fn a_token_is_made_anew_where_its_value_is_wanted_later() {
    let dc = Datacenter::new(&DATACENTER.replace("secret: ci_token, ", ""));
    let applied = dc.apply();
    assert!(applied.contains("nobody gets to know its value"), "{applied}");
    dc.repo.edit(FILE, "{comment: for the pipeline}", "{comment: for the pipeline, secret: ci_token}");
    let plan = dc.strata().run(&["plan"]).ok().all();
    assert!(plan.contains("it is recreated"), "{plan}");
    dc.apply();
    dc.assert_settled();
    dc.assert_token_works();
    // Its place in the source can go without touching the token.
    dc.repo.edit(FILE, ", secret: ci_token", "");
    dc.apply();
    dc.assert_token_works();
}

/// A datacenter that holds the access of whoever applies it.
const OWN_ACCESS: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve}
pools: {web: {}}
roles: {Watch: [Sys.Audit, VM.Audit]}
groups: {admins: {}}
users: {keeper@pve: {groups: [admins]}}
tokens:
  keeper@pve!main: {privilegeSeparation: false, secret: ci_token}
acl:
  - {path: /, role: Administrator, user: keeper@pve}
  - {path: /nodes, role: Watch, group: admins}
"#;

#[test]
fn the_access_that_a_run_works_with_is_not_taken_from_it() {
    let dc = Datacenter::new(OWN_ACCESS);
    dc.apply();
    let plain = dc.strata().run(&["secrets", "decrypt", "secrets.sops.yaml"]).ok().stdout;
    let kept = plain.lines().find_map(|line| line.strip_prefix("ci_token: ")).unwrap();
    dc.repo.write("sim-token", kept.trim_matches(['"', '\'']));
    dc.assert_settled();
    let before = dc.export();
    let refused = dc.strata().run(&["destroy", "--yes"]).code(3).all();
    for harm in [
        "delete it",
        "delete the user `keeper@pve`",
        "delete the group `admins`",
        "delete the role `Watch`",
        "what it has by `Administrator` for `keeper@pve` on `/`",
        "what it has by `Watch` for `admins` on `/nodes`",
        "another `token` for this run",
    ] {
        assert!(refused.contains(harm), "{harm}:\n{refused}");
    }
    for (from, to, harm) in [
        ("secret: ci_token", "secret: new_name", "recreate it"),
        ("secret: ci_token", "secret: ci_token, expire: 1999999999", "set when it expires"),
        ("privilegeSeparation: false, secret: ci_token", "secret: ci_token", "what its user may"),
        ("{groups: [admins]}", "{groups: [admins], enabled: false}", "disable the user"),
        ("keeper@pve: {groups: [admins]}", "keeper@pve: {}", "remove from `admins` the user"),
        ("[Sys.Audit, VM.Audit]", "[VM.Audit]", "remove `Sys.Audit` from the role `Watch`"),
        ("user: keeper@pve}", "user: keeper@pve, propagate: false}", "change what it has"),
    ] {
        dc.repo.edit(FILE, from, to);
        let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
        assert!(
            refused.contains(harm) && refused.contains("works with `keeper@pve!main`"),
            "{to}:\n{refused}"
        );
        dc.repo.edit(FILE, to, from);
    }
    assert_same(&dc.export(), &before, "nothing is touched");
    // What harms nobody goes on, and with another token everything does.
    dc.repo.edit(FILE, "[Sys.Audit, VM.Audit]", "[Sys.Audit, VM.Audit, VM.Console]");
    dc.repo.edit(FILE, "secret: ci_token", "secret: ci_token, comment: ours");
    dc.apply();
    dc.assert_settled();
    dc.repo.write("sim-token", ROOT_TOKEN);
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert!(dc.export()["users"]["keeper@pve"].is_null());
}

const TOKEN: &str = "metadata: {name: dc, environment: test}\nproxmox: {target: pve}\ntokens:\n  ann@pve!ci: {adopt: true, secret: ci_token}\n";

#[test]
fn a_token_of_somebody_else_is_not_made_anew() {
    let dc = Datacenter::new(TOKEN);
    dc.change("POST", "/access/users", json!({"userid": "ann@pve"}));
    dc.change("POST", "/access/users/ann@pve/token/ci", json!({"comment": "hers"}));
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(
        refused.contains(
            "would recreate the token `ann@pve!ci`, which exists and is not managed by this repository"
        ),
        "{refused}"
    );
    assert_same(&dc.export(), &before, "nothing is touched");
    // Taken over with the value that it has, it is ours.
    dc.repo.edit(FILE, ", secret: ci_token", "");
    dc.apply();
    dc.assert_settled();
}

#[test]
fn a_token_with_permissions_that_others_gave_is_not_made_anew() {
    let dc = Datacenter::new(&DATACENTER.replace("secret: ci_token, ", ""));
    dc.apply();
    let foreign = json!({"path": "/storage", "tokens": "ann@pve!ci", "roles": "PVEDatastoreUser"});
    dc.change("PUT", "/access/acl", foreign);
    dc.repo.edit(FILE, "{comment: for the pipeline}", "{comment: for the pipeline, secret: ci_token}");
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("`PVEDatastoreUser for ann@pve!ci on /storage`"), "{refused}");
    assert!(!refused.contains("`PVEAuditor for ann@pve!ci on /vms`"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    // Ours are given again, also where the run that would do so dies when the old token is gone.
    let entry =
        "  - {path: /storage, role: PVEDatastoreUser, token: \"ann@pve!ci\", adopt: true}\nstorages:\n";
    dc.repo.edit(FILE, "storages:\n", entry);
    let control = dc.sim.control();
    let fault = control.fault(&json!({"kind": "hold-after", "method": "DELETE"}));
    let mut child = dc.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    child.kill().unwrap();
    child.wait().unwrap();
    control.release(fault);
    control.clear_faults();
    dc.apply();
    dc.assert_settled();
    dc.assert_token_works();
    assert_eq!(dc.export()["acl"], before["acl"]);
}

#[test]
fn what_others_have_by_an_object_does_not_fall_with_it() {
    let dc = Datacenter::new(DATACENTER);
    let empty = dc.export();
    dc.apply();
    dc.change("POST", "/access/users", json!({"userid": "bob@pve", "groups": "ops"}));
    dc.change("PUT", "/access/acl", json!({"path": "/vms", "users": "bob@pve", "roles": "Ops"}));
    dc.change("PUT", "/access/acl", json!({"path": "/storage", "groups": "ops", "roles": "PVEAuditor"}));
    dc.change(
        "PUT",
        "/access/acl",
        json!({"path": "/storage", "tokens": "ann@pve!ci", "roles": "PVEAuditor"}),
    );
    dc.change("POST", "/access/users/ann@pve/token/mine", json!({}));
    let before = dc.export();
    let refused = dc.strata().run(&["destroy", "--yes"]).code(3).all();
    for (object, falls) in [
        ("role `Ops`", "`Ops for bob@pve on /vms`"),
        ("group `ops`", "`PVEAuditor for ops on /storage`"),
        ("group `ops`", "the membership of `bob@pve`"),
        ("user `ann@pve`", "the token `ann@pve!mine`"),
        ("token `ann@pve!ci`", "`PVEAuditor for ann@pve!ci on /storage`"),
    ] {
        assert!(refused.contains(object) && refused.contains(falls), "{object}: {falls}\n{refused}");
    }
    assert!(!refused.contains("`Ops for ops on /pool/web`"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.change("DELETE", "/access/users/bob@pve", json!({}));
    dc.change("DELETE", "/access/users/ann@pve/token/mine", json!({}));
    for (subject, name) in [("groups", "ops"), ("tokens", "ann@pve!ci")] {
        let entry = json!({"path": "/storage", subject: name, "roles": "PVEAuditor", "delete": 1});
        dc.change("PUT", "/access/acl", entry);
    }
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &without_settings(empty), "destroy leaves the datacenter as it was");
}

#[test]
fn two_tokens_need_two_places_for_their_values() {
    let dc = Datacenter::new(&DATACENTER.replace("{privilegeSeparation: false, ", "{secret: ci_token, "));
    let refused = dc.strata().run(&["validate"]);
    assert_ne!(refused.code, 0, "{}", refused.all());
    assert!(refused.all().contains("cannot both be kept as `ci_token`"), "{}", refused.all());
}

/// What is done to a datacenter that is there: made from nothing, changed in many places, or taken away.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Make,
    Change,
    Destroy,
}

/// The datacenter, changed in many places.
pub(crate) fn changed() -> String {
    [
        ("{comment: for the web}", "{comment: for all}"),
        ("[VM.Audit, VM.PowerMgmt, VM.Console]", "[VM.Audit]"),
        ("secret: ci_token, comment: for the pipeline", "secret: ci_token, expire: 1888888888"),
        ("email: ann@example.test", "email: ann@other.test"),
        ("mtu: 1400", "mtu: 1500"),
        ("  bond0: {mode: active-backup, nodes: [pve1]}\n", ""),
        ("export: /media", "export: /other"),
        ("\"!192.0.2.99\", admin", "198.51.100.0/24"),
        ("    - {direction: group, action: web}\n", ""),
        ("destinationPort: \"80,443\"", "destinationPort: \"443\""),
    ]
    .iter()
    .fold(DATACENTER.to_owned(), |source, (from, to)| {
        assert!(source.contains(from), "no `{from}`");
        source.replace(from, to)
    })
}

impl Part {
    /// A datacenter to which it can be done.
    fn begin(self) -> Datacenter {
        let dc = Datacenter::new(DATACENTER);
        if self == Self::Make {
            return dc;
        }
        dc.apply();
        if self == Self::Change {
            dc.repo.write(FILE, &changed());
        }
        dc
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Destroy => &["destroy", "--yes", "--parallelism", "1"],
            _ => &["apply", "--yes", "--parallelism", "1"],
        }
    }
}

/// Kills a run at its k-th request; the next one ends as an undisturbed one does. False if it ended before.
fn kill_at(part: Part, kind: &str, k: u64, expected: &Value) -> bool {
    let dc = part.begin();
    let fault = json!({"kind": kind, "nth": k});
    let killed = dc.strata().kill_at(&dc.sim.control(), &fault, part.arguments());
    let struck = killed.struck_or_good(&format!("{kind} {k}"));
    if part != Part::Destroy {
        // A plan after it shows what is open, and finds nothing unmanaged.
        let plan = dc.strata().run(&["plan"]);
        assert_eq!(plan.code, 0, "{kind} {k}:\n{}", plan.all());
    }
    let again = dc.strata().run(part.arguments());
    assert_eq!(again.code, 0, "{kind} {k}:\n{}", again.all());
    assert_same(&dc.export(), expected, &format!("{kind} {k}\n{}", again.all()));
    if part != Part::Destroy {
        dc.assert_settled();
        dc.assert_token_works();
    }
    struck
}

fn kill_every(part: Part, step: usize) {
    let undisturbed = part.begin();
    undisturbed.strata().run(part.arguments()).ok();
    let expected = undisturbed.export();
    for kind in ["hold-before", "hold-after"] {
        let killed = (1..).step_by(step).take_while(|k| kill_at(part, kind, *k, &expected)).count();
        assert!(killed > 0);
    }
}

#[test]
fn a_kill_at_some_requests_loses_nothing() {
    kill_every(Part::Make, 29);
    kill_every(Part::Change, 23);
    kill_every(Part::Destroy, 31);
}

/// The password of a user cannot be read back, and a token cannot change it: the plan counts with what the killed run has made.
#[test]
fn a_user_that_a_killed_run_made_is_not_given_its_password_again() {
    let dc = Part::Make.begin();
    let made = json!({"kind": "hold-after", "method": "POST", "path": "/access/users"});
    let killed = dc.strata().kill_at(&dc.sim.control(), &made, Part::Make.arguments());
    assert!(killed.struck_or_good("after the user was made"));
    let plan = dc.strata().run(&["plan"]).ok();
    assert!(plan.stdout.contains("dc/user/ann@pve  an interrupted run began to create it"), "{}", plan.all());
    assert!(!plan.stdout.contains("~ dc/user/ann@pve"), "{}", plan.all());
    dc.apply();
    dc.assert_settled();
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_about_a_datacenter() {
    kill_every(Part::Make, 1);
    kill_every(Part::Change, 1);
    kill_every(Part::Destroy, 1);
}

/// The faults of a run that is to end as an undisturbed one does, at the latest the second time.
fn fault_at(part: Part, order: &Value, expected: &Value) {
    let dc = part.begin();
    dc.sim.control().fault(order);
    let first = dc.strata().run(part.arguments());
    dc.sim.control().clear_faults();
    if first.code != 0 {
        let again = dc.strata().run(part.arguments());
        assert_eq!(again.code, 0, "{order}\n{}\n{}", first.all(), again.all());
    }
    assert_same(&dc.export(), expected, &format!("{order}\n{}", first.all()));
    if part != Part::Destroy {
        dc.assert_settled();
        dc.assert_token_works();
    }
}

fn fault_every(part: Part, places: impl Iterator<Item = u64>) {
    let undisturbed = part.begin();
    undisturbed.strata().run(part.arguments()).ok();
    let expected = undisturbed.export();
    for k in places {
        for order in [
            json!({"kind": "lost", "writes": true, "nth": k}),
            json!({"kind": "cut", "writes": true, "nth": k}),
            json!({"kind": "refuse", "writes": true, "nth": k, "status": 500, "text": "something broke"}),
            json!({"kind": "refuse", "nth": 3 * k, "status": 596, "text": "broken pipe"}),
        ] {
            fault_at(part, &order, &expected);
        }
    }
}

#[test]
fn lost_answers_and_server_errors_are_got_over() {
    fault_every(Part::Make, [2, 13, 27].into_iter());
    fault_every(Part::Change, [3, 9].into_iter());
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_writes_about_a_datacenter() {
    fault_every(Part::Make, 1..48);
    fault_every(Part::Change, 1..24);
    fault_every(Part::Destroy, 1..40);
}

#[test]
fn the_computed_role_is_enough() {
    let dc = Datacenter::new(DATACENTER);
    let output = dc.strata().run(&["--json", "doctor", "--role"]).ok();
    let event: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    let privileges: Vec<&str> =
        event["privileges"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    dc.change("POST", "/access/roles", json!({"roleid": "Computed", "privs": privileges.join(",")}));
    dc.change("POST", "/access/users", json!({"userid": "least@pve"}));
    dc.change("PUT", "/access/acl", json!({"path": "/", "users": "least@pve", "roles": "Computed"}));
    let token = dc.sim.control().change(&json!({
        "method": "POST", "path": "/access/users/least@pve/token/least", "params": {"privsep": 0},
    }));
    let before = dc.without_settings();
    dc.repo.write("sim-token", &format!("least@pve!least={}", token["data"]["value"].as_str().unwrap()));
    dc.apply();
    dc.assert_settled();
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &before, "destroy leaves the datacenter as it was");
    // Without one of them nothing is begun.
    let rest: Vec<&str> =
        privileges.iter().copied().filter(|privilege| *privilege != "User.Modify").collect();
    dc.change("PUT", "/access/roles/Computed", json!({"privs": rest.join(",")}));
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("`User.Modify` is missing"), "{refused}");
    assert_same(&dc.without_settings()["pools"], &before["pools"], "nothing is touched");
}
