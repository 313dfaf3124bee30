//! The repository that a command works in, and the way from a stack's name to something that can be planned.

pub(crate) mod digest_key;
mod drawing;
mod driven;
mod elsewhere;
mod move_record;
pub(crate) mod moves;
mod opening;
mod parts;
mod reach;
mod removed;
mod resolve;
mod store;
mod tofu;
mod waiting;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use strata_diagnostics::{Diagnostics, SourceMap, Span};
use strata_engine::{Home, Limits, LockedRun, Providers, Run, StackView};
use strata_resource::{Layer, Lineage};
use strata_secret::{Redactor, SecretString};
use strata_secrets::{Access, SecretError, SecretStore};
use strata_source::settings::state::State;
use strata_source::world::Disk;
use strata_source::{EffectiveStack, Model, Repository};
use strata_state::{LeaseTerms, ReplayedState, Store, Version, Writer};

use crate::connections::Connections;
use crate::error::SessionError;
use crate::surroundings::Surroundings;
use crate::tofu::Program;
pub use drawing::Before;
pub use driven::KnownOutputs;
pub(crate) use moves::leave;
pub use opening::Opened;
pub(crate) use opening::{Attempt, OpenedStacks};
pub use reach::own_name;
use removed::Removed;
pub use removed::{RemovedStack, counted};
use waiting::WaitingStore;

/// The folder of Strata's own files in a repository.
pub const OWN_FOLDER: &str = ".strata";

/// A repository, its store and its connections. It has no lock: stacks have, once they are opened.
pub struct Workspace {
    surroundings: Surroundings,
    root: PathBuf,
    repository: Repository,
    disk: Disk,
    /// The user's keys; each is looked for when something needs it.
    access: Arc<Access>,
    secrets: SecretStore,
    /// Knows every secret that was resolved, so that nothing shown holds one.
    redactor: Redactor,
    /// Opened when it is first asked for: not every command needs a state.
    store: OnceLock<Arc<dyn Store>>,
    /// The user's OpenTofu, likewise: to find it takes two processes.
    program: OnceLock<Program>,
    /// What the store has and the source does not, where somebody looked.
    removed: OnceLock<Removed>,
    /// The states that the source speaks of, by their keys, and whether the objects of each can be moved.
    movable: OnceLock<Arc<BTreeMap<String, bool>>>,
    /// Whoever connects holds it, so that no target is connected twice.
    connections: tokio::sync::Mutex<Connections>,
}

impl Workspace {
    /// Finds and reads the repository. With errors among the diagnostics nothing of it may be planned.
    pub fn load(surroundings: Surroundings) -> Result<(Self, Diagnostics), SessionError> {
        Self::load_edited(surroundings, BTreeMap::new())
    }

    /// The repository as it would be with some files edited, by their paths from its root. Nothing is written.
    pub fn edited(&self, files: BTreeMap<String, String>) -> Result<(Self, Diagnostics), SessionError> {
        Self::load_edited(self.surroundings.clone(), files)
    }

    fn load_edited(
        surroundings: Surroundings,
        files: BTreeMap<String, String>,
    ) -> Result<(Self, Diagnostics), SessionError> {
        let root = find_root(&surroundings.start)?;
        let disk = Disk::new(&root, surroundings.variables.clone()).with_edits(files);
        let (repository, diagnostics) = Repository::load(&disk);
        let redactor = Redactor::new();
        let access = surroundings.access(&root);
        let sources = crate::secrets::sources(&repository.settings);
        if !diagnostics.has_errors() {
            for source in &sources {
                strata_secrets::sweep_leftovers(&root.join(source.path()));
            }
        }
        let secrets = SecretStore::new(&root, sources, Arc::clone(&access)).with_redactor(redactor.clone());
        let workspace = Self {
            surroundings,
            root,
            repository,
            disk,
            access,
            secrets,
            redactor,
            store: OnceLock::new(),
            program: OnceLock::new(),
            removed: OnceLock::new(),
            movable: OnceLock::new(),
            connections: tokio::sync::Mutex::default(),
        };
        Ok((workspace, diagnostics))
    }

    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What the repository was read from.
    pub fn world(&self) -> &Disk {
        &self.disk
    }

    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Where something is written, for messages.
    pub fn origin(&self, span: Span) -> String {
        let location = self.repository.sources.location(span);
        format!("{}:{}", location.file, location.line)
    }

    /// A secret of the encrypted files, by its name.
    pub fn secret(&self, name: &str) -> Result<SecretString, SecretError> {
        self.secrets.resolve(name)
    }

    pub fn environment(&self) -> Option<String> {
        self.surroundings.environment.clone()
    }

    pub fn select(&self, stacks: &[String]) -> Result<Vec<&EffectiveStack>, SessionError> {
        self.select_in(stacks, self.surroundings.environment.as_deref())
    }

    fn select_in(
        &self,
        stacks: &[String],
        environment: Option<&str>,
    ) -> Result<Vec<&EffectiveStack>, SessionError> {
        // What left the source is known by the store alone, and a whole environment can be like that.
        let removed = self.select_removed(stacks);
        let known = |argument: &&String| {
            !self.means_removed(argument)
                || self.repository.select(&[(*argument).clone()], environment).is_ok()
        };
        let rest: Vec<String> = stacks.iter().filter(known).cloned().collect();
        let selected = match self.repository.select(&rest, environment) {
            _ if rest.is_empty() && !stacks.is_empty() => Ok(Vec::new()),
            Err(_) if stacks.is_empty() && !removed.is_empty() => Ok(Vec::new()),
            other => other,
        };
        let selected = selected.map_err(|error| {
            let own = SessionError::failed(error.message);
            match error.hint {
                Some(hint) => own.hint(hint),
                None => own,
            }
        });
        let removed = removed.into_iter().filter(|stack| {
            // A stack of OpenTofu cannot be planned without its code.
            self.removed_stack(&stack.name).is_none_or(|removed| removed.tofu.is_none() || !stacks.is_empty())
        });
        Ok(selected?.into_iter().chain(removed).collect())
    }

    /// Whether an argument means a part of a stack: an address, or a pattern of addresses.
    pub fn is_part(&self, argument: &str) -> bool {
        self.pattern(argument).is_some()
    }

    pub fn one(&self, stack: &str) -> Result<&EffectiveStack, SessionError> {
        match self.select(&[stack.to_owned()])?.as_slice() {
            [one] => Ok(one),
            _ => Err(SessionError::failed(format!("`{stack}` is more than one stack"))),
        }
    }

    /// What a stack is for, in the user's words.
    pub fn description(&self, stack: &str) -> Result<Option<String>, SessionError> {
        Ok(self.one(stack)?.description().map(str::to_owned))
    }

    /// The names that the arguments select, in the order in which they are applied.
    pub fn names(&self, stacks: &[String]) -> Result<Vec<String>, SessionError> {
        Ok(self.select(stacks)?.iter().map(|stack| stack.name.clone()).collect())
    }

    pub fn state_key(&self, stack: &str) -> Result<String, SessionError> {
        Ok(key(self.one(stack)?))
    }

    /// The keys of all states that the source speaks of.
    pub fn state_keys(&self) -> Vec<String> {
        self.repository.effective().map(key).collect()
    }

    pub fn store(&self) -> Result<Arc<dyn Store>, SessionError> {
        if let Some(store) = self.store.get() {
            return Ok(store.clone());
        }
        let opened = store::open(self, self.repository.settings.state.as_ref(), &self.repository.sources)?;
        let opened = self.waiting(opened);
        Ok(self.store.get_or_init(|| opened).clone())
    }

    /// The kept versions of a state, newest first, and who wrote each: the document says it, whatever the store keeps beside it. Of one
    /// that cannot be read nobody knows.
    pub async fn history(&self, key: &str) -> Result<Vec<(Version, Option<Writer>)>, SessionError> {
        let store = self.store()?;
        let mut versions = Vec::new();
        for version in store.history(key).await? {
            let document = store.read_version(key, version.serial).await.ok();
            versions.push((version, document.and_then(|document| document.written_by)));
        }
        Ok(versions)
    }

    /// The terms of the leases of the store; none where a lock ends with its process.
    pub fn lease(&self) -> Option<LeaseTerms> {
        store::lease(self.repository.settings.state.as_ref())
    }

    /// A store that other settings than those of strata.yaml describe.
    pub fn other_store(&self, state: &State, sources: &SourceMap) -> Result<Arc<dyn Store>, SessionError> {
        Ok(self.waiting(store::open(self, Some(state), sources)?))
    }

    fn waiting(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let surroundings = self.surroundings.clone();
        if surroundings.lock_timeout.is_zero() {
            store
        } else {
            Arc::new(WaitingStore { store, surroundings })
        }
    }

    /// The state of a stack with its journal, without looking at anything remote.
    pub async fn read_state(&self, stack: &str) -> Result<ReplayedState, SessionError> {
        let stack = self.one(stack)?;
        Ok(self.run(Providers::default(), stack)?.read_state(&self.empty_view(stack)?).await?)
    }

    /// The state of a stack under its lock, for verbs that change only the state.
    pub async fn lock(&self, stack: &str, operation: &str) -> Result<LockedRun, SessionError> {
        let locked = self.lock_state(self.one(stack)?, operation).await?;
        if locked.open_entries() > 0 {
            locked.release().await?;
            return Err(SessionError::refused("an interrupted apply left work open in this state")
                .hint("`strata apply` finishes it; then the state can be changed"));
        }
        Ok(locked)
    }

    /// The same, with whatever an interrupted run left open.
    pub async fn lock_state(
        &self,
        stack: &EffectiveStack,
        operation: &str,
    ) -> Result<LockedRun, SessionError> {
        let owner = self.surroundings.lock_owner(operation);
        Ok(self.run(Providers::default(), stack)?.lock(&self.empty_view(stack)?, owner).await?)
    }

    /// The same for a state that may be of no stack of the source.
    pub async fn lock_key(&self, key: &str, operation: &str) -> Result<LockedRun, SessionError> {
        let view = StackView::empty(key.to_owned(), Lineage::derive(self.repository_id()?, key));
        let owner = self.surroundings.lock_owner(operation);
        Ok(self.run_of(key, Providers::default())?.lock(&view, owner).await?)
    }

    pub fn repository_id(&self) -> Result<&str, SessionError> {
        match &self.repository.settings.repository {
            Some(id) => Ok(&id.value),
            None => Err(SessionError::failed("`strata.yaml` has no `repository:` id").hint(format!(
                "add a line such as `repository: {}`; ownership marks and hardware addresses derive from it",
                self.surroundings.random_hex(5)
            ))),
        }
    }

    pub fn lineage(&self, stack: &EffectiveStack) -> Result<Lineage, SessionError> {
        Ok(Lineage::derive(self.repository_id()?, &key(stack)))
    }

    pub(crate) fn empty_view(&self, stack: &EffectiveStack) -> Result<StackView, SessionError> {
        let mut view = StackView::empty(key(stack), self.lineage(stack)?);
        view.home = Some(Home {
            repository: self.repository_id()?.to_owned(),
            file: self.repository.sources.path(stack.file).to_owned(),
            states: Arc::clone(self.movable.get_or_init(|| {
                let states = self.repository.effective().map(|stack| (key(stack), stack.is_movable()));
                Arc::new(states.collect())
            })),
        });
        Ok(view)
    }

    pub(crate) fn run(&self, providers: Providers, stack: &EffectiveStack) -> Result<Run, SessionError> {
        self.run_of(&key(stack), providers)
    }

    fn run_of(&self, key: &str, providers: Providers) -> Result<Run, SessionError> {
        Ok(Run {
            store: self.store()?,
            providers,
            clock: Arc::clone(&self.surroundings.clock),
            events: self.surroundings.observer.events(key),
        })
    }

    /// How much may happen at once in a run of so many stacks. What nobody wrote down is counted for each stack: stacks mostly wait for what is
    /// theirs alone, and what they share, a target or a storage, has a limit of its own.
    pub fn limits(&self, parallelism: Option<usize>, stacks: usize) -> Limits {
        let mut limits = Limits::default();
        limits.total *= stacks.max(1);
        if let Some(own) = &self.repository.settings.parallelism {
            let set = |limit: &mut usize, own: Option<u32>| {
                if let Some(own) = own {
                    *limit = own as usize;
                }
            };
            set(&mut limits.total, own.total);
            set(&mut limits.per_target, own.target);
            set(&mut limits.per_storage, own.storage);
            set(&mut limits.per_template, own.template);
        }
        if let Some(total) = parallelism {
            limits.total = total.max(1);
            limits.per_target = limits.per_target.min(limits.total);
        }
        limits
    }
}

/// Whether Strata makes it itself: OpenTofu's stacks are planned by OpenTofu.
pub fn plannable(stack: &EffectiveStack) -> bool {
    matches!(stack.model, Model::Hypervisor(_) | Model::Machines(_) | Model::Cluster(_) | Model::Removed)
}

pub(crate) fn is_removed(stack: &EffectiveStack) -> bool {
    matches!(stack.model, Model::Removed)
}

/// The key of a stack's state.
pub fn key(stack: &EffectiveStack) -> String {
    format!("{}/{}", stack.environment, stack.name)
}

pub fn layer(stack: &EffectiveStack) -> Layer {
    use strata_source::stack::Layer as Written;
    match stack.layer {
        Written::Hypervisors => Layer::Hypervisors,
        Written::Platforms => Layer::Platforms,
        Written::Workloads => Layer::Workloads,
    }
}

/// The folder itself or the nearest one above it that is a repository.
pub fn find_root(start: &Path) -> Result<PathBuf, SessionError> {
    let absolute = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
    if !absolute.is_dir() {
        return Err(SessionError::failed(format!("there is no folder `{}`", start.display())));
    }
    let is_root = |folder: &&Path| folder.join("strata.yaml").is_file();
    absolute.ancestors().find(is_root).map(Path::to_owned).ok_or_else(|| {
        SessionError::failed(format!("there is no `strata.yaml` in `{}` or above it", start.display()))
            .hint("`strata init` makes a repository; `-C DIR` names another folder")
    })
}

/// The commit that the repository is at, if it is one.
pub(crate) fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let dirty = git(&["status", "--porcelain"]).is_some_and(|status| !status.is_empty());
    Some(if dirty { format!("{head}-dirty") } else { head })
}
