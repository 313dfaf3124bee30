//! What a write's answer says of its task is not so: the task is forgotten, never began, ends with a warning; or the answer is lost and the
//! request is carried out when nobody counts on it any more.

use serde_json::{Value, json};

use crate::findings::unlock_as_told;
use crate::kill::assert_same;
use crate::layer0::without_settings;
use crate::story::{Layer, Source, Story, changes, datacenter_stories, images, removals};
use crate::world::World;

fn writes(world: &World) -> u64 {
    let requests = world.sim.control().requests();
    let counts = requests["counts"].as_array().into_iter().flatten();
    counts.filter(|row| row["method"] != "GET").filter_map(|row| row["count"].as_u64()).sum()
}

/// How the middle of a story ends: name servers and time zones stay when nothing asks for them any more.
fn ended(story: &Story, world: &World) -> Value {
    match (story.layer, &story.begun) {
        (Layer::Datacenter, Source::Destroyed) => without_settings(world.export()),
        _ => world.export(),
    }
}

/// The k-th write of the middle of a story is not what its answer says. What a person is told to do is done, and the same command again
/// ends as if nothing had been.
fn twist(story: &Story, kind: &str, k: u64, expected: &Value) {
    let (world, command) = story.begin();
    world.sim.control().fault(&json!({"kind": kind, "writes": true, "nth": k, "seconds": 0.4}));
    let mut run = world.strata().run(command);
    let mut told = format!("{}: {kind} {k}\n{}", story.name, run.all());
    if kind == "late" {
        // It has arrived by now, whatever the run came to; what it did then is for the next run to see.
        std::thread::sleep(std::time::Duration::from_millis(400));
        run = world.strata().run(command);
        told = format!("{told}\nthen:\n{}", run.all());
    }
    for _ in 0..3 {
        if run.code == 0 {
            break;
        }
        assert!(run.stderr.contains("error:") && !run.all().contains("panicked"), "{told}");
        unlock_as_told(&world, &run.all());
        run = world.strata().run(command);
        told = format!("{told}\nthen:\n{}", run.all());
    }
    assert_eq!(run.code, 0, "{told}");
    assert_same(&ended(story, &world), expected, &told);
    if matches!(story.begun, Source::Text(_)) {
        world.assert_settled();
    }
}

const KINDS: [&str; 4] = ["forget-task", "no-worker", "warn-task", "late"];

/// One story for each thing that a run does: create, change, remove, replace, on both layers.
fn stories() -> Vec<Story> {
    let mut stories = changes();
    stories.remove(0);
    stories.extend(removals().into_iter().take(1));
    stories.extend(images().into_iter().step_by(2));
    stories.extend(datacenter_stories().into_iter().skip(1).take(3));
    stories
}

fn twist_every(step: usize) {
    for story in stories() {
        let (world, command) = story.begin();
        world.strata().run(command).ok();
        let (expected, writes) = (ended(&story, &world), writes(&world));
        assert!(writes > 5, "{writes}");
        for (number, kind) in KINDS.iter().enumerate() {
            let tried: Vec<u64> = (1 + number as u64..=writes).step_by(step).collect();
            tried.iter().for_each(|k| twist(&story, kind, *k, &expected));
            println!("{}: {kind}: {} of {writes} writes", story.name, tried.len());
        }
    }
}

/// Another kind of answer for each story.
#[test]
fn half_true_answers_are_not_believed() {
    for (number, story) in stories().iter().enumerate() {
        let (world, command) = story.begin();
        world.strata().run(command).ok();
        let (expected, writes) = (ended(story, &world), writes(&world));
        twist(story, KINDS[number % KINDS.len()], 1 + (5 * number as u64) % writes, &expected);
    }
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_half_true_answers() {
    let step = std::env::var("STRATA_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(1);
    twist_every(step);
}
