use serde_json::json;

use super::*;

fn left(plan: &Plan) -> Vec<(&str, &str)> {
    plan.unknown.iter().map(|problem| (problem.address.name(), problem.message.as_str())).collect()
}

/// Nothing is created over what cannot be seen, nothing of it is forgotten, and the rest goes on.
#[test]
fn what_cannot_be_seen_is_left_and_the_rest_is_planned() {
    let mut table = Table::new();
    table.wants("vm/web", json!({"vmid": 1}), &[]).sees("vm/web", hidden());
    table.wants("vm/db", json!({"vmid": 2}), &[]).sees("vm/db", Sighting::Absent);
    table.knows("vm/gone", json!({"vmid": 3}), &[]).sees("vm/gone", hidden());
    let plan = table.plan();
    assert_eq!(steps(&plan), ["create vm/db"]);
    assert_eq!(left(&plan), [("web", "it cannot be seen"), ("gone", "it cannot be seen")]);
    assert!(plan.problems.is_empty());
}

/// What needs it waits, through as many others as there are between them; what does not is made.
#[test]
fn nothing_is_made_on_top_of_what_cannot_be_seen() {
    let mut table = Table::new();
    table.wants("image/debian", json!({"volume": "local:import/debian.qcow2"}), &[]);
    table.sees("image/debian", hidden());
    table.wants("template/base", json!({"vmid": 9}), &["image/debian"]);
    table.wants("vm/web", json!({"vmid": 1}), &["template/base"]);
    table.wants("vm/alone", json!({"vmid": 2}), &[]);
    let plan = table.plan();
    assert_eq!(steps(&plan), ["create vm/alone"]);
    let template = "it needs `s/image/debian`, which cannot be seen";
    let vm = "it needs `s/template/base`, which cannot be seen";
    assert_eq!(left(&plan), [("debian", "it cannot be seen"), ("base", template), ("web", vm)]);
}

/// What is changed in place needs nothing new: it is changed beside what cannot be seen.
#[test]
fn what_is_there_is_changed_although_what_it_was_made_from_cannot_be_seen() {
    let mut table = Table::new();
    table.wants("template/base", json!({"vmid": 9}), &[]).sees("template/base", hidden());
    table.wants("vm/web", json!({"vmid": 1, "notes": "new"}), &["template/base"]);
    table.knows("vm/web", json!({"vmid": 1, "notes": "old"}), &["template/base"]);
    table.sees("vm/web", seen(json!({"vmid": 1, "notes": "old"})));
    assert_eq!(steps(&table.plan()), ["update vm/web"]);
}

#[test]
fn nothing_is_taken_away_from_under_what_cannot_be_seen() {
    let mut table = Table::new();
    table.knows("template/base", json!({"vmid": 9}), &[]).sees("template/base", seen(json!({"vmid": 9})));
    table.knows("template/other", json!({"vmid": 8}), &[]).sees("template/other", seen(json!({"vmid": 8})));
    table.knows("vm/web", json!({"vmid": 1}), &["template/base"]).sees("vm/web", hidden());
    let plan = table.plan();
    assert_eq!(steps(&plan), ["delete template/other"]);
    let stays = "it stays: `s/vm/web` needs it and cannot be seen";
    assert_eq!(left(&plan), [("web", "it cannot be seen"), ("base", stays)]);
}

/// What does not answer and runs on something that cannot be seen is no problem of its own.
#[test]
fn what_is_silent_above_what_cannot_be_seen_is_left() {
    let mut table = Table::new();
    table.wants("vm/cp-1", json!({"vmid": 1}), &[]).knows("vm/cp-1", json!({"vmid": 1}), &[]);
    table.sees("vm/cp-1", hidden());
    let machine = json!({"machine": "cp-1", "role": "controlplane"});
    table.wants("machine/cp-1", machine.clone(), &["vm/cp-1"]).knows("machine/cp-1", machine, &["vm/cp-1"]);
    table.sees("machine/cp-1", unreachable());
    let plan = table.plan();
    assert!(plan.problems.is_empty() && plan.steps.is_empty(), "{:?}", plan.problems);
    let message = "it does not answer; it needs `s/vm/cp-1`, which cannot be seen";
    assert_eq!(left(&plan)[1], ("cp-1", message));
}

/// The source asks for another identity, and the one that the state knows cannot be seen: it is neither replaced nor dropped.
#[test]
fn a_former_object_that_cannot_be_seen_is_kept() {
    let mut table = Table::new();
    table.wants("vm/web", json!({"vmid": 2}), &[]).knows("vm/web", json!({"vmid": 1}), &[]);
    table.sees("vm/web", Sighting::Absent);
    table.live.former.insert(address("vm/web"), hidden());
    let plan = table.plan();
    assert!(plan.steps.is_empty() && plan.unknown.len() == 1);
    // The new one is there already: the old one stays in the state beside it.
    table.sees("vm/web", seen(json!({"vmid": 2})));
    let plan = table.plan();
    let becomes = step(&plan, StepAction::Record, "vm/web").becomes.as_ref();
    assert_eq!(becomes.map(|record| record.deposed.len()), Some(1));
    assert_eq!(plan.unknown.len(), 1);
}
