//! The firewall of a guest.

use serde_json::{Value as Json, json};
use strata_engine::ErrorClass;

use crate::containers::{CONTAINER, container};
use crate::life::{VM, iso_vm};
use crate::world::World;

fn rule(port: &str) -> Json {
    json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": port, "enable": true})
}

fn firewalled(mut guest: Json, rules: &[Json]) -> Json {
    guest["firewall"] =
        json!({"options": {"enable": true, "policy_in": "DROP", "dhcp": true}, "rules": rules});
    guest
}

#[tokio::test]
async fn rules_come_go_and_keep_their_order() {
    let world = World::start().await;
    world.with_iso().await;
    let ssh = json!({"type": "in", "action": "ACCEPT", "macro": "SSH", "enable": false, "comment": "for the night", "log": "info"});
    let vm = |rules: &[Json]| firewalled(iso_vm(1, "stopped"), rules);
    let made = world.create(VM, vm(&[rule("80"), rule("443"), ssh.clone()])).await;
    for rules in [
        vec![rule("80"), rule("8443"), ssh.clone()],
        vec![rule("8443"), ssh.clone()],
        vec![rule("22"), rule("8443"), rule("25"), ssh.clone(), rule("53")],
        vec![ssh, rule("53")],
        vec![],
    ] {
        world.update(VM, &made, vm(&rules)).await;
    }
}

#[tokio::test]
async fn a_firewall_that_leaves_the_source_is_taken_back() {
    let world = World::start().await;
    let made = world.create(CONTAINER, firewalled(container(), &[rule("80")])).await;
    let plain = world.update(CONTAINER, &made, container()).await;
    let mut asked = plain.spec.clone();
    asked.insert("firewall".to_owned(), strata_resource::Value::Map(Default::default()));
    let live = world.ours(CONTAINER, &asked, Some(&plain)).await;
    let live = serde_json::to_value(&live.spec["firewall"]).unwrap();
    // What equals a default may stay.
    assert_eq!((live["options"].get("enable"), &live["rules"]), (None, &json!([])));
}

#[tokio::test]
async fn a_rule_that_slipped_in_is_not_overwritten() {
    let world = World::start().await;
    world.with_iso().await;
    let vm = |rules: &[Json]| firewalled(iso_vm(1, "stopped"), rules);
    let made = world.create(VM, vm(&[rule("80")])).await;
    let operation = world.plan_update(VM, &made, vm(&[rule("81")])).await;
    let theirs = json!({"type": "in", "action": "DROP", "enable": 1});
    world.somebody("POST", "/nodes/pve1/qemu/9100/firewall/rules", theirs).await;
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(error.to_string(), "somebody else changed the firewall of VM 9100 since the plan was made");
}

#[tokio::test]
async fn a_rule_that_the_server_refuses_is_told() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(1, "stopped")).await;
    let operation = world.plan_update(VM, &made, firewalled(iso_vm(1, "stopped"), &[rule("99999")])).await;
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!((error.class, error.field.as_deref()), (ErrorClass::BadInput, Some("firewall")));
    assert!(error.to_string().contains("invalid port '99999'"), "{error}");
}
