//! What OpenTofu built, matched with the resources of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::json;
use strata_blueprint::{Blueprint, kinds};
use strata_diagnostics::{Diagnostics, LARGEST_FILE, read_text_file};
use strata_engine::Proofs;
use strata_import::tofu_state::{BuiltCluster, BuiltGuest, BuiltObjects, BuiltVolume, Snippet, StateNote};
use strata_proxmox::{SNIPPETS, TAKEN_OVER};
use strata_resource::{Address, Resource, ResourceGraph, Spec, Value};
use strata_source::EffectiveStack;
use strata_state::StateDocument;
use strata_talos::{PatchesBetween, SecretsBundle};

use strata_session::{Before, SessionError, Workspace, plannable};

use crate::bundle::known_cluster;
use crate::cluster::Clusters;

/// What a state names of one stack.
#[derive(Default, Clone)]
pub struct ExpectedObjects {
    pub proofs: Proofs,
    /// The address in the state of OpenTofu, by ours.
    pub from: BTreeMap<Address, String>,
    /// Documents of cloud-init that are snippets, by machine.
    pub snippets: BTreeMap<Address, Vec<Snippet>>,
}

/// A state beside a repository.
pub struct Matched<'a> {
    /// By stack, in the order in which they are applied.
    pub stacks: Vec<(String, ExpectedObjects)>,
    /// The stacks that clusters belong to.
    pub clusters: Vec<(&'a BuiltCluster, String)>,
    /// What has no counterpart.
    pub notes: Vec<StateNote>,
}

/// What became of the secrets of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBundle {
    Written,
    Known,
}

/// A repository that takes over what OpenTofu built.
pub struct Takeover<'w> {
    workspace: &'w Workspace,
    clusters: Clusters<'w>,
}

impl<'w> Takeover<'w> {
    pub fn of(workspace: &'w Workspace) -> Self {
        Self { workspace, clusters: Clusters::of(workspace) }
    }

    /// Finds the counterparts of what was built, in the chosen environment.
    pub fn matched<'a>(
        &self,
        built: &'a BuiltObjects,
        stacks: &[String],
    ) -> Result<Matched<'a>, SessionError> {
        let mut matched = Matched { stacks: Vec::new(), clusters: Vec::new(), notes: Vec::new() };
        let mut drawn: Vec<(&EffectiveStack, Blueprint)> = Vec::new();
        for stack in self.workspace.select(stacks)?.into_iter().filter(|stack| plannable(stack)) {
            drawn.push((stack, self.workspace.blueprint_without_secrets(stack)?));
        }
        let mut expected: BTreeMap<&str, ExpectedObjects> = BTreeMap::new();
        for guest in &built.guests {
            let candidates = drawn.iter().flat_map(|(stack, blueprint)| {
                blueprint
                    .graph
                    .iter()
                    .filter(|resource| is_guest(resource, guest))
                    .map(|found| (*stack, found))
            });
            let candidates: Vec<(&EffectiveStack, &Resource)> = candidates.collect();
            match chosen(&candidates, &guest.name) {
                Some((stack, resource)) => {
                    let proof = [(TAKEN_OVER.to_owned(), Value::text(guest.proof.as_str()))].into();
                    let own = expected.entry(&stack.name).or_default();
                    own.add(resource, proof, &guest.address);
                    if !guest.snippets.is_empty() {
                        own.snippets.insert(resource.address.clone(), guest.snippets.clone());
                    }
                }
                None => matched.notes.push(StateNote {
                    address: guest.address.clone(),
                    message: self.without_counterpart(guest, candidates.len()),
                }),
            }
        }
        for volume in &built.volumes {
            let found = drawn.iter().find_map(|(stack, blueprint)| {
                Some((*stack, blueprint.graph.iter().find(|resource| is_volume(resource, volume))?))
            });
            match found {
                Some((stack, resource)) => {
                    let size = volume.size.map(|size| ("size".to_owned(), Value::Int(size)));
                    expected.entry(&stack.name).or_default().add(
                        resource,
                        size.into_iter().collect(),
                        &volume.address,
                    );
                }
                None => matched.notes.push(StateNote {
                    address: volume.address.clone(),
                    message: format!(
                        "the volume `{}` stays as it is: no image of the repository is kept under this name",
                        volume.volume
                    ),
                }),
            }
        }
        for object in &built.objects {
            let is_it = |resource: &&Resource| {
                resource.kind() == object.kind && resource.address.name() == object.name
            };
            let found = drawn
                .iter()
                .find_map(|(stack, blueprint)| Some((*stack, blueprint.graph.iter().find(is_it)?)));
            match found {
                Some((stack, resource)) => {
                    expected.entry(&stack.name).or_default().add(resource, Spec::new(), &object.address);
                }
                None => matched.notes.push(StateNote {
                    address: object.address.clone(),
                    message:
                        "it stays as it is: no file in `hypervisors/` has it; write it there and import again"
                            .to_owned(),
                }),
            }
        }
        for cluster in &built.clusters {
            match self.stack_of(cluster, &drawn) {
                Some(stack) => {
                    expected.entry(&stack.name).or_default();
                    matched.clusters.push((cluster, stack.name.clone()));
                }
                None => matched.notes.push(StateNote {
                    address: cluster.address.clone(),
                    message:
                        "no cluster of the repository has its machines: its secrets were not carried over"
                            .to_owned(),
                }),
            }
        }
        for (stack, _) in &drawn {
            matched.stacks.extend(expected.remove(stack.name.as_str()).map(|own| (stack.name.clone(), own)));
        }
        Ok(matched)
    }

    fn without_counterpart(&self, guest: &BuiltGuest, candidates: usize) -> String {
        let vm_id = guest.vm_id;
        if candidates > 1 {
            return format!(
                "several machines of the repository have the VMID {vm_id}, and none of them alone is called `{}`",
                guest.name
            );
        }
        let chosen = self.workspace.surroundings().environment.as_deref();
        let elsewhere =
            self.workspace.repository().effective().filter(|stack| plannable(stack)).find(|stack| {
                let is_other =
                    chosen.map_or(!stack.is_default_environment, |chosen| stack.environment != chosen);
                is_other
                    && self.workspace.blueprint_without_secrets(stack).is_ok_and(|blueprint| {
                        blueprint.graph.iter().any(|resource| is_guest(resource, guest))
                    })
            });
        match elsewhere {
            Some(stack) => format!(
                "the VMID {vm_id} belongs to the environment `{0}`: import with `-e {0}`",
                stack.environment
            ),
            None => format!(
                "no machine of the repository has the VMID {vm_id}: write it into a stack and import again"
            ),
        }
    }

    /// The cluster of the repository that has the machines, else the one of that name.
    fn stack_of<'s>(
        &self,
        cluster: &BuiltCluster,
        drawn: &[(&'s EffectiveStack, Blueprint)],
    ) -> Option<&'s EffectiveStack> {
        let ips: BTreeSet<&str> = cluster.nodes.iter().map(|node| node.ip.as_str()).collect();
        let clusters = || drawn.iter().filter_map(|(stack, _)| Some((*stack, stack.cluster()?)));
        let by_machine = clusters().find(|(stack, written)| {
            let machines = written.machines(&stack.name, &mut Diagnostics::new());
            machines.iter().any(|machine| {
                machine
                    .address
                    .as_ref()
                    .is_some_and(|address| ips.contains(address.value.to_string().as_str()))
            })
        });
        let by_name = || {
            clusters()
                .find(|(stack, written)| cluster.name.as_deref() == Some(written.cluster_name(&stack.name)))
        };
        by_machine.or_else(by_name).map(|(stack, _)| stack)
    }

    /// Keeps the secrets of a cluster, encrypted, under the lock of its state. Those of another cluster are never overwritten.
    pub async fn keep_bundle(
        &self,
        stack: &str,
        bundle: &SecretsBundle,
        write: bool,
    ) -> Result<(PathBuf, KeptBundle), SessionError> {
        bundle.add_to(self.workspace.redactor());
        let (stack, _) = self.clusters.written_cluster(stack)?;
        let path = self.clusters.bundle_path(stack, None);
        if self.is_kept(stack, &path, bundle)? {
            return Ok((path, KeptBundle::Known));
        }
        if !write {
            return Ok((path, KeptBundle::Written));
        }
        let mut locked = self.workspace.lock_state(stack, "import").await?;
        let kept = async {
            // An apply may have made keys in the meantime.
            if self.is_kept(stack, &path, bundle)? {
                return Ok(KeptBundle::Known);
            }
            self.refuse_other_cluster(stack, bundle, locked.state()).await?;
            self.clusters.keep_under_lock(stack, &path, bundle, &mut locked).await?;
            Ok::<_, SessionError>(KeptBundle::Written)
        }
        .await;
        let released = locked.release().await;
        let kept = kept?;
        released?;
        Ok((path, kept))
    }

    /// Whether the file is there with these secrets; with others it is refused.
    fn is_kept(
        &self,
        stack: &EffectiveStack,
        path: &Path,
        bundle: &SecretsBundle,
    ) -> Result<bool, SessionError> {
        let (place, name) = (self.workspace.root().join(path), path.display());
        if !place.is_file() {
            return Ok(false);
        }
        let known = self.clusters.present_bundle(path)?;
        if known == *bundle {
            return Ok(true);
        }
        Err(SessionError::refused(format!(
            "`{name}` holds other secrets than those that OpenTofu built `{}` with",
            stack.name
        ))
        .hint("one of the two is of another cluster: move that file away and import again"))
    }

    /// What OpenTofu built must not be another cluster than the one that the state knows, nor one that another stack has.
    async fn refuse_other_cluster(
        &self,
        stack: &EffectiveStack,
        bundle: &SecretsBundle,
        state: &StateDocument,
    ) -> Result<(), SessionError> {
        let id = bundle.cluster_id.as_str();
        if let Some(known) = known_cluster(Some(state)).filter(|known| *known != id) {
            let message = format!(
                "the state knows `{}` by the id `{known}`, and OpenTofu built a cluster with the id `{id}`",
                stack.name
            );
            return Err(SessionError::refused(message)
                .hint("another cluster has a folder of its own: write it there, and import with `--stack`"));
        }
        let Some((other, _)) = self.clusters.others_with(stack, id).await?.into_iter().next() else {
            return Ok(());
        };
        let message = format!(
            "the cluster that OpenTofu built for `{}` is known already: as `{}` in `{}`",
            stack.name, other.name, other.environment
        );
        Err(SessionError::refused(message)
            .hint(format!("one set of keys is one cluster: import with `--stack {}`", other.name)))
    }
}

/// What became of the configurations of a cluster's machines.
pub struct KeptConfigs {
    /// The files that keep them as they are, where such were needed.
    pub files: Vec<String>,
    pub notes: Vec<StateNote>,
}

impl Takeover<'_> {
    /// Keeps machines as OpenTofu configured them: what Strata would tell them otherwise becomes patches in a `nodes.yaml`; where the user
    /// has one, files that it names.
    pub fn keep_configs(
        &self,
        stack: &str,
        cluster: &BuiltCluster,
        write: bool,
    ) -> Result<KeptConfigs, SessionError> {
        let (stack, _) = self.clusters.written_cluster(stack)?;
        let drawn =
            self.workspace.draw(stack, &BTreeMap::new(), Some(&cluster.secrets), &Before::default())?;
        let plan = drawn.cluster.unwrap_or_default();
        let mut kept = KeptConfigs { files: Vec::new(), notes: Vec::new() };
        let mut nodes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for place in &plan.nodes {
            let name = &place.name;
            let built = cluster.nodes.iter().find(|node| node.ip == place.address);
            let Some((built, wanted)) = built.zip(plan.configs.get(name)) else { continue };
            let between = PatchesBetween::new(wanted, &built.config);
            if !between.left.is_empty() {
                let fields = between.left.join("`, `");
                let message = format!(
                    "the configuration of `{name}` differs where a patch could hold a secret: `{fields}`"
                );
                kept.notes.push(StateNote { address: built.address.clone(), message });
            }
            if !between.patches.is_empty() {
                nodes.insert(name.clone(), between.patches);
            }
        }
        if nodes.is_empty() {
            return Ok(kept);
        }
        let folder = stack.folder.as_str();
        let path = format!("{folder}/nodes.yaml");
        let files = match read_text_file(&self.workspace.root().join(&path), LARGEST_FILE) {
            _ if folder.is_empty() => None,
            Ok(text) => beside(folder, &path, &text, &nodes),
            Err(_) => {
                let nodes = nodes.iter().map(|(name, patches)| (name.clone(), json!({"patches": patches})));
                Some(vec![(path, strata_import::tofu_state::nodes_file(nodes.collect()))])
            }
        };
        let Some(files) = files.filter(|files| self.are_new(files)) else {
            let names: Vec<&str> = nodes.keys().map(String::as_str).collect();
            let message = format!(
                "Strata would configure {} otherwise; `strata plan` shows how, and patches in `nodes.yaml` keep what is there",
                names.join(", ")
            );
            kept.notes.push(StateNote { address: cluster.address.clone(), message });
            return Ok(kept);
        };
        for (path, text) in files {
            let place = self.workspace.root().join(&path);
            let written = match place.parent().filter(|_| write).map(std::fs::create_dir_all) {
                Some(Ok(())) => strata_secrets::replace(&place, text.as_bytes()),
                Some(Err(error)) => Err(error),
                None => Ok(()),
            };
            written.map_err(|error| SessionError::failed(format!("cannot write `{path}`: {error}")))?;
            kept.files.push(path);
        }
        Ok(kept)
    }

    /// Whether none of them is there but the last one, which is changed.
    fn are_new(&self, files: &[(String, String)]) -> bool {
        let others = files.iter().rev().skip(1);
        others.map(|(path, _)| self.workspace.root().join(path)).all(|place| !place.exists())
    }
}

/// A file for each patch, and last the user's own `nodes.yaml` that names them.
fn beside(
    folder: &str,
    path: &str,
    text: &str,
    nodes: &BTreeMap<String, Vec<String>>,
) -> Option<Vec<(String, String)>> {
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut files = Vec::new();
    for (name, patches) in nodes {
        for (number, patch) in (1..).zip(patches) {
            let file = format!("patches/{name}-{number}.yaml");
            let why = "# Keeps this machine as OpenTofu configured it.";
            files.push((format!("{folder}/{file}"), format!("{why}\n{patch}")));
            named.entry(name.clone()).or_default().push(file);
        }
    }
    files.push((path.to_owned(), strata_import::tofu_state::with_patches(text, &named)?));
    Some(files)
}

impl ExpectedObjects {
    /// Documents of cloud-init that are snippets stay such until the source has others: an ISO with the same in it would only restart the
    /// machine. Where the state knows that they are others already, the plan brings them.
    pub fn add_documents(&mut self, graph: &ResourceGraph) -> Vec<StateNote> {
        let mut notes = Vec::new();
        for (address, snippets) in &self.snippets {
            let volumes = graph.get(address).map(volumes_of).unwrap_or_default();
            let mut isos = graph.iter().filter(|resource| resource.kind() == kinds::CIDATA);
            let iso = isos.find(|iso| text(iso, "volume").is_some_and(|volume| volumes.contains(volume)));
            let Some((iso, volume)) = iso.and_then(|iso| Some((iso, text(iso, "volume")?))) else { continue };
            let from = self.from.get(address).cloned().unwrap_or_default();
            let names: Vec<&str> = snippets.iter().map(|snippet| snippet.volume.as_str()).collect();
            let names = names.join(", ");
            let message = if snippets.iter().any(|snippet| differs(iso, snippet)) {
                format!("its documents of cloud-init ({names}) are not those of the source")
            } else {
                let fact = (SNIPPETS.to_owned(), Value::text(volume));
                self.proofs.entry(address.clone()).or_default().insert(fact.0.clone(), fact.1.clone());
                self.proofs.insert(iso.address.clone(), [fact].into());
                self.from.insert(iso.address.clone(), names.clone());
                format!(
                    "its documents of cloud-init stay snippets ({names}); when they change in the source, Strata brings an ISO instead"
                )
            };
            notes.push(StateNote { address: from, message });
        }
        notes
    }

    /// Machines with Talos are known by their certificates; what they were told before is not asked again.
    pub fn add_machines(&mut self, graph: &ResourceGraph, cluster: &BuiltCluster) {
        for resource in graph.iter().filter(|resource| resource.kind() == kinds::MACHINE) {
            let ip = resource.spec.get("address").and_then(Value::as_text);
            if let Some(node) = cluster.nodes.iter().find(|node| Some(node.ip.as_str()) == ip) {
                self.add(resource, Spec::new(), &node.address);
            }
        }
        // Kubernetes runs where etcd was begun; its version is what the machines were told.
        for resource in graph.iter().filter(|resource| resource.kind() == kinds::KUBERNETES) {
            if let Some(bootstrap) = &cluster.bootstrap {
                self.add(resource, Spec::new(), bootstrap);
            }
        }
    }

    fn add(&mut self, resource: &Resource, proof: Spec, from: &str) {
        self.proofs.insert(resource.address.clone(), proof);
        self.from.insert(resource.address.clone(), from.to_owned());
    }
}

/// The one that is meant: the only one, or the only one of that name.
fn chosen<'c>(
    candidates: &[(&'c EffectiveStack, &'c Resource)],
    name: &str,
) -> Option<(&'c EffectiveStack, &'c Resource)> {
    if let [one] = candidates {
        return Some(*one);
    }
    let named = |(_, resource): &&(&EffectiveStack, &Resource)| {
        resource.spec.get("name").and_then(Value::as_text) == Some(name)
    };
    let mut named = candidates.iter().filter(named);
    named.next().filter(|_| named.next().is_none()).copied()
}

fn text<'r>(resource: &'r Resource, field: &str) -> Option<&'r str> {
    resource.spec.get(field).and_then(Value::as_text)
}

/// What is in the drives of a machine.
fn volumes_of(machine: &Resource) -> BTreeSet<&str> {
    let drives = machine.spec.get("cdroms").and_then(Value::as_map);
    drives
        .into_iter()
        .flat_map(Spec::values)
        .filter_map(|drive| drive.as_map()?.get("volume")?.as_text())
        .collect()
}

/// Whether a snippet is known to say something else than the document of the source.
fn differs(iso: &Resource, snippet: &Snippet) -> bool {
    let wanted = iso.spec.get("files").and_then(Value::as_map).and_then(|files| files.get(snippet.file));
    match (wanted, &snippet.content) {
        (Some(Value::Secret(wanted)), Some(content)) => {
            wanted.plain().is_none_or(|plain| plain.expose() != content.expose())
        }
        _ => false,
    }
}

fn is_guest(resource: &Resource, guest: &BuiltGuest) -> bool {
    let is_container = resource.kind() == kinds::CONTAINER;
    strata_proxmox::kinds::is_guest(resource.kind())
        && is_container == (guest.kind == kinds::CONTAINER)
        && strata_blueprint::vmid_of(resource) == Some(guest.vm_id)
}

fn is_volume(resource: &Resource, volume: &BuiltVolume) -> bool {
    let text = |field: &str| resource.spec.get(field).and_then(Value::as_text);
    let shared = resource.spec.get("shared").and_then(Value::as_bool) == Some(true);
    resource.kind() == kinds::IMAGE
        && text("volume") == Some(volume.volume.as_str())
        && (shared || text("node") == Some(volume.node.as_str()))
}
