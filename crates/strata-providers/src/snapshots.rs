//! Snapshots of etcd as files: encrypted with age, each with the name of the cluster that it is of, so that it is restored nowhere else and
//! pruned with no other.
//!
//! Before the snapshot stands one sector that says whose it is. `age -d FILE | tail -c +513` is the snapshot as etcd wrote it.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use strata_cluster::{EtcdSnapshot, SnapshotSink};
use strata_diagnostics::read_file;
use strata_engine::{ErrorClass, ProviderError};
use strata_secret::SecretBytes;
use strata_secrets::Recipient;
use strata_source::EffectiveStack;
use strata_source::cluster::Cluster as Written;
use strata_talos::{EtcdDatabase, SecretsBundle};

use strata_engine::Clock;
use strata_session::SessionError;

use crate::cluster::{Clusters, DrawnCluster};

const FOLDER: &str = ".strata/snapshots";
const KEEP: u32 = 10;
const ENDING: &str = ".snapshot.age";
const SURVIVOR: &str = ".survivor.age";
/// What a file of ours begins with, once it is decrypted, and how long that is.
const MAGIC: &str = "strata etcd snapshot 1\n";
const HEADER: usize = 512;
/// `20261116T211105`.
const STAMP: &str = "%Y%m%dT%H%M%S";

/// A snapshot that can be restored.
pub struct ReadSnapshot {
    pub bytes: SecretBytes,
    /// The cluster that a snapshot of ours says it is of: its name and its id.
    of: Option<(String, String)>,
    database: EtcdDatabase,
}

impl ReadSnapshot {
    /// Whether it is a snapshot of this cluster; says why not.
    ///
    /// A snapshot of ours says so itself. One of `talosctl` is known by the authority that its Kubernetes gives to every namespace, and one
    /// that is too young to have it by the names of its members and nodes.
    pub fn check(&self, drawn: &DrawnCluster, known: &[String]) -> Result<(), String> {
        if let Some((name, id)) = &self.of {
            return match *id == drawn.bundle.cluster_id {
                true => Ok(()),
                false => Err(format!(
                    "it is of the cluster `{name}`, whose secrets are others (cluster id `{id}`)"
                )),
            };
        }
        match self.database.has_authority(&String::from_utf8_lossy(&drawn.bundle.kubernetes.certificate)) {
            Some(true) => return Ok(()),
            Some(false) => {
                let names = named(self.database.nodes.iter().map(String::as_str));
                return Err(format!(
                    "its Kubernetes has another certificate authority than this cluster; its nodes are {names}"
                ));
            }
            None => {}
        }
        let members: Vec<&str> = self.database.members.iter().map(|member| member.name.as_str()).collect();
        let ours = |name: &str| {
            known.iter().any(|known| known == name) || drawn.plan.nodes.iter().any(|node| node.name == name)
        };
        let nodes = self.database.nodes.iter().map(String::as_str);
        if members.iter().copied().chain(nodes.clone()).any(ours) {
            return Ok(());
        }
        Err(format!(
            "its members are {}, its nodes {}: none of them is of this cluster",
            named(members),
            named(nodes)
        ))
    }
}

/// etcd's authors advise against databases beyond 8 GiB.
const LARGEST_SNAPSHOT: u64 = 9 * 1024 * 1024 * 1024;

fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl Clusters<'_> {
    /// Opens a snapshot of etcd: one of ours, encrypted with age; one as etcd writes it; or the database file of a member.
    pub fn read_snapshot(&self, path: &Path) -> Result<ReadSnapshot, SessionError> {
        let name = path.display();
        let content = read_file(path, LARGEST_SNAPSHOT)
            .map_err(|error| SessionError::failed(format!("cannot read `{name}`: {error}")))?;
        let sealed = [&b"age-encryption.org/"[..], &b"-----BEGIN AGE ENCRYPTED FILE-----"[..]];
        let plain = match sealed.iter().any(|start| content.starts_with(start)) {
            true => self.workspace.access().identities().decrypt(&content).map_err(|error| {
                SessionError::failed(format!("the etcd snapshot, `{name}`, cannot be opened: {error}"))
                    .hint("`SOPS_AGE_KEY_FILE` names the key that it was encrypted for")
            })?,
            false => SecretBytes::new(content),
        };
        let damaged = || {
            SessionError::failed(format!("`{name}` is not a complete etcd snapshot"))
                .hint("it was cut short, is damaged, or is something else; take another one")
        };
        let (of, bytes) = match plain.expose().strip_prefix(MAGIC.as_bytes()) {
            Some(_) => {
                let (header, bytes) = plain.expose().split_at_checked(HEADER).ok_or_else(damaged)?;
                (Some(origin(header).ok_or_else(damaged)?), SecretBytes::new(bytes))
            }
            None => (None, plain),
        };
        // A file of a member has no checksum at its end; then its structure has to speak for it.
        let sums = bytes.expose().len() % HEADER != 0;
        if sums && !strata_talos_client::is_intact_snapshot(bytes.expose()) {
            return Err(damaged());
        }
        let database = EtcdDatabase::read(bytes.expose()).ok_or_else(damaged)?;
        Ok(ReadSnapshot { bytes, of, database })
    }

    pub(crate) fn snapshots(
        &self,
        stack: &EffectiveStack,
        written: &Written,
        bundle: &SecretsBundle,
    ) -> Result<Snapshots, SessionError> {
        let own = written.cluster.etcd.as_ref().and_then(|etcd| etcd.snapshots.as_ref());
        let named = own.map(|own| own.recipients.as_slice()).unwrap_or_default();
        let mut recipients = Vec::new();
        for recipient in named {
            recipients.push(Recipient::parse(recipient).map_err(|error| {
                SessionError::failed(format!("`{recipient}` cannot read etcd snapshots: {error}"))
            })?);
        }
        if recipients.is_empty() {
            recipients = self.readers();
        }
        let folder = own.and_then(|own| own.directory.as_deref()).unwrap_or(FOLDER);
        Ok(Snapshots {
            clock: std::sync::Arc::clone(&self.workspace.surroundings().clock),
            folder: self.workspace.root().join(folder),
            stack: stack.name.clone(),
            cluster: written.cluster_name(&stack.name).to_owned(),
            id: bundle.cluster_id.clone(),
            recipients,
            keep: own.and_then(|own| own.keep).unwrap_or(KEEP) as usize,
        })
    }
}

/// Whose it is, by the sector before the snapshot.
fn origin(header: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(header.get(MAGIC.len()..)?).ok()?;
    let own: Value = serde_json::from_str(text.trim_end_matches(['\0', '\n'])).ok()?;
    Some((own["cluster"].as_str()?.to_owned(), own["id"].as_str()?.to_owned()))
}

/// Snapshots of one cluster.
pub(crate) struct Snapshots {
    clock: std::sync::Arc<dyn Clock>,
    folder: PathBuf,
    stack: String,
    /// As Talos and Kubernetes call it, and the id that only its own secrets have.
    cluster: String,
    id: String,
    recipients: Vec<Recipient>,
    keep: usize,
}

#[async_trait]
impl SnapshotSink for Snapshots {
    async fn keep(&self, copy: EtcdSnapshot) -> Result<String, ProviderError> {
        let failed = |reason: String| {
            ProviderError::new(ErrorClass::Internal, format!("the etcd snapshot cannot be kept: {reason}"))
        };
        if self.recipients.is_empty() {
            return Err(failed("there is nobody to encrypt it for".to_owned())
                .hint("name age recipients in `etcd.snapshots.recipients`"));
        }
        let plain = SecretBytes::new([self.header().as_slice(), copy.bytes.expose()].concat());
        let sealed = strata_secrets::encrypt_for(&plain, &self.recipients)
            .map_err(|error| failed(error.to_string()))?;
        std::fs::create_dir_all(&self.folder).map_err(|error| failed(error.to_string()))?;
        let place = self.free_place(copy.survivor.as_deref());
        strata_secrets::replace(&place, sealed.as_bytes()).map_err(|error| failed(error.to_string()))?;
        self.prune();
        Ok(format!("`{}`", place.display()))
    }
}

impl Snapshots {
    fn header(&self) -> Vec<u8> {
        let own = json!({"cluster": self.cluster, "id": self.id, "stack": self.stack});
        let mut header = format!("{MAGIC}{own}\n").into_bytes();
        // Names of clusters and stacks are short; what does not fit is not needed to know whose it is.
        if header.len() > HEADER {
            header = format!("{MAGIC}{}\n", json!({"cluster": "", "id": self.id})).into_bytes();
        }
        header.resize(HEADER, 0);
        header
    }

    /// Two stacks may have names that look alike as files, and two environments a stack of one name: the cluster's own id tells them apart.
    fn prefix_and_tail(&self) -> (String, String) {
        let digest = hex::encode(Sha256::digest(self.id.as_bytes()));
        (format!("{}-", self.stack.replace('/', "-")), format!("-{}", &digest[..12]))
    }

    /// A name that nothing has: two snapshots may be taken within a second.
    fn free_place(&self, survivor: Option<&str>) -> PathBuf {
        let (prefix, tail) = self.prefix_and_tail();
        let mut now = jiff::Timestamp::from_second(self.clock.now()).unwrap_or_default();
        loop {
            let stamp = now.strftime(STAMP);
            let name = match survivor {
                Some(node) => format!("{prefix}{stamp}{tail}-{node}{SURVIVOR}"),
                None => format!("{prefix}{stamp}{tail}{ENDING}"),
            };
            let place = self.folder.join(name);
            match now.checked_add(jiff::SignedDuration::from_secs(1)) {
                Ok(next) if place.exists() => now = next,
                _ => return place,
            }
        }
    }

    /// Whether a file is a snapshot of this very cluster: exactly its name, a time, and its id. The last data of a control plane without a
    /// majority are none: they are never pruned.
    fn is_own(&self, name: &str) -> bool {
        let (prefix, tail) = self.prefix_and_tail();
        let stamp = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(ENDING));
        stamp.and_then(|rest| rest.strip_suffix(&tail)).is_some_and(is_stamp)
    }

    /// Keeps the newest. Their names sort by time.
    fn prune(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let names = entries.flatten().map(|entry| entry.path());
        let own = names.filter(|path| {
            path.file_name().is_some_and(|name| self.is_own(&name.to_string_lossy())) && path.is_file()
        });
        let mut own: Vec<PathBuf> = own.collect();
        own.sort();
        // The one that was just made stays, whatever `keep` says.
        let surplus = own.len().saturating_sub(self.keep.max(1));
        for path in own.into_iter().take(surplus) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn is_stamp(text: &str) -> bool {
    let digits =
        |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('T').is_some_and(|(date, time)| digits(date, 8) && digits(time, 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> i64 {
            1_794_916_800
        }
    }

    fn of(stack: &str, id: &str) -> Snapshots {
        let (stack, cluster, id) = (stack.to_owned(), stack.to_owned(), id.to_owned());
        let clock = std::sync::Arc::new(Noon);
        Snapshots { clock, folder: PathBuf::new(), stack, cluster, id, recipients: Vec::new(), keep: 1 }
    }

    fn name(snapshots: &Snapshots) -> String {
        let place = snapshots.free_place(None);
        place.file_name().unwrap().to_string_lossy().into_owned()
    }

    #[test]
    fn f3_only_snapshots_of_the_same_cluster_are_its_own() {
        let own = of("prod", "a");
        assert!(own.is_own(&name(&own)));
        for other in [of("prod-2", "b"), of("prod", "b"), of("pro", "a"), of("prod-20261116T211105", "a")] {
            assert!(!own.is_own(&name(&other)) && !other.is_own(&name(&own)));
        }
        assert_ne!(name(&of("a/b", "1")), name(&of("a-b", "2")));
        let survivor = own.free_place(Some("prod-cp-1"));
        assert!(!own.is_own(&survivor.file_name().unwrap().to_string_lossy()));
        for foreign in ["prod-2-20260101T000000.snapshot.age", "prod-notes.txt", "prod-.snapshot.age", "prod"]
        {
            assert!(!own.is_own(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_header_says_whose_it_is() {
        let own = of("prod", "id=");
        assert_eq!(origin(&own.header()), Some(("prod".to_owned(), "id=".to_owned())));
        assert_eq!(own.header().len(), HEADER);
        let long = of(&"x".repeat(600), "id=");
        assert_eq!(origin(&long.header()), Some((String::new(), "id=".to_owned())));
    }
}
