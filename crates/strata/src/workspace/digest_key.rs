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
            let bytes = draw();
            fs::create_dir_all(folder).map_err(|error| failed("make the folder of", error))?;
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(|error| failed("make", error))?;
            file.write_all(&*bytes).and_then(|()| file.sync_all()).map_err(|error| failed("write", error))?;
            DigestKey::from_bytes(&*bytes).ok_or_else(|| CommandError::failed("a key has 32 bytes"))
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// The key that a state keeps.
pub(super) fn unwrap(wrapped: &str, identities: &Identities) -> Result<DigestKey, CommandError> {
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
