//! How much happens at once: never more than the limits allow, and never less than they could.

use serde_json::json;
use strata_engine::{ApplyOptions, Event, Limits, StepAction};

use crate::world::{Fault, Source, World};

fn many(n: u32) -> Source {
    let mut source = Source::default().template("base", 9000).template("other", 9001);
    for index in 0..n {
        let template = if index % 3 == 0 { 9001 } else { 9000 };
        source = source
            .vm(&format!("vm-{index:02}"), 100 + index, json!({"clone": {"template": template}}))
            .needs(&["template/base", "template/other"]);
    }
    source
}

async fn most_at_once(limits: Limits) -> std::collections::BTreeMap<String, usize> {
    let world = World::new();
    let source = many(24);
    let ending = world.apply_with(&source, &ApplyOptions { limits, ..ApplyOptions::default() }).await;
    assert!(ending.succeeded(), "{ending:?}");
    world.assert_settled(&source, "made").await;
    world.pve.most_at_once()
}

#[tokio::test(start_paused = true)]
async fn no_limit_is_ever_exceeded_and_each_is_reached() {
    for (limits, all, template) in [
        (Limits::serial(), 1, 1),
        (Limits { total: 5, per_target: 9, per_storage: 9, per_template: 9 }, 5, 4),
        (Limits { total: 9, per_target: 3, per_storage: 9, per_template: 9 }, 3, 2),
        (Limits { total: 9, per_target: 9, per_storage: 4, per_template: 9 }, 4, 3),
        (Limits { total: 9, per_target: 9, per_storage: 9, per_template: 2 }, 4, 2),
    ] {
        let most = most_at_once(limits.clone()).await;
        assert_eq!((most["all"], most["storage"]), (all, all), "{limits:?}");
        assert_eq!(most["template:9000"], template, "{limits:?}");
        assert!(most["template:9001"] <= limits.per_template, "{limits:?}");
    }
}

/// A clone that hangs holds back nothing but what needs it.
#[tokio::test(start_paused = true)]
async fn what_hangs_holds_back_only_what_needs_it() {
    let world = World::new();
    let source = Source::default()
        .vm("slow", 100, json!({}))
        .vm("after-slow", 101, json!({}))
        .needs(&["vm/slow"])
        .vm("quick", 102, json!({}))
        .container("also-quick", 103, json!({}))
        .needs(&["vm/quick"]);
    world.pve.script(|call| if call.what == "configure guest 100" { Fault::KillBefore } else { Fault::None });
    // The process is not really dead: only this request never ends.
    world.pve.hang_instead_of_killing(true);
    let process = crate::world::Process::start();
    let stack = source.stack();
    let mut locked = world.run(&process).lock(&stack, crate::world::owner()).await.unwrap();
    let plan = locked.plan(&stack).await.unwrap();
    let options = ApplyOptions::default();
    let stopped =
        tokio::time::timeout(std::time::Duration::from_secs(60), locked.apply(&plan, &options)).await;
    assert!(stopped.is_err(), "it waits for the slow one");
    let done: Vec<String> = world
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::StepDone { address, .. } => Some(address.name().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(done, ["quick", "also-quick"]);
}

/// What is ready together is written to the journal together.
#[tokio::test(start_paused = true)]
async fn entries_that_are_ready_together_are_one_write() {
    let world = World::new();
    let mut source = Source::default();
    for index in 0..8 {
        source = source.container(&format!("c-{index}"), 100 + index, json!({}));
    }
    let limits = Limits { per_storage: 8, ..Limits::default() };
    assert!(world.apply_with(&source, &ApplyOptions { limits, ..ApplyOptions::default() }).await.succeeded());
    let appends = world.memory().appends();
    assert_eq!(appends[0], "append 9");
    assert!(appends.len() < 8 + 8 + 1, "tasks and ends share writes too: {appends:?}");
}

#[tokio::test(start_paused = true)]
async fn events_tell_the_whole_story_in_order() {
    let world = World::new();
    let source = Source::default().template("base", 9000).vm("web", 100, json!({})).needs(&["template/base"]);
    world.pve.script(|call| if call.what == "configure guest 9000" { Fault::Before } else { Fault::None });
    world.apply(&source).await;
    let told: Vec<String> = world
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::ApplyStarted { steps } => Some(format!("{steps} steps")),
            Event::StepStarted { address, action: StepAction::Create, .. } => {
                Some(format!("start {address}"))
            }
            Event::StepFailed { address, .. } => Some(format!("failed {address}")),
            Event::StepSkipped { address, because, .. } => Some(format!("skipped {address}, {because}")),
            Event::ApplyDone { done, failed, skipped, left, unfinished } => Some(format!(
                "{done} done {failed} failed {skipped} skipped {left} left {unfinished} unfinished"
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "2 steps",
            "start s/template/base",
            "failed s/template/base",
            "skipped s/vm/web, s/template/base",
            "0 done 1 failed 1 skipped 0 left 0 unfinished",
        ]
    );
}
