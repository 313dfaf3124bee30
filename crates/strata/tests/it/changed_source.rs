//! A run that failed or died, and then **another source**: whatever the disturbed run left must be found by the next one, although the
//! source does not ask for it any more. The world then equals one that was never disturbed.

use serde_json::Value;

use crate::story::{
    Story, changes, datacenter_stories, disturb_every, disturb_some, faults, images, is_death,
    newest_stories, removals,
};

#[test]
fn a_changed_source_after_a_fault_leaves_nothing_behind() {
    disturb_every(&changes(), 139, &faults());
}

#[test]
fn a_changed_source_after_a_fault_in_a_removal_leaves_nothing_behind() {
    disturb_some(&removals());
}

#[test]
fn a_changed_source_after_a_fault_in_a_replacement_leaves_nothing_behind() {
    disturb_some(&images());
}

#[test]
fn a_changed_source_after_a_fault_in_a_datacenter_leaves_nothing_behind() {
    disturb_some(&datacenter_stories());
}

#[test]
fn a_changed_source_after_a_fault_in_what_is_newest_leaves_nothing_behind() {
    disturb_some(&newest_stories());
}

fn disturb_all(stories: &[Story], deaths: bool) {
    let faults: Vec<Value> = faults().into_iter().filter(|fault| is_death(fault) == deaths).collect();
    disturb_every(stories, 1, &faults);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_then_change_the_source() {
    disturb_all(&changes(), false);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_removals_then_change_the_source() {
    disturb_all(&removals(), false);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_replacements_then_change_the_source() {
    disturb_all(&images(), false);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_of_a_datacenter_then_change_the_source() {
    disturb_all(&datacenter_stories(), false);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_then_change_the_source() {
    disturb_all(&changes(), true);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_removals_then_change_the_source() {
    disturb_all(&removals(), true);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_replacements_then_change_the_source() {
    disturb_all(&images(), true);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_of_a_datacenter_then_change_the_source() {
    disturb_all(&datacenter_stories(), true);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_of_the_newest_then_change_the_source() {
    disturb_all(&newest_stories(), false);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_of_the_newest_then_change_the_source() {
    disturb_all(&newest_stories(), true);
}
