//! The key of the keyed digests: wrapped in the state, or in a file outside of it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rand::RngCore;
use strata_secret::DigestKey;
use strata_secrets::Identities;
use zeroize::Zeroizing;

use crate::command_error::CommandError;

const FILE: &str = "digest.key";

/// Reads the key, or draws one. Without the same key a changed secret cannot be told from an unchanged one.
pub(super) fn load_or_make(folder: &Path) -> Result<DigestKey, CommandError> {
    let path = folder.join(FILE);
    let failed = |what: &str, error: std::io::Error| {
        CommandError::failed(format!("cannot {what} `{}`: {error}", path.display()))
    };
    match fs::read(&path) {
        Ok(bytes) => DigestKey::from_bytes(&bytes).ok_or_else(|| {
            CommandError::failed(format!(
                "`{}` is not a key: it has {} bytes, not 32",
                path.display(),
                bytes.len()
            ))
            .hint("restore it; if it is lost, remove it: every secret then counts as changed once")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            make(folder, &path).map_err(|error| failed("make", error))?;
            // Another run may have been faster; then it is that one's.
            let bytes = Zeroizing::new(fs::read(&path).map_err(|error| failed("read", error))?);
            DigestKey::from_bytes(&bytes).ok_or_else(|| CommandError::failed("a key has 32 bytes"))
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// Draws a key and puts it there, whole, unless there is one by now.
fn make(folder: &Path, path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let new = folder.join(format!("{FILE}.{}", crate::context::random_hex(4)));
    let written = || -> std::io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&*draw())?;
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
pub(super) fn open(own: &DigestKey, lineage: &str) -> Result<(DigestKey, String), CommandError> {
    let derived = own.digest("strata", "open key", lineage.as_bytes());
    let key = DigestKey::from_bytes(derived.as_bytes());
    let key = key.ok_or_else(|| CommandError::failed("a key has 32 bytes"))?.stretched();
    let kept = format!("{OPEN}{}", hex::encode(key.expose()));
    Ok((key, kept))
}

/// The key that a state keeps.
pub(super) fn unwrap(wrapped: &str, identities: &Identities) -> Result<DigestKey, CommandError> {
    let bare = |text: &str| {
        let bytes = Zeroizing::new(hex::decode(text).unwrap_or_default());
        DigestKey::from_bytes(&bytes)
            .ok_or_else(|| CommandError::failed("the state's key of its digests is not a key"))
    };
    if let Some(text) = wrapped.strip_prefix(SEALED) {
        return bare(text);
    }
    if let Some(text) = wrapped.strip_prefix(OPEN) {
        return bare(text).map(DigestKey::stretched);
    }
    strata_secrets::unwrap_digest_key(wrapped, identities).map_err(|error| {
        CommandError::failed(format!(
            "cannot compare secrets: the state's key of their digests cannot be opened: {error}"
        ))
        .hint("give the age identity that opens the repository's secrets, by SOPS_AGE_KEY_FILE or as age.key")
    })
}

/// Puts a new key in the place of the old one. Every secret then counts as changed once.
pub(crate) fn renew(folder: &Path) -> Result<(), CommandError> {
    let path = folder.join(FILE);
    fs::create_dir_all(folder)
        .and_then(|()| crate::replace_file::replace_private(&path, &*draw()))
        .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))
}

fn draw() -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    rand::rng().fill_bytes(&mut *bytes);
    bytes
}
