//! The keys of clusters: made once, under the lock of the cluster's state, for one cluster of one environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use strata_blueprint::kinds;
use strata_cluster::Cluster;
use strata_diagnostics::{Diagnostic, LARGEST_FILE, read_file, read_text_file};
use strata_engine::LockedRun;
use strata_resource::{Spec, Value};
use strata_secret::{SecretBytes, SecretString};
use strata_secrets::{Access, sops};
use strata_source::EffectiveStack;
use strata_source::cluster::bundle::BundleOwner;
use strata_state::StateDocument;
use strata_talos::{SecretsBundle, ServiceAccountKey};

use strata_session::{HeldState, Keys, Purpose, SessionError, SessionEvent, key};

use crate::cluster::Clusters;

/// The id of the cluster that a state knows: whose keys were made for it, or whose etcd is bootstrapped.
pub(crate) fn known_cluster(state: Option<&StateDocument>) -> Option<&str> {
    let state = state?;
    let bootstrapped = || {
        let mut resources = state.resources.iter();
        let (_, bootstrap) = resources.find(|(address, _)| address.kind() == kinds::BOOTSTRAP)?;
        bootstrap.spec.get("id").and_then(Value::as_text)
    };
    state.cluster.as_deref().or_else(bootstrapped)
}

impl Clusters<'_> {
    /// The file of a cluster's own secrets, from the root of the repository. An environment whose cluster runs with the file that all
    /// environments shared once keeps it.
    pub fn bundle_path(&self, stack: &EffectiveStack, state: Option<&StateDocument>) -> PathBuf {
        let is_file = |path: &Path| self.workspace.root().join(path).is_file();
        let own = stack.bundle_path(is_file).unwrap_or_default();
        let Some(known) = known_cluster(state).filter(|_| !is_file(&own)) else { return own };
        let runs_with = |path: &PathBuf| {
            is_file(path)
                && self
                    .read_bundle(&self.workspace.root().join(path))
                    .is_ok_and(|bundle| bundle.cluster_id == known)
        };
        stack.former_bundle_paths().into_iter().find(runs_with).unwrap_or(own)
    }

    /// The secrets of a cluster. They are made once, encrypted for the readers of the repository, under the lock of its state.
    pub(crate) async fn keys(
        &self,
        stack: &EffectiveStack,
        purpose: &Purpose,
        state: &mut HeldState,
    ) -> Result<SecretsBundle, SessionError> {
        self.refuse_lost_bundle(stack, state.document(), purpose.destroy)?;
        let bundle = self.bundle(stack, purpose, state).await?;
        if !purpose.destroy {
            self.refuse_foreign_bundle(stack, &bundle, state.document()).await?;
        }
        Ok(bundle)
    }

    pub(crate) async fn bundle(
        &self,
        stack: &EffectiveStack,
        purpose: &Purpose,
        state: &mut HeldState,
    ) -> Result<SecretsBundle, SessionError> {
        let path = self.bundle_path(stack, Some(state.document()));
        if self.workspace.root().join(&path).is_file() {
            return self.present_bundle(&path);
        }
        let known = known_cluster(Some(state.document())).filter(|_| !purpose.destroy);
        if let Some(known) = known {
            return Err(missing(stack, &path, known));
        }
        match (purpose.keys, &mut *state) {
            (Keys::Make, HeldState::Locked(locked)) => self.make_bundle(stack, &path, locked).await,
            (Keys::Make, HeldState::Seen(_)) => self.make_and_look(stack, &path, state).await,
            (Keys::Draw, _) => {
                if !purpose.destroy {
                    self.session_event(SessionEvent::KeysMissing { stack: &stack.name, file: path });
                }
                // Quick to make, and thrown away.
                let (now, mut random) = (self.now(), self.random());
                SecretsBundle::generate(now, ServiceAccountKey::Ecdsa, &mut random).map_err(not_made)
            }
        }
    }

    /// For a plan that is saved: the lock is held as long as the keys are made, and the state is then the one that has them.
    async fn make_and_look(
        &self,
        stack: &EffectiveStack,
        path: &Path,
        state: &mut HeldState,
    ) -> Result<SecretsBundle, SessionError> {
        let mut locked = self.workspace.lock_state(stack, "apply").await?;
        let made = self.make_bundle(stack, path, &mut locked).await;
        *state = HeldState::Seen(Box::new(locked.replayed().clone()));
        let released = locked.release().await;
        let bundle = made?;
        released?;
        Ok(bundle)
    }

    /// Of two first applies only one makes the keys: it has the lock.
    async fn make_bundle(
        &self,
        stack: &EffectiveStack,
        path: &Path,
        locked: &mut LockedRun,
    ) -> Result<SecretsBundle, SessionError> {
        // Somebody else may have been faster.
        if self.workspace.root().join(path).is_file() {
            return self.present_bundle(path);
        }
        if let Some(known) = known_cluster(Some(locked.state())) {
            return Err(missing(stack, path, known));
        }
        let (now, mut random) = (self.now(), self.random());
        let bundle = SecretsBundle::generate(now, ServiceAccountKey::Rsa, &mut random).map_err(not_made)?;
        bundle.add_to(self.workspace.redactor());
        self.keep_under_lock(stack, path, &bundle, locked).await?;
        self.session_event(SessionEvent::KeysMade { file: path.to_owned() });
        Ok(bundle)
    }

    /// Writes the secrets, encrypted, and has the state know whose they are.
    pub(crate) async fn keep_under_lock(
        &self,
        stack: &EffectiveStack,
        path: &Path,
        bundle: &SecretsBundle,
        locked: &mut LockedRun,
    ) -> Result<(), SessionError> {
        let sealed = self.seal_file(path, &self.owned_yaml(stack, bundle)?)?;
        locked.still_held()?;
        strata_secrets::replace(&self.workspace.root().join(path), &sealed)
            .map_err(|error| SessionError::failed(format!("cannot write `{}`: {error}", path.display())))?;
        // What an interrupted run left open is finished first; the record is made after that.
        if locked.open_entries() == 0 {
            locked.edit(|document| document.cluster = Some(bundle.cluster_id.clone())).await?;
        }
        Ok(())
    }

    /// The file of a new bundle, with the cluster that it is for.
    pub(crate) fn owned_yaml(
        &self,
        stack: &EffectiveStack,
        bundle: &SecretsBundle,
    ) -> Result<SecretString, SessionError> {
        let owner = BundleOwner {
            repository: self.workspace.repository_id()?.to_owned(),
            environment: stack.environment.clone(),
            cluster: stack.name.clone(),
        };
        Ok(SecretString::new(format!("{}{}", bundle.to_yaml().expose(), owner.to_yaml())))
    }

    pub(crate) fn present_bundle(&self, path: &Path) -> Result<SecretsBundle, SessionError> {
        self.read_bundle(&self.workspace.root().join(path)).map_err(|reason| {
            let name = path.display();
            SessionError::failed(format!("the secrets of the cluster, `{name}`, cannot be used: {reason}"))
        })
    }

    /// Keys that another cluster runs with, in this repository or in its states, are refused: two clusters with one set of keys
    /// become one etcd.
    pub(crate) async fn refuse_foreign_bundle(
        &self,
        stack: &EffectiveStack,
        bundle: &SecretsBundle,
        state: &StateDocument,
    ) -> Result<(), SessionError> {
        let (path, id) = (self.bundle_path(stack, Some(state)), bundle.cluster_id.as_str());
        let name = path.display();
        if let Some(known) = known_cluster(Some(state)).filter(|known| *known != id) {
            let message = format!(
                "`{name}` holds the keys of another cluster: the state knows `{}` by the id `{known}`, the file says `{id}`",
                stack.name
            );
            return Err(SessionError::refused(message).hint(
                "put back the file that the cluster was made with; another cluster has a folder of its own",
            ));
        }
        let Some((other, _)) = self.others_with(stack, id).await?.into_iter().next() else { return Ok(()) };
        let message = format!(
            "`{name}` holds the keys of `{}` in `{}`: the nodes of `{}` in `{}` would join its etcd",
            other.name, other.environment, stack.name, stack.environment
        );
        let hint = format!("remove `{name}`: `strata apply` generates keys for a new cluster");
        Err(SessionError::refused(message).hint(hint))
    }

    /// Other clusters, and other environments of this one, whose states know the cluster with this id.
    pub(crate) async fn others_with(
        &self,
        stack: &EffectiveStack,
        id: &str,
    ) -> Result<Vec<(&EffectiveStack, StateDocument)>, SessionError> {
        let store = self.workspace.store()?;
        let mut found = Vec::new();
        let clusters = self.workspace.repository().effective().filter(|other| other.cluster().is_some());
        for other in clusters.filter(|other| key(other) != key(stack)) {
            // A state that cannot be read says nothing; whoever works on it is told.
            let state = store.read(&key(other)).await.ok().flatten();
            found.extend(
                state.filter(|state| known_cluster(Some(state)) == Some(id)).map(|state| (other, state)),
            );
        }
        Ok(found)
    }

    /// Two environments that were applied with one set of keys are one etcd: the end of one takes members away from the other.
    /// Its control planes say whether ours are among the members.
    pub(crate) async fn refuse_shared_etcd(
        &self,
        stack: &EffectiveStack,
        cluster: &Cluster,
        id: &str,
    ) -> Result<(), SessionError> {
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
                    "`{name}` in `{environment}` has the keys of {theirs}, and no control plane answers to show whether both are one etcd"
                );
                return Err(SessionError::refused(message)
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
                return Err(SessionError::refused(message).hint(
                    "`talosctl --nodes ADDRESS reset` takes a control plane out of etcd and wipes it: one after the other, then destroy",
                ));
            }
        }
        Ok(())
    }

    /// Files with the same keys, as far as they can be opened here. Copies that were not encrypted again are found without a key.
    pub fn shared_bundles(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut first: BTreeMap<String, (&EffectiveStack, PathBuf)> = BTreeMap::new();
        for stack in self.workspace.repository().effective() {
            let is_file = |path: &Path| self.workspace.root().join(path).is_file();
            let Some((path, cluster)) = stack.bundle_path(is_file).zip(stack.cluster()) else { continue };
            let Ok(bundle) = self.read_bundle(&self.workspace.root().join(&path)) else { continue };
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

    pub(crate) fn read_bundle(&self, place: &Path) -> Result<SecretsBundle, String> {
        let bundle = self.read_bundle_with(place, self.workspace.access())?;
        bundle.add_to(self.workspace.redactor());
        Ok(bundle)
    }

    pub fn read_bundle_with(&self, place: &Path, access: &Access) -> Result<SecretsBundle, String> {
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
    pub(crate) fn seal_file(&self, path: &Path, plain: &SecretString) -> Result<Vec<u8>, SessionError> {
        let settings = self.seal_settings(path)?;
        let plain = SecretBytes::new(plain.expose().as_bytes().to_vec());
        sops::encrypt(&plain, sops::Format::of(path), &settings, self.now(), &mut self.random())
            .map_err(|error| SessionError::failed(format!("cannot encrypt `{}`: {error}", path.display())))
    }

    fn seal_settings(&self, path: &Path) -> Result<sops::Settings, SessionError> {
        let failed = |error: sops::SopsError| SessionError::failed(format!("`.sops.yaml`: {error}"));
        if let Ok(text) = read_text_file(&self.workspace.root().join(sops::CONFIG_FILE), LARGEST_FILE) {
            let rules = sops::CreationRules::parse(&text).map_err(failed)?;
            if let Some(rule) = rules.for_path(path) {
                return rule.usable().cloned().map_err(failed);
            }
        }
        let readers = self.readers();
        if readers.is_empty() {
            let message = "there is nobody to encrypt the secrets of the cluster for";
            return Err(SessionError::failed(message).hint(
                "make a key with `age-keygen -o age.key`, and name its public half in `.sops.yaml`, or list a SOPS file under `secrets:`",
            ));
        }
        let group = readers.iter().map(|reader| reader.as_str().to_owned()).collect();
        Ok(sops::Settings { groups: vec![group], ..sops::Settings::default() })
    }
}

fn not_made(error: strata_talos::PkiError) -> SessionError {
    SessionError::failed(format!("cannot make the cluster's secrets: {error}"))
}

/// The state knows a cluster, and its keys are not here.
fn missing(stack: &EffectiveStack, path: &Path, known: &str) -> SessionError {
    let message = format!(
        "the secrets of `{}` are missing: they were made already, for the cluster with the id `{known}`, and `{}` is not here",
        stack.name,
        path.display()
    );
    SessionError::refused(message)
        .hint("fetch the file from whoever made it: pull their commit, or restore it; without it nobody can reach the nodes")
}
