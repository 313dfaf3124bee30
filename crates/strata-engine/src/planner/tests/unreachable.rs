use serde_json::json;

use super::*;

fn machine(role: &str) -> Json {
    json!({"machine": "n-1", "role": role})
}

/// Beside a bootstrapped etcd that is as `etcd` says, a machine that does not answer.
fn beside(role: &str, etcd: Sighting) -> Plan {
    let mut table = Table::new();
    table.wants("machine/n-1", machine(role), &[]).knows("machine/n-1", machine(role), &[]);
    table.sees("machine/n-1", unreachable());
    table.wants("bootstrap/lab", json!({"etcd": "lab"}), &[]).knows(
        "bootstrap/lab",
        json!({"etcd": "lab"}),
        &[],
    );
    table.sees("bootstrap/lab", etcd);
    table.plan()
}

/// A worker without control planes cannot answer, whatever it is like; a control plane can.
#[test]
fn a_worker_without_etcd_is_looked_at_later() {
    let etcd = || seen(json!({"etcd": "lab"}));
    assert!(beside("worker", unreachable()).unseen.contains_key(&address("machine/n-1")));
    assert!(beside("worker", Sighting::Absent).unseen.contains_key(&address("machine/n-1")));
    assert_eq!(problems(&beside("worker", etcd())), [(ProblemKind::Unreachable, "n-1")]);
    assert!(problems(&beside("controlplane", unreachable())).contains(&(ProblemKind::Unreachable, "n-1")));
}

/// Etcd that does not answer is lost only with machines that are made again: else it is only out of sight.
#[test]
fn etcd_is_lost_only_when_what_it_ran_on_is_gone() {
    let etcd = |vm: Sighting| {
        let mut table = Table::new();
        table
            .wants("vm/n-1", json!({"vmid": 1}), &[])
            .knows("vm/n-1", json!({"vmid": 1}), &[])
            .sees("vm/n-1", vm);
        table.wants("machine/n-1", machine("controlplane"), &["vm/n-1"]);
        table.knows("machine/n-1", machine("controlplane"), &["vm/n-1"]).sees("machine/n-1", unreachable());
        table.wants("bootstrap/lab", json!({"etcd": "lab"}), &["machine/n-1"]);
        table
            .knows("bootstrap/lab", json!({"etcd": "lab"}), &["machine/n-1"])
            .sees("bootstrap/lab", unreachable());
        table.plan()
    };
    assert_eq!(problems(&etcd(Sighting::Absent)), [(ProblemKind::Lost, "lab")]);
    let kinds: Vec<ProblemKind> =
        problems(&etcd(seen(json!({"vmid": 1})))).into_iter().map(|one| one.0).collect();
    assert_eq!(kinds, [ProblemKind::Unreachable, ProblemKind::Unreachable]);
}

/// A disk that somebody wiped leaves nothing to boot from: the VM is made again, and only with all that proves it.
#[test]
fn a_vm_is_made_again_when_its_machine_was_wiped_and_does_not_answer() {
    let plan = |wiped: bool, sighting: Sighting, needs: &[&str]| {
        let mut table = Table::new();
        for (name, vmid) in [("n-1", 1), ("n-2", 2)] {
            let (at, spec) = (format!("vm/{name}"), json!({"vmid": vmid}));
            table.wants(&at, spec.clone(), &[]).knows(&at, spec.clone(), &[]).sees(&at, seen(spec));
        }
        table.wants("machine/n-1", machine("worker"), needs).knows("machine/n-1", machine("worker"), needs);
        table
            .known("machine/n-1")
            .facts
            .insert(strata_cluster::kinds::machine::WIPED.to_owned(), wiped.into());
        table.sees("machine/n-1", sighting);
        let plan = table.plan();
        plan.steps.iter().filter(|step| step.action == StepAction::Delete).map(told).collect::<Vec<_>>()
    };
    assert_eq!(plan(true, unreachable(), &["vm/n-1"]), ["delete vm/n-1"]);
    assert_eq!(plan(false, unreachable(), &["vm/n-1"]), [""; 0]);
    assert_eq!(plan(true, seen(machine("worker")), &["vm/n-1"]), [""; 0], "it answers");
}

/// An interrupted run made the VM again: the machine that the state knows ran on another one, and is made too.
#[test]
fn a_silent_machine_is_made_when_its_vm_is_another_one_by_now() {
    let plan = |known: &str| {
        let mut table = Table::new();
        table.wants("vm/n-1", json!({"vmid": 1}), &[]).knows("vm/n-1", json!({"vmid": 1}), &[]);
        let facts = spec(json!({"uuid": "new"}));
        table.sees("vm/n-1", Sighting::Ours(Observed { facts, ..observed(json!({"vmid": 1})) }));
        table.wants_with("machine/n-1", machine("controlplane"), &["vm/n-1"], |machine| {
            let uuid =
                strata_resource::Value::Input { address: Box::new(address("vm/n-1")), output: "uuid".into() };
            machine.spec.insert("vm".to_owned(), uuid);
        });
        let mut recorded = machine("controlplane");
        recorded["vm"] = json!(known);
        table.knows("machine/n-1", recorded, &["vm/n-1"]).sees("machine/n-1", unreachable());
        table.plan()
    };
    let same = plan("new");
    assert_eq!(problems(&same), [(ProblemKind::Unreachable, "n-1")]);
    assert!(same.steps.iter().all(|step| step.action != StepAction::Create));
    let other = plan("old");
    assert!(other.problems.is_empty());
    assert!(steps(&other).contains(&"create machine/n-1".to_owned()), "{:?}", steps(&other));
}
