//! Who can read a new file: the rules of the nearest `.sops.yaml`.

use std::path::Path;

use strata_secrets::sops::{self, CONFIG_FILE, CreationRule, CreationRules};

use super::{failed, read};
use crate::command_error::CommandError;

/// The rules that hold in a folder, and the folder where their paths start.
pub(super) fn rules(folder: &Path) -> Result<Option<(CreationRules, &Path)>, CommandError> {
    let Some(root) = folder.ancestors().find(|folder| folder.join(CONFIG_FILE).is_file()) else {
        return Ok(None);
    };
    let path = root.join(CONFIG_FILE);
    let text = String::from_utf8(read(&path)?).map_err(|_| failed(&path, "not text in UTF-8"))?;
    let rules = CreationRules::parse(&text).map_err(|error| failed(&path, error))?;
    Ok(Some((rules, root)))
}

/// The folder of the `.sops.yaml` that holds for a file, which need not exist yet, nor its folder.
pub(super) fn folder(path: &Path) -> Option<std::path::PathBuf> {
    path.ancestors().skip(1).find(|folder| folder.join(CONFIG_FILE).is_file()).map(Path::to_owned)
}

/// The rule for a file.
pub(super) fn rule(path: &Path) -> Result<Option<CreationRule>, CommandError> {
    let Some((rules, root)) = rules(path.parent().unwrap_or(path))? else { return Ok(None) };
    Ok(rules.for_path(path.strip_prefix(root).unwrap_or(path)).cloned())
}

/// The settings of a new file: its rule, with the recipients of the command line if there are any.
pub(super) fn settings(path: &Path, recipients: &[String]) -> Result<sops::Settings, CommandError> {
    let rule = rule(path)?;
    if !recipients.is_empty() {
        let groups = vec![recipients.to_vec()];
        let kept = rule.map(|rule| rule.settings).unwrap_or_default();
        return Ok(sops::Settings { groups, threshold: None, ..kept });
    }
    match rule {
        Some(rule) => rule.usable().cloned().map_err(|error| failed(path, error)),
        None => Err(failed(path, "no rule of a `.sops.yaml` says for whom it is to be encrypted")
            .hint("add a creation rule, or give `--age RECIPIENT`; `--vault` encrypts with a password")),
    }
}
