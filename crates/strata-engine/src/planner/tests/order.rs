use serde_json::json;

use super::*;

/// Each step with those that it waits for, in the order of the plan.
fn waits(plan: &Plan) -> Vec<(String, Vec<String>)> {
    let needs = |step: &Step| step.needs.iter().map(|need| told(&plan.steps[*need])).collect();
    plan.steps.iter().map(|step| (told(step), needs(step))).collect()
}

fn waiting(step: &str, needs: &[&str]) -> (String, Vec<String>) {
    (step.to_owned(), needs.iter().map(|need| (*need).to_owned()).collect())
}

fn vm(vmid: u32, notes: &str) -> Json {
    json!({"vmid": vmid, "notes": notes})
}

/// What is in between and stays as it is does not work while what it needs is changed.
#[test]
fn what_is_made_waits_for_changes_below_what_stays() {
    let mut table = Table::new();
    table.wants("vm/a", vm(1, "new"), &[]).knows("vm/a", vm(1, "old"), &[]).sees("vm/a", seen(vm(1, "old")));
    table
        .wants("vm/b", vm(2, "n"), &["vm/a"])
        .knows("vm/b", vm(2, "n"), &["vm/a"])
        .sees("vm/b", seen(vm(2, "n")));
    table.wants("vm/c", vm(3, "n"), &["vm/b"]).sees("vm/c", Sighting::Absent);
    table.wants("vm/z", vm(4, "n"), &[]).sees("vm/z", Sighting::Absent);
    assert_eq!(
        waits(&table.plan()),
        [waiting("update vm/a", &[]), waiting("create vm/c", &["update vm/a"]), waiting("create vm/z", &[])]
    );
}

/// Making goes with the dependencies, removing against them, whatever the addresses are called.
#[test]
fn what_is_needed_is_made_first_and_goes_last() {
    let mut made = Table::new();
    made.wants("vm/a", vm(1, "n"), &["vm/b"]).wants("vm/b", vm(2, "n"), &[]);
    assert_eq!(waits(&made.plan()), [waiting("create vm/b", &[]), waiting("create vm/a", &["create vm/b"])]);
    let mut gone = Table::new();
    gone.knows("vm/b", vm(1, "n"), &["vm/a"]).knows("vm/a", vm(2, "n"), &[]);
    gone.sees("vm/b", seen(vm(1, "n"))).sees("vm/a", seen(vm(2, "n")));
    assert_eq!(waits(&gone.plan()), [waiting("delete vm/b", &[]), waiting("delete vm/a", &["delete vm/b"])]);
}

/// Who used it by the state is brought to its new spec before it goes; who never did is not waited for.
#[test]
fn a_removal_waits_for_its_users_to_leave_it() {
    let mut table = Table::new();
    table.knows("vm/a", vm(1, "n"), &[]).sees("vm/a", seen(vm(1, "n")));
    table
        .wants("vm/b", vm(2, "new"), &[])
        .knows("vm/b", vm(2, "old"), &["vm/a"])
        .sees("vm/b", seen(vm(2, "old")));
    table.wants("vm/c", vm(3, "new"), &[]).knows("vm/c", vm(3, "old"), &[]).sees("vm/c", seen(vm(3, "old")));
    assert_eq!(
        waits(&table.plan()),
        [waiting("update vm/b", &[]), waiting("delete vm/a", &["update vm/b"]), waiting("update vm/c", &[])]
    );
}

/// The delete of a replacement waits for users that go, and not for those that need the new object.
#[test]
fn a_replacement_waits_for_users_that_go_and_is_waited_for_by_those_that_stay() {
    let template =
        |import: &str| json!({"vmid": 9, "disks": {"scsi0": {"storage": "a", "size": 1, "import": import}}});
    let mut table = Table::new();
    table.wants("template/base", template("local:import/new.qcow2"), &[]);
    table.knows("template/base", template("local:import/old.qcow2"), &[]);
    table.sees("template/base", seen(json!({"vmid": 9, "disks": {"scsi0": {"storage": "a", "size": 1}}})));
    table.knows("vm/gone", vm(1, "n"), &["template/base"]).sees("vm/gone", seen(vm(1, "n")));
    table.wants("vm/stays", vm(2, "new"), &["template/base"]).knows(
        "vm/stays",
        vm(2, "old"),
        &["template/base"],
    );
    table.sees("vm/stays", seen(vm(2, "old")));
    let plan = table.plan();
    let of = |told: &str| waits(&plan).into_iter().find(|(step, _)| step == told).unwrap().1;
    assert_eq!(of("delete template/base"), ["delete vm/gone"]);
    assert_eq!(of("create template/base"), ["delete template/base"]);
    assert_eq!(of("update vm/stays"), ["create template/base"]);
}

/// What the state says of users is the past: where it goes round in circles with what is wanted now, it gives way.
#[test]
fn a_circle_of_the_past_gives_way() {
    let mut table = Table::new();
    // Both go, and each used the other.
    table.knows("vm/a", vm(1, "n"), &["vm/b"]).sees("vm/a", seen(vm(1, "n")));
    table.knows("vm/b", vm(2, "n"), &["vm/a"]).sees("vm/b", seen(vm(2, "n")));
    let plan = table.plan();
    assert_eq!(steps(&plan), ["delete vm/a", "delete vm/b"]);
    assert_eq!(plan.steps[0].needs, [0; 0]);
    assert_eq!(plan.steps[1].needs, [0]);
}
