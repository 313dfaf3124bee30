//! The table of docs/ownership.md, row by row: what an open entry means, given what is found.

use serde_json::json;
use strata_engine::{EngineError, Resolution, StackView};
use strata_resource::{Address, Lineage};
use strata_state::StateResource;

use crate::world::{Ending, Fault, Source, World};

fn web() -> Source {
    Source::default().vm("web", 100, json!({}))
}

/// Dies at a call, so that its entry stays open.
async fn dies(world: &World, source: &Source, what: &'static str, fault: Fault) {
    world.pve.script(move |call| if call.what == what { fault } else { Fault::None });
    let ending = world.apply(source).await;
    assert!(matches!(ending, Ending::Killed), "{ending:?}");
    world.pve.clear_script();
    assert_eq!(world.memory().replayed().open.len(), 1);
}

async fn resolves_to(world: &World, source: &Source, resolution: Resolution) -> Option<StateResource> {
    let resolved = world.recover(&source.stack()).await.unwrap();
    assert_eq!(resolved.iter().map(|entry| entry.resolution).collect::<Vec<_>>(), [resolution]);
    let state = world.memory().replayed();
    assert!(state.open.is_empty() && world.memory().journal_is_empty());
    let address: Address = "s/vm/web".parse().unwrap();
    state.document.resources.get(&address).cloned()
}

async fn then_settles(world: &World, source: &Source) {
    let ending = world.apply(source).await;
    assert!(ending.succeeded(), "{ending:?}");
    world.assert_settled(source, "in the end").await;
}

#[tokio::test(start_paused = true)]
async fn create_and_nothing_is_there() {
    let world = World::new();
    dies(&world, &web(), "create guest 100", Fault::KillBefore).await;
    assert_eq!(resolves_to(&world, &web(), Resolution::NotDone).await, None);
    then_settles(&world, &web()).await;
}

/// While the task runs the guest shows only its lock: recovery waits for it before it looks.
#[tokio::test(start_paused = true)]
async fn create_and_it_is_ours() {
    let world = World::new();
    dies(&world, &web(), "create guest 100", Fault::KillAfter).await;
    let plan = world.plan(&web()).await.unwrap();
    assert_eq!(plan.unknown[0].message, "guest 100 is locked (create)", "a plan does not wait");
    assert_eq!(plan.open.len(), 1, "and shows what is open");
    let record = resolves_to(&world, &web(), Resolution::Adopted).await.unwrap();
    assert!(record.partial && record.facts.contains_key("uuid"));
    then_settles(&world, &web()).await;
}

#[tokio::test(start_paused = true)]
async fn create_and_a_stranger_took_the_place() {
    let world = World::new();
    dies(&world, &web(), "create guest 100", Fault::KillBefore).await;
    world.pve.unmanaged(100, json!({"vmid": 100, "name": "theirs"}));
    assert_eq!(resolves_to(&world, &web(), Resolution::LeftUnmanaged).await, None);
    assert!(matches!(world.apply(&web()).await, Ending::Refused(_)));
    assert_eq!(world.pve.export()["guests"]["100"], json!({"vmid": 100, "name": "theirs"}));
}

#[tokio::test(start_paused = true)]
async fn update_and_it_is_ours() {
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        let world = World::new();
        assert!(world.apply(&web()).await.succeeded());
        let changed = web().change("vm/web", "cpu.cores", json!(4));
        dies(&world, &changed, "configure guest 100", fault).await;
        let record = resolves_to(&world, &changed, Resolution::Adopted).await.unwrap();
        assert!(!record.partial);
        then_settles(&world, &changed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn update_and_it_is_gone() {
    let world = World::new();
    assert!(world.apply(&web()).await.succeeded());
    let changed = web().change("vm/web", "cpu.cores", json!(4));
    dies(&world, &changed, "configure guest 100", Fault::KillBefore).await;
    world.pve.remove_guest(100);
    resolves_to(&world, &changed, Resolution::NotDone).await;
    then_settles(&world, &changed).await;
}

#[tokio::test(start_paused = true)]
async fn delete_and_nothing_is_there() {
    let world = World::new();
    assert!(world.apply(&web()).await.succeeded());
    dies(&world, &Source::default(), "delete guest 100", Fault::KillAfter).await;
    assert_eq!(resolves_to(&world, &Source::default(), Resolution::Finished).await, None);
    then_settles(&world, &Source::default()).await;
}

#[tokio::test(start_paused = true)]
async fn delete_and_it_is_still_there() {
    let world = World::new();
    assert!(world.apply(&web()).await.succeeded());
    dies(&world, &Source::default(), "delete guest 100", Fault::KillBefore).await;
    assert!(resolves_to(&world, &Source::default(), Resolution::NotDone).await.is_some());
    // The source wants it back by now: it stays, and is started again.
    let world_with = world.fork();
    then_settles(&world_with, &web()).await;
    then_settles(&world, &Source::default()).await;
}

#[tokio::test(start_paused = true)]
async fn delete_and_a_stranger_took_the_place() {
    let world = World::new();
    assert!(world.apply(&web()).await.succeeded());
    dies(&world, &Source::default(), "delete guest 100", Fault::KillAfter).await;
    world.pve.unmanaged(100, json!({"vmid": 100, "name": "theirs"}));
    resolves_to(&world, &Source::default(), Resolution::LeftUnmanaged).await;
    then_settles(&world, &Source::default()).await;
    assert_eq!(world.pve.export()["guests"]["100"]["name"], "theirs");
}

/// It left the source while its create was open: recorded first, then destroyed by the plan.
#[tokio::test(start_paused = true)]
async fn what_left_the_source_while_open_is_recorded_and_destroyed() {
    let world = World::new();
    let source = Source::default()
        .container("dns", 101, json!({}))
        .vm("web", 100, json!({}))
        .needs(&["container/dns"]);
    dies(&world, &source, "configure guest 100", Fault::KillBefore).await;
    let record = resolves_to(&world, &Source::default(), Resolution::Adopted).await.unwrap();
    assert!(record.partial);
    assert_eq!(record.depends_on.len(), 1, "it still goes before what it needs");
    let plan = world.plan(&Source::default()).await.unwrap();
    assert_eq!(plan.summary().delete, 2);
    then_settles(&world, &Source::default()).await;
}

/// The source has another identity for it by now: what was begun is the former object.
#[tokio::test(start_paused = true)]
async fn what_got_another_identity_while_open_is_replaced() {
    let world = World::new();
    dies(&world, &web(), "configure guest 100", Fault::KillAfter).await;
    let moved = Source::default().vm("web", 200, json!({}));
    let record = resolves_to(&world, &moved, Resolution::Adopted).await.unwrap();
    assert_eq!(record.spec["vmid"].as_int(), Some(100));
    then_settles(&world, &moved).await;
}

/// A task of somebody else has begun on it: nothing can be said, so nothing is decided and the entry stays.
#[tokio::test(start_paused = true)]
async fn what_stays_busy_stays_open() {
    let world = World::new();
    dies(&world, &web(), "configure guest 100", Fault::KillAfter).await;
    world.pve.start_task(100, "backup");
    world.pve.keep_tasks(true);
    let resolved = world.recover(&web().stack()).await.unwrap();
    assert_eq!(resolved[0].resolution, Resolution::StaysOpen);
    assert_eq!(world.memory().replayed().open.len(), 1);
    world.pve.keep_tasks(false);
    then_settles(&world, &web()).await;
}

/// The state cannot be edited, and no plan runs, before open entries are resolved: the journal would be replayed over it.
#[tokio::test(start_paused = true)]
async fn nothing_is_done_over_open_entries() {
    use crate::world::{Process, owner};
    let world = World::new();
    dies(&world, &web(), "configure guest 100", Fault::KillAfter).await;
    let stack = web().stack();
    let mut locked = world.run(&Process::start()).lock(&stack, owner()).await.unwrap();
    assert_eq!(locked.open_entries(), 1);
    let edited = locked.edit(|document| document.resources.clear()).await;
    assert!(matches!(edited, Err(EngineError::Open { .. })));
    let plan = locked.plan(&stack).await.unwrap();
    let applied = locked.apply(&plan, &Default::default()).await;
    assert!(matches!(applied, Err(EngineError::Open { .. })));
    locked.recover().await.unwrap();
    locked.edit(|document| document.resources.clear()).await.unwrap();
    locked.release().await.unwrap();
    assert!(world.memory().document().unwrap().resources.is_empty());
    then_settles(&world, &web()).await;
}

/// A rollback is an edit: the serial goes on counting, and entries do not begin again from where the old version was.
#[tokio::test(start_paused = true)]
async fn a_rollback_goes_on_counting() {
    use crate::world::{Process, owner};
    let world = World::new();
    assert!(world.apply(&web()).await.succeeded());
    let first = world.memory().document().unwrap();
    assert!(world.apply(&web().change("vm/web", "cpu.cores", json!(4))).await.succeeded());
    let second = world.memory().document().unwrap();
    let stack = web().stack();
    let mut locked = world.run(&Process::start()).lock(&stack, owner()).await.unwrap();
    locked.edit(|document| *document = first.clone()).await.unwrap();
    locked.release().await.unwrap();
    let third = world.memory().document().unwrap();
    assert_eq!((third.serial, third.folded), (second.serial + 1, second.folded));
    assert_eq!(third.resources, first.resources);
    then_settles(&world, &web()).await;
}

/// One who only reads, fast or slow, sees every state whole, at every moment of a run that writes.
#[tokio::test(start_paused = true)]
async fn a_reader_never_sees_less_than_there_is() {
    use crate::world::Process;
    for slowness in 0..12 {
        let world = World::new();
        let source = crate::datacenter::first();
        let stack = source.stack();
        let run = world.run(&Process::start_slow(slowness));
        let mut known = 0;
        let mut last_id = 0;
        let reading = async {
            loop {
                let state = run.read_state(&stack).await.unwrap();
                let now = state.document.resources.len() + state.open.len();
                assert!(now >= known, "{slowness}: it knew {known}, and now only {now}");
                assert!(state.last_id >= last_id, "{slowness}: it was at entry {last_id}");
                (known, last_id) = (now, state.last_id);
            }
        };
        let first = async {
            assert!(world.apply(&source).await.succeeded());
            // Readers go on for a while.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = reading => unreachable!(),
            () = first => {}
        }
        assert_eq!(known, 12);
    }
}

#[tokio::test(start_paused = true)]
async fn two_at_once_are_told_who_holds_the_lock() {
    use crate::world::{Process, owner};
    let world = World::new();
    let stack = web().stack();
    let locked = world.run(&Process::start()).lock(&stack, owner()).await.unwrap();
    let ending = world.apply(&web()).await;
    let Ending::Failed(error) = ending else { panic!("{ending:?}") };
    assert_eq!(
        error.to_string(),
        "the state `dev/web` is locked by me@here (pid 7) for `apply` since 2026-01-01T00:00:00Z"
    );
    drop(locked);
    then_settles(&world, &web()).await;
}

/// A state that another repository wrote under the same key is neither read into a plan nor recovered.
#[tokio::test(start_paused = true)]
async fn the_state_of_another_repository_is_refused() {
    let world = World::new();
    assert!(world.apply(&web()).await.succeeded());
    let other = StackView { lineage: Lineage::derive("other", "dev/s"), ..web().stack() };
    let refused = world.recover(&other).await;
    assert!(matches!(refused, Err(EngineError::Lineage { .. })), "{refused:?}");
}
