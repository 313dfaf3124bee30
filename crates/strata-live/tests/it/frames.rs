//! What a frame shows.

use std::fmt::Write as _;

use anstream::adapter::strip_str;
use proptest::prelude::*;
use strata_engine::{ErrorClass, Event, ProviderError, StepAction};
use strata_live::{Model, Size, Times, frame, summary};
use strata_resource::Layer;

use crate::{address, does, done, seconds, stack, starts, story};

fn shown(model: &Model, now: u64, columns: usize, rows: usize) -> String {
    let lines = frame(model, seconds(now), Size { columns, rows });
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "{}", strip_str(&line));
    }
    text
}

fn fails(step: usize, name: &str, message: &str) -> Event {
    let error = ProviderError::new(ErrorClass::TaskFailed, message);
    Event::StepFailed { step, address: address("lab", "vm", name), action: StepAction::Create, error }
}

#[test]
fn a_run_is_a_tree_that_says_what_waits_for_what() {
    insta::assert_snapshot!("usual", shown(&story(), 61, 80, 24));
    insta::assert_snapshot!("wide", shown(&story(), 61, 160, 50));
}

#[test]
fn it_folds_to_the_terminal() {
    let sizes = [(80, 10), (60, 7), (40, 5), (24, 3), (12, 2), (10, 1), (4, 9), (80, 0)];
    let mut text = String::new();
    for (columns, rows) in sizes {
        let _ = write!(text, "{columns}x{rows}\n{}", shown(&story(), 61, columns, rows));
    }
    insta::assert_snapshot!("folded", text);
}

#[test]
fn an_error_stays_and_a_stop_is_said() {
    let mut model = story();
    model.take("prod/lab", &fails(2, "cp-3", "storage `tank` on pve3 is full"), seconds(62));
    let skipped = Event::StepSkipped {
        step: 5,
        address: address("lab", "machine", "cp-3"),
        because: address("lab", "vm", "cp-3"),
    };
    model.take("prod/lab", &skipped, seconds(62));
    model.take("prod/lab", &Event::Stopping { running: 1 }, seconds(63));
    insta::assert_snapshot!("failed", shown(&model, 64, 80, 24));
    let tiny = shown(&model, 64, 80, 6);
    assert!(
        tiny.contains("storage `tank` on pve3 is full"),
        "whatever is left out, an error is not:\n{tiny}"
    );
}

#[test]
fn three_hundred_guests_fit_a_screen() {
    let names: Vec<String> = (0..300).map(|number| format!("web-{number}")).collect();
    let steps: Vec<_> = names.iter().map(|name| ("vm", name.as_str(), &[] as &[usize])).collect();
    let mut model = Model::new(Times::default());
    model.plan(stack("web", Layer::Workloads, &steps));
    for (step, name) in names.iter().enumerate().take(16) {
        model.take("prod/web", &starts(step, &address("web", "vm", name)), seconds(0));
    }
    let text = shown(&model, 5, 80, 24);
    assert_eq!(text.matches("creating").count(), 16, "{text}");
    assert!(text.contains("web 0/300") && text.contains(" more waiting"), "{text}");
    assert_eq!(text.lines().count(), 23, "{text}");
}

#[test]
fn a_run_ends_in_one_screen() {
    let mut model = story();
    let (vm, machine) = (address("lab", "vm", "cp-3"), address("lab", "machine", "cp-1"));
    model.take("prod/lab", &done(2, &vm), seconds(70));
    model.take("prod/lab", &done(3, &machine), seconds(131));
    let lines: Vec<String> =
        summary(&model, seconds(140), 80).iter().map(|line| strip_str(line).to_string()).collect();
    insta::assert_snapshot!("summary", lines.join("\n"));
    assert!(summary(&Model::new(Times::default()), seconds(1), 80).is_empty(), "nothing was done");
}

#[test]
fn times_of_earlier_runs_are_read_and_nonsense_is_not() {
    let times = Times::read(r#"{"seconds": {"vm created": 30.04, "x": -1, "y": "long", "z": 1e300}}"#);
    assert_eq!(times.expected("vm created"), Some(std::time::Duration::from_secs_f64(30.04)));
    for unknown in ["x", "y", "z", "machine created"] {
        assert_eq!(times.expected(unknown), None, "{unknown}");
    }
    for nonsense in ["", "[]", "{\"seconds\": 5}", "no json"] {
        assert_eq!(Times::read(nonsense), Times::default());
    }
    assert_eq!(Times::read(&times.write()).write(), times.write());
}

proptest! {
    #[test]
    fn no_frame_is_larger_than_its_terminal(
        happened in prop::collection::vec((0..4_usize, 0..9_usize, 0..5_u8, 0..500_u64), 0..60),
        columns in 0..170_usize,
        rows in 0..60_usize,
    ) {
        let mut model = story();
        for (place, step, what, now) in happened {
            let name = ["web", "datacenter", "lab", "unplanned"][place];
            let at = address(name, "vm", "some-guest-with-a-name-that-is-long-enough");
            let event = match what {
                0 => starts(step, &at),
                1 => does(step, &at, "waiting for the lock of the storage `tank` that somebody else holds so far"),
                2 => done(step, &at),
                3 => fails(step, "cp-1", "it failed\nover two lines"),
                _ => Event::StepSkipped { step, address: at.clone(), because: at },
            };
            model.take(&format!("prod/{name}"), &event, seconds(now));
        }
        let lines = frame(&model, seconds(600), Size { columns, rows });
        prop_assert!(lines.len() <= rows.saturating_sub(1).max(1), "{} lines for {rows} rows", lines.len());
        for line in lines {
            let plain = strip_str(&line).to_string();
            prop_assert!(plain.chars().count() <= columns, "{columns} columns: {plain}");
            prop_assert!(!plain.contains('\n'), "{plain:?}");
        }
        prop_assert!(summary(&model, seconds(600), columns).len() <= 9);
    }
}
