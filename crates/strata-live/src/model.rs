//! What is known of a run: its plans, and what happened to each step.

use std::time::Duration;

use strata_engine::{Event, Plan, StepAction};
use strata_resource::{Address, Kind, Layer, Shown};

use crate::Times;

/// A stack with the steps of its plan.
#[derive(Debug, Clone)]
pub struct PlannedStack {
    /// The key of its state.
    pub key: String,
    pub name: String,
    pub layer: Layer,
    pub steps: Vec<Step>,
}

impl PlannedStack {
    /// A stack whose plan is Strata's own.
    pub fn of(key: String, name: String, layer: Layer, plan: &Plan) -> Self {
        let step = |step: &strata_engine::Step| Step {
            needs: step.needs.clone(),
            limits: step.limits.clone(),
            restarts: step.restart,
            ..Step::new(&step.address, step.action)
        };
        Self { key, name, layer, steps: plan.steps.iter().map(step).collect() }
    }
}

#[derive(Debug, Clone)]
pub struct Step {
    pub address: String,
    /// By which its time is remembered.
    pub what: String,
    /// What it is called while it runs, and when it is done.
    pub verbs: (&'static str, &'static str),
    /// Whether anything outside of the state changes.
    pub is_remote: bool,
    pub restarts: bool,
    /// Steps that must be done first, by their place.
    pub needs: Vec<usize>,
    pub limits: Vec<String>,
    pub state: State,
}

impl Step {
    pub fn new(address: &Address, action: StepAction) -> Self {
        let verbs = verbs(address.kind(), action);
        Self {
            what: format!("{} {}", address.kind(), verbs.1),
            address: address.to_string(),
            verbs,
            is_remote: action.is_remote(),
            restarts: false,
            needs: Vec::new(),
            limits: Vec::new(),
            state: State::Pending,
        }
    }
}

/// How far a step is. Times are those of the run.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Pending,
    Running {
        since: Duration,
        doing: String,
        /// Since when it does that, and whether a line said so.
        changed: Duration,
        told: bool,
    },
    Done {
        took: Duration,
    },
    Failed {
        took: Duration,
        message: String,
    },
    /// It only waited when the user said stop.
    Stopped {
        took: Duration,
        waited: String,
    },
    Skipped {
        because: String,
    },
}

impl State {
    pub(crate) fn is_over(&self) -> bool {
        !matches!(self, Self::Pending | Self::Running { .. })
    }
}

#[derive(Debug, Default)]
pub struct Model {
    pub(crate) stacks: Vec<PlannedStack>,
    pub(crate) times: Times,
    /// When the first step began.
    pub(crate) began: Option<Duration>,
    pub(crate) stopping: bool,
}

impl Model {
    pub fn new(times: Times) -> Self {
        Self { times, ..Self::default() }
    }

    /// What is going to be done. A stack that was planned before is planned again.
    pub fn plan(&mut self, stack: PlannedStack) {
        match self.stacks.iter_mut().find(|known| known.key == stack.key) {
            Some(known) => *known = stack,
            None => self.stacks.push(stack),
        }
        self.stacks.sort_by_key(|stack| stack.layer);
    }

    /// Something happened to the stack with this key.
    pub fn take(&mut self, key: &str, event: &Event, now: Duration) {
        match event {
            Event::StepStarted { step, address, action, .. } => {
                self.began.get_or_insert(now);
                let known = self.step_or_new(key, *step, address, *action);
                known.state = State::Running { since: now, doing: String::new(), changed: now, told: false };
            }
            Event::StepProgress { step, doing: next, .. } => {
                if let Some(State::Running { doing, changed, told, .. }) = self.state(key, *step)
                    && doing != next
                {
                    next.clone_into(doing);
                    (*changed, *told) = (now, false);
                }
            }
            Event::StepDone { step, .. } => {
                let took = self.took(key, *step, now);
                if let Some(what) =
                    self.step(key, *step).filter(|one| one.is_remote).map(|one| one.what.clone())
                {
                    self.times.learn(&what, took);
                }
                self.ends(key, *step, State::Done { took });
            }
            Event::StepFailed { step, error, .. } => {
                let took = self.took(key, *step, now);
                self.ends(key, *step, State::Failed { took, message: error.message.clone() });
            }
            Event::StepStopped { step, waited, .. } => {
                let (took, waited) = (self.took(key, *step, now), waited.clone());
                self.ends(key, *step, State::Stopped { took, waited });
            }
            Event::StepSkipped { step, because, .. } => {
                self.ends(key, *step, State::Skipped { because: because.to_string() });
            }
            Event::Stopping { .. } => self.stopping = true,
            _ => {}
        }
    }

    /// What a step has been at for long enough to be told, each once.
    pub(crate) fn overdue(&mut self, now: Duration, quiet: Duration) -> Vec<String> {
        let mut lines = Vec::new();
        for step in self.stacks.iter_mut().flat_map(|stack| &mut stack.steps) {
            if let State::Running { doing, changed, told, .. } = &mut step.state
                && !*told
                && !doing.is_empty()
                && now.saturating_sub(*changed) >= quiet
            {
                *told = true;
                lines.push(format!("  {}: {doing}", step.address));
            }
        }
        lines
    }

    /// That what it does now was told.
    pub(crate) fn told(&mut self, key: &str, step: usize) {
        if let Some(State::Running { told, .. }) = self.state(key, step) {
            *told = true;
        }
    }

    pub(crate) fn step(&self, key: &str, step: usize) -> Option<&Step> {
        self.stacks.iter().find(|stack| stack.key == key)?.steps.get(step)
    }

    pub(crate) fn took(&self, key: &str, step: usize, now: Duration) -> Duration {
        match self.step(key, step).map(|step| &step.state) {
            Some(State::Running { since, .. }) => now.saturating_sub(*since),
            Some(State::Done { took } | State::Failed { took, .. } | State::Stopped { took, .. }) => *took,
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn running(&self) -> usize {
        let steps = self.stacks.iter().flat_map(|stack| &stack.steps);
        steps.filter(|step| matches!(step.state, State::Running { .. }) && step.is_remote).count()
    }

    fn ends(&mut self, key: &str, step: usize, state: State) {
        if let Some(known) = self.state(key, step) {
            *known = state;
        }
    }

    fn state(&mut self, key: &str, step: usize) -> Option<&mut State> {
        let stack = self.stacks.iter_mut().find(|stack| stack.key == key)?;
        stack.steps.get_mut(step).map(|step| &mut step.state)
    }

    /// Steps of a stack that nobody planned here are known from their first event on.
    fn step_or_new(&mut self, key: &str, step: usize, address: &Address, action: StepAction) -> &mut Step {
        let place = self.stacks.iter().position(|stack| stack.key == key).unwrap_or_else(|| {
            let name = key.rsplit('/').next().unwrap_or(key).to_owned();
            let (key, layer, steps) = (key.to_owned(), Layer::Workloads, Vec::new());
            self.stacks.push(PlannedStack { key, name, layer, steps });
            self.stacks.len() - 1
        });
        let steps = &mut self.stacks[place].steps;
        while steps.len() <= step {
            steps.push(Step::new(address, action));
        }
        &mut steps[step]
    }
}

/// What an action is called while it runs and when it is done.
pub(crate) fn verbs(kind: Kind, action: StepAction) -> (&'static str, &'static str) {
    match action {
        StepAction::Create => ("creating", "created"),
        StepAction::Update => ("changing", "changed"),
        StepAction::Record => ("recording", "recorded"),
        StepAction::Forget => ("dropping from the state", "dropped from the state"),
        StepAction::Delete => kind.table().shown.removing,
        StepAction::DeleteFormer => Shown::USUAL.removing,
    }
}
