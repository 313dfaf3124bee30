//! Version contracts: which Talos a configuration is written for.

use std::fmt;
use std::str::FromStr;

/// The minor version of Talos that a configuration is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contract {
    V1_10,
    V1_11,
    V1_12,
    V1_13,
    V1_14,
}

/// Not a version of Talos that configurations can be written for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a Talos version that Strata writes configurations for; known are {first} to {last}",
    first = Contract::ALL[0],
    last = Contract::LATEST
)]
pub struct UnknownContract(pub String);

impl Contract {
    pub const ALL: [Self; 5] = [Self::V1_10, Self::V1_11, Self::V1_12, Self::V1_13, Self::V1_14];
    /// What a configuration is written for if nobody says otherwise.
    pub const LATEST: Self = Self::V1_14;

    pub fn minor(self) -> u8 {
        match self {
            Self::V1_10 => 10,
            Self::V1_11 => 11,
            Self::V1_12 => 12,
            Self::V1_13 => 13,
            Self::V1_14 => 14,
        }
    }

    /// The minor versions of Kubernetes that this Talos is made for: six of them, the last one being its default.
    pub(crate) fn kubernetes_minors(self) -> std::ops::RangeInclusive<u16> {
        let last = u16::from(self.minor()) + 23;
        last - 5..=last
    }

    /// The first release of the newest Kubernetes that this Talos is made for.
    pub fn default_kubernetes(self) -> String {
        format!("1.{}.0", self.kubernetes_minors().end())
    }

    /// The same for people.
    pub fn kubernetes_range(self) -> String {
        let minors = self.kubernetes_minors();
        format!("1.{} to 1.{}", minors.start(), minors.end())
    }

    /// Whether this Talos is made for a version of Kubernetes.
    pub fn runs_kubernetes(self, version: &str) -> bool {
        let mut parts = version.strip_prefix('v').unwrap_or(version).split('.');
        let (major, minor) = (parts.next(), parts.next().and_then(|minor| minor.parse().ok()));
        major == Some("1") && minor.is_some_and(|minor| self.kubernetes_minors().contains(&minor))
    }

    /// From 1.12 on, network and registry settings are documents of their own.
    pub(crate) fn network_documents(self) -> bool {
        self >= Self::V1_12
    }

    /// From 1.13 on, KubeSpan is a document of its own, and no empty network section is needed.
    pub(crate) fn kubespan_document(self) -> bool {
        self >= Self::V1_13
    }

    /// From 1.14 on, Kubernetes, discovery, installation, host DNS and most else are documents of their own.
    pub(crate) fn kubernetes_documents(self) -> bool {
        self >= Self::V1_14
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}", self.minor())
    }
}

/// Takes `v1.13`, `1.13` and full versions such as `v1.13.9` or `v1.14.0-rc.1`.
impl FromStr for Contract {
    type Err = UnknownContract;

    fn from_str(text: &str) -> Result<Self, UnknownContract> {
        let unknown = || UnknownContract(text.to_owned());
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let (major, minor) = (parts.next().ok_or_else(unknown)?, parts.next().ok_or_else(unknown)?);
        Self::ALL
            .into_iter()
            .find(|contract| major == "1" && minor == contract.minor().to_string())
            .ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions_and_writes_contracts() {
        for contract in Contract::ALL {
            assert_eq!(contract.to_string().parse(), Ok(contract));
            assert_eq!(format!("{contract}.3-rc.1").parse(), Ok(contract));
            assert_eq!(format!("1.{}", contract.minor()).parse(), Ok(contract));
        }
        for bad in ["", "v1", "v1.9", "v1.15.0", "v2.11", "v1.11x", "latest"] {
            assert_eq!(bad.parse::<Contract>(), Err(UnknownContract(bad.to_owned())), "{bad}");
        }
        assert!(Contract::V1_11 < Contract::LATEST);
    }

    #[test]
    fn knows_which_kubernetes_it_runs() {
        assert_eq!(Contract::V1_10.kubernetes_range(), "1.28 to 1.33");
        assert_eq!(Contract::V1_11.kubernetes_range(), "1.29 to 1.34");
        assert!(Contract::V1_14.runs_kubernetes("v1.37.0") && Contract::V1_14.runs_kubernetes("1.32.4"));
        assert!(!Contract::V1_14.runs_kubernetes("1.31.9") && !Contract::V1_14.runs_kubernetes("1.38.0"));
        assert!(!Contract::V1_14.runs_kubernetes("2.35.0") && !Contract::V1_14.runs_kubernetes("x"));
    }
}
