//! The first interrupt finishes what runs; the second leaves it where it is.

use serde_json::json;
use strata_engine::{ApplyOptions, ApplyReport, Event, Limits, StopSignal};

use crate::datacenter::first;
use crate::world::{Ending, Fault, Source, World};

/// Says stop once or twice when a certain write is made.
async fn interrupted(world: &World, source: &Source, limits: Limits, at: usize, times: usize) -> ApplyReport {
    let stop = StopSignal::default();
    let signal = stop.clone();
    world.pve.script(move |call| {
        if call.write == Some(at) {
            (0..times).for_each(|_| signal.stop());
        }
        Fault::None
    });
    let ending = world.apply_with(source, &ApplyOptions { limits, stop, ..ApplyOptions::default() }).await;
    world.pve.clear_script();
    match ending {
        Ending::Done(report) => report,
        ending => panic!("{ending:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_finishes_what_runs_and_begins_nothing_new() {
    for limits in [Limits::serial(), Limits::default()] {
        for at in [1, 3, 7, 12] {
            let world = World::new();
            let report = interrupted(&world, &first(), limits.clone(), at, 1).await;
            assert!(
                report.interrupted && report.failed.is_empty() && report.unfinished.is_empty(),
                "{report:?}"
            );
            assert_eq!(report.done + report.left, 12, "{report:?}");
            assert!(report.left > 0 && !report.is_success());
            assert!(world.memory().journal_is_empty(), "everything is saved");
            let document = world.memory().document().unwrap();
            assert_eq!(document.resources.len(), report.done);
            assert!(document.resources.values().all(|record| !record.partial), "what ran was finished");
            assert_eq!(world.pve.ours().len(), report.done);
            world.assert_nothing_lost("interrupted");
            assert!(world.apply(&first()).await.succeeded());
            world.assert_settled(&first(), "afterwards").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_told_at_once_how_many_still_run() {
    let world = World::new();
    let mut source = Source::default();
    for index in 0..5 {
        source = source.container(&format!("c-{index}"), 100 + index, json!({}));
    }
    interrupted(&world, &source, Limits { per_storage: 5, ..Limits::default() }, 1, 1).await;
    let events = world.events.lock().unwrap();
    let stopping: Vec<&Event> =
        events.iter().filter(|event| matches!(event, Event::Stopping { .. })).collect();
    assert!(matches!(stopping[..], [Event::Stopping { running: 5 }]), "{stopping:?}");
    let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    assert!(
        place(|event| matches!(event, Event::Stopping { .. }))
            < place(|event| matches!(event, Event::StepDone { .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn the_second_stops_now_and_the_journal_has_it() {
    for limits in [Limits::serial(), Limits::default()] {
        for at in [1, 3, 7, 20] {
            let world = World::new();
            let report = interrupted(&world, &first(), limits.clone(), at, 2).await;
            assert!(!report.unfinished.is_empty() && !report.is_success(), "{report:?}");
            let open = world.memory().replayed().open;
            assert!(!open.is_empty(), "the journal has what was cut off");
            assert!(open.iter().all(|entry| report.unfinished.contains(&entry.address)));
            let written = world.pve.writes();
            world.assert_nothing_lost("cut off");
            tokio::task::yield_now().await;
            assert_eq!(world.pve.writes(), written, "nothing goes on behind our back");
            assert!(world.apply(&first()).await.succeeded());
            world.assert_settled(&first(), "afterwards").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_beginning_begins_nothing() {
    let world = World::new();
    let stop = StopSignal::default();
    stop.stop();
    let ending = world.apply_with(&first(), &ApplyOptions { stop, ..ApplyOptions::default() }).await;
    let Ending::Done(report) = ending else { panic!("{ending:?}") };
    assert_eq!((report.done, report.left, report.interrupted), (0, 12, true));
    assert_eq!(world.pve.ours(), [] as [String; 0]);
    assert_eq!(world.memory().document(), None, "nothing to write down");
}
