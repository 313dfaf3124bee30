//! Software-defined networks: staged, and brought into effect together.

use serde_json::{Value, json};

use super::{Datacenter, FILE, assert_same, without_settings};

pub(crate) const SDN: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve, nodes: [pve1, pve2]}
sdn:
  controllers:
    core: {type: evpn, asn: 65000, peers: [192.0.2.11, 192.0.2.12]}
  zones:
    lab: {type: simple, ipam: pve, dhcp: dnsmasq, mtu: 1400}
    tunnel: {type: vxlan, peers: [192.0.2.11, 192.0.2.12], nodes: [pve1, pve2]}
    routed: {type: evpn, controller: core, vrfVxlan: 10000, exitNodes: [pve1]}
  vnets:
    front:
      zone: lab
      alias: web servers
      subnets:
        10.66.0.0/24: {gateway: 10.66.0.1, snat: true, dhcpRanges: [10.66.0.50-10.66.0.60, 10.66.0.70-10.66.0.80]}
    back: {zone: tunnel, tag: 5000, isolatePorts: true}
"#;

/// A zone whose addresses and names others keep.
pub(crate) const SERVERS: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve}
sdn:
  ipams:
    netbox: {type: netbox, url: "https://netbox.example.test/api", token: {env: PBS_PASSWORD}}
  dnsServers:
    names: {url: "https://dns.example.test/api", key: {env: ANN_PASSWORD}, ttl: 60}
  zones:
    named: {type: simple, ipam: netbox, dns: names, dnsZone: example.test}
"#;

impl Datacenter {
    /// Whether everything that was staged is in effect, and nobody holds the lock.
    fn assert_in_effect(&self) {
        let files = self.export()["cluster"]["files"].clone();
        for part in ["zones", "vnets", "subnets", "controllers"] {
            assert_eq!(files[format!("sdn/{part}")], files[format!("sdn/running/{part}")], "{part}");
        }
        assert_eq!(files["sdn/lock"], Value::Null);
    }
}

#[test]
fn networks_are_made_kept_and_taken_away() {
    let dc = Datacenter::new(SDN);
    let before = dc.export();
    let plan = dc.strata().run(&["plan"]).ok().stdout;
    insta::assert_snapshot!(plan, @r"
    dc (hypervisors, test/dc)
      ~ dc/sdn/datacenter  SDN of the datacenter
          the networks of all hosts are reloaded
          controllers.core            + type evpn, asn 65000, peers 192.0.2.11, 192.0.2.12
          subnets.front 10.66.0.0/24  + gateway 10.66.0.1, dhcp_ranges 10.66.0.50-10.66.0.60, 10.66.0.70-10.66.0.80, snat
          vnets.back                  + isolate_ports, tag 5000, zone tunnel
          vnets.front                 + alias web servers, zone lab
          zones.lab                   + type simple, dhcp dnsmasq, ipam pve, mtu 1400
          zones.routed                + type evpn, controller core, exit_nodes pve1, vrf_vxlan 10000
          zones.tunnel                + type vxlan, nodes pve1, pve2, peers 192.0.2.11, 192.0.2.12

    1 to change
    blast radius: hypervisors: 1 in 1 stack
    ");
    dc.apply();
    dc.assert_settled();
    dc.assert_in_effect();
    dc.strata().run(&["drift"]).ok();
    for (from, to) in [
        ("mtu: 1400", "mtu: 1500"),
        (", nodes: [pve1, pve2]}", "}"),
        ("exitNodes: [pve1]", "advertiseSubnets: true"),
        ("alias: web servers", "alias: servers"),
        ("tag: 5000, isolatePorts: true", "tag: 5001"),
        (", 10.66.0.70-10.66.0.80]", "]"),
        ("snat: true, ", "dnsServer: 192.0.2.53, "),
        ("asn: 65000", "asn: 65001"),
        ("    back: {zone: tunnel, tag: 5001}\n", "    other: {zone: tunnel, tag: 5001}\n"),
    ] {
        dc.repo.edit(FILE, from, to);
        let applied = dc.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{to}:\n{}", applied.all());
        assert!(applied.all().contains("the networks of all hosts are reloaded"), "{to}:\n{}", applied.all());
        let plan = dc.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{to}:\n{}", plan.all());
    }
    dc.assert_in_effect();
    // Drift.
    dc.change("PUT", "/cluster/sdn/vnets/front", json!({"alias": "by hand"}));
    dc.change("PUT", "/cluster/sdn", json!({}));
    let drift = dc.strata().run(&["drift"]).all();
    assert!(drift.contains("vnets.front.alias"), "{drift}");
    dc.apply();
    dc.assert_settled();
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &without_settings(before), "destroy leaves the datacenter as it was");
}

#[test]
fn networks_that_others_stage_are_not_brought_into_effect() {
    let dc = Datacenter::new(SDN);
    dc.change("POST", "/cluster/sdn/zones", json!({"zone": "theirs", "type": "simple"}));
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("SDN zone `theirs`") && refused.contains("staged"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.change("PUT", "/cluster/sdn", json!({}));
    dc.apply();
    dc.assert_settled();
    // What is in effect, and not ours, stays.
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert!(dc.export()["cluster"]["files"]["sdn/zones"]["theirs"].is_object());
}

#[test]
fn a_lock_of_others_is_respected() {
    let dc = Datacenter::new(SDN);
    dc.change("POST", "/cluster/sdn/lock", json!({}));
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(1).all();
    assert!(refused.contains("lock the SDN configuration") && refused.contains("--force 1"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.change("DELETE", "/cluster/sdn/lock", json!({"force": 1}));
    dc.apply();
    dc.assert_settled();
}

#[test]
fn what_the_server_refuses_in_part_is_taken_back() {
    let dc = Datacenter::new(&SDN.replace("zone: tunnel, tag: 5000", "zone: tunnel"));
    let before = dc.export();
    let control = dc.sim.control();
    let order = json!({"kind": "refuse", "method": "POST", "path": "/cluster/sdn/vnets", "status": 400, "text": "no more"});
    control.fault(&order);
    dc.strata().run(&["apply", "--yes"]).code(1);
    control.clear_faults();
    assert_same(&dc.export(), &before, "nothing is staged");
}

/// Freeing the lock is refused, after a run that changed, removed or staged nothing: the next one does not take it for somebody else's.
#[test]
fn a_lock_that_cannot_be_freed_is_told_and_taken_over() {
    const LOCK: &str = "/cluster/sdn/lock";
    let no = |method: &str, path: &str| json!({"kind": "refuse", "method": method, "path": path, "status": 403, "text": "Permission check failed", "count": 0});
    let (apply, destroy) = (["apply", "--yes"], ["destroy", "--yes"]);
    for (first, also) in [(apply, None), (destroy, None), (apply, Some("/cluster/sdn/controllers"))] {
        let dc = Datacenter::new(SDN);
        let before = dc.without_settings();
        if first == destroy {
            dc.apply();
        }
        let control = dc.sim.control();
        control.fault(&no("DELETE", LOCK));
        if let Some(path) = also {
            control.fault(&no("POST", path));
            control.fault(&no("POST", "/cluster/sdn/rollback"));
        }
        let told = dc.strata().run(&first).code(1).all();
        if also.is_none() {
            assert!(told.contains("everything is in effect, and the SDN is still locked"), "{told}");
        }
        control.clear_faults();
        assert_ne!(dc.export()["cluster"]["files"]["sdn/lock"], Value::Null);
        // Whatever is wanted by then.
        dc.repo.edit(FILE, "mtu: 1400", "mtu: 1500");
        dc.apply();
        dc.assert_settled();
        dc.assert_in_effect();
        dc.strata().run(&destroy).ok();
        assert_same(&dc.without_settings(), &before, "destroy leaves the datacenter as it was");
    }
}

/// The look that was to prove the effect is refused: what is in effect is known all the same, and can be removed.
#[test]
fn what_came_into_effect_before_a_failure_is_ours() {
    const LOOK: &str = "/cluster/sdn/zones";
    let undisturbed = Datacenter::new(SDN);
    undisturbed.sim.control().reset_requests();
    undisturbed.apply();
    let counts = undisturbed.sim.control().requests()["counts"].clone();
    let is_look =
        |row: &&Value| row["method"] == "GET" && row["path"].as_str().is_some_and(|path| path.contains(LOOK));
    let looks: u64 =
        counts.as_array().unwrap().iter().filter(is_look).filter_map(|row| row["count"].as_u64()).sum();
    let dc = Datacenter::new(SDN);
    let before = dc.without_settings();
    let refused = json!({"kind": "refuse", "method": "GET", "path": LOOK, "nth": looks, "status": 400, "text": "not now"});
    dc.sim.control().fault(&refused);
    let told = dc.strata().run(&["apply", "--yes", "--parallelism", "1"]).code(1).all();
    assert!(told.contains("not now"), "{told}");
    dc.sim.control().clear_faults();
    assert!(dc.export()["cluster"]["files"]["sdn/running/zones"]["lab"].is_object(), "{told}");
    dc.repo.edit(FILE, "    back: {zone: tunnel, tag: 5000, isolatePorts: true}\n", "");
    dc.apply();
    dc.assert_settled();
    dc.assert_in_effect();
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &before, "destroy leaves the datacenter as it was");
}

#[test]
fn zones_of_others_are_taken_over_only_where_the_source_says_so() {
    let dc = Datacenter::new(SDN);
    dc.change("POST", "/cluster/sdn/zones", json!({"zone": "lab", "type": "simple"}));
    dc.change("PUT", "/cluster/sdn", json!({}));
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("the SDN zone `lab`"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.repo.edit(FILE, "mtu: 1400", "mtu: 1400, adopt: true");
    dc.apply();
    dc.assert_settled();
    dc.strata().run(&["destroy", "--yes"]).ok();
    let zones = dc.export()["cluster"]["files"]["sdn/zones"].clone();
    assert!(zones["lab"].is_object() && zones["tunnel"].is_null(), "{zones}");
}

const GUEST: &str = "metadata: {name: web, environment: test}\nproxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}\nvms:\n  a: {vmId: 9100, memory: 64, disk: 1, started: false, network: [{bridge: front}]}\n";

#[test]
fn a_network_with_guests_is_not_taken_away() {
    let dc = Datacenter::new(SDN);
    dc.repo.write("stacks/web/stack.yaml", GUEST);
    let before = dc.export();
    // A guest names a network that the same run makes.
    dc.apply();
    dc.strata().run(&["plan", "--detailed-exitcode"]).code(0);
    let made = dc.export();
    // In the plan already: before anybody is asked, and whatever else would go.
    let refused = dc.strata().run(&["destroy", "--yes", "dc"]).code(3).all();
    assert!(refused.contains("VM 9100 is in `front`"), "{refused}");
    dc.repo.edit(FILE, "    front:", "    other:");
    let refused = dc.strata().run(&["plan", "dc"]).code(3).all();
    assert!(refused.contains("VM 9100 is in `front`"), "{refused}");
    dc.repo.edit(FILE, "    other:", "    front:");
    assert_same(&dc.export(), &made, "nothing is touched");
    // Both together go in order.
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &without_settings(before), "destroy leaves the datacenter as it was");
}

/// A run that is killed at a write: the next one ends as an undisturbed one does, lock and all.
#[test]
fn a_kill_while_networks_are_made_loses_nothing() {
    let undisturbed = Datacenter::new(SDN);
    undisturbed.apply();
    let expected = undisturbed.export();
    for (kind, method, path) in [
        ("hold-after", "POST", "/cluster/sdn/lock"),
        ("hold-after", "POST", "/cluster/sdn/zones"),
        ("hold-before", "POST", "/cluster/sdn/vnets/front/subnets"),
        ("hold-after", "PUT", "/cluster/sdn"),
    ] {
        let dc = Datacenter::new(SDN);
        let fault = json!({"kind": kind, "method": method, "path": path});
        let killed =
            dc.strata().kill_at(&dc.sim.control(), &fault, &["apply", "--yes", "--parallelism", "1"]);
        assert!(killed.struck_or_good(path), "{path}");
        dc.strata().run(&["plan"]).ok();
        dc.apply();
        assert_same(&dc.export(), &expected, path);
        dc.assert_settled();
        dc.assert_in_effect();
    }
}

#[test]
fn wrong_networks_are_named_before_anything_is_done() {
    for (from, to, told) in [
        ("type: vxlan, peers: [192.0.2.11, 192.0.2.12]", "type: vxlan", "has no `peers`"),
        ("type: simple,", "type: simple, bridge: vmbr0,", "has no `bridge`"),
        ("10.66.0.0/24: {", "10.66.0.7/24: {", "a network such as"),
        ("10.66.0.50-10.66.0.60", "10.66.0.60-10.66.0.50", "two addresses"),
        ("    front:", "    much-too-long:", "two to eight letters"),
    ] {
        let dc = Datacenter::new(&SDN.replacen(from, to, 1));
        let refused = dc.strata().run(&["validate"]);
        assert!(refused.code != 0 && refused.all().contains(told), "{to}:\n{}", refused.all());
    }
}
