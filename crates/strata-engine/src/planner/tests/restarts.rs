use serde_json::json;

use super::*;

/// A guest that runs, as the state and the source have it, and as it is: with what is set and what it runs with.
fn update(recorded: Json, wanted: Json, set: Json, runs_with: Option<Json>, pending: &[&str]) -> Plan {
    let mut table = Table::new();
    table.wants("vm/web", wanted, &[]).knows("vm/web", recorded, &[]);
    let pending = pending.iter().map(|path| (*path).to_owned()).collect();
    table.sees("vm/web", Sighting::Ours(Observed { pending, running: runs_with.map(spec), ..observed(set) }));
    table.plan()
}

fn cores(count: u32) -> Json {
    json!({"vmid": 1, "power": "running", "cpu": {"cores": count}})
}

/// Somebody else set it and it waits for a restart: set back before that, nothing has to restart.
#[test]
fn what_is_set_back_before_it_came_into_effect_restarts_nothing() {
    let back = update(cores(2), cores(2), cores(4), Some(cores(2)), &["cpu.cores"]);
    assert!(!step(&back, StepAction::Update, "vm/web").restart);
    let changed = update(cores(2), cores(8), cores(4), Some(cores(2)), &["cpu.cores"]);
    assert!(
        step(&changed, StepAction::Update, "vm/web").restart,
        "what it runs with is not what is asked for"
    );
    let in_effect = update(cores(2), cores(2), cores(4), None, &[]);
    assert!(step(&in_effect, StepAction::Update, "vm/web").restart);
    assert_eq!((in_effect.summary().restart, back.summary().restart), (1, 0));
    assert!(in_effect.has_changes());
}

#[test]
fn what_waits_restarts_only_for_a_field_of_ours() {
    let plan = update(cores(2), cores(2), cores(2), Some(cores(4)), &["cpu.cores"]);
    let waiting = step(&plan, StepAction::Update, "vm/web");
    assert!(waiting.restart && waiting.changes.is_empty());
    assert_eq!(waiting.reasons, ["it waits for a restart to take up: cpu.cores"]);
    let theirs = update(cores(2), cores(2), cores(2), None, &["serial0"]);
    assert_eq!(steps(&theirs), [""; 0], "what somebody else set is theirs to bring into effect");
    assert!(!theirs.has_changes());
    // It left the source and is still in the state: its removal is ours too.
    let bare = json!({"vmid": 1, "power": "running"});
    let removed = update(cores(2), bare.clone(), bare, Some(cores(2)), &["cpu.cores"]);
    assert!(step(&removed, StepAction::Update, "vm/web").restart);
}

/// What was begun of a guest that was left unfinished counts as ours, and what it runs with as not known: a change that it needs a restart
/// for needs one, also where the state would say that nothing is left to do.
#[test]
fn a_guest_that_was_left_unfinished_is_compared_by_what_was_begun() {
    let plan = |partial: bool| {
        let mut table = Table::new();
        table.wants("vm/web", cores(4), &[]).knows("vm/web", cores(4), &[]);
        table.known("vm/web").partial = partial;
        // Somebody set it to what it was before the update; it runs with what was begun.
        let (set, running) = (observed(cores(2)), Some(spec(cores(4))));
        let pending = vec!["cpu.cores".to_owned()];
        table.sees("vm/web", Sighting::Ours(Observed { pending, running, ..set }));
        table.plan()
    };
    for partial in [false, true] {
        let plan = plan(partial);
        let update = step(&plan, StepAction::Update, "vm/web");
        assert!(!update.restart, "it runs with what is asked for");
        assert_eq!(update.changes.len(), 1);
    }
    // Only what is asked for differs from what runs.
    let waits = update(cores(2), cores(4), cores(2), Some(cores(2)), &[]);
    assert!(step(&waits, StepAction::Update, "vm/web").restart);
}

/// A creation that was cut off after the guest was started: it runs with what cannot be read back, and is not restarted for it.
#[test]
fn what_cannot_be_read_back_of_a_guest_that_was_started_is_not_sent_again() {
    let guest = |user: &str, password: &str| json!({"vmid": 1, "power": "running", "cloudinit": {"user": user, "password": password}});
    let plan = |begun: Json, wanted: Json, user: &str, partial: bool| {
        let mut table = Table::new();
        table.wants("vm/web", wanted, &[]).knows("vm/web", begun, &[]);
        table.known("vm/web").partial = partial;
        table.sees("vm/web", seen(json!({"vmid": 1, "power": "running", "cloudinit": {"user": user}})));
        let plan = table.plan();
        plan.steps
            .iter()
            .flat_map(|step| &step.changes)
            .map(|change| change.path.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(plan(guest("a", "x"), guest("a", "x"), "a", true), [""; 0]);
    assert_eq!(
        plan(guest("a", "x"), guest("a", "y"), "a", true),
        ["cloudinit.password"],
        "another one is asked for"
    );
    let both = plan(guest("a", "x"), guest("a", "x"), "other", true);
    assert_eq!(both, ["cloudinit.password", "cloudinit.user"], "what it reads at its boot was not in place");
}
