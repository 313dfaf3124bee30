//! The repository that a command works in, and the way from a stack's name to something that can be planned.

pub(crate) mod arrival;
pub(crate) mod bundle;
pub(crate) mod cluster;
pub(crate) mod digest_key;
mod drawing;
mod driven;
mod infrastructure;
pub(crate) mod orphans;
mod removed;
mod resolve;
pub(crate) mod snapshots;
mod store;
mod targets;
mod tofu;
mod token_keeper;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use strata_diagnostics::{Color, Diagnostic, Diagnostics, SourceMap, Span};
use strata_engine::{Action, Limits, LockedRun, Operation, PlanFile, Run, StackView};
use strata_proxmox::ProxmoxProvider;
use strata_resource::{Address, Layer, Lineage, Resource, Spec, Value, diff_specs};
use strata_secret::{DigestKey, Redactor, SecretBytes, SecretString};
use strata_secrets::{Access, SecretStore};
use strata_source::settings::state::State;
use strata_source::world::Disk;
use strata_source::{EffectiveStack, Model, Repository};
use strata_state::{LeaseTerms, ReplayedState, StateDocument, Store};

use crate::command_error::{CommandError, ErrorKind};
use crate::context::{Context, SystemClock};
use crate::printer::Printer;
use crate::tofu::Program;
use crate::views::progress::Progress;
use bundle::Keys;
use cluster::Connecting;
pub(crate) use driven::{KnownOutputs, Opened};
pub(crate) use removed::{Removed, counted};
use targets::Targets;
use waiting::WaitingStore;

pub(crate) use waiting::read_duration;

/// The folder of Strata's own files in a repository.
pub(crate) const OWN_FOLDER: &str = ".strata";

pub(crate) struct Workspace<'c> {
    pub(crate) context: &'c Context,
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
    /// Every Proxmox that this run has connected, by target.
    proxmox: Mutex<BTreeMap<String, Arc<ProxmoxProvider>>>,
    /// The VMIDs that the source asks for in this run.
    wanted: Mutex<BTreeSet<u32>>,
}

/// A stack that can be planned.
pub(crate) struct StackSession {
    pub(crate) name: String,
    pub(crate) layer: Layer,
    pub(crate) view: StackView,
    pub(crate) run: Run,
    pub(crate) source_digest: String,
    pub(crate) outputs: BTreeMap<String, Value>,
    /// The key of the digests for the state to keep, where it keeps none yet.
    pub(crate) wrapped_key: Option<String>,
    /// It is not in the source any more.
    pub(crate) removed: bool,
    /// The id of the cluster whose keys it has.
    pub(crate) cluster: Option<String>,
}

/// What stacks are opened for.
#[derive(Clone)]
pub(crate) struct Opening {
    /// Nothing of them is wanted any more.
    pub(crate) destroy: bool,
    pub(crate) keys: Keys,
    /// Another etcd may be begun in the place of one that was lost.
    pub(crate) new_cluster: bool,
    /// A copy that a lost etcd begins from.
    pub(crate) restoring: Option<Arc<SecretBytes>>,
}

impl Opening {
    /// To look, and to change nothing, not even here.
    pub(crate) const LOOK: Self =
        Self { destroy: false, keys: Keys::Draw, new_cluster: false, restoring: None };
}

impl StackSession {
    /// Everything that Proxmox can be asked for its resources: made from nothing, changed, destroyed; and what brings those that the state
    /// knows to what the source says.
    pub(crate) fn whole_life(&self, state: &StateDocument) -> Vec<Operation> {
        let operation = |action, address: &Address, target: &str, spec: &Spec, changes| Operation {
            action,
            address: address.clone(),
            target: target.to_owned(),
            lineage: self.view.lineage.clone(),
            spec: spec.clone(),
            recorded: None,
            observed: None,
            changes,
            restart: true,
            replacement: false,
            payload: None,
        };
        let ours = |address: &Address| strata_proxmox::kinds::is_proxmox(address.kind());
        let mut all = Vec::new();
        for Resource { address, target, spec, .. } in self.view.graph.iter().filter(|one| ours(&one.address))
        {
            let known = state.resources.get(address);
            let changes = known.map(|known| {
                diff_specs(address.kind().rules(), spec, Some(&known.spec), &known.spec).changes
            });
            all.push(operation(Action::Create, address, target, spec, Vec::new()));
            all.push(operation(Action::Update, address, target, spec, changes.unwrap_or_default()));
            all.push(operation(Action::Delete, address, target, spec, Vec::new()));
        }
        let left = state
            .resources
            .iter()
            .filter(|(address, _)| ours(address) && self.view.graph.get(address).is_none());
        all.extend(left.map(|(address, known)| {
            operation(Action::Delete, address, &known.target, &known.spec, Vec::new())
        }));
        all
    }
}

impl<'c> Workspace<'c> {
    /// Finds and reads the repository. Every mistake in it is shown; with one of them the command ends here.
    pub(crate) fn load(context: &'c Context) -> Result<Self, CommandError> {
        Self::read(context, |_| false)
    }

    /// The same, with some warnings shown too.
    pub(crate) fn read(
        context: &'c Context,
        tells: impl Fn(&Diagnostic) -> bool,
    ) -> Result<Self, CommandError> {
        let root = find_root(&context.start())?;
        let disk = Disk::new(&root, context.environment.clone());
        let (repository, diagnostics) = Repository::load(&disk);
        let shown: Vec<&Diagnostic> =
            diagnostics.iter().filter(|found| found.is_error() || tells(found)).collect();
        show(context.printer, &shown, &repository.sources);
        if diagnostics.has_errors() {
            if !context.printer.is_json() {
                context.printer.note(count(&diagnostics));
            }
            return Err(CommandError::silent(ErrorKind::Failed));
        }
        for source in crate::secrets::sources(&repository.settings) {
            crate::replace_file::sweep_leftovers(&root.join(source.path()));
        }
        let redactor = Redactor::new();
        crate::bug::keep_secret(&redactor);
        let access = crate::secrets::access(context, &root);
        let secrets =
            crate::secrets::store(&root, &repository.settings, Arc::clone(&access), redactor.clone());
        let (store, program, removed) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (proxmox, wanted) = (Mutex::default(), Mutex::default());
        Ok(Self {
            context,
            root,
            repository,
            disk,
            access,
            secrets,
            redactor,
            store,
            program,
            removed,
            proxmox,
            wanted,
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Where something is written, for messages.
    fn origin(&self, span: Span) -> String {
        let location = self.repository.sources.location(span);
        format!("{}:{}", location.file, location.line)
    }

    /// A secret of the encrypted files, by its name.
    fn secret(&self, name: &str) -> Result<SecretString, String> {
        self.secrets.resolve(name).map_err(|error| error.to_string())
    }

    pub(crate) fn environment(&self) -> Option<String> {
        self.context.global.environment.clone()
    }

    fn select(&self, stacks: &[String]) -> Result<Vec<&EffectiveStack>, CommandError> {
        self.select_in(stacks, self.context.global.environment.as_deref())
    }

    fn select_in(
        &self,
        stacks: &[String],
        environment: Option<&str>,
    ) -> Result<Vec<&EffectiveStack>, CommandError> {
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
            let own = CommandError::failed(error.message);
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

    fn one(&self, stack: &str) -> Result<&EffectiveStack, CommandError> {
        match self.select(&[stack.to_owned()])?.as_slice() {
            [one] => Ok(one),
            _ => Err(CommandError::failed(format!("`{stack}` is more than one stack"))),
        }
    }

    /// What a stack is for, in the user's words.
    pub(crate) fn description(&self, stack: &str) -> Result<Option<String>, CommandError> {
        Ok(self.one(stack)?.description().map(str::to_owned))
    }

    /// The names that the arguments select, in the order in which they are applied.
    pub(crate) fn names(&self, stacks: &[String]) -> Result<Vec<String>, CommandError> {
        Ok(self.select(stacks)?.iter().map(|stack| stack.name.clone()).collect())
    }

    pub(crate) fn state_key(&self, stack: &str) -> Result<String, CommandError> {
        Ok(key(self.one(stack)?))
    }

    /// The keys of all states that the source speaks of.
    pub(crate) fn state_keys(&self) -> Vec<String> {
        self.repository.effective().map(key).collect()
    }

    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, CommandError> {
        if let Some(store) = self.store.get() {
            return Ok(store.clone());
        }
        let opened = store::open(self, self.repository.settings.state.as_ref(), &self.repository.sources)?;
        let opened = self.waiting(opened);
        Ok(self.store.get_or_init(|| opened).clone())
    }

    /// The terms of the leases of the store; none where a lock ends with its process.
    pub(crate) fn lease(&self) -> Option<LeaseTerms> {
        store::lease(self.repository.settings.state.as_ref())
    }

    /// A store that other settings than those of strata.yaml describe.
    pub(crate) fn other_store(
        &self,
        state: &State,
        sources: &SourceMap,
    ) -> Result<Arc<dyn Store>, CommandError> {
        Ok(self.waiting(store::open(self, Some(state), sources)?))
    }

    fn waiting(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let (patience, printer) = (self.context.global.lock_timeout, self.context.printer);
        if patience.is_zero() { store } else { Arc::new(WaitingStore { store, patience, printer }) }
    }

    /// The state of a stack with its journal, without looking at anything remote.
    pub(crate) async fn read_state(&self, stack: &str) -> Result<ReplayedState, CommandError> {
        let stack = self.one(stack)?;
        Ok(self.run(Targets::default(), None)?.read_state(&self.empty_view(stack)?).await?)
    }

    /// The state of a stack under its lock, for verbs that change only the state.
    pub(crate) async fn lock(&self, stack: &str, operation: &str) -> Result<LockedRun, CommandError> {
        let view = self.empty_view(self.one(stack)?)?;
        let locked =
            self.run(Targets::default(), None)?.lock(&view, self.context.lock_owner(operation)).await?;
        if locked.open_entries() > 0 {
            locked.release().await?;
            return Err(CommandError::refused("an interrupted apply left work open in this state")
                .hint("`strata apply` finishes it; then the state can be changed"));
        }
        Ok(locked)
    }

    /// The stacks that the arguments select and that Strata makes itself, ready to be planned.
    pub(crate) async fn open(
        &self,
        stacks: &[String],
        opening: Opening,
    ) -> Result<Vec<StackSession>, CommandError> {
        self.open_native(&self.select(stacks)?, &opening).await
    }

    /// Those of the stacks that Strata makes itself, in their order. For a destroy, nothing of them is wanted.
    async fn open_native(
        &self,
        selected: &[&EffectiveStack],
        opening: &Opening,
    ) -> Result<Vec<StackSession>, CommandError> {
        let destroy = opening.destroy;
        let mut targets = Targets::default();
        for stack in selected.iter().filter(|stack| !matches!(stack.model, Model::Tofu(_))) {
            targets.connect(self, stack).await?;
        }
        self.remember(&targets);
        // A storage that a lower layer is about to make is shared from the start.
        targets.expect_shared(self.repository.shared_storages());
        let mut sessions = Vec::new();
        for stack in selected.iter().copied().filter(|stack| plannable(stack)) {
            if let Some(removed) = self.removed_stack(&stack.name).filter(|_| is_removed(stack)) {
                if removed.tofu.is_some() {
                    return Err(removed.problem());
                }
                sessions.push(self.open_removed(stack, targets.clone())?);
                continue;
            }
            let mut view = self.empty_view(stack)?;
            let mut own_targets = targets.clone();
            // A damaged state is told by whoever reads it next, unless what is missing here may be known there.
            let mut state = match self.store()?.read(&view.key).await {
                Err(error) if self.lacks_bundle(stack) => return Err(error.into()),
                read => read.ok().flatten(),
            };
            let bundle = match stack.cluster() {
                Some(_) => {
                    self.refuse_lost_bundle(stack, state.as_ref(), destroy)?;
                    Some(self.bundle(stack, opening, state.as_ref()).await?)
                }
                None => None,
            };
            if let Some(bundle) = &bundle {
                // To make keys changes the state.
                state = self.store()?.read(&view.key).await.ok().flatten();
                if !destroy {
                    self.refuse_foreign_bundle(stack, bundle, state.as_ref()).await?;
                }
            }
            let cluster = bundle.as_ref().filter(|_| !destroy).map(|bundle| bundle.cluster_id.clone());
            let mut blueprint = self.draw(stack, targets.shared_storages(), bundle.as_ref())?;
            let planned = blueprint.cluster.take().zip(bundle).zip(stack.cluster());
            let resources = blueprint.graph.iter().filter(|resource| destroy && resource.protect);
            view.protected = resources.map(|resource| resource.address.clone()).collect();
            let mut outputs = BTreeMap::new();
            let keyed = blueprint.graph.iter().any(|resource| resource.spec.values().any(Value::has_secret));
            let (key, wrapped_key) = match keyed {
                true => {
                    let (key, wrapped) = self.digest_key(state.as_ref(), &view.lineage)?;
                    (Some(key), wrapped)
                }
                false => (None, None),
            };
            if !destroy {
                self.prove_age_key(&blueprint.graph)?;
            }
            if let Some(((plan, bundle), written)) = planned {
                let opening = opening.clone();
                let connecting =
                    Connecting { stack, written, state: state.as_ref(), key: key.clone(), opening };
                // Without its keys a cluster is still known by its state.
                let id = bundle::known_cluster(state.as_ref()).unwrap_or(&bundle.cluster_id).to_owned();
                let cluster =
                    self.connect_cluster(connecting, plan, bundle, &blueprint.graph, &mut own_targets)?;
                if destroy {
                    self.refuse_shared_etcd(stack, &cluster, &id).await?;
                }
            }
            let asked =
                blueprint.graph.iter().filter(|resource| strata_proxmox::kinds::is_guest(resource.kind()));
            let asked = asked.filter_map(|resource| orphans::vmid(&resource.spec));
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).extend(asked);
            if !destroy {
                (view.graph, outputs) = (blueprint.graph, blueprint.outputs);
                if let Some(key) = &key {
                    view.seal(key);
                }
            }
            sessions.push(StackSession {
                name: stack.name.clone(),
                layer: layer(stack),
                view,
                run: self.run(own_targets, key)?,
                source_digest: self.source_digest(stack),
                outputs,
                wrapped_key,
                removed: false,
                cluster,
            });
        }
        Ok(sessions)
    }

    fn remember(&self, targets: &Targets) {
        self.proxmox.lock().unwrap_or_else(PoisonError::into_inner).extend(targets.all_proxmox());
    }

    /// Connects every Proxmox of the environments at hand, whatever stacks there are.
    pub(crate) async fn connect(&self) -> Result<(), CommandError> {
        let environments: BTreeSet<String> = match &self.context.global.environment {
            Some(environment) => BTreeSet::from([environment.clone()]),
            None => {
                let entries = self.repository.stacks().iter().map(|entry| entry.default_environment.clone());
                entries.chain([strata_source::DEFAULT_ENVIRONMENT.to_owned()]).collect()
            }
        };
        let mut targets = Targets::default();
        for environment in environments {
            let nobody = strata_source::stack::Layer::Standalone;
            let stack = self.repository.removed("", &environment, false, nobody);
            targets.connect(self, &stack).await?;
        }
        self.remember(&targets);
        Ok(())
    }

    /// The key of a stack's digests: the one that its state keeps. Until it keeps one it comes from a file outside the state. Also gives the
    /// key as the state should keep it, where it does not yet: wrapped with age for the readers of the repository's secrets; as it is in a state
    /// that is encrypted; otherwise, in a store that others use too, one that makes each guess at a digest cost (docs/decisions/0013).
    fn digest_key(
        &self,
        state: Option<&StateDocument>,
        lineage: &Lineage,
    ) -> Result<(DigestKey, Option<String>), CommandError> {
        if let Some(kept) = state.and_then(|document| document.digest_key.as_ref()) {
            return Ok((digest_key::unwrap(kept, self.access.identities())?, None));
        }
        let key = digest_key::load_or_make(&self.root.join(OWN_FOLDER))?;
        let readers = crate::secrets::recipients(&self.root, &self.repository.settings);
        if readers.is_empty() {
            let settings = self.repository.settings.state.as_ref();
            if store::encrypts(settings) {
                let kept = digest_key::sealed(&key);
                return Ok((key, Some(kept)));
            }
            if store::lease(settings).is_none() {
                return Ok((key, None));
            }
            let (key, kept) = digest_key::open(&key, &lineage.to_string())?;
            return Ok((key, Some(kept)));
        }
        let wrapped = strata_secrets::wrap_digest_key(&key, &readers)
            .map_err(|error| CommandError::failed(format!("cannot wrap the key of the digests: {error}")))?;
        Ok((key, Some(wrapped)))
    }

    /// Takes the kept keys of the digests out of every state; the next apply keeps the one of the file.
    pub(crate) async fn forget_digest_keys(&self) -> Result<(), CommandError> {
        for stack in self.repository.effective() {
            let view = self.empty_view(stack)?;
            let owner = self.context.lock_owner("secrets rotate");
            let mut locked = self.run(Targets::default(), None)?.lock(&view, owner).await?;
            let mut outcome = Ok(());
            if locked.state().digest_key.is_some() {
                outcome = locked.edit(|document| document.digest_key = None).await;
            }
            locked.release().await?;
            outcome?;
        }
        Ok(())
    }

    fn repository_id(&self) -> Result<&str, CommandError> {
        match &self.repository.settings.repository {
            Some(id) => Ok(&id.value),
            None => Err(CommandError::failed("`strata.yaml` has no `repository:` id").hint(format!(
                "add a line such as `repository: {}`; marks and hardware addresses derive from it",
                crate::context::random_hex(5)
            ))),
        }
    }

    fn lineage(&self, stack: &EffectiveStack) -> Result<Lineage, CommandError> {
        Ok(Lineage::derive(self.repository_id()?, &key(stack)))
    }

    fn empty_view(&self, stack: &EffectiveStack) -> Result<StackView, CommandError> {
        Ok(StackView::empty(key(stack), self.lineage(stack)?))
    }

    fn run(&self, targets: Targets, key: Option<DigestKey>) -> Result<Run, CommandError> {
        Ok(Run {
            store: self.store()?,
            providers: targets.into_providers().sealing_with(key),
            clock: Arc::new(SystemClock),
            events: Arc::new(Progress::new(self.context.printer)),
        })
    }

    pub(crate) fn limits(&self, parallelism: Option<usize>) -> Limits {
        let mut limits = Limits::default();
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

    pub(crate) fn plan_file(&self, destroy: bool) -> PlanFile {
        PlanFile::new(env!("CARGO_PKG_VERSION"), commit(&self.root), self.environment(), destroy)
    }
}

/// OpenTofu's stacks are planned by OpenTofu.
fn plannable(stack: &EffectiveStack) -> bool {
    matches!(stack.model, Model::Hypervisor(_) | Model::Machines(_) | Model::Cluster(_) | Model::Removed)
}

fn is_removed(stack: &EffectiveStack) -> bool {
    matches!(stack.model, Model::Removed)
}

/// The key of a stack's state.
pub(crate) fn key(stack: &EffectiveStack) -> String {
    format!("{}/{}", stack.environment, stack.name)
}

pub(crate) fn layer(stack: &EffectiveStack) -> Layer {
    use strata_source::stack::Layer as Written;
    match stack.layer {
        Written::Hypervisors => Layer::Hypervisors,
        Written::Platforms => Layer::Platforms,
        Written::Standalone => Layer::Standalone,
    }
}

/// The folder itself or the nearest one above it that is a repository.
pub(crate) fn find_root(start: &Path) -> Result<PathBuf, CommandError> {
    let absolute = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
    if !absolute.is_dir() {
        return Err(CommandError::failed(format!("there is no folder `{}`", start.display())));
    }
    let is_root = |folder: &&Path| folder.join("strata.yaml").is_file();
    absolute.ancestors().find(is_root).map(Path::to_owned).ok_or_else(|| {
        CommandError::failed(format!("there is no `strata.yaml` in `{}` or above it", start.display()))
            .hint("`strata init` makes a repository; `-C DIR` names another folder")
    })
}

pub(crate) fn show(printer: Printer, found: &[&Diagnostic], sources: &SourceMap) {
    for diagnostic in found {
        if printer.is_json() {
            printer.event(&strata_diagnostics::to_json(diagnostic, sources));
        } else {
            printer.note(strata_diagnostics::render(diagnostic, sources, Color::Always));
        }
    }
}

fn count(diagnostics: &Diagnostics) -> String {
    match diagnostics.error_count() {
        1 => "1 error".to_owned(),
        errors => format!("{errors} errors"),
    }
}

/// The commit that the repository is at, if it is one.
fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let dirty = git(&["status", "--porcelain"]).is_some_and(|status| !status.is_empty());
    Some(if dirty { format!("{head}-dirty") } else { head })
}
