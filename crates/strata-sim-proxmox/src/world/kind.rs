//! Which datacenter to begin with.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which datacenter to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorldKind {
    /// Three nodes, local and shared storages, a pool, a role with its token.
    #[default]
    Default,
    /// One node `pve`, storage `local`, bridge `vmbr0`, one ISO and one container template.
    Single,
    /// Three nodes that people have run by hand for years: sixty guests, and all that stands around them.
    LivedIn,
}

impl FromStr for WorldKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self::Default),
            "single" => Ok(Self::Single),
            "lived-in" => Ok(Self::LivedIn),
            other => Err(format!("unknown world `{other}`, expected `default`, `single` or `lived-in`")),
        }
    }
}
