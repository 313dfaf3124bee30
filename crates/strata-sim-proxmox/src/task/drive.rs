//! Runs tasks step by step: at once when the pace is zero, else in the background with time passing between steps.

use std::sync::Arc;
use std::time::Duration;

use super::{Cont, Job, LockKey, Step};
use crate::datacenter::Datacenter;
use crate::world::World;

/// How often daemons are looked at after one call, where no time passes.
const MOST_ROUNDS: usize = 8;

const INTERRUPTED: &str = "received interrupt";

/// Picks up every queued task. With no time to pass, each is run to its end here and now.
pub fn pick_up(datacenter: &Arc<Datacenter>, world: &mut World) {
    for _ in 0..MOST_ROUNDS {
        while let Some((job, work)) = world.tasks.queue.pop_front() {
            if let Some(text) = failure(datacenter, world, &job) {
                finish(world, &job, text);
            } else if datacenter.shared.pace.is_instant() {
                run_to_end(world, &job, work);
            } else {
                tokio::spawn(run(Arc::clone(datacenter), job, work));
            }
        }
        if !datacenter.shared.pace.is_instant() {
            return;
        }
        // Daemons go on where tasks ended, and start others.
        world.advance_daemons();
        if world.tasks.queue.is_empty() {
            return;
        }
    }
}

/// The text that a test ordered this task to fail with.
fn failure(datacenter: &Datacenter, world: &mut World, job: &Job) -> Option<String> {
    let task = world.tasks.by_id(job.id)?;
    datacenter
        .shared
        .faults
        .strike_task(&format!("/tasks/{}/{}", task.upid.kind, task.upid.id), &task.upid.user)
}

fn finish(world: &mut World, job: &Job, exit: String) {
    let now = world.now();
    world.tasks.finish(job.id, exit, now);
}

fn run_to_end(world: &mut World, job: &Job, mut work: Cont) {
    loop {
        match work(world, job) {
            Ok(Step::Wait { then, .. }) => work = then,
            Ok(Step::Lock { key, then }) => {
                if !world.tasks.lock(&key, job.id) {
                    return finish(world, job, key.timeout_text());
                }
                work = then;
            }
            Ok(Step::Done) => return finish(world, job, "OK".to_owned()),
            Ok(Step::Warned(n)) => return finish(world, job, format!("WARNINGS: {n}")),
            Err(text) => return finish(world, job, text),
        }
    }
}

/// What to wait for before the next step.
enum Next {
    Time(Duration, Cont),
    Lock(LockKey, Cont),
    End,
}

async fn run(datacenter: Arc<Datacenter>, job: Job, mut work: Cont) {
    loop {
        let (next, stop) = {
            let mut world = datacenter.world();
            let stop = world.tasks.by_id(job.id).map(|task| Arc::clone(&task.stop));
            let next = advance(&datacenter, &mut world, &job, work);
            pick_up(&datacenter, &mut world);
            (next, stop)
        };
        datacenter.shared.changed();
        let Some(stop) = stop else { return };
        work = match next {
            Next::End => return,
            Next::Time(duration, then) => {
                tokio::select! {
                    () = tokio::time::sleep(duration) => then,
                    () = stop.asked() => return interrupt(&datacenter, &job),
                }
            }
            Next::Lock(key, then) => {
                let wait = datacenter.wait_free(&key, Some(job.id));
                let taken = tokio::select! {
                    taken = wait => taken,
                    () = stop.asked() => return interrupt(&datacenter, &job),
                };
                if !taken {
                    finish(&mut datacenter.world(), &job, key.timeout_text());
                    return datacenter.shared.changed();
                }
                then
            }
        };
    }
}

fn advance(datacenter: &Datacenter, world: &mut World, job: &Job, work: Cont) -> Next {
    match work(world, job) {
        Ok(Step::Wait { seconds, then, undo }) => {
            if let Some(task) = world.tasks.by_id(job.id) {
                task.undo = undo;
            }
            Next::Time(datacenter.shared.pace.scale(seconds), then)
        }
        Ok(Step::Lock { key, then }) => Next::Lock(key, then),
        Ok(Step::Done) => {
            finish(world, job, "OK".to_owned());
            Next::End
        }
        Ok(Step::Warned(n)) => {
            finish(world, job, format!("WARNINGS: {n}"));
            Next::End
        }
        Err(text) => {
            finish(world, job, text);
            Next::End
        }
    }
}

fn interrupt(datacenter: &Datacenter, job: &Job) {
    {
        let mut world = datacenter.world();
        let undo = world.tasks.by_id(job.id).and_then(|task| task.undo.take());
        if let Some(undo) = undo {
            undo(&mut world);
        }
        finish(&mut world, job, INTERRUPTED.to_owned());
    }
    datacenter.shared.changed();
}
