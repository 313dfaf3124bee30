//! Stories: what a user does and others do, and what comes of it, told in one text each.

mod life;
mod order;
mod ownership;
mod refusals;
mod restarts;
mod volumes;

use strata_engine::ApplyOptions;

use crate::world::{Ending, Source, World, describe_drift, describe_plan, describe_report, lineage};

/// A world and the text of what happened in it.
struct Story {
    world: World,
    text: String,
}

impl Story {
    fn new() -> Self {
        Self { world: World::new(), text: String::new() }
    }

    /// Says what happens next.
    fn when(&mut self, what: &str) -> &mut Self {
        self.text.push_str(&format!("\n# {what}\n"));
        self
    }

    fn tell(&mut self, what: &str, lines: &str) {
        let lines = lines.replace(lineage().as_str(), "LINEAGE").replace(lineage().short(), "SHORT");
        let lines: Vec<String> = lines.lines().map(|line| format!("  {line}\n")).collect();
        self.text.push_str(&format!("{what}:\n{}", lines.concat()));
    }

    async fn plan(&mut self, source: &Source) -> &mut Self {
        let plan = self.world.plan(source).await.unwrap();
        self.tell("plan", &describe_plan(&plan));
        self.world.assert_plans_are_equal(source, &self.text).await;
        self
    }

    async fn drift(&mut self, source: &Source) -> &mut Self {
        let drift = self.world.drift(source).await.unwrap();
        self.tell("drift", &describe_drift(&drift));
        self
    }

    /// Applies one step after the other, so that the text has one order.
    async fn run(&mut self, source: &Source) -> Ending {
        let options = ApplyOptions { limits: strata_engine::Limits::serial(), ..ApplyOptions::default() };
        let ending = self.world.apply_with(source, &options).await;
        self.tell("apply", &describe_report(&ending));
        let written = [self.world.pve.take_written(), self.world.lab.take_written()].concat();
        self.tell("written", &written.join("\n"));
        self.world.assert_nothing_lost(&self.text);
        ending
    }

    /// Plans, applies, and then has nothing to do.
    async fn apply(&mut self, source: &Source) -> &mut Self {
        self.plan(source).await;
        let ending = self.run(source).await;
        assert!(ending.succeeded(), "{}", self.text);
        self.world.assert_settled(source, &self.text).await;
        self
    }

    /// Plans and applies, and leaves something for a later plan.
    async fn apply_around(&mut self, source: &Source) -> &mut Self {
        self.plan(source).await;
        let ending = self.run(source).await;
        assert!(ending.succeeded(), "{}", self.text);
        self
    }

    /// Plans, applies, and does not get through.
    async fn try_apply(&mut self, source: &Source) -> &mut Self {
        self.plan(source).await;
        let ending = self.run(source).await;
        assert!(!ending.succeeded(), "{}", self.text);
        self
    }
}
