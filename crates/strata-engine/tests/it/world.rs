//! A test's world: two targets and a store in memory, and runs that behave as separate processes.

mod check;
mod process;
mod remote;
mod render;
mod script;
mod source;
mod store;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use strata_engine::{
    ApplyOptions, ApplyReport, Clock, Drift, EngineError, Event, Plan, Providers, ResolvedEntry, Run,
    StackView,
};
use strata_state::{LockOwner, Store};

pub(crate) use self::process::Process;
pub(crate) use self::remote::{FakeProvider, Remote};
pub(crate) use self::render::{describe_drift, describe_plan, describe_report};
pub(crate) use self::script::{Fault, kill_at};
pub(crate) use self::source::{KEY, Source, lineage, volid};
pub(crate) use self::store::MemoryStore;

pub(crate) struct World {
    pub(crate) pve: Arc<Remote>,
    pub(crate) lab: Arc<Remote>,
    pub(crate) store: Arc<dyn Store>,
    /// The same store, where it is the one in memory.
    pub(crate) memory: Option<Arc<MemoryStore>>,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Done(ApplyReport),
    /// The plan had problems; nothing was begun.
    Refused(Box<Plan>),
    /// The process is dead.
    Killed,
    Failed(EngineError),
}

impl Ending {
    pub(crate) fn succeeded(&self) -> bool {
        matches!(self, Self::Done(report) if report.is_success())
    }
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> i64 {
        1_700_000_000
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let memory = Arc::new(MemoryStore::default());
        Self { memory: Some(memory.clone()), ..Self::on(memory) }
    }

    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        register_kinds();
        Self {
            pve: Arc::new(Remote::default()),
            lab: Arc::new(Remote::default()),
            store,
            memory: None,
            events: Arc::default(),
        }
    }

    /// Another world in which everything is as it is here.
    pub(crate) fn fork(&self) -> Self {
        let memory = Arc::new(self.memory().fork());
        Self {
            pve: Arc::new(self.pve.fork()),
            lab: Arc::new(self.lab.fork()),
            memory: Some(memory.clone()),
            ..Self::on(memory)
        }
    }

    pub(crate) fn memory(&self) -> &MemoryStore {
        self.memory.as_deref().expect("this world's store is the one in memory")
    }

    /// What a process works with. Everything that it touches stops when it dies.
    pub(crate) fn run(&self, process: &Arc<Process>) -> Run {
        let mut providers = Providers::default();
        for (target, remote) in [("pve", &self.pve), ("lab", &self.lab)] {
            let provider = FakeProvider {
                remote: remote.clone(),
                process: process.clone(),
                target: target.to_owned(),
                witness: self.memory.clone(),
            };
            providers.insert(target, Arc::new(provider));
        }
        let store: Arc<dyn Store> = match &self.memory {
            Some(memory) => Arc::new(memory.used_by(process)),
            None => self.store.clone(),
        };
        let events = self.events.clone();
        let events = Arc::new(move |event| events.lock().unwrap().push(event));
        Run { store, providers, clock: Arc::new(Noon), events }
    }

    pub(crate) async fn plan(&self, source: &Source) -> Result<Plan, EngineError> {
        self.run(&Process::start()).plan(&source.stack()).await
    }

    pub(crate) async fn drift(&self, source: &Source) -> Result<Vec<Drift>, EngineError> {
        self.run(&Process::start()).drift(&source.stack()).await
    }

    pub(crate) async fn apply(&self, source: &Source) -> Ending {
        self.apply_with(source, &ApplyOptions::default()).await
    }

    pub(crate) async fn apply_with(&self, source: &Source, options: &ApplyOptions) -> Ending {
        let stack = source.stack();
        self.alive(async |process| {
            let mut locked = self.run(&process).lock(&stack, owner()).await?;
            let result = async {
                locked.recover().await?;
                let plan = locked.plan(&stack).await?;
                if !plan.problems.is_empty() {
                    return Ok(Ending::Refused(Box::new(plan)));
                }
                locked.apply(&plan, options).await.map(Ending::Done)
            }
            .await;
            locked.release().await?;
            result
        })
        .await
    }

    /// Only recovery, as `apply` begins.
    pub(crate) async fn recover(&self, stack: &StackView) -> Result<Vec<ResolvedEntry>, EngineError> {
        let mut locked = self.run(&Process::start()).lock(stack, owner()).await?;
        let resolved = locked.recover().await;
        locked.release().await?;
        resolved
    }

    /// Runs until it ends or its process dies. A run that waits for nothing is a deadlock: time stands still in these tests, so it is
    /// seen at once.
    async fn alive(&self, work: impl AsyncFnOnce(Arc<Process>) -> Result<Ending, EngineError>) -> Ending {
        let process = Process::start();
        let died = process.clone();
        tokio::select! {
            biased;
            () = died.death() => Ending::Killed,
            ended = work(process) => ended.unwrap_or_else(Ending::Failed),
            () = tokio::time::sleep(Duration::from_secs(120)) => panic!("the run waits for ever"),
        }
    }
}

pub(crate) fn owner() -> LockOwner {
    LockOwner {
        id: "1".into(),
        who: "me@here".into(),
        pid: 7,
        operation: "apply".into(),
        since: "2026-01-01T00:00:00Z".into(),
        process: None,
    }
}

/// An address of the one stack.
pub(crate) fn address(name: &str) -> strata_resource::Address {
    register_kinds();
    format!("s/{name}").parse().unwrap()
}

fn register_kinds() {
    strata_proxmox::kinds::register();
    strata_cluster::kinds::register();
}
