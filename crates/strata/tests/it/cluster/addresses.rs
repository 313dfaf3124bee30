//! Addresses: given by DHCP to a card that it knows, and changed while the cluster runs.

use serde_json::{Value, json};

use super::lab::{FILE, Lab, Shape};

const CARD: &str = "02:00:00:00:00:41";
const OTHER_CARD: &str = "02:00:00:00:00:99";

/// What one node has of its own.
fn own(lab: &Lab, nodes: &str) {
    lab.repo.edit(FILE, "\nproxmox:\n", &format!("\n  nodes:\n{nodes}\nproxmox:\n"));
}

fn reserve(lab: &Lab, mac: &str, address: &str) {
    lab.change(&json!({"reserve": {"mac": mac, "address": address}}));
}

fn by_dhcp(lab: &Lab) {
    lab.repo.edit(FILE, "    bridge: vmbr0\n", "    bridge: vmbr0\n    dhcp: true\n");
}

fn machine(lab: &Lab, name: &str) -> Value {
    let talos = lab.talos();
    let machines = talos["machines"].as_array().unwrap();
    let found = machines.iter().find(|machine| machine["hostname"] == name);
    found.unwrap_or_else(|| panic!("no machine is called `{name}`: {talos:#}")).clone()
}

fn member(lab: &Lab, name: &str) -> Value {
    let talos = lab.talos();
    let members = talos["etcd-clusters"][0]["members"].as_array().unwrap();
    members.iter().find(|member| member["name"] == name).unwrap().clone()
}

#[test]
fn a_cluster_boots_from_reserved_addresses() {
    for (talos, kubernetes) in [("v1.11.6", "v1.34.1"), ("v1.13.9", "v1.36.3"), ("v1.14.0", "v1.37.0")] {
        let shape = Shape::new(1, 1).versions(talos, kubernetes);
        let lab = Lab::new(&shape);
        by_dhcp(&lab);
        own(&lab, &format!("    lab-cp-1: {{mac: \"{CARD}\"}}"));
        reserve(&lab, CARD, "192.0.2.41");
        // The other card has the address that its name gives it: it is in the plan.
        let plan = lab.run(&["plan"]).ok().stdout;
        let derived = plan.split("BC:24:11:").nth(1).map(|rest| format!("BC:24:11:{}", &rest[..8]));
        reserve(&lab, &derived.unwrap_or_else(|| panic!("{plan}")), "192.0.2.51");
        lab.apply();
        lab.assert_sound(talos);
        lab.assert_is(&shape, talos);
        lab.assert_settled(talos);
        assert_eq!(machine(&lab, "lab-cp-1")["addresses"], json!(["192.0.2.41"]));
        assert_eq!(machine(&lab, "lab-worker-1")["addresses"], json!(["192.0.2.51"]));
        let guests = lab.export()["guests"].to_string();
        assert!(!guests.contains("ipconfig") && !guests.contains("cloudinit"), "no address drive: {guests}");
        lab.run(&["talos", "health", "lab"]).ok();
    }
}

#[test]
fn a_card_that_dhcp_does_not_know_is_told_and_apply_goes_on() {
    let shape = Shape::new(1, 0);
    let lab = Lab::new(&shape);
    by_dhcp(&lab);
    own(&lab, &format!("    lab-cp-1: {{mac: \"{OTHER_CARD}\"}}\n  timeouts: {{boot: 2s}}"));
    reserve(&lab, CARD, "192.0.2.41");
    let failed = lab.run(&["apply", "--yes"]).code(1);
    let reserved = format!("reserve 192.0.2.41 for `{OTHER_CARD}`");
    for words in ["node `lab-cp-1` is unreachable", "192.0.2.41", &reserved, "goes on from here"] {
        assert!(failed.all().contains(words), "no `{words}` in:\n{}", failed.all());
    }
    lab.repo.edit(FILE, "  timeouts: {boot: 2s}\n", "");
    lab.repo.edit(FILE, OTHER_CARD, CARD);
    lab.apply();
    lab.assert_sound("with the right card");
    lab.assert_is(&shape, "with the right card");
    lab.assert_settled("with the right card");
}

#[test]
fn a_reserved_address_changes_with_its_reservation() {
    let shape = Shape::new(1, 0);
    let lab = Lab::new(&shape);
    by_dhcp(&lab);
    own(&lab, &format!("    lab-cp-1: {{mac: \"{CARD}\"}}"));
    reserve(&lab, CARD, "192.0.2.41");
    lab.apply();
    reserve(&lab, CARD, "192.0.2.79");
    lab.repo.edit(FILE, &format!("mac: \"{CARD}\""), &format!("mac: \"{CARD}\", address: 192.0.2.79"));
    let plan = lab.run(&["plan"]).ok();
    assert!(plan.stdout.contains("1 restart"), "{}", plan.all());
    lab.apply();
    lab.assert_settled("at the other address");
    assert_eq!(machine(&lab, "lab-cp-1")["addresses"], json!(["192.0.2.79"]));
    // From DHCP to a fixed address, and back.
    lab.repo.edit(FILE, "    dhcp: true\n", "");
    lab.apply();
    lab.assert_settled("fixed");
    assert_eq!(machine(&lab, "lab-cp-1")["addresses"], json!(["192.0.2.79"]));
    by_dhcp(&lab);
    lab.apply();
    lab.assert_settled("by DHCP again");
    assert_eq!(machine(&lab, "lab-cp-1")["addresses"], json!(["192.0.2.79"]));
    lab.assert_is(&shape, "by DHCP again");
}

/// Everything that knows the address of a node knows the new one, and nothing has the old one.
#[track_caller]
fn assert_at(lab: &Lab, shape: &Shape, name: &str, address: &str) {
    lab.assert_sound(name);
    lab.assert_is(shape, name);
    lab.assert_settled(name);
    assert_eq!(machine(lab, name)["addresses"], json!([address]), "in both places: {name}");
    if name.contains("-cp-") {
        assert_eq!(member(lab, name)["address"], address);
    }
    lab.run(&["talos", "health", "lab"]).ok();
}

#[test]
fn a_node_goes_to_another_address() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    own(&lab, "    lab-worker-1: {address: 192.0.2.77}");
    let plan = lab.run(&["plan"]).ok();
    assert!(plan.stdout.contains("192.0.2.77") && plan.stdout.contains("1 restart"), "{}", plan.all());
    lab.apply();
    assert_at(&lab, &shape, "lab-worker-1", "192.0.2.77");
    lab.repo.edit(FILE, "    lab-worker-1: ", "    lab-cp-1: {address: 192.0.2.78}\n    lab-worker-1: ");
    lab.apply();
    assert_at(&lab, &shape, "lab-cp-1", "192.0.2.78");
    lab.run(&["talos", "config", "lab", "--out", "configs"]).ok();
    let talosconfig = lab.repo.read("configs/talosconfig");
    assert!(talosconfig.contains("192.0.2.78") && !talosconfig.contains("192.0.2.41"), "{talosconfig}");
    // An address that somebody else still has.
    lab.repo.edit(FILE, "192.0.2.77", "192.0.2.76");
    lab.repo.edit(FILE, "192.0.2.78", "192.0.2.77");
    for arguments in [&["plan"][..], &["apply", "--yes"]] {
        let refused = lab.run(arguments).code(3);
        let said = "`lab-cp-1` cannot go to 192.0.2.77: `lab-worker-1` still has that address";
        assert!(refused.all().contains(said), "{}", refused.all());
    }
    lab.repo.edit(FILE, "lab-cp-1: {address: 192.0.2.77}", "lab-cp-1: {address: 192.0.2.78}");
    lab.apply();
    assert_at(&lab, &shape, "lab-worker-1", "192.0.2.76");
}

#[test]
fn the_only_control_plane_goes_to_another_address() {
    for vip in [true, false] {
        let shape = Shape::new(1, 1);
        let lab = Lab::new(&shape);
        if !vip {
            lab.repo.edit(FILE, "    vip: 192.0.2.40\n", "");
        }
        lab.apply();
        own(&lab, "    lab-cp-1: {address: 192.0.2.79}");
        lab.apply();
        assert_at(&lab, &shape, "lab-cp-1", "192.0.2.79");
        lab.run(&["talos", "kubeconfig", "lab", "--out", "kubeconfig"]).ok();
        let endpoint = if vip { "https://192.0.2.40:6443" } else { "https://192.0.2.79:6443" };
        assert!(lab.repo.read("kubeconfig").contains(endpoint), "{}", lab.repo.read("kubeconfig"));
    }
}

#[test]
fn a_move_that_is_killed_goes_on() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    own(&lab, "    lab-cp-2: {address: 192.0.2.100}\n    lab-worker-1: {address: 192.0.2.110}");
    let faults = [
        ("hold-before", "/talos/*/ApplyConfiguration"),
        ("hold-after", "/talos/*/ApplyConfiguration"),
        ("hold-after", "/nodes/*/qemu/*/status/shutdown"),
        ("hold-after", "/nodes/*/qemu/*/config"),
        ("hold-after", "/nodes/*/qemu/*/status/start"),
    ];
    for (number, (kind, path)) in faults.into_iter().enumerate() {
        let what = format!("{kind} at {path}");
        let (cp, worker) = (format!("192.0.2.{}", 101 + number), format!("192.0.2.{}", 111 + number));
        lab.repo.edit(FILE, &format!("192.0.2.{}", 100 + number), &cp);
        lab.repo.edit(FILE, &format!("192.0.2.{}", 110 + number), &worker);
        let control = lab.sim.control();
        let fault = control.fault(&json!({"kind": kind, "path": path, "writes": true}));
        let mut child = lab.strata().spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(fault, 60.0), "{what}");
        child.kill().unwrap();
        child.wait().unwrap();
        control.release(fault);
        control.clear_faults();
        lab.converges_telling(3, &what);
        assert_at(&lab, &shape, "lab-cp-2", &cp);
        assert_at(&lab, &shape, "lab-worker-1", &worker);
    }
}
