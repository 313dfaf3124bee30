//! What a cluster needs besides its resources: its own secrets, its VMs' drives, and a place for copies of its etcd.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use strata_blueprint::{ClusterPlan, NodePlan, kinds};
use strata_cluster::{Cluster, ClusterOptions, Deadlines, Lease, Media, NodePlace};
use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_engine::ProviderError;
use strata_kubernetes::flux::{AGE_KEY_ENTRY, SOPS_AGE, prove_age_key};
use strata_net::TlsTrust;
use strata_proxmox::ProxmoxProvider;
use strata_resource::{Kind, Resource, ResourceGraph, Spec, Value};
use strata_secret::{DigestKey, RandomSource};
use strata_secrets::Recipient;
use strata_source::EffectiveStack;
use strata_source::cluster::Cluster as Written;
use strata_source::value::duration::Seconds;
use strata_state::StateDocument;
use strata_talos::SecretsBundle;
use strata_talos_client::SpkiPin;

use strata_session::{Before, HeldState, Purpose, SessionError, SessionEvent, Workspace, secrets};

/// A cluster as the source has it: what its nodes are told, and its keys.
pub struct DrawnCluster {
    pub plan: ClusterPlan,
    pub bundle: SecretsBundle,
    graph: ResourceGraph,
}

impl DrawnCluster {
    /// The version of Kubernetes that the source asks for, written or not.
    pub fn kubernetes(&self) -> Option<&str> {
        let own = self.graph.iter().find(|resource| resource.kind() == kinds::KUBERNETES)?;
        own.spec.get("version")?.as_text()
    }
}

/// Which cluster, and what for.
pub(crate) struct Connecting<'a> {
    pub(crate) stack: &'a EffectiveStack,
    pub(crate) state: &'a StateDocument,
    pub(crate) key: Option<DigestKey>,
    pub(crate) purpose: &'a Purpose,
    pub(crate) plan: ClusterPlan,
    pub(crate) bundle: SecretsBundle,
    pub(crate) graph: &'a ResourceGraph,
    /// Where its VMs are, where that is connected.
    pub(crate) proxmox: Option<Arc<ProxmoxProvider>>,
}

/// The clusters of a repository: their keys, their nodes, their snapshots.
pub struct Clusters<'w> {
    pub(crate) workspace: &'w Workspace,
}

impl<'w> Clusters<'w> {
    pub fn of(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.workspace.surroundings().now()
    }

    pub(crate) fn random(&self) -> impl RandomSource + use<> {
        self.workspace.surroundings().random()
    }

    pub(crate) fn session_event(&self, event: SessionEvent<'_>) {
        self.workspace.surroundings().observer.session_event(event);
    }

    /// A cluster by the name of its stack, as it is written.
    pub fn written_cluster(&self, stack: &str) -> Result<(&'w EffectiveStack, &'w Written), SessionError> {
        let one = self.workspace.one(stack)?;
        let written = one.cluster().ok_or_else(|| {
            SessionError::failed(format!("`{}` is no cluster", one.name))
                .hint("`strata talos` works on stacks that have a `cluster.yaml`")
        })?;
        Ok((one, written))
    }

    /// A cluster that has its keys, and its state. No target is asked.
    async fn drawn_with_state(&self, stack: &str) -> Result<(DrawnCluster, HeldState), SessionError> {
        let (stack, _) = self.written_cluster(stack)?;
        let mut state = HeldState::Seen(Box::new(self.workspace.read_state(&stack.name).await?));
        let path = self.bundle_path(stack, Some(state.document()));
        if !self.workspace.root().join(&path).is_file() {
            let message = format!("`{}` has no secrets yet: there is no `{}`", stack.name, path.display());
            return Err(SessionError::failed(message).hint("`strata apply` makes them, with the cluster"));
        }
        let bundle = self.bundle(stack, &Purpose::LOOK, &mut state).await?;
        let mut blueprint =
            self.workspace.draw(stack, &BTreeMap::new(), Some(&bundle), &Before::default())?;
        let plan = blueprint.cluster.take().unwrap_or_default();
        Ok((DrawnCluster { plan, bundle, graph: blueprint.graph }, state))
    }

    /// A cluster that has its keys. No target is asked.
    pub async fn drawn(&self, stack: &str) -> Result<DrawnCluster, SessionError> {
        Ok(self.drawn_with_state(stack).await?.0)
    }

    /// The nodes of a cluster, to be asked. Proxmox is not: it may be away.
    pub async fn connect(&self, stack: &str) -> Result<Arc<Cluster>, SessionError> {
        let (DrawnCluster { plan, bundle, graph }, state) = self.drawn_with_state(stack).await?;
        let (stack, _) = self.written_cluster(stack)?;
        let (state, purpose) = (state.document(), &Purpose::LOOK);
        self.cluster(Connecting {
            stack,
            state,
            key: None,
            purpose,
            plan,
            bundle,
            graph: &graph,
            proxmox: None,
        })
    }

    /// What is protected is not reset: by the source, and by the state where that was not applied yet.
    pub async fn refuse_protected(&self, stack: &str, node: &str) -> Result<(), SessionError> {
        let (drawn, state) = self.drawn_with_state(stack).await?;
        let is_node = |kind: Kind, name: &str| matches!(kind, kinds::MACHINE | kinds::VM) && name == node;
        let written = drawn.graph.iter().find(|one| is_node(one.kind(), one.address.name()) && one.protect);
        let applied = state.document().resources.iter();
        let mut applied =
            applied.filter(|(address, one)| is_node(address.kind(), address.name()) && one.protect);
        if written.is_none() && applied.next().is_none() {
            return Ok(());
        }
        let error = SessionError::refused(format!("`{node}` is protected, and a reset would wipe it"))
            .hint("set `protect: false`, apply that, then reset it");
        Err(match written.and_then(|one| one.origin.clone()) {
            Some(origin) => error.origin(Some(origin)),
            None => error,
        })
    }

    /// The secrets of every cluster in every environment, where they are there.
    pub fn bundle_files(&self) -> Vec<PathBuf> {
        let clusters =
            self.workspace.repository().effective().filter_map(|stack| Some((stack, stack.cluster()?)));
        let paths = clusters.map(|(stack, _)| self.workspace.root().join(self.bundle_path(stack, None)));
        paths.filter(|path| path.is_file()).collect()
    }

    /// New secrets would lock us out of a cluster that runs: where the state knows one, its own have to be brought back.
    pub(crate) fn refuse_lost_bundle(
        &self,
        stack: &EffectiveStack,
        state: &StateDocument,
        destroy: bool,
    ) -> Result<(), SessionError> {
        let path = self.bundle_path(stack, Some(state));
        let on_vm = |(_, resource): (&str, &strata_state::StateResource)| resource.spec.contains_key("vm");
        let begun = match destroy {
            // VMs go with their disks; metal would stay behind with keys that nobody can take away any more.
            true => !recorded(state, kinds::MACHINE).all(on_vm),
            false => {
                recorded(state, kinds::MACHINE).chain(recorded(state, kinds::BOOTSTRAP)).next().is_some()
            }
        };
        if !begun || self.workspace.root().join(&path).exists() {
            return Ok(());
        }
        let name = path.display();
        let message = format!(
            "the secrets of the cluster `{}` are missing: there is no `{name}`, and the state knows machines that run with them",
            stack.name
        );
        Err(SessionError::refused(message).hint(format!(
            "fetch the file from whoever made it, or bring the file back (`git log -- {name}`, a backup): without it nobody can reach the cluster, and new secrets would not open it; a cluster that is gone is removed with `strata state rm`"
        )))
    }

    /// Everyone who reads the repository's secrets; whoever we are, where there are none yet.
    pub(crate) fn readers(&self) -> Vec<Recipient> {
        let readers = secrets::recipients(self.workspace.root(), &self.workspace.repository().settings);
        if !readers.is_empty() {
            return readers;
        }
        let own = self.workspace.access().identities();
        own.recipients().iter().filter_map(|recipient| Recipient::parse(recipient).ok()).collect()
    }

    /// The target that the VMs of a cluster are on; without any in the source, the one that the state knows.
    pub(crate) fn vm_target(graph: &ResourceGraph, state: &StateDocument) -> Option<String> {
        let drawn = graph.iter().find(|resource| resource.kind() == kinds::VM).map(|vm| vm.target.clone());
        drawn.or_else(|| recorded(state, kinds::VM).next().map(|(_, resource)| resource.target.clone()))
    }

    /// Connects a cluster.
    pub(crate) fn cluster(&self, connecting: Connecting<'_>) -> Result<Arc<Cluster>, SessionError> {
        let Connecting { stack, state, key, purpose, plan, bundle, graph, proxmox } = connecting;
        let (_, written) = self.written_cluster(&stack.name)?;
        let settings = self.workspace.repository().settings(&stack.environment).clone();
        let mut nodes = Vec::with_capacity(plan.nodes.len());
        for node in plan.nodes {
            nodes.push(place(node)?);
        }
        let snapshots = self.snapshots(stack, written, &bundle)?;
        let options = ClusterOptions {
            stack: stack.name.clone(),
            name: plan.name,
            endpoint: plan.endpoint,
            vip: plan.vip,
            talos_version: written.cluster.talos.version.value.clone(),
            nodes,
            known: recorded(state, kinds::MACHINE)
                .filter_map(|(name, resource)| known(name, &resource.spec))
                .collect(),
            protected: graph
                .iter()
                .filter(|one| one.kind() == kinds::MACHINE && one.protect)
                .map(|one| one.address.name().to_owned())
                .collect(),
            configs: plan.configs,
            secrets: bundle,
            bootstrapped: recorded(state, kinds::BOOTSTRAP).next().is_some(),
            bootstrapped_as: recorded(state, kinds::BOOTSTRAP).map(|(name, _)| name.to_owned()).collect(),
            ending: purpose.destroy,
            waits_for_cni: plan.waits_for_cni,
            allow_even: plan.allow_even,
            new_cluster: purpose.new_cluster,
            restoring: purpose.restoring.clone(),
            deadlines: deadlines(written),
            dial: self.workspace.dial()?,
            trace: self.workspace.surroundings().trace.clone(),
            random: self.workspace.surroundings().jitter(),
            redactor: self.workspace.redactor().clone(),
            digest_key: key,
            media: proxmox.map(|provider| -> Box<dyn Media> {
                Box::new(Drives { provider, drives: graph.iter().filter_map(drive).collect() })
            }),
            snapshots: Some(Box::new(snapshots)),
            mirror: Box::new(move |url| settings.mirrored(url)),
            outside_tls: TlsTrust::System,
            root: self.workspace.root().to_owned(),
        };
        Ok(Arc::new(Cluster::new(options, self.now())?))
    }

    /// The key that Flux is to decrypt with must open a file of the repository here: in the cluster nobody would see why it fails.
    pub(crate) fn prove_age_key(&self, graph: &ResourceGraph) -> Result<(), SessionError> {
        let is_key = |resource: &&Resource| {
            resource.kind() == kinds::SECRET
                && resource.spec.get("secret").and_then(Value::as_text) == Some(SOPS_AGE)
        };
        let Some(resource) = graph.iter().find(is_key) else { return Ok(()) };
        let data = resource.spec.get("data").and_then(Value::as_map);
        let key = data.and_then(|data| match data.get(AGE_KEY_ENTRY) {
            Some(Value::Secret(key)) => key.plain(),
            _ => None,
        });
        let Some(key) = key else { return Ok(()) };
        let mut files = Vec::new();
        encrypted_files(self.workspace.root(), self.workspace.root(), &mut files);
        match prove_age_key(key, files) {
            Ok(_) => Ok(()),
            Err(error) => {
                let own = SessionError::failed(error.to_string()).origin(resource.origin.clone());
                Err(match error.hint() {
                    Some(hint) => own.hint(hint),
                    None => own,
                })
            }
        }
    }
}

/// Files that may be encrypted with SOPS, by their names, with their paths from the root.
fn encrypted_files(root: &Path, folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !path.is_symlink() && !name.starts_with('.') {
            encrypted_files(root, &path, found);
        } else if path.is_file()
            && name.contains("sops")
            && let Ok(content) = read_file(&path, LARGEST_FILE)
        {
            found.push((path.strip_prefix(root).unwrap_or(&path).to_owned(), content));
        }
    }
}

fn recorded(state: &StateDocument, kind: Kind) -> impl Iterator<Item = (&str, &strata_state::StateResource)> {
    state
        .resources
        .iter()
        .filter(move |(address, _)| address.kind() == kind)
        .map(|(address, resource)| (address.name(), resource))
}

fn place(node: NodePlan) -> Result<NodePlace, SessionError> {
    let NodePlan { name, address, control_plane, dhcp, mac, fingerprint } = node;
    let pin = fingerprint.map(|pin| pin.parse::<SpkiPin>()).transpose();
    let pin =
        pin.map_err(|error| SessionError::failed(format!("`maintenanceFingerprint` of `{name}`: {error}")))?;
    Ok(NodePlace { name, address, control_plane, lease: dhcp.then_some(Lease { mac }), pin })
}

/// How long the steps of a node's life may take, where the source says it.
fn deadlines(written: &Written) -> Deadlines {
    let usual = Deadlines::default();
    let Some(own) = &written.cluster.timeouts else { return usual };
    let or = |own: Option<Seconds>, usual| own.map_or(usual, Seconds::duration);
    Deadlines {
        boot: or(own.boot, usual.boot),
        join: or(own.join, usual.join),
        reboot: or(own.reboot, usual.reboot),
        flux: or(own.flux, usual.flux),
    }
}

fn known(name: &str, spec: &Spec) -> Option<NodePlace> {
    let text = |field: &str| spec.get(field).and_then(Value::as_text);
    Some(NodePlace {
        name: name.to_owned(),
        address: text("address")?.to_owned(),
        control_plane: text("role") == Some("controlplane"),
        lease: None,
        pin: None,
    })
}

/// The VMID and the drive that a node is installed from.
fn drive(vm: &Resource) -> Option<(String, (u32, String))> {
    let media = vm.spec.get("boot_media")?.as_map()?;
    let slot = media.get("slot")?.as_text()?.to_owned();
    Some((vm.address.name().to_owned(), (strata_blueprint::vmid_of(vm)?, slot)))
}

struct Drives {
    provider: Arc<ProxmoxProvider>,
    drives: BTreeMap<String, (u32, String)>,
}

#[async_trait]
impl Media for Drives {
    async fn is_inserted(&self, node: &str) -> Result<bool, ProviderError> {
        let Some((vmid, slot)) = self.drives.get(node) else { return Ok(false) };
        Ok(self.provider.inserted(*vmid, slot).await?.is_some())
    }

    async fn eject(
        &self,
        node: &str,
        before_write: &(dyn Fn() -> Result<(), ProviderError> + Sync),
    ) -> Result<(), ProviderError> {
        let Some((vmid, slot)) = self.drives.get(node) else { return Ok(()) };
        self.provider.eject(*vmid, slot, before_write).await
    }
}
