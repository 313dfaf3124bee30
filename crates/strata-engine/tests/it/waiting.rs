//! A provider that waits and that objects: what the engine makes of it.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    Action, ApplyOptions, ErrorClass, Event, Finding, OpenEntry, Operation, OperationContext, Outcome,
    ProblemKind, Provider, ProviderError, Review, Run, Sighting, StopSignal, Wanted,
};

use crate::world::{Process, Source, World, owner};

/// Makes nothing: it waits until somebody says stop.
struct Waiter {
    /// Before it has done anything.
    first: bool,
    objects: bool,
}

#[async_trait]
impl Provider for Waiter {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        Ok(wanted.iter().map(|_| Sighting::Absent).collect())
    }

    async fn review(&self, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
        let made = review.operations.iter().filter(|one| self.objects && one.action == Action::Create);
        Ok(made.map(|one| Finding::precondition(one, "it would do harm", "leave it")).collect())
    }

    async fn execute(&self, _: &Operation, context: &dyn OperationContext) -> Result<Outcome, ProviderError> {
        assert!(!context.stopping());
        context.stopped().await;
        assert!(context.stopping());
        let mut error = ProviderError::new(ErrorClass::Stopped, "interrupted while it waited");
        error.nothing_done = self.first;
        Err(error)
    }

    async fn wait_for_tasks(&self, _: &OpenEntry, _: &dyn OperationContext) -> Result<(), ProviderError> {
        Ok(())
    }
}

fn run(world: &World, waiter: Waiter) -> Run {
    let mut run = world.run(&Process::start());
    run.providers.insert("pve", Arc::new(waiter));
    run
}

fn two() -> Source {
    Source::default().image("debian", "one").image("fedora", "two")
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_is_no_failure_and_the_journal_has_it() {
    for first in [false, true] {
        let world = World::new();
        let stack = two().stack();
        let mut locked = run(&world, Waiter { first, objects: false }).lock(&stack, owner()).await.unwrap();
        let plan = locked.plan(&stack).await.unwrap();
        let stop = StopSignal::default();
        let signal = stop.clone();
        let events = world.events.clone();
        tokio::spawn(async move {
            // Once both wait.
            let started = |event: &&Event| matches!(event, Event::StepStarted { .. });
            while events.lock().unwrap().iter().filter(started).count() < 2 {
                tokio::task::yield_now().await;
            }
            signal.stop();
        });
        let report = locked.apply(&plan, &ApplyOptions { stop, ..ApplyOptions::default() }).await.unwrap();
        locked.release().await.unwrap();
        assert!(report.interrupted && report.failed.is_empty() && report.skipped.is_empty(), "{report:?}");
        let open = world.memory().replayed().open.len();
        match first {
            // Nothing was begun: nothing is open, and all of it is left.
            true => assert_eq!((report.left, report.unfinished.len(), open), (2, 0, 0), "{report:?}"),
            false => assert_eq!((report.left, report.unfinished.len(), open), (0, 2, 2), "{report:?}"),
        }
        let stopped = |event: &&Event| matches!(event, Event::StepStopped { .. });
        assert_eq!(world.events.lock().unwrap().iter().filter(stopped).count(), 2);
        assert!(world.apply(&two()).await.succeeded(), "the next run goes on");
        world.assert_settled(&two(), "afterwards").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_objection_is_a_problem_of_the_plan() {
    let world = World::new();
    let plan = run(&world, Waiter { first: false, objects: true }).plan(&two().stack()).await.unwrap();
    let problems: Vec<_> =
        plan.problems.iter().map(|problem| (problem.kind, problem.address.name())).collect();
    assert_eq!(problems, [(ProblemKind::Precondition, "debian"), (ProblemKind::Precondition, "fedora")]);
    assert_eq!(
        (plan.problems[0].message.as_str(), plan.problems[0].hint.as_str()),
        ("it would do harm", "leave it")
    );
    assert_eq!(plan.steps.len(), 2, "what would be done is shown all the same");
}
