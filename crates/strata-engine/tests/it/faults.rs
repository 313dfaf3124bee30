//! Anything may fail, before or after it took effect, at random but from a seed: applies go on until one succeeds.

use strata_engine::{ApplyOptions, Limits};
use strata_resource::Address;

use crate::datacenter::{first, populate, second};
use crate::world::{Ending, Fault, Source, World};

/// A small generator, so that a seed is a whole story.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn fault(&mut self, faults: &[Fault]) -> Fault {
        faults[usize::try_from(self.below(faults.len() as u64)).unwrap()]
    }
}

/// From now on one call in `n` goes wrong.
fn spoil(world: &World, seed: u64, n: u64) {
    let mut random = Random(seed | 1);
    let mut of_store = Random(seed.wrapping_mul(31) | 1);
    world.pve.script(move |call| match call.write {
        Some(_) if random.one_in(n) => random.fault(&[
            Fault::Before,
            Fault::After,
            Fault::Before,
            Fault::After,
            Fault::KillBefore,
            Fault::KillAfter,
        ]),
        None if random.one_in(n * 2) => Fault::Before,
        _ => Fault::None,
    });
    world.memory().script(move |_| match of_store.one_in(n * 4) {
        true => of_store.fault(&[Fault::Before, Fault::After, Fault::KillAfter, Fault::KillTorn]),
        false => Fault::None,
    });
}

fn heal(world: &World) {
    world.pve.clear_script();
    world.memory().clear_script();
}

async fn bring_to(world: &World, source: &Source, random: &mut Random, context: &str) {
    for attempt in 1.. {
        // It gets better with time, as it does.
        spoil(world, random.below(u64::MAX), 4 + attempt);
        let limits = if random.one_in(3) { Limits::serial() } else { Limits::default() };
        let ending = world.apply_with(source, &ApplyOptions { limits, ..ApplyOptions::default() }).await;
        let context = format!("{context}, attempt {attempt}");
        world.assert_nothing_lost(&context);
        if let Ending::Refused(plan) = &ending {
            panic!("{context}: nothing here can be refused: {:?}", plan.problems);
        }
        if ending.succeeded() {
            break;
        }
        assert!(attempt < 60, "{context}: {ending:?}");
    }
    heal(world);
    world.assert_plans_are_equal(source, context).await;
    world.assert_settled(source, context).await;
}

async fn live_of(source: &Source, before: &[&Source]) -> serde_json::Value {
    let world = World::new();
    populate(&world);
    for source in before.iter().chain([&source]) {
        assert!(world.apply(source).await.succeeded());
    }
    world.pve.export()
}

#[tokio::test(start_paused = true)]
async fn every_story_ends_well() {
    let sources = [first(), second(), Source::default()];
    let lives = [
        live_of(&first(), &[]).await,
        live_of(&second(), &[&first()]).await,
        live_of(&sources[2], &[]).await,
    ];
    for seed in 1..=40_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let world = World::new();
        populate(&world);
        for turn in 0..4 {
            let next = usize::try_from(random.below(3)).unwrap();
            // Sometimes the user changes the source before an apply got through.
            if random.one_in(2) {
                let other = &sources[usize::try_from(random.below(3)).unwrap()];
                spoil(&world, random.below(u64::MAX), 3);
                world.apply(other).await;
                heal(&world);
                let context = format!("seed {seed}, turn {turn}, given up");
                world.assert_nothing_lost(&context);
                world.assert_plans_are_equal(&sources[next], &context).await;
            }
            let context = format!("seed {seed}, turn {turn}, source {next}");
            bring_to(&world, &sources[next], &mut random, &context).await;
            assert_eq!(world.pve.export(), lives[next], "{context}");
        }
    }
}

/// The journal cannot be written: nothing remote is begun, and what was known before is still known.
#[tokio::test(start_paused = true)]
async fn without_a_journal_nothing_is_written() {
    for fault in [Fault::Before, Fault::After] {
        let world = World::new();
        world.memory().script(move |_| fault);
        let ending = world.apply(&first()).await;
        assert!(matches!(ending, Ending::Failed(_)), "{ending:?}");
        assert_eq!(world.pve.ours(), [] as [String; 0]);
        world.memory().clear_script();
        assert!(world.apply(&first()).await.succeeded());
        world.assert_settled(&first(), "afterwards").await;
    }
}

/// The disk fills up in the middle: requests under way end before the lock is given back, and nothing new is begun.
#[tokio::test(start_paused = true)]
async fn a_disk_that_fills_up_stops_the_run_in_order() {
    let undisturbed = World::new();
    undisturbed.memory().script(|_| Fault::None);
    assert!(undisturbed.apply(&first()).await.succeeded());
    for full_at in 2..undisturbed.memory().writes() {
        let world = World::new();
        world.memory().script(move |call| match call.write {
            Some(write) if write >= full_at => Fault::Before,
            _ => Fault::None,
        });
        let ending = world.apply(&first()).await;
        assert!(matches!(ending, Ending::Failed(_)), "{full_at}: {ending:?}");
        assert_eq!(world.pve.running(), 0, "{full_at}: nothing runs any more");
        assert_eq!(world.pve.cut_off(), 0, "{full_at}: what ran came to its end");
        world.assert_nothing_lost(&format!("full at {full_at}"));
        world.memory().clear_script();
        assert!(world.apply(&first()).await.succeeded());
        world.assert_settled(&first(), "afterwards").await;
    }
}

/// Somebody takes the lock away: this run may not write any more, neither remotely nor to the store.
#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_lock_stops_writing() {
    let world = World::new();
    let memory = world.memory.clone().unwrap();
    world.pve.script(move |call| {
        if call.write == Some(5) {
            memory.steal_lock();
        }
        Fault::None
    });
    let ending = world.apply(&first()).await;
    assert!(matches!(&ending, Ending::Failed(error) if error.to_string().contains("was lost")), "{ending:?}");
    world.pve.clear_script();
    world.assert_nothing_lost("the lock was taken away");
    assert!(world.apply(&first()).await.succeeded());
    world.assert_settled(&first(), "afterwards").await;
}

/// A provider that forgets an answer must not make the engine count something as gone.
#[tokio::test(start_paused = true)]
async fn a_missing_answer_is_an_error() {
    let world = World::new();
    assert!(world.apply(&first()).await.succeeded());
    world.pve.forget_an_answer(true);
    let error = world.plan(&first()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot look at target `pve`: 11 answers to 12 questions");
}

/// What an interrupted update added is ours: it goes when the source does not want it any more.
#[tokio::test(start_paused = true)]
async fn what_a_broken_update_added_can_be_removed() {
    use serde_json::json;
    let networks = |names: &[&str]| {
        let slots: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({"bridge": "vmbr0"}))).collect();
        Source::default().vm("web", 100, json!({"networks": slots}))
    };
    for fault in [Fault::After, Fault::KillAfter] {
        // Added by an update.
        let world = World::new();
        assert!(world.apply(&networks(&["net0"])).await.succeeded());
        world.pve.script(move |call| if call.what.starts_with("configure") { fault } else { Fault::None });
        assert!(!world.apply(&networks(&["net0", "net1"])).await.succeeded());
        world.pve.clear_script();
        assert!(world.apply(&networks(&["net0"])).await.succeeded());
        world.assert_settled(&networks(&["net0"]), "update").await;
        assert_eq!(
            world.pve.export()["guests"]["100"]["networks"],
            json!({"net0": {"bridge": "vmbr0"}}),
            "{fault:?}"
        );
        // Added by a create.
        let world = World::new();
        world.pve.script(move |call| if call.what.starts_with("configure") { fault } else { Fault::None });
        assert!(!world.apply(&networks(&["net0", "net1"])).await.succeeded());
        world.pve.clear_script();
        assert!(world.apply(&networks(&["net0"])).await.succeeded());
        world.assert_settled(&networks(&["net0"]), "create").await;
        assert_eq!(
            world.pve.export()["guests"]["100"]["networks"],
            json!({"net0": {"bridge": "vmbr0"}}),
            "{fault:?}"
        );
    }
}

/// A failed update is no reason to send secrets again and restart the guest.
#[tokio::test(start_paused = true)]
async fn a_failed_update_restarts_nothing() {
    use serde_json::json;
    let source =
        |onboot: bool| Source::default().vm("web", 100, json!({"onboot": onboot})).password("hunter2");
    let world = World::new();
    assert!(world.apply(&source(false)).await.succeeded());
    world.pve.script(|call| if call.what.starts_with("configure") { Fault::Before } else { Fault::None });
    assert!(!world.apply(&source(true)).await.succeeded());
    world.pve.clear_script();
    let plan = world.plan(&source(true)).await.unwrap();
    let changed: Vec<String> = plan.steps[0].changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!((changed.as_slice(), plan.steps[0].restart), (["onboot".to_owned()].as_slice(), false));
    let web: Address = "s/vm/web".parse().unwrap();
    assert!(!world.memory().replayed().document.resources[&web].partial);
}
