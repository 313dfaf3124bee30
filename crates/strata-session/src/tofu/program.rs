//! The user's own OpenTofu, or Terraform.

use std::path::{Path, PathBuf};
use std::process::Command;

use strata_tofu::REQUIRED_VERSION;

use crate::error::SessionError;
use crate::surroundings::Surroundings;

pub struct Program {
    pub path: PathBuf,
    /// OpenTofu can encrypt states and plans; Terraform cannot.
    pub is_tofu: bool,
}

impl Program {
    pub(crate) fn find(surroundings: &Surroundings) -> Result<Self, SessionError> {
        let path = match surroundings.variable("STRATA_TOFU").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => search(surroundings).ok_or_else(|| {
                SessionError::failed("there is neither `tofu` nor `terraform` on the search path").hint(
                    "install OpenTofu 1.11 or newer, or name it in STRATA_TOFU; what Strata makes itself does not need it",
                )
            })?,
        };
        let failed =
            |reason: String| SessionError::failed(format!("cannot use `{}`: {reason}", path.display()));
        let output = Command::new(&path)
            .args(["version", "-json"])
            .output()
            .map_err(|error| failed(error.to_string()).hint("STRATA_TOFU names it, or the search path"))?;
        let said = strata_tofu::asked_for(&output.stdout)
            .map_err(|_| failed("it does not say its version".to_owned()))?;
        let version = said["terraform_version"].as_str().unwrap_or_default();
        if parse(version).is_none_or(|version| version < REQUIRED_VERSION) {
            let (major, minor) = REQUIRED_VERSION;
            return Err(failed(format!("it is version `{version}`, and {major}.{minor} is needed at least"))
                .hint("install a newer one, or name it in STRATA_TOFU"));
        }
        let is_tofu = is_tofu(&path);
        Ok(Self { path, is_tofu })
    }
}

fn search(surroundings: &Surroundings) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(surroundings.variable("PATH")?).collect();
    ["tofu", "terraform"]
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Both say their version alike; only the words before it differ.
fn is_tofu(path: &Path) -> bool {
    let said = Command::new(path).arg("version").output().map(|output| output.stdout).unwrap_or_default();
    // A warning about the user's settings may come first.
    String::from_utf8_lossy(&said).lines().any(|line| line.starts_with("OpenTofu v"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare() {
        assert!(parse("1.11.0").is_some_and(|version| version >= REQUIRED_VERSION));
        assert!(parse("1.9.4").is_some_and(|version| version < REQUIRED_VERSION));
        assert!(parse("").is_none());
    }
}
