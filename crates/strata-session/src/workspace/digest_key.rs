//! The key of the keyed digests: wrapped in the state, or in a file outside of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_engine::Sealing;
use strata_resource::{Address, Lineage};
use strata_secret::DigestKey;
use strata_secrets::Identities;
use strata_state::{MadeAs, StateDocument};
use zeroize::Zeroizing;

use super::{OWN_FOLDER, Workspace};
use crate::error::SessionError;
use crate::surroundings::Surroundings;

const FILE: &str = "digest.key";

impl Workspace {
    /// The key of a stack's digests: the one that its state keeps. Until it keeps one it comes from a file outside the state. Also gives the
    /// key as the state should keep it, where it does not yet: wrapped with age for the readers of the repository's secrets; as it is in a state
    /// that is encrypted; otherwise, in a store that others use too, one that makes each guess at a digest cost (docs/decisions/0013).
    pub(crate) fn digest_key(
        &self,
        state: &StateDocument,
        lineage: &Lineage,
    ) -> Result<(DigestKey, Option<String>), SessionError> {
        if let Some(kept) = &state.digest_key {
            return Ok((unwrap(kept, self.access.identities())?, None));
        }
        let key = load_or_make(&self.root.join(OWN_FOLDER), &self.surroundings)?;
        let readers = crate::secrets::recipients(&self.root, &self.repository.settings);
        if readers.is_empty() {
            let settings = self.repository.settings.state.as_ref();
            if super::store::encrypts(settings) {
                let kept = sealed(&key);
                return Ok((key, Some(kept)));
            }
            if super::store::lease(settings).is_none() {
                return Ok((key, None));
            }
            let (key, kept) = open(&key, &lineage.to_string())?;
            return Ok((key, Some(kept)));
        }
        let wrapped = strata_secrets::wrap_digest_key(&key, &readers)
            .map_err(|error| SessionError::failed(format!("cannot wrap the key of the digests: {error}")))?;
        Ok((key, Some(wrapped)))
    }

    /// What digests of a stack are made with: its key, and for what was moved the key and the address that it was made with.
    pub(crate) fn sealing(
        &self,
        key: Option<DigestKey>,
        origins: &BTreeMap<Address, MadeAs>,
    ) -> Result<Sealing, SessionError> {
        let mut sealing = Sealing::new(key);
        for (address, made) in origins {
            let own = made.digest_key.as_ref().map(|kept| unwrap(kept, self.access.identities()));
            sealing.insert(address.clone(), own.transpose()?, made.address.clone());
        }
        Ok(sealing)
    }

    /// Puts a new key of the digests in the place of the old one, and gives its file. Every secret then counts as changed once.
    pub async fn renew_digest_key(&self) -> Result<PathBuf, SessionError> {
        self.forget_digest_keys().await?;
        renew(&self.root.join(OWN_FOLDER), &self.surroundings)
    }

    /// Takes the kept keys of the digests out of every state; the next apply keeps the one of the file.
    async fn forget_digest_keys(&self) -> Result<(), SessionError> {
        for stack in self.repository.effective() {
            let mut locked = self.lock_state(stack, "secrets rotate").await?;
            let mut outcome = Ok(());
            let kept = locked
                .state()
                .resources
                .values()
                .any(|known| known.made_as.as_ref().is_some_and(|made| made.digest_key.is_some()));
            if kept || locked.state().digest_key.is_some() {
                outcome = locked.edit(forget).await;
            }
            locked.release().await?;
            outcome?;
        }
        Ok(())
    }
}

fn forget(document: &mut StateDocument) {
    document.digest_key = None;
    for made in document.resources.values_mut().filter_map(|known| known.made_as.as_mut()) {
        made.digest_key = None;
    }
}

/// Reads the key, or draws one. Without the same key a changed secret cannot be told from an unchanged one.
pub(super) fn load_or_make(folder: &Path, surroundings: &Surroundings) -> Result<DigestKey, SessionError> {
    let path = folder.join(FILE);
    let failed = |what: &str, error: std::io::Error| {
        SessionError::failed(format!("cannot {what} `{}`: {error}", path.display()))
    };
    match read_file(&path, LARGEST_FILE) {
        Ok(bytes) => DigestKey::from_bytes(&bytes).ok_or_else(|| {
            SessionError::failed(format!(
                "`{}` is not a key: it has {} bytes, not 32",
                path.display(),
                bytes.len()
            ))
            .hint("restore it; if it is lost, remove it: every secret then counts as changed once")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            make(folder, &path, surroundings).map_err(|error| failed("make", error))?;
            // Another run may have been faster; then it is that one's.
            let bytes =
                Zeroizing::new(read_file(&path, LARGEST_FILE).map_err(|error| failed("read", error))?);
            DigestKey::from_bytes(&bytes).ok_or_else(|| SessionError::failed("a key has 32 bytes"))
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// Draws a key and puts it there, whole, unless there is one by now.
fn make(folder: &Path, path: &Path, surroundings: &Surroundings) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let new = folder.join(format!("{FILE}.{}", surroundings.random_hex(4)));
    let written = || -> std::io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&*draw(surroundings))?;
        file.sync_all()?;
        fs::hard_link(&new, path)
    };
    let outcome = written();
    let _ = fs::remove_file(&new);
    match outcome {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}

/// What a state says before a key that is not wrapped: one that is encrypted with the whole document, and one that anybody can read who
/// can read the digests.
const SEALED: &str = "key:";
const OPEN: &str = "open:";

/// Whether a kept key can be read only with an identity.
pub(crate) fn is_wrapped(kept: &str) -> bool {
    !kept.starts_with(SEALED) && !kept.starts_with(OPEN)
}

/// The key of this machine as a state keeps it that is encrypted itself.
pub(super) fn sealed(key: &DigestKey) -> String {
    format!("{SEALED}{}", hex::encode(key.expose()))
}

/// A key that stands in the state as it is, and how. It is derived from that of this machine, which other states may use and nobody gets to
/// see; so every plan before the first apply has the same.
pub(super) fn open(own: &DigestKey, lineage: &str) -> Result<(DigestKey, String), SessionError> {
    let derived = own.digest("strata", "open key", lineage.as_bytes());
    let key = DigestKey::from_bytes(derived.as_bytes());
    let key = key.ok_or_else(|| SessionError::failed("a key has 32 bytes"))?.stretched();
    let kept = format!("{OPEN}{}", hex::encode(key.expose()));
    Ok((key, kept))
}

/// The key that a state keeps.
pub(super) fn unwrap(wrapped: &str, identities: &Identities) -> Result<DigestKey, SessionError> {
    let bare = |text: &str| {
        let bytes = Zeroizing::new(hex::decode(text).unwrap_or_default());
        DigestKey::from_bytes(&bytes)
            .ok_or_else(|| SessionError::failed("the state's key of its digests is not a key"))
    };
    if let Some(text) = wrapped.strip_prefix(SEALED) {
        return bare(text);
    }
    if let Some(text) = wrapped.strip_prefix(OPEN) {
        return bare(text).map(DigestKey::stretched);
    }
    strata_secrets::unwrap_digest_key(wrapped, identities).map_err(|error| {
        SessionError::failed(format!(
            "cannot compare secrets: the state's key of their digests cannot be opened: {error}"
        ))
        .hint("give the age identity that opens the repository's secrets, by SOPS_AGE_KEY_FILE or as age.key")
    })
}

/// Puts a new key in the place of the old one. Every secret then counts as changed once.
pub(super) fn renew(folder: &Path, surroundings: &Surroundings) -> Result<PathBuf, SessionError> {
    let path = folder.join(FILE);
    fs::create_dir_all(folder)
        .and_then(|()| strata_secrets::replace_private(&path, &*draw(surroundings)))
        .map_err(|error| SessionError::failed(format!("cannot write `{}`: {error}", path.display())))?;
    Ok(path)
}

fn draw(surroundings: &Surroundings) -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    (surroundings.random)(&mut *bytes);
    bytes
}
