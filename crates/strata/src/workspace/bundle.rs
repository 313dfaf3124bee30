//! The keys of clusters: made once, under the lock of the cluster's state, for one cluster of one environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use strata_blueprint::kinds;
use strata_cluster::Cluster;
use strata_diagnostics::{Diagnostic, LARGEST_FILE, read_file, read_text_file};
use strata_resource::{Spec, Value};
use strata_secret::{SecretBytes, SecretString};
use strata_secrets::{Access, OsRandom, sops};
use strata_source::EffectiveStack;
use strata_source::cluster::bundle::BundleOwner;
use strata_state::StateDocument;
use strata_talos::{SecretsBundle, ServiceAccountKey};

use super::targets::Targets;
use super::{Opening, Workspace};
use crate::command_error::CommandError;

/// Whether the secrets of a new cluster are made and kept, or only drawn to see what a plan would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    Make,
    Draw,
}

/// The id of the cluster that a state knows: whose keys were made for it, or whose etcd is bootstrapped.
pub(super) fn known_cluster(state: Option<&StateDocument>) -> Option<&str> {
    let state = state?;
    let bootstrapped = || {
        let mut resources = state.resources.iter();
        let (_, bootstrap) = resources.find(|(address, _)| address.kind() == kinds::BOOTSTRAP)?;
        bootstrap.spec.get("id").and_then(Value::as_text)
    };
    state.cluster.as_deref().or_else(bootstrapped)
}

impl Workspace<'_> {
    /// The file of a cluster's own secrets, from the root of the repository. An environment whose cluster runs with the file that all
    /// environments shared once keeps it.
    pub(crate) fn bundle_path(&self, stack: &EffectiveStack, state: Option<&StateDocument>) -> PathBuf {
        let is_file = |path: &Path| self.root().join(path).is_file();
        let own = stack.bundle_path(is_file).unwrap_or_default();
        let Some(known) = known_cluster(state).filter(|_| !is_file(&own)) else { return own };
        let runs_with = |path: &PathBuf| {
            is_file(path)
                && self.read_bundle(&self.root().join(path)).is_ok_and(|bundle| bundle.cluster_id == known)
        };
        stack.former_bundle_paths().into_iter().find(runs_with).unwrap_or(own)
    }

    /// The secrets of a cluster. They are made once, encrypted for the readers of the repository.
    pub(crate) async fn bundle(
        &self,
        stack: &EffectiveStack,
        opening: &Opening,
        state: Option<&StateDocument>,
    ) -> Result<SecretsBundle, CommandError> {
        let path = self.bundle_path(stack, state);
        let name = path.display();
        if self.root().join(&path).is_file() {
            return self.present_bundle(&path);
        }
        let known = known_cluster(state).filter(|_| !opening.destroy);
        if let Some(known) = known {
            return Err(missing(stack, &path, known));
        }
        if opening.keys == Keys::Make {
            return self.make_bundle(stack, &path).await;
        }
        if !opening.destroy {
            let note = format!(
                "the secrets of `{}` do not exist yet; `strata apply` makes them in `{name}`",
                stack.name
            );
            self.context.printer.note(note);
        }
        // Quick to make, and thrown away.
        SecretsBundle::generate(jiff::Timestamp::now(), ServiceAccountKey::Ecdsa, &mut OsRandom)
            .map_err(not_made)
    }

    /// Makes the keys under the lock: of two first applies only one does, and the other one is told.
    async fn make_bundle(&self, stack: &EffectiveStack, path: &Path) -> Result<SecretsBundle, CommandError> {
        let owner = self.context.lock_owner("apply");
        let mut locked = self.run(Targets::default(), None)?.lock(&self.empty_view(stack)?, owner).await?;
        let made = async {
            // Somebody else may have been faster.
            if self.root().join(path).is_file() {
                return self.present_bundle(path);
            }
            if let Some(known) = known_cluster(Some(locked.state())) {
                return Err(missing(stack, path, known));
            }
            let bundle =
                SecretsBundle::generate(jiff::Timestamp::now(), ServiceAccountKey::Rsa, &mut OsRandom)
                    .map_err(not_made)?;
            bundle.add_to(&self.redactor);
            let (place, name) = (self.root().join(path), path.display());
            let sealed = self.seal_file(path, &self.owned_yaml(stack, &bundle)?)?;
            locked.still_held()?;
            crate::replace_file::replace(&place, &sealed)
                .map_err(|error| CommandError::failed(format!("cannot write `{name}`: {error}")))?;
            // What an interrupted run left open is finished first; the record is made after that.
            if locked.open_entries() == 0 {
                locked.edit(|document| document.cluster = Some(bundle.cluster_id.clone())).await?;
            }
            let note = format!("made the secrets of the cluster, encrypted, in `{name}`: commit that file");
            self.context.printer.note(note);
            Ok(bundle)
        }
        .await;
        let released = locked.release().await;
        let bundle = made?;
        released?;
        Ok(bundle)
    }

    /// The file of a new bundle, with the cluster that it is for.
    pub(super) fn owned_yaml(
        &self,
        stack: &EffectiveStack,
        bundle: &SecretsBundle,
    ) -> Result<SecretString, CommandError> {
        let owner = BundleOwner {
            repository: self.repository_id()?.to_owned(),
            environment: stack.environment.clone(),
            cluster: stack.name.clone(),
        };
        Ok(SecretString::new(format!("{}{}", bundle.to_yaml().expose(), owner.to_yaml())))
    }

    fn present_bundle(&self, path: &Path) -> Result<SecretsBundle, CommandError> {
        self.read_bundle(&self.root().join(path)).map_err(|reason| {
            let name = path.display();
            CommandError::failed(format!("the secrets of the cluster, `{name}`, cannot be used: {reason}"))
        })
    }

    /// Keys that another cluster runs with, in this repository or in its states, are refused: two clusters with one set of keys
    /// become one etcd.
    pub(super) async fn refuse_foreign_bundle(
        &self,
        stack: &EffectiveStack,
        bundle: &SecretsBundle,
        state: Option<&StateDocument>,
    ) -> Result<(), CommandError> {
        let (path, id) = (self.bundle_path(stack, state), bundle.cluster_id.as_str());
        let name = path.display();
        if let Some(known) = known_cluster(state).filter(|known| *known != id) {
            let message = format!(
                "`{name}` holds the keys of another cluster: the state knows `{}` by the id `{known}`, the file says `{id}`",
                stack.name
            );
            return Err(CommandError::refused(message).hint(
                "put back the file that the cluster was made with; another cluster has a folder of its own",
            ));
        }
        let Some((other, _)) = self.others_with(stack, id).await?.into_iter().next() else { return Ok(()) };
        let message = format!(
            "`{name}` holds the keys of `{}` in `{}`: the nodes of `{}` in `{}` would join its etcd",
            other.name, other.environment, stack.name, stack.environment
        );
        let hint = format!("remove `{name}`: `strata apply` generates keys for a new cluster");
        Err(CommandError::refused(message).hint(hint))
    }

    /// Other clusters, and other environments of this one, whose states know the cluster with this id.
    pub(super) async fn others_with(
        &self,
        stack: &EffectiveStack,
        id: &str,
    ) -> Result<Vec<(&EffectiveStack, StateDocument)>, CommandError> {
        let store = self.store()?;
        let mut found = Vec::new();
        let clusters = self.repository().effective().filter(|other| other.cluster().is_some());
        for other in clusters.filter(|other| super::key(other) != super::key(stack)) {
            // A state that cannot be read says nothing; whoever works on it is told.
            let state = store.read(&super::key(other)).await.ok().flatten();
            found.extend(
                state.filter(|state| known_cluster(Some(state)) == Some(id)).map(|state| (other, state)),
            );
        }
        Ok(found)
    }

    /// Two environments that were applied with one set of keys are one etcd: the end of one takes members away from the other.
    /// Its control planes say whether ours are among the members.
    pub(super) async fn refuse_shared_etcd(
        &self,
        stack: &EffectiveStack,
        cluster: &Cluster,
        id: &str,
    ) -> Result<(), CommandError> {
        let own = cluster.node_addresses();
        for (other, state) in self.others_with(stack, id).await? {
            let text = |spec: &Spec, field: &str| spec.get(field).and_then(Value::as_text).map(str::to_owned);
            let machines = state.resources.iter().filter(|(address, _)| address.kind() == kinds::MACHINE);
            let control_planes = machines
                .filter(|(_, machine)| text(&machine.spec, "role").as_deref() == Some("controlplane"))
                .filter_map(|(_, machine)| text(&machine.spec, "address"));
            let control_planes: Vec<String> =
                control_planes.filter(|address| !own.contains(address)).collect();
            if control_planes.is_empty() {
                continue;
            }
            let (name, environment) = (&stack.name, &stack.environment);
            let theirs = format!("`{}` in `{}`", other.name, other.environment);
            let Some(members) = strata_cluster::member_addresses(cluster, &control_planes).await? else {
                let message = format!(
                    "`{name}` in `{environment}` has the keys of {theirs}, and none of its control planes tells whether both are one etcd"
                );
                return Err(CommandError::refused(message)
                    .hint("bring the control planes of the other one back first; where they are lost for good, `strata state rm` removes them from its state"));
            };
            let shared: Vec<&str> = members
                .iter()
                .map(String::as_str)
                .filter(|member| own.iter().any(|own| own == member))
                .collect();
            if !shared.is_empty() {
                let message = format!(
                    "`{name}` in `{environment}` and {theirs} are one etcd: a destroy would take its members at {} away",
                    shared.join(", ")
                );
                return Err(CommandError::refused(message).hint(
                    "`talosctl --nodes ADDRESS reset` takes a control plane out of etcd and wipes it: one after the other, then destroy",
                ));
            }
        }
        Ok(())
    }

    /// Files with the same keys, as far as they can be opened here. Copies that were not encrypted again are found without a key.
    pub(crate) fn shared_bundles(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut first: BTreeMap<String, (&EffectiveStack, PathBuf)> = BTreeMap::new();
        for stack in self.repository().effective() {
            let is_file = |path: &Path| self.root().join(path).is_file();
            let Some((path, cluster)) = stack.bundle_path(is_file).zip(stack.cluster()) else { continue };
            let Ok(bundle) = self.read_bundle(&self.root().join(&path)) else { continue };
            let Some((other, theirs)) = first.get(&bundle.cluster_id) else {
                first.insert(bundle.cluster_id, (stack, path));
                continue;
            };
            let message = format!(
                "`{}` and `{}` hold the same keys: the nodes of `{}` in `{}` would join the etcd of `{}` in `{}`",
                theirs.display(),
                path.display(),
                stack.name,
                stack.environment,
                other.name,
                other.environment
            );
            let hint =
                format!("remove `{}`: `strata apply` generates keys for a new cluster", path.display());
            let at = cluster.cluster.talos.version.span;
            found.push(Diagnostic::error("shared-keys", message).at(at).hint(hint));
        }
        found
    }

    pub(super) fn read_bundle(&self, place: &Path) -> Result<SecretsBundle, String> {
        let bundle = self.read_bundle_with(place, &self.access)?;
        bundle.add_to(&self.redactor);
        Ok(bundle)
    }

    pub(crate) fn read_bundle_with(&self, place: &Path, access: &Access) -> Result<SecretsBundle, String> {
        let content = read_file(place, LARGEST_FILE).map_err(|error| error.to_string())?;
        let format = sops::Format::of(place);
        let text = if sops::is_encrypted(&content, format) {
            let file = sops::SopsFile::parse(&content, format).map_err(|error| error.to_string())?;
            let open = file.open(access.identities()).map_err(|error| error.to_string())?;
            open.plaintext()
                .map_err(|error| error.to_string())?
                .into_string()
                .map_err(|_| "it is no text".to_owned())?
        } else {
            return Err("it is not encrypted; `strata secrets encrypt` does it".to_owned());
        };
        SecretsBundle::from_yaml(&text).map_err(|error| error.to_string())
    }

    /// Encrypts a new file: by the rules of `.sops.yaml`, else for everyone who reads the repository's secrets, else for us.
    pub(super) fn seal_file(&self, path: &Path, plain: &SecretString) -> Result<Vec<u8>, CommandError> {
        let settings = self.seal_settings(path)?;
        let plain = SecretBytes::new(plain.expose().as_bytes().to_vec());
        sops::encrypt(&plain, sops::Format::of(path), &settings, jiff::Timestamp::now(), &mut OsRandom)
            .map_err(|error| CommandError::failed(format!("cannot encrypt `{}`: {error}", path.display())))
    }

    fn seal_settings(&self, path: &Path) -> Result<sops::Settings, CommandError> {
        let failed = |error: sops::SopsError| CommandError::failed(format!("`.sops.yaml`: {error}"));
        if let Ok(text) = read_text_file(&self.root().join(sops::CONFIG_FILE), LARGEST_FILE) {
            let rules = sops::CreationRules::parse(&text).map_err(failed)?;
            if let Some(rule) = rules.for_path(path) {
                return rule.usable().cloned().map_err(failed);
            }
        }
        let readers = self.readers();
        if readers.is_empty() {
            let message = "there is nobody to encrypt the secrets of the cluster for";
            return Err(CommandError::failed(message).hint(
                "make a key with `age-keygen -o age.key`, and name its public half in `.sops.yaml`, or list a SOPS file under `secrets:`",
            ));
        }
        let group = readers.iter().map(|reader| reader.as_str().to_owned()).collect();
        Ok(sops::Settings { groups: vec![group], ..sops::Settings::default() })
    }
}

fn not_made(error: strata_talos::PkiError) -> CommandError {
    CommandError::failed(format!("cannot make the cluster's secrets: {error}"))
}

/// The state knows a cluster, and its keys are not here.
fn missing(stack: &EffectiveStack, path: &Path, known: &str) -> CommandError {
    let message = format!(
        "the secrets of `{}` are missing: they were made already, for the cluster with the id `{known}`, and `{}` is not here",
        stack.name,
        path.display()
    );
    CommandError::refused(message)
        .hint("fetch the file from whoever made it: pull their commit, or restore it; without it nobody can reach the nodes")
}
