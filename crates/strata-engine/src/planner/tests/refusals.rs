use serde_json::json;

use super::*;
use crate::plan::{Plan, PlanContent};
use crate::planner::steps::same_record;

#[test]
fn a_disk_that_would_shrink_is_refused_and_nothing_is_recorded() {
    let disk = |size: u32| json!({"vmid": 1, "disks": {"scsi0": {"storage": "a", "size": size}}});
    let mut table = Table::new();
    table.wants("vm/web", disk(1), &[]).knows("vm/web", disk(2), &[]).sees("vm/web", seen(disk(2)));
    let plan = table.plan();
    assert_eq!(problems(&plan), [(ProblemKind::Refused, "web")]);
    assert!(plan.steps.is_empty(), "{:?}", steps(&plan));
}

/// What two addresses exchange is no former object of either.
#[test]
fn a_former_object_that_another_address_asks_for_stays() {
    let mut table = Table::new();
    table.wants("vm/web", json!({"vmid": 2}), &[]).sees("vm/web", seen(json!({"vmid": 2})));
    table.knows("vm/web", json!({"vmid": 1}), &[]);
    table.live.former.insert(address("vm/web"), seen(json!({"vmid": 1})));
    table.wants("vm/db", json!({"vmid": 1}), &[]).sees("vm/db", seen(json!({"vmid": 1})));
    assert!(table.plan().steps.iter().all(|step| step.action == StepAction::Record));
    // Also where the wanted one is not there yet.
    table.sees("vm/web", Sighting::Absent);
    assert_eq!(steps(&table.plan()), ["create vm/web", "record vm/db"]);
}

#[test]
fn what_is_protected_and_silent_is_not_removed() {
    let mut table = Table::new();
    table.knows("machine/n-1", json!({"machine": "n-1"}), &[]).sees("machine/n-1", unreachable());
    table.known("machine/n-1").protect = true;
    assert_eq!(problems(&table.plan()), [(ProblemKind::Protected, "n-1")]);
    table.known("machine/n-1").protect = false;
    assert_eq!(steps(&table.plan()), ["delete machine/n-1"]);
}

/// A former object that is gone does not outlive the record that it belongs to.
#[test]
fn what_a_replacement_left_behind_is_forgotten_when_it_is_gone() {
    let mut table = Table::new();
    table.knows("vm/web", json!({"vmid": 2}), &[]).sees("vm/web", seen(json!({"vmid": 2})));
    let former = strata_state::DeposedObject {
        target: "t".into(),
        spec: spec(json!({"vmid": 1})),
        facts: Spec::new(),
    };
    table.known("vm/web").deposed = vec![former];
    table.live.deposed.insert(address("vm/web"), vec![Sighting::Absent]);
    let plan = table.plan();
    assert_eq!(steps(&plan), ["delete vm/web", "record vm/web"]);
    let becomes = step(&plan, StepAction::Record, "vm/web").becomes.as_ref();
    assert_eq!(becomes.map(|record| record.deposed.len()), Some(0));
}

/// Only the fields that force it are named as reasons of a replacement.
#[test]
fn a_replacement_names_what_forces_it() {
    let guest = |arch: &str, notes: &str| json!({"vmid": 1, "arch": arch, "notes": notes, "cloudinit": {"user": notes}});
    let mut table = Table::new();
    table.wants("vm/web", guest("aarch64", "b"), &[]).knows("vm/web", guest("x86_64", "a"), &[]);
    table.sees("vm/web", seen(guest("x86_64", "a")));
    let plan = table.plan();
    assert_eq!(steps(&plan), ["create vm/web", "delete vm/web"]);
    let reasons = &step(&plan, StepAction::Create, "vm/web").reasons;
    assert_eq!(*reasons, ["the processor architecture is fixed at creation"]);
}

#[test]
fn a_guest_whose_policy_says_so_is_recreated_with_its_cloud_init_data() {
    let guest = |user: &str| json!({"vmid": 1, "cloudinit": {"user": user}});
    let plan = |policy: RestartPolicy, partial: bool| {
        let mut table = Table::new();
        table.wants_with("vm/web", guest("b"), &[], |vm| vm.on_change = policy);
        table.knows("vm/web", guest("a"), &[]).sees("vm/web", seen(guest("a")));
        table.known("vm/web").partial = partial;
        table.plan()
    };
    let recreated = plan(RestartPolicy::Recreate, false);
    assert_eq!(steps(&recreated), ["create vm/web", "delete vm/web"]);
    let reasons = &step(&recreated, StepAction::Create, "vm/web").reasons;
    assert_eq!(*reasons, ["its cloud-init data changed, and `onChange` is `recreate`"]);
    assert_eq!(steps(&plan(RestartPolicy::Recreate, true)), ["update vm/web"], "it was never finished");
    assert_eq!(steps(&plan(RestartPolicy::default(), false)), ["update vm/web"]);
}

/// What was taken over carries no ownership mark until something else about it changes.
#[test]
fn a_mark_comes_with_the_first_change_of_what_was_taken_over() {
    let plan = |wanted: Json, live: Json, partial: bool, pending: &[&str]| {
        let mut table = Table::new();
        table.wants("vm/web", wanted, &[]).knows("vm/web", json!({"vmid": 1, "notes": "a"}), &[]);
        table.known("vm/web").partial = partial;
        let pending = pending.iter().map(|path| (*path).to_owned()).collect();
        table.sees("vm/web", Sighting::Ours(Observed { pending, ..observed(live) }));
        steps(&table.plan())
    };
    let marked = json!({"vmid": 1, "notes": "a", "mark": "m"});
    let live = json!({"vmid": 1, "notes": "a"});
    assert_eq!(plan(marked.clone(), live.clone(), false, &[]), [""; 0]);
    assert_eq!(
        plan(json!({"vmid": 1, "notes": "b", "mark": "m"}), live.clone(), false, &[]),
        ["update vm/web"]
    );
    assert_eq!(
        plan(marked.clone(), live.clone(), true, &[]),
        ["update vm/web"],
        "it was begun and not ended"
    );
    assert_eq!(plan(marked.clone(), live, false, &["notes"]), ["update vm/web"], "something waits");
    assert_eq!(
        plan(marked.clone(), marked, false, &[]),
        ["record vm/web"],
        "it has one, and the state learns it"
    );
}

#[test]
fn a_record_is_written_again_when_anything_that_counts_differs() {
    let one = StateResource { facts: spec(json!({"uuid": "u"})), ..record(json!({"vmid": 1})) };
    assert!(same_record(address("vm/web").kind(), &one, &one));
    let digest = StateResource { facts: spec(json!({"uuid": "u", "digest": "d"})), ..one.clone() };
    assert!(
        same_record(address("vm/web").kind(), &one, &digest),
        "facts that move by themselves are no reason"
    );
    let former = strata_state::DeposedObject { target: "t".into(), spec: Spec::new(), facts: Spec::new() };
    for other in [
        StateResource { target: "u".into(), ..one.clone() },
        StateResource { spec: spec(json!({"vmid": 2})), ..one.clone() },
        StateResource { depends_on: [address("vm/db")].into(), ..one.clone() },
        StateResource { stage: Stage::Config, ..one.clone() },
        StateResource { protect: true, ..one.clone() },
        StateResource { partial: true, ..one.clone() },
        StateResource { deposed: vec![former], ..one.clone() },
        StateResource { facts: spec(json!({"uuid": "v"})), ..one.clone() },
    ] {
        assert!(!same_record(address("vm/web").kind(), &one, &other), "{other:?}");
    }
}

#[test]
fn who_waits_for_a_host_s_network_is_told_how_to_end_what_is_staged() {
    let hint = |of: &str| {
        let busy = Sighting::Busy("somebody is at it".to_owned());
        super::super::out_of_sight(&address(of), &busy).unwrap().hint
    };
    let network = hint("network/pve1");
    assert!(network.contains("pvesh set /nodes/pve1/network") && network.ends_with("then apply again"));
    assert!(hint("vm/web").contains("qm unlock"));
}

/// A plan that breaks what must hold is a defect, and never runs.
#[test]
fn a_plan_that_would_do_harm_is_seen_before_it_runs() {
    let mut table = Table::new();
    table.knows("vm/web", json!({"vmid": 1}), &[]).sees("vm/web", seen(json!({"vmid": 1})));
    table.wants("vm/db", json!({"vmid": 2, "notes": "b"}), &[]).knows("vm/db", json!({"vmid": 2}), &[]);
    table.sees("vm/db", seen(json!({"vmid": 2})));
    let found = |edit: &dyn Fn(&mut Step)| {
        let mut content = PlanContent::clone(&table.plan());
        content.steps.iter_mut().for_each(edit);
        Plan::new(content).lint()
    };
    let delete = |step: &Step| step.action == StepAction::Delete;
    assert_eq!(found(&|_| {}), [""; 0]);
    let unseen = found(&|step| step.observed = step.observed.take().filter(|_| !delete(step)));
    assert_eq!(unseen, ["`s/vm/web` would be deleted without having been seen"]);
    let protected = found(&|step| {
        if let Some(recorded) = step.recorded.as_mut().filter(|_| step.action == StepAction::Delete) {
            recorded.protect = true;
        }
    });
    assert_eq!(protected, ["`s/vm/web` is protected and would be deleted"]);
    let shared = found(&|step| step.spec = spec(json!({"vmid": 2})));
    assert_eq!(shared, ["`s/vm/web` would be deleted, and `s/vm/db` is the same object"]);
    let nothing = found(&|step| step.changes.clear());
    assert_eq!(nothing, ["`s/vm/db` would be updated with nothing"]);
    let restarts = found(&|step| {
        step.changes.clear();
        step.restart = true;
    });
    assert_eq!(restarts, [""; 0], "a restart is something");
    let made =
        found(&|step| step.action = if delete(step) { StepAction::Delete } else { StepAction::Create });
    assert_eq!(made, ["`s/vm/db` would be made although it is there"]);
    let loops = found(&|step| step.needs = vec![7]);
    assert_eq!(loops.len(), 2, "{loops:?}");
    // Also a former object of an address is not deleted while the address keeps it.
    let former = found(&|step| {
        if delete(step) {
            step.action = StepAction::DeleteFormer;
            step.address = address("vm/db");
            step.spec = spec(json!({"vmid": 2}));
        }
    });
    assert_eq!(former, ["`s/vm/db` would be deleted, and `s/vm/db` is the same object"]);
}
