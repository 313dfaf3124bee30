use serde_json::json;
use strata_resource::Value;

use super::*;

#[test]
fn what_proxmox_protects_is_not_removed() {
    let plan = |protection: bool| {
        let mut table = Table::new();
        table.knows("vm/web", json!({"vmid": 1}), &[]);
        table.sees("vm/web", seen(json!({"vmid": 1, "protection": protection})));
        table.plan()
    };
    assert_eq!(problems(&plan(true)), [(ProblemKind::Protected, "web")]);
    assert_eq!(problems(&plan(false)), []);
}

#[test]
fn a_step_says_why_it_is_there() {
    for (name, wanted, reason) in [
        ("bootstrap/lab", json!({"etcd": "lab"}), "etcd was bootstrapped once, and is lost"),
        ("kubernetes/lab", json!({"kubernetes": "lab"}), "it went with its etcd"),
        ("machine/n-1", json!({"machine": "n-1"}), "it has no configuration any more"),
        ("vm/web", json!({"vmid": 1}), "it is gone: somebody else deleted it"),
    ] {
        let mut table = Table::new();
        table.wants(name, wanted.clone(), &[]).sees(name, Sighting::Absent);
        assert_eq!(step(&table.plan(), StepAction::Create, name).reasons, [""; 0]);
        table.knows(name, wanted, &[]);
        assert_eq!(step(&table.plan(), StepAction::Create, name).reasons, [reason]);
    }
}

fn pool(wanted: Json, recorded: Option<Json>, live: Json) -> Plan {
    let mut table = Table::new();
    table.wants("pool/lab", wanted, &[]).sees("pool/lab", seen(live));
    if let Some(recorded) = recorded {
        table.knows("pool/lab", recorded, &[]);
    }
    table.plan()
}

/// `adopt` takes over what carries no ownership mark; what carries our mark was ours before.
#[test]
fn what_is_taken_over_is_told_from_what_is_ours() {
    let wanted = json!({"pool": "lab", "comment": "new", "adopt": true});
    let taken = pool(wanted.clone(), None, json!({"pool": "lab", "comment": "old"}));
    let reason = "it is there already and is taken over: `adopt` says so";
    assert_eq!(step(&taken, StepAction::Update, "pool/lab").reasons, [reason]);
    let marked = pool(wanted.clone(), None, json!({"pool": "lab", "comment": "old", "mark": "m"}));
    let reason = "it exists with the ownership mark of this repository, but is not in the state";
    assert_eq!(step(&marked, StepAction::Update, "pool/lab").reasons, [reason]);
    let mut table = Table::new();
    table.wants("vm/web", json!({"vmid": 1, "notes": "b"}), &[]).sees("vm/web", seen(json!({"vmid": 1})));
    assert_eq!(
        step(&table.plan(), StepAction::Update, "vm/web").reasons,
        [reason],
        "a guest has its mark elsewhere"
    );
    let plain = json!({"pool": "lab", "comment": "new"});
    let unmarked = pool(plain, None, json!({"pool": "lab", "comment": "old"}));
    assert_eq!(step(&unmarked, StepAction::Update, "pool/lab").reasons, [""; 0]);
    let known = pool(wanted.clone(), Some(wanted), json!({"pool": "lab", "comment": "old"}));
    assert_eq!(step(&known, StepAction::Update, "pool/lab").reasons, [""; 0]);
}

/// What differs in something that cannot be changed is not taken over, and never replaced for it.
#[test]
fn what_cannot_be_made_alike_is_not_taken_over() {
    let storage = |adopt: bool, recorded: bool| {
        let wanted =
            json!({"storage": "nas", "type": "nfs", "server": "192.0.2.9", "export": "/a", "adopt": adopt});
        let mut table = Table::new();
        table.wants("storage/nas", wanted.clone(), &[]);
        if recorded {
            table.knows("storage/nas", wanted, &[]);
        }
        let live = json!({"storage": "nas", "type": "dir", "path": "/a"});
        table.sees("storage/nas", seen(live));
        table.plan()
    };
    let refused = storage(true, false);
    assert_eq!(problems(&refused), [(ProblemKind::Unmanaged, "nas")]);
    assert!(refused.problems[0].message.contains("`type`"), "{}", refused.problems[0].message);
    assert!(refused.steps.is_empty());
    let replaced = ["create storage/nas", "delete storage/nas"];
    assert_eq!(
        (steps(&storage(true, true)), steps(&storage(false, false))),
        (replaced.map(str::to_owned).to_vec(), replaced.map(str::to_owned).to_vec())
    );
}

/// Outputs of what is made again are not known yet: what is filled from them waits.
#[test]
fn outputs_are_filled_in_only_from_what_stays() {
    let input = || Value::Input { address: Box::new(address("vm/web")), output: "uuid".into() };
    let plan = |arch: &str| {
        let mut table = Table::new();
        let recorded = json!({"vmid": 1, "arch": "x86_64"});
        table.wants("vm/web", json!({"vmid": 1, "arch": arch}), &[]).knows("vm/web", recorded.clone(), &[]);
        let facts = spec(json!({"uuid": "u-1"}));
        table.sees("vm/web", Sighting::Ours(Observed { facts, ..observed(recorded) }));
        table.wants_with("machine/n-1", json!({"machine": "n-1"}), &["vm/web"], |machine| {
            machine.spec.insert("vm".to_owned(), input());
        });
        table.sees("machine/n-1", Sighting::Absent);
        step(&table.plan(), StepAction::Create, "machine/n-1").spec.get("vm").cloned()
    };
    assert_eq!(plan("x86_64"), Some(Value::text("u-1")));
    assert_eq!(plan("aarch64"), Some(input()), "the VM is made again, and its id with it");
}

/// What a host cannot be without, and what was there before Strata, stays when it leaves the source.
#[test]
fn settings_and_what_was_adopted_stay_when_they_leave_the_source() {
    let leaves = |name: &str, recorded: Json| {
        let mut table = Table::new();
        table.knows(name, recorded.clone(), &[]).sees(name, seen(recorded));
        steps(&table.plan())
    };
    assert_eq!(leaves("dns/pve1", json!({"dns": "pve1"})), ["forget dns/pve1"]);
    assert_eq!(leaves("pool/lab", json!({"pool": "lab"})), ["delete pool/lab"]);
    assert_eq!(leaves("pool/lab", json!({"pool": "lab", "adopt": true})), ["forget pool/lab"]);
    assert_eq!(leaves("pool/lab", json!({"pool": "lab", "adopt": false})), ["delete pool/lab"]);
}

/// The wanted object is there and ours, and so is the one that the state knows: it goes, unless it is protected.
#[test]
fn a_former_object_that_is_protected_stays() {
    let plan = |protect: bool| {
        let mut table = Table::new();
        table.wants("vm/web", json!({"vmid": 2}), &[]).sees("vm/web", seen(json!({"vmid": 2})));
        table.knows("vm/web", json!({"vmid": 1}), &[]).known("vm/web").protect = protect;
        table.live.former.insert(address("vm/web"), seen(json!({"vmid": 1})));
        table.plan()
    };
    assert_eq!(problems(&plan(true)), [(ProblemKind::Protected, "web")]);
    assert!(steps(&plan(false)).contains(&"delete former vm/web".to_owned()));
    assert_eq!(problems(&plan(false)), []);
}
