//! Which versions go together, and which can follow each other.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::contract::Contract;

/// A version of Talos or of Kubernetes, such as `v1.13.9` or `1.14.0-rc.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    /// `rc.1` of `1.14.0-rc.1`; empty for a release.
    pub pre: String,
}

/// Why a version cannot be used, or not now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompatibilityError {
    #[error("`{0}` is not a version such as `v1.13.9`")]
    NotVersion(String),
    #[error("Talos {0} is not known; known are {first} to {last}", first = Contract::ALL[0], last = Contract::LATEST)]
    UnknownTalos(Version),
    #[error("Talos {talos} does not run Kubernetes {kubernetes}, but {supported}")]
    Pair { talos: Version, kubernetes: Version, supported: String },
    #[error("{what} cannot go back from {from} to {to}")]
    Downgrade { what: &'static str, from: Version, to: Version },
    #[error("{what} goes up one minor version at a time: from {from} to v1.{next} first, then on to {to}")]
    Skips { what: &'static str, from: Version, to: Version, next: u64 },
}

impl FromStr for Version {
    type Err = CompatibilityError;

    fn from_str(text: &str) -> Result<Self, CompatibilityError> {
        let refuse = || CompatibilityError::NotVersion(text.to_owned());
        let bare = text.strip_prefix('v').unwrap_or(text);
        // What comes after a plus says how it was built.
        let bare = bare.split_once('+').map_or(bare, |(version, _)| version);
        let (core, pre) = bare.split_once('-').unwrap_or((bare, ""));
        let numbers: Vec<u64> = core
            .split('.')
            .map(|part| part.parse().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit())))
            .collect::<Option<_>>()
            .ok_or_else(refuse)?;
        let [major, minor, patch] = numbers[..] else { return Err(refuse()) };
        Ok(Self { major, minor, patch, pre: pre.to_owned() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch, pre } = self;
        write!(f, "v{major}.{minor}.{patch}")?;
        if pre.is_empty() { Ok(()) } else { write!(f, "-{pre}") }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As versions are counted: a release comes after what led to it.
impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let core = |version: &Self| (version.major, version.minor, version.patch);
        core(self).cmp(&core(other)).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => parts(&self.pre).cmp(parts(&other.pre)),
        })
    }
}

/// Numbers are less than words, and compared as numbers.
fn parts(pre: &str) -> impl Iterator<Item = (bool, u64, &str)> {
    pre.split('.').map(|part| match part.parse::<u64>() {
        Ok(number) => (false, number, ""),
        Err(_) => (true, 0, part),
    })
}

impl Version {
    /// The Talos that this is a version of.
    fn contract(&self) -> Result<Contract, CompatibilityError> {
        let known = Contract::ALL.into_iter().find(|contract| u64::from(contract.minor()) == self.minor);
        known.filter(|_| self.major == 1).ok_or_else(|| CompatibilityError::UnknownTalos(self.clone()))
    }
}

/// Whether this Talos runs this Kubernetes.
pub fn check_pair(talos: &Version, kubernetes: &Version) -> Result<(), CompatibilityError> {
    let contract = talos.contract()?;
    if contract.runs_kubernetes(&kubernetes.to_string()) {
        return Ok(());
    }
    Err(CompatibilityError::Pair {
        talos: talos.clone(),
        kubernetes: kubernetes.clone(),
        supported: contract.kubernetes_range(),
    })
}

/// Whether a node can go from one Talos to the other. What the node runs by then has to fit too: [`check_pair`].
///
/// Talos itself would skip a minor version and go back; neither is tried often, and each minor migrates what the one before
/// it wrote.
pub fn check_talos_upgrade(from: &Version, to: &Version) -> Result<(), CompatibilityError> {
    to.contract()?;
    check_step("Talos", from, to)
}

/// Whether a cluster on this Talos can go from one Kubernetes to the other.
pub fn check_kubernetes_upgrade(
    from: &Version,
    to: &Version,
    talos: &Version,
) -> Result<(), CompatibilityError> {
    check_step("Kubernetes", from, to)?;
    check_pair(talos, to)
}

fn check_step(what: &'static str, from: &Version, to: &Version) -> Result<(), CompatibilityError> {
    let (from, to) = (from.clone(), to.clone());
    if to < from {
        return Err(CompatibilityError::Downgrade { what, from, to });
    }
    let next = from.minor + 1;
    if from.major != to.major || to.minor > next {
        return Err(CompatibilityError::Skips { what, from, to, next });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn said<T>(result: Result<T, CompatibilityError>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn versions_are_counted_as_versions_are() {
        let ordered = [
            "1.13.9",
            "v1.14.0-alpha.2",
            "v1.14.0-alpha.10",
            "v1.14.0-beta.0",
            "v1.14.0-rc.1",
            "v1.14.0",
            "v1.14.1+abc",
        ];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("1.14.0-rc.1").to_string(), "v1.14.0-rc.1");
        assert_eq!(version("v1.2.3"), version("1.2.3"));
        for bad in ["", "v1", "1.2", "1.2.3.4", "1.x.3", "1.+2.3", "latest"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
    }

    #[test]
    fn pairs_are_those_of_talos() {
        for (talos, lowest, highest) in [(11, 29, 34), (12, 30, 35), (13, 31, 36), (14, 32, 37)] {
            let talos = version(&format!("1.{talos}.2"));
            for minor in lowest - 1..=highest + 1 {
                let fits = check_pair(&talos, &version(&format!("1.{minor}.3"))).is_ok();
                assert_eq!(fits, (lowest..=highest).contains(&minor), "{talos} {minor}");
            }
        }
        assert_eq!(
            said(check_pair(&version("1.13.0"), &version("1.37.0"))),
            "Talos v1.13.0 does not run Kubernetes v1.37.0, but 1.31 to 1.36"
        );
        assert!(said(check_pair(&version("1.15.0"), &version("1.37.0"))).contains("is not known"));
    }

    #[test]
    fn talos_goes_up_one_minor_at_a_time() {
        let check = |from, to| said(check_talos_upgrade(&version(from), &version(to)));
        for (from, to) in
            [("1.11.0", "1.11.6"), ("1.11.0", "1.12.4"), ("1.13.9", "1.14.0-rc.1"), ("1.13.1", "1.13.1")]
        {
            assert_eq!(check(from, to), "", "{from} {to}");
        }
        assert_eq!(
            check("1.11.3", "1.13.0"),
            "Talos goes up one minor version at a time: from v1.11.3 to v1.12 first, then on to v1.13.0"
        );
        assert_eq!(check("1.13.0", "1.12.9"), "Talos cannot go back from v1.13.0 to v1.12.9");
        assert_eq!(check("1.14.0", "1.14.0-rc.1"), "Talos cannot go back from v1.14.0 to v1.14.0-rc.1");
        assert!(check("1.14.0", "1.15.0").contains("is not known"));
        assert_eq!(check("1.10.7", "1.11.0"), "");
    }

    #[test]
    fn kubernetes_goes_up_one_minor_at_a_time_within_what_talos_runs() {
        let check =
            |from, to| said(check_kubernetes_upgrade(&version(from), &version(to), &version("1.13.9")));
        assert_eq!(check("1.34.1", "1.35.0"), "");
        assert_eq!(check("1.35.0", "1.35.4"), "");
        assert!(check("1.33.0", "1.35.0").contains("to v1.34 first"));
        assert!(check("1.35.0", "1.34.9").contains("cannot go back"));
        assert!(check("1.36.0", "1.37.0").contains("does not run"));
    }
}
