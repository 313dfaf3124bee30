//! Who can read a new file: the rules of the nearest `.sops.yaml`.

use std::path::Path;

use strata_diagnostics::{LARGEST_FILE, read_text_file};

use crate::sops::{self, CONFIG_FILE, CreationRule, CreationRules, SopsError};

/// Why nobody can say who reads a new file.
#[derive(Debug, thiserror::Error)]
pub enum CreationError {
    #[error("`{file}`: {reason}")]
    Rules { file: String, reason: String },
    #[error(transparent)]
    Unusable(SopsError),
    #[error("no rule of a `.sops.yaml` says for whom it is to be encrypted")]
    NoRule,
}

/// The rules that hold in a folder, and the folder where their paths start.
pub fn rules(folder: &Path) -> Result<Option<(CreationRules, &Path)>, CreationError> {
    let Some(root) = folder.ancestors().find(|folder| folder.join(CONFIG_FILE).is_file()) else {
        return Ok(None);
    };
    let path = root.join(CONFIG_FILE);
    let wrong = |reason: String| CreationError::Rules { file: path.display().to_string(), reason };
    let text = read_text_file(&path, LARGEST_FILE).map_err(|error| wrong(error.to_string()))?;
    let rules = CreationRules::parse(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(Some((rules, root)))
}

/// The folder of the `.sops.yaml` that holds for a file, which need not exist yet, nor its folder.
pub fn folder(path: &Path) -> Option<std::path::PathBuf> {
    path.ancestors().skip(1).find(|folder| folder.join(CONFIG_FILE).is_file()).map(Path::to_owned)
}

/// The rule for a file.
pub fn rule(path: &Path) -> Result<Option<CreationRule>, CreationError> {
    let Some((rules, root)) = rules(path.parent().unwrap_or(path))? else { return Ok(None) };
    Ok(rules.for_path(path.strip_prefix(root).unwrap_or(path)).cloned())
}

/// The settings of a new file: its rule, with the recipients of the command line if there are any.
pub fn settings(path: &Path, recipients: &[String]) -> Result<sops::Settings, CreationError> {
    let rule = rule(path)?;
    if !recipients.is_empty() {
        let groups = vec![recipients.to_vec()];
        let kept = rule.map(|rule| rule.settings).unwrap_or_default();
        return Ok(sops::Settings { groups, threshold: None, ..kept });
    }
    match rule {
        Some(rule) => rule.usable().cloned().map_err(CreationError::Unusable),
        None => Err(CreationError::NoRule),
    }
}
