//! The secrets of the infrastructure among the keys of a flat `cluster.yaml`.
//!
//! The family keeps that file out of git and makes an encrypted one from it. Secrets of applications go other ways and are left alone.

use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::{Parsed, parse};

use super::is_flat;

/// The encrypted file, from the folder of `cluster.yaml` on.
pub const SECRETS_FILE: &str = "infrastructure/secrets.sops.yaml";
/// The files of the family's rule in `.sops.yaml`.
pub const SECRETS_RULE: &str = r"infrastructure/.*\.sops\.ya?ml";
pub const TOKEN_ID: &str = "proxmox_api_token_id";
pub const TOKEN_SECRET: &str = "proxmox_api_token_secret";

const STATE_USERNAME: &str = "tfstate_username";
const STATE_PASSWORD: &str = "tfstate_password";
/// Who the state's server knows, unless the file says otherwise.
const DEFAULT_STATE_USERNAME: &str = "terraform";

/// In the order of the family's own file.
const KEYS: [&str; 6] =
    ["cf_account_id", STATE_USERNAME, STATE_PASSWORD, TOKEN_ID, TOKEN_SECRET, "state_encryption_passphrase"];

/// What a flat `cluster.yaml` says in the clear.
pub struct FlatSecrets {
    /// Name and value, those that are written down.
    pub values: Vec<(&'static str, String)>,
    /// Names that belong to a part that is not enabled: the encrypted file has no place for them.
    pub unwanted: Vec<&'static str>,
}

/// Finds them. `None` if the file is not of this family, or cannot be read: what is wrong is reported.
pub fn flat_secrets(path: &str, text: &str) -> Result<Option<FlatSecrets>, (SourceMap, Diagnostics)> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let file = sources.add(path, text);
    let tree = match parse(&sources, file, &mut diagnostics) {
        Parsed::Document(tree) => tree,
        Parsed::Empty => return Ok(None),
        Parsed::Broken => return Err((sources, diagnostics)),
    };
    if !is_flat(&tree) {
        return Ok(None);
    }
    let text_of = |key: &str| {
        let scalar = tree.get(key)?.as_scalar().filter(|scalar| !scalar.text.is_empty())?;
        Some(scalar.text.clone())
    };
    let enabled = tree.get("proxmox_api_url").is_some() && tree.get("proxmox_node").is_some();
    let is_proxmox = |key: &str| key.starts_with("proxmox_");
    let (mut values, mut unwanted) = (Vec::new(), Vec::new());
    for key in KEYS {
        if is_proxmox(key) && !enabled {
            unwanted.push(key);
        } else if let Some(value) = text_of(key) {
            values.push((key, value));
        } else if key == STATE_USERNAME && text_of(STATE_PASSWORD).is_some() {
            values.push((key, DEFAULT_STATE_USERNAME.to_owned()));
        }
    }
    Ok(Some(FlatSecrets { values, unwanted }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "node_cidr: 192.0.2.0/24
cloudflare_token: application
tfstate_password: pass
proxmox_api_token_id: root@pam!tofu
proxmox_api_token_secret: ''
state_encryption_passphrase: {secret: elsewhere}
";

    fn found(text: &str) -> FlatSecrets {
        flat_secrets("cluster.yaml", text).ok().flatten().expect("of the family")
    }

    #[test]
    fn what_is_written_in_the_clear_is_found() {
        let values = [("tfstate_username", "terraform".to_owned()), ("tfstate_password", "pass".to_owned())];
        let off = found(FILE);
        assert_eq!(off.values, values);
        assert_eq!(off.unwanted, [TOKEN_ID, TOKEN_SECRET]);
        let on = found(&format!("{FILE}proxmox_api_url: https://192.0.2.1:8006\nproxmox_node: pve\n"));
        assert_eq!(on.values[2], (TOKEN_ID, "root@pam!tofu".to_owned()));
        assert_eq!((on.values.len(), on.unwanted.len()), (3, 0));
    }

    #[test]
    fn other_files_are_not_taken() {
        assert!(flat_secrets("cluster.yaml", "cluster: {talos: {}}\n").is_ok_and(|found| found.is_none()));
        assert!(flat_secrets("cluster.yaml", "").is_ok_and(|found| found.is_none()));
        assert!(flat_secrets("cluster.yaml", "a: [\n").is_err());
    }
}
