//! Hosts themselves: their settings, their firewalls, and the way to them.

use serde_json::{Value, json};

use super::{Datacenter, FILE, assert_same, without_settings};

pub(crate) const HOSTS: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve}
hosts:
  pve1:
    notes: in the rack on the left
    startDelay: 30
    ballooningTarget: 70
    wakeOnLan: {mac: "BC:24:11:00:00:01", interface: vmbr0}
    firewall:
      logLevelIn: warning
      ndp: false
      maxConnections: 500000
      rules:
        - {direction: in, action: ACCEPT, protocol: tcp, destinationPort: "8006", source: 192.0.2.0/24}
        - {direction: in, action: ACCEPT, protocol: tcp, destinationPort: "9100", source: +scrapers}
  pve2: {wakeOnLan: "BC:24:11:00:00:02", repositories: {no-subscription: true, enterprise: false, ceph-squid-test: true}}
firewall:
  ipSets: {scrapers: [192.0.2.60]}
"#;

#[test]
fn hosts_are_set_kept_and_left() {
    let dc = Datacenter::new(HOSTS);
    let before = dc.export();
    let plan = dc.strata().run(&["plan"]).ok().stdout;
    insta::assert_snapshot!(plan, @r"
    dc (hypervisors, test/dc)
      ~ dc/hostoptions/pve1  settings of pve1
          ballooning_target      + 70
          notes                  + in the rack on the left
          start_delay            + 30
          wake_on_lan.interface  + vmbr0
          wake_on_lan.mac        + BC:24:11:00:00:01
      ~ dc/hostoptions/pve2  settings of pve2
          wake_on_lan.mac  + BC:24:11:00:00:02
      ~ dc/repositories/pve2  package repositories of pve2
          standard.ceph-squid-test  no → yes
          standard.enterprise       yes → no
          standard.no-subscription  no → yes
      + dc/ipset/scrapers  IP set scrapers
          addresses  192.0.2.60
      + dc/hostfirewall/pve1  firewall of pve1
          options   log_level_in warning, max_connections 500000, no ndp
          rules[0]  in ACCEPT tcp dport 8006 source 192.0.2.0/24
          rules[1]  in ACCEPT tcp dport 9100 source +scrapers

    2 to create, 3 to change
    blast radius: hypervisors: 5 in 1 stack
    ");
    dc.apply();
    dc.assert_settled();
    let node = &dc.get("/nodes/pve1/config");
    assert_eq!(node["wakeonlan"], "mac=BC:24:11:00:00:01,bind-interface=vmbr0");
    // What nobody speaks of stays; what does is drift.
    dc.change(
        "PUT",
        "/nodes/pve1/config",
        json!({"startall-onboot-delay": 5, "acmedomain0": "pve1.example.test"}),
    );
    dc.change(
        "PUT",
        "/nodes/pve2/config",
        json!({"wakeonlan": "BC:24:11:00:00:99", "description": "by hand"}),
    );
    dc.change("PUT", "/nodes/pve1/firewall/options", json!({"log_level_in": "info", "nosmurfs": 0}));
    dc.change("DELETE", "/nodes/pve1/firewall/rules/1", json!({}));
    let drift = dc.strata().run(&["drift"]).all();
    for address in ["dc/hostoptions/pve1", "dc/hostoptions/pve2", "dc/hostfirewall/pve1"] {
        assert!(drift.contains(address), "{address}:\n{drift}");
    }
    dc.apply();
    dc.assert_settled();
    assert_eq!(dc.get("/nodes/pve1/config")["acmedomain0"], "pve1.example.test");
    assert_eq!(dc.get("/nodes/pve1/firewall/options")["nosmurfs"], 0);
    dc.change("PUT", "/nodes/pve1/firewall/options", json!({"delete": "nosmurfs"}));
    let gone = dc.strata().run(&["destroy", "--yes"]).ok().all();
    assert!(gone.contains("dc/hostfirewall/pve1"), "{gone}");
    assert_same(
        &dc.without_settings(),
        &without_settings(before),
        "destroy leaves the firewalls as they were",
    );
}

#[test]
fn repositories_are_switched() {
    let dc = Datacenter::new(HOSTS);
    dc.change("PUT", "/nodes/pve2/apt/repositories", json!({"handle": "enterprise"}));
    dc.change("PUT", "/nodes/pve2/apt/repositories", json!({"handle": "test"}));
    dc.apply();
    dc.assert_settled();
    let on = || -> Vec<String> {
        let rows = dc.get("/nodes/pve2/apt/repositories")["standard-repos"].clone();
        let on = rows.as_array().unwrap().iter().filter(|row| row["status"] == 1);
        on.map(|row| row["handle"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(on(), ["no-subscription", "test", "ceph-squid-test"], "what the source does not name stays");
    dc.change("PUT", "/nodes/pve2/apt/repositories", json!({"handle": "enterprise"}));
    let drift = dc.strata().run(&["drift"]).all();
    assert!(drift.contains("dc/repositories/pve2"), "{drift}");
    dc.repo.edit(FILE, "ceph-squid-test: true", "ceph-squid-test: false, test: false");
    dc.apply();
    dc.assert_settled();
    assert_eq!(on(), ["no-subscription"]);
    let before = dc.export();
    dc.repo.edit(FILE, "test: false}", "nightly: true}");
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(
        refused.contains("has no repository `nightly`") && refused.contains("no-subscription"),
        "{refused}"
    );
    assert_same(&dc.export(), &before, "nothing is touched");
}

#[test]
fn each_field_of_a_host_can_change() {
    let dc = Datacenter::new(HOSTS);
    dc.apply();
    for (from, to) in [
        ("    notes: in the rack on the left\n", "    notes: |\n      in the rack\n      on the right\n"),
        ("    startDelay: 30\n", ""),
        ("ballooningTarget: 70", "ballooningTarget: 90"),
        (", interface: vmbr0", ", broadcast: 192.0.2.255"),
        ("  pve2: {wakeOnLan: \"BC:24:11:00:00:02\", ", "  pve2: {startDelay: 10, "),
        (
            "logLevelIn: warning",
            "logLevelOut: info, logLevelForward: debug".replace(", ", "\n      ").as_str(),
        ),
        ("ndp: false", "enabled: false"),
        ("maxConnections: 500000", "tcpFlags: true\n      synFloodProtection: true\n      synFloodRate: 300"),
        ("destinationPort: \"9100\"", "destinationPort: \"9101\""),
        ("enabled: false", "nftables: true"),
    ] {
        dc.repo.edit(FILE, from, to);
        let applied = dc.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{to}:\n{}", applied.all());
        assert!(!applied.all().contains("nothing to do"), "{to}:\n{}", applied.all());
        let plan = dc.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{to}:\n{}", plan.all());
    }
    assert_eq!(dc.get("/nodes/pve1/config")["startall-onboot-delay"], Value::Null);
    assert_eq!(dc.get("/nodes/pve1/firewall/options")["nf_conntrack_max"], Value::Null);
}

#[test]
fn the_firewall_of_a_host_that_others_made_stays_as_it_is() {
    let dc = Datacenter::new(HOSTS);
    dc.change("POST", "/nodes/pve1/firewall/rules", json!({"type": "in", "action": "ACCEPT", "enable": 1}));
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("firewall of `pve1`") && refused.contains("`adopt: true`"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.repo.edit(FILE, "      logLevelIn", "      adopt: true\n      logLevelIn");
    dc.apply();
    dc.assert_settled();
    assert_eq!(dc.get("/nodes/pve1/firewall/rules").as_array().unwrap().len(), 2);
}

/// Where hosts are managed from is outside their own network here.
const LOCKED: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve, managedFrom: [198.51.100.7]}
firewall:
  enabled: true
  rules:
    - {direction: in, action: ACCEPT, macro: SSH}
"#;

#[test]
fn the_last_way_to_a_host_needs_consent() {
    let dc = Datacenter::new(LOCKED);
    let before = dc.export();
    for verb in [&["plan"][..], &["apply", "--yes"]] {
        let refused = dc.strata().run(verb).code(3).all();
        for told in ["keep `198.51.100.7` from the API of `pve1`", "the policy is DROP", "mayLockOut: true"] {
            assert!(refused.contains(told), "{told}:\n{refused}");
        }
    }
    assert_same(&dc.export(), &before, "nothing is touched");
    // Each of these lets it in.
    let rule = "    - {direction: in, action: ACCEPT, macro: SSH}\n";
    for way in [
        "  ipSets: {management: [198.51.100.0/24]}\n",
        "  policyIn: ACCEPT\n",
        "    - {direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"8000:8010\"}\n",
        "  mayLockOut: true\n",
        "  aliases: {desk: 198.51.100.7}\n  ipSets: {admins: [desk]}\n  groups: {api: {rules: [{direction: in, action: ACCEPT, source: +admins}]}}\n",
    ] {
        let group = if way.contains("groups") { "    - {direction: group, action: api}\n" } else { "" };
        let source = match way.starts_with("    - ") {
            true => format!("{LOCKED}{way}"),
            false => LOCKED.replace("  rules:\n", &format!("{way}  rules:\n{group}")),
        };
        dc.repo.write(FILE, &source);
        let plan = dc.strata().run(&["plan"]);
        assert_eq!(plan.code, 0, "{way}:\n{}", plan.all());
    }
    // A rule before that one keeps it out all the same, on the one host that has it.
    let let_in = format!("{rule}    - {{direction: in, action: ACCEPT}}\n");
    let host = "hosts: {pve2: {firewall: {rules: [{direction: in, action: DROP, protocol: tcp}]}}}\n";
    dc.repo.write(FILE, &format!("{}{host}", LOCKED.replace(rule, &let_in)));
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("API of `pve2`") && !refused.contains("API of `pve1`"), "{refused}");
    assert!(refused.contains("`DROP tcp`"), "{refused}");
    dc.repo.edit(FILE, "{firewall: {rules", "{firewall: {mayLockOut: true, rules");
    dc.apply();
    dc.assert_settled();
}

#[test]
fn a_way_that_others_rely_on_is_not_taken_with_an_address() {
    let set = "  ipSets: {management: [198.51.100.7, 198.51.100.8]}\n  rules:\n";
    let dc = Datacenter::new(&LOCKED.replace("  rules:\n", set));
    dc.apply();
    dc.repo.edit(FILE, "[198.51.100.7, 198.51.100.8]", "[198.51.100.8]");
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("keep `198.51.100.7` from the API"), "{refused}");
    // Nobody said from where: a rule that drops everything keeps everybody out.
    dc.repo.edit(FILE, ", managedFrom: [198.51.100.7]", "");
    dc.repo.edit(
        FILE,
        "    - {direction: in, action: ACCEPT, macro: SSH}",
        "    - {direction: in, action: DROP}",
    );
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(refused.contains("keep anybody from the API of `pve1`"), "{refused}");
}
