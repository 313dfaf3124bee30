//! Backups as storages list them: whose they are, and what is in them.
//!
//! A backup is ours if the configuration in it is that of our guest: by its ownership mark, or by the uuid or hardware address that the state
//! knows. Its notes say the same for people and for quick listings, and prove nothing: everybody who may back up can write them.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt};
use serde::Deserialize;
use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::CommentMark;

use crate::api::{NodeRow, Params, StorageRow, flag, whole};
use crate::client::{CallError, Client};
use crate::codec::{GuestKind, LiveConfig};
use crate::guest::Guest;
use crate::ownership::Claim;

/// One backup of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// `local:backup/vzdump-qemu-9100-….vma.zst`.
    pub volume: String,
    /// A hypervisor that sees it.
    pub node: String,
    /// Every hypervisor sees it.
    pub shared: bool,
    /// Seconds since 1970.
    pub created: i64,
    pub size: u64,
    /// The first line of its notes, without the ownership mark: listings show no more.
    pub notes: String,
    /// The ownership mark in its notes.
    pub mark: Option<CommentMark>,
    /// It cannot be removed or pruned.
    pub protected: bool,
    /// What a Proxmox Backup Server found when it verified it last: `ok` or `failed`. None where nobody verified it.
    pub verification: Option<String>,
    pub whose: Whose,
}

/// Whose guest a backup is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    Ours,
    /// Of another guest that had the VMID; why.
    Another(String),
    /// Its configuration cannot be read; why.
    Unknown(String),
}

/// What was found, newest first, and what could not be looked at.
#[derive(Debug, Clone, Default)]
pub struct Archives {
    pub found: Vec<Archive>,
    pub unseen: Vec<String>,
}

/// What is proven of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The volumes of the guest that are in it.
    pub disks: Vec<String>,
    /// Those that the guest had and that backups leave out.
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Row {
    volid: String,
    #[serde(default, deserialize_with = "whole")]
    ctime: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    size: Option<i64>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    protected: bool,
    #[serde(default)]
    verification: Option<Verification>,
}

#[derive(Debug, Clone, Deserialize)]
struct Verification {
    #[serde(default)]
    state: Option<String>,
}

/// A storage for backups, seen from a hypervisor.
#[derive(Debug, Clone)]
pub(crate) struct BackupStorage {
    pub(crate) name: String,
    pub(crate) shared: bool,
}

/// The storages of a hypervisor that take backups.
pub(crate) async fn storages(client: &Client, node: &str) -> Result<Vec<BackupStorage>, CallError> {
    let query = Params::new().with("content", "backup").with("enabled", 1);
    let rows: Vec<StorageRow> = client.get(&format!("/nodes/{node}/storage"), query).await?;
    let rows = rows.into_iter().filter(|row| row.active);
    Ok(rows.map(|row| BackupStorage { name: row.storage, shared: row.shared }).collect())
}

/// The backups with this VMID on one storage, whoever made them; whose they are is not looked at.
pub(crate) async fn listed(
    client: &Client,
    node: &str,
    storage: &BackupStorage,
    vmid: u32,
) -> Result<Vec<Archive>, CallError> {
    let query = Params::new().with("content", "backup").with("vmid", vmid);
    let rows: Vec<Row> =
        client.get(&format!("/nodes/{node}/storage/{}/content", storage.name), query).await?;
    let archive = |row: Row| {
        let (mark, notes) = CommentMark::split_from_comment(row.notes.as_deref().unwrap_or_default());
        Archive {
            volume: row.volid,
            node: node.to_owned(),
            shared: storage.shared,
            created: row.ctime.unwrap_or_default(),
            size: row.size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default(),
            notes,
            mark,
            protected: row.protected,
            verification: row.verification.and_then(|found| found.state),
            whose: Whose::Unknown("nobody looked".to_owned()),
        }
    };
    Ok(rows.into_iter().map(archive).collect())
}

/// Every backup with the VMID of an object, on every storage of every hypervisor, and whose each is.
pub(crate) async fn archives(
    client: &Client,
    operation: &Operation,
    vmid: u32,
) -> Result<Archives, ProviderError> {
    let nodes: Vec<NodeRow> =
        client.get("/nodes", Params::new()).await.map_err(|error| error.explain("list the nodes"))?;
    let (mut archives, mut seen) = (Archives::default(), BTreeSet::new());
    for node in nodes {
        let unseen = |error: CallError| format!("`{}`: {error}", node.node);
        if node.status.as_deref() == Some("offline") {
            archives.unseen.push(format!("`{}` is offline", node.node));
            continue;
        }
        let storages = match storages(client, &node.node).await {
            Ok(storages) => storages,
            Err(error) => {
                archives.unseen.push(unseen(error));
                continue;
            }
        };
        for storage in storages {
            if storage.shared && !seen.insert(storage.name.clone()) {
                continue;
            }
            match listed(client, &node.node, &storage, vmid).await {
                Ok(found) => archives.found.extend(found),
                Err(error) => archives.unseen.push(format!("`{}` on {}", storage.name, unseen(error))),
            }
        }
    }
    let looks = archives.found.into_iter().map(|archive| judged(client, operation, vmid, archive));
    archives.found =
        stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(client.parallelism()).collect().await;
    archives.found.sort_by(|one, other| (other.created, &other.volume).cmp(&(one.created, &one.volume)));
    Ok(archives)
}

async fn judged(client: &Client, operation: &Operation, vmid: u32, mut archive: Archive) -> Archive {
    archive.whose = match config(client, &archive.node, &archive.volume).await {
        Err(error) => Whose::Unknown(error.to_string()),
        Ok(config) => match dispute(operation, vmid, &archive.node, &config) {
            Some(why) => Whose::Another(why),
            None => Whose::Ours,
        },
    };
    archive
}

/// The configuration in a backup.
pub(crate) async fn config(client: &Client, node: &str, volume: &str) -> Result<LiveConfig, CallError> {
    let query = Params::new().with("volume", volume);
    let text: String = client.get(&format!("/nodes/{node}/vzdump/extractconfig"), query).await?;
    Ok(read_config(&text))
}

/// Why the guest of a configuration is not the object; none if it is.
pub(crate) fn dispute(operation: &Operation, vmid: u32, node: &str, config: &LiveConfig) -> Option<String> {
    let Some(kind) = GuestKind::of(operation.address.kind()) else {
        return Some("it is no guest".to_owned());
    };
    let guest = Guest { kind, node: node.to_owned(), vmid };
    let claim = Claim::new(&operation.lineage, &operation.address, operation.recorded.as_ref(), vmid);
    use strata_engine::Dispute;
    Some(match claim.dispute(&guest, config)? {
        Dispute::Because(why) => why,
        Dispute::Unclaimed | Dispute::InName => "nothing in it says that it is of this guest".to_owned(),
    })
}

/// The text of a configuration file: notes are comments at its top, and snapshots are sections at its end.
pub(crate) fn read_config(text: &str) -> LiveConfig {
    let (mut keys, mut notes) = (BTreeMap::new(), Vec::new());
    for line in text.lines().take_while(|line| !line.starts_with('[')) {
        if let Some(comment) = line.strip_prefix('#') {
            // What the backup itself noted is no note of the guest.
            if !["qmdump#", "vzdump#"].iter().any(|own| comment.starts_with(own)) {
                notes.push(unescaped(comment));
            }
        } else if let Some((key, value)) = line.split_once(": ") {
            keys.insert(key.to_owned(), value.trim().to_owned());
        }
    }
    if !notes.is_empty() {
        keys.insert("description".to_owned(), notes.join("\n"));
    }
    LiveConfig::of(&keys)
}

/// Proxmox writes colons and control characters of notes as `%3A`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The notes of a backup of ours: what the user wrote, then the ownership mark, in one line. As a template in which nothing is filled in.
pub(crate) fn notes_template(mark: &CommentMark, own: &str) -> String {
    let own = own.split_whitespace().collect::<Vec<_>>().join(" ");
    mark.join_to_comment(&own).replace('\\', "\\\\")
}

/// Proves that a backup is there, readable, and of this guest.
pub(crate) async fn verify(
    client: &Client,
    operation: &Operation,
    vmid: u32,
    archive: &Archive,
) -> Result<Verified, ProviderError> {
    let volume = &archive.volume;
    let bad = |message: String| ProviderError::new(ErrorClass::TaskFailed, message);
    if archive.size == 0 {
        return Err(
            bad(format!("the backup `{volume}` is empty")).hint("make another one: `strata backup run`")
        );
    }
    if let Some(state) = archive.verification.as_deref().filter(|state| *state != "ok") {
        return Err(bad(format!("Proxmox Backup Server verified `{volume}` and says `{state}`"))
            .hint("make another backup, and look at the datastore: some of its chunks are damaged"));
    }
    let found = config(client, &archive.node, volume).await;
    let found = found.map_err(|error| error.explain(&format!("read the configuration in `{volume}`")))?;
    if let Some(why) = dispute(operation, vmid, &archive.node, &found) {
        return Err(not_of_this(operation, volume, &why));
    }
    Ok(contents(&found))
}

pub(crate) fn not_of_this(operation: &Operation, volume: &str, why: &str) -> ProviderError {
    let mut error = ProviderError::new(
        ErrorClass::Conflict,
        format!("`{volume}` is no backup of `{}`: {why}", operation.address),
    )
    .hint(format!("`strata backup list {}` shows those that are", operation.address));
    error.nothing_done = true;
    error
}

/// The volumes in a backup: a disk can be left out by `backup=0`, and a mount point is, unless it says `backup=1`.
pub(crate) fn contents(config: &LiveConfig) -> Verified {
    let mut verified = Verified { disks: Vec::new(), left_out: Vec::new() };
    for slot in crate::codec::attached_now(config).into_keys() {
        let text = config.get(&slot).unwrap_or_default();
        let says = |flag: &str| text.split(',').any(|part| part == flag);
        let mount = slot.starts_with("mp");
        let inside = if mount { says("backup=1") } else { !says("backup=0") };
        if inside { &mut verified.disks } else { &mut verified.left_out }.push(slot);
    }
    verified
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_resource::Lineage;

    #[test]
    fn a_configuration_in_a_backup_is_read_without_its_snapshots() {
        let text = "#web%3A first\n#strata%3A ab web/vm/db vmid=9100\n#qmdump#map:scsi0:drive-scsi0:tank:raw:\nboot: order=scsi0\n\
                    scsi0: tank:vm-9100-disk-0,size=4G\nscsi1: tank:vm-9100-disk-1,backup=0,size=1G\nsmbios1: uuid=a\n\n[before]\nmemory: 1\n";
        let config = read_config(text);
        assert_eq!(config.get("description"), Some("web: first\nstrata: ab web/vm/db vmid=9100"));
        assert_eq!((config.get("boot"), config.get("memory")), (Some("order=scsi0"), None));
        assert_eq!(
            contents(&config),
            Verified { disks: vec!["scsi0".into()], left_out: vec!["scsi1".into()] }
        );
        let mounts = read_config(
            "rootfs: tank:subvol-1-disk-0,size=4G\nmp0: tank:a,mp=/a,backup=1\nmp1: tank:b,mp=/b\n",
        );
        assert_eq!(contents(&mounts).disks, ["mp0", "rootfs"]);
        assert_eq!(contents(&mounts).left_out, ["mp1"]);
        assert_eq!(
            (unescaped("50%"), unescaped("%zz"), unescaped("%C3%A4")),
            ("50%".into(), "%zz".into(), "ä".into())
        );
    }

    #[test]
    fn notes_are_a_template_without_line_ends() {
        crate::kinds::register();
        let mark = CommentMark::new(&Lineage::derive("r", "dev/web"), &crate::kinds::address("web/vm/db"));
        let template = notes_template(&mark, "before\\the\nupgrade");
        assert!(template.starts_with("before\\\\the upgrade [strata "), "{template}");
        assert!(!template.contains('\n') && template.ends_with(" web/vm/db]"));
    }
}
