//! The process dies at every write, before and after it took effect; the next run must end as if nothing had happened.

use std::sync::Arc;

use serde_json::Value as Json;
use strata_engine::{ApplyOptions, Limits};
use strata_state::LocalStore;

use crate::datacenter::{first, populate, second};
use crate::world::{Ending, Fault, Source, World, kill_at};

fn options(limits: Limits) -> ApplyOptions {
    ApplyOptions { limits, ..ApplyOptions::default() }
}

/// The way that a world takes: each source is applied after the one before it.
fn way() -> [Source; 4] {
    [Source::default(), first(), second(), Source::default()]
}

struct Undisturbed {
    live: Json,
    remote_writes: usize,
    store_writes: usize,
}

/// A world in which this source is applied.
async fn at(source: &Source) -> World {
    let world = World::new();
    populate(&world);
    assert!(world.apply(source).await.succeeded());
    world
}

async fn undisturbed(before: &World, after: &Source, limits: &Limits) -> Undisturbed {
    let world = before.fork();
    world.pve.script(|_| Fault::None);
    world.memory().script(|_| Fault::None);
    let ending = world.apply_with(after, &options(limits.clone())).await;
    assert!(ending.succeeded(), "{ending:?}");
    world.assert_settled(after, "undisturbed").await;
    Undisturbed {
        live: world.pve.export(),
        remote_writes: world.pve.writes(),
        store_writes: world.memory().writes(),
    }
}

/// Which write the process dies at, and how.
#[derive(Debug, Clone, Copy)]
enum Death {
    Remote(usize, Fault),
    Store(usize, Fault),
}

fn deaths(of: &Undisturbed) -> Vec<Death> {
    let mut deaths = Vec::new();
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        deaths.extend((1..=of.remote_writes).map(|k| Death::Remote(k, fault)));
    }
    for fault in [Fault::KillTorn, Fault::KillAfter] {
        deaths.extend((1..=of.store_writes).map(|k| Death::Store(k, fault)));
    }
    deaths
}

/// Dies once, then runs again.
async fn dies_and_runs_again(world: &World, after: &Source, limits: &Limits, death: Death) {
    match death {
        Death::Remote(k, fault) => world.pve.script(kill_at(k, fault)),
        Death::Store(k, fault) => world.memory().script(kill_at(k, fault)),
    }
    let context = format!("{death:?}");
    let ending = world.apply_with(after, &options(limits.clone())).await;
    assert!(matches!(ending, Ending::Killed), "{context}: {ending:?}");
    world.pve.clear_script();
    world.memory().clear_script();
    world.assert_nothing_lost(&context);
    let open = world.memory().replayed();
    world.plan(after).await.unwrap();
    assert_eq!(world.memory().replayed(), open, "{context}: looking changes nothing");
    let ending = world.apply_with(after, &options(limits.clone())).await;
    assert!(ending.succeeded(), "{context}: {ending:?}");
    world.assert_settled(after, &context).await;
}

async fn at_every_write(limits: Limits) {
    let way = way();
    for (before, after) in way.iter().zip(&way[1..]) {
        let before = at(before).await;
        let expected = undisturbed(&before, after, &limits).await;
        assert!(expected.remote_writes > 10 && expected.store_writes > 10, "there is something to kill");
        for death in deaths(&expected) {
            let world = before.fork();
            dies_and_runs_again(&world, after, &limits, death).await;
            assert_eq!(world.pve.export(), expected.live, "{death:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_after_the_other() {
    at_every_write(Limits::serial()).await;
}

#[tokio::test(start_paused = true)]
async fn side_by_side() {
    at_every_write(Limits::default()).await;
}

/// The run that recovers dies too, and the one after it, until one gets to the end.
#[tokio::test(start_paused = true)]
async fn again_and_again() {
    let way = way();
    let mut deaths = 0;
    for (before, after) in way.iter().zip(&way[1..]) {
        let before = at(before).await;
        let expected = undisturbed(&before, after, &Limits::default()).await;
        for (salt, fault) in
            [Fault::KillAfter, Fault::KillBefore, Fault::KillTorn].into_iter().cycle().take(9).enumerate()
        {
            let world = before.fork();
            let mut runs = 0;
            loop {
                // Elsewhere each time: one that always dies at the same write may never get past it.
                world.pve.script(kill_at(1 + (runs * 5 + salt) % 9, fault));
                world.memory().script(kill_at(4 + (runs * 7 + salt) % 23, fault));
                runs += 1;
                let ending = world.apply(after).await;
                world.assert_nothing_lost(&format!("run {runs}, {fault:?}, {salt}"));
                if ending.succeeded() {
                    break;
                }
                assert!(matches!(ending, Ending::Killed) && runs < 300, "{ending:?}");
            }
            deaths += runs - 1;
            world.pve.clear_script();
            world.memory().clear_script();
            world.assert_settled(after, "in the end").await;
            assert_eq!(world.pve.export(), expected.live);
        }
    }
    assert!(deaths > 100, "{deaths}");
}

/// The source changed while entries were open: what was begun is recorded, then it becomes what the new source says.
#[tokio::test(start_paused = true)]
async fn the_source_changes_while_work_is_open() {
    let nothing = at(&Source::default()).await;
    let begun = undisturbed(&nothing, &first(), &Limits::default()).await;
    let expected = undisturbed(&at(&first()).await, &second(), &Limits::default()).await;
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        for k in 1..=begun.remote_writes {
            let world = nothing.fork();
            world.pve.script(kill_at(k, fault));
            assert!(matches!(world.apply(&first()).await, Ending::Killed));
            world.pve.clear_script();
            for (next, live) in [(second(), Some(&expected.live)), (Source::default(), None)] {
                let context = format!("{fault:?} at {k}, then {} resources", next.addresses().len());
                let world = world.fork();
                let ending = world.apply(&next).await;
                assert!(ending.succeeded(), "{context}: {ending:?}");
                world.assert_settled(&next, &context).await;
                assert!(live.is_none_or(|live| world.pve.export() == *live), "{context}");
            }
        }
    }
}

/// The same with files and locks of the operating system, at some of the writes.
#[tokio::test]
async fn with_the_local_store() {
    let expected = undisturbed(&at(&Source::default()).await, &first(), &Limits::default()).await;
    for k in (1..=expected.remote_writes).step_by(5) {
        for fault in [Fault::KillBefore, Fault::KillAfter] {
            let folder = tempfile::tempdir().unwrap();
            let world = World::on(Arc::new(LocalStore::new(folder.path())));
            populate(&world);
            world.pve.script(kill_at(k, fault));
            assert!(matches!(world.apply(&first()).await, Ending::Killed));
            world.pve.clear_script();
            assert!(world.apply(&first()).await.succeeded());
            assert_eq!(world.pve.export(), expected.live, "{fault:?} at {k}");
            assert!(!world.plan(&first()).await.unwrap().has_changes());
            assert_eq!(world.store.read_journal(crate::world::KEY).await.unwrap(), []);
        }
    }
}
