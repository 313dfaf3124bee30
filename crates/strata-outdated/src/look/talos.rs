//! Talos and Kubernetes: what goes together, one minor version at a time.

use std::collections::{BTreeMap, BTreeSet};

use strata_talos::{
    CompatibilityError, Contract, Version, check_kubernetes_upgrade, check_pair, check_talos_upgrade,
};

use super::sources::Sources;
use super::{Proposal, Seen, Unknown, plain};
use crate::pin::Pin;

const FACTORY: &str = "https://factory.talos.dev";
const KUBERNETES: &str = "https://dl.k8s.io/release";

pub(super) async fn talos(
    pin: &Pin,
    kubernetes: &[Version],
    extensions: &BTreeSet<String>,
    sources: &Sources<'_>,
) -> Result<Seen, Unknown> {
    let current = version_of(pin)?;
    let url = format!("{FACTORY}/versions");
    let listed = sources.json(&url).await?;
    let listed: Option<Vec<&str>> =
        listed.as_array().and_then(|list| list.iter().map(|one| one.as_str()).collect());
    let listed = listed.filter(|list| !list.is_empty());
    let Some(listed) = listed else { return Err(sources.nonsense(&url, "a list of versions")) };
    let newer = newest_of_each_minor(listed.iter().filter_map(|text| text.parse().ok()), &current);
    let fits = |version: &Version| {
        check_talos_upgrade(&current, version).map_err(Box::new)?;
        kubernetes.iter().try_for_each(|own| check_pair(version, own).map_err(Box::new))
    };
    let mut seen = Seen::default();
    for version in newer.into_iter().rev() {
        if let Err(error) = fits(&version) {
            seen.notes.extend(told(&version, &error));
            continue;
        }
        if seen.next.is_some() {
            continue;
        }
        match lacking(&version, extensions, sources).await? {
            lacking if lacking.is_empty() => seen.next = Some(as_written(pin, &version)),
            lacking => {
                let names = lacking.join(", ");
                seen.notes.push(format!("{version} is there, without the extension {names}"));
            }
        }
    }
    let target = seen.next.as_ref().and_then(|next| next.version.parse().ok());
    seen.notes.extend(extension_notes(&current, target.as_ref(), extensions, sources).await?);
    Ok(seen)
}

pub(super) async fn kubernetes(pin: &Pin, talos: &[Version], sources: &Sources<'_>) -> Result<Seen, Unknown> {
    let current = version_of(pin)?;
    let mut seen = Seen::default();
    let mut found = Vec::new();
    for minor in [current.minor, current.minor + 1] {
        let url = format!("{KUBERNETES}/stable-{}.{minor}.txt", current.major);
        let Some(answer) = sources.text_if_there(&url).await? else { continue };
        let version = answer.text.trim().parse::<Version>().ok();
        // An answer of another minor version is none.
        let version = version.filter(|one| (one.major, one.minor) == (current.major, minor));
        found.push(version.ok_or_else(|| sources.nonsense(&url, "a version of Kubernetes"))?);
    }
    for version in newest_of_each_minor(found.into_iter(), &current).into_iter().rev() {
        let fits = |own| check_kubernetes_upgrade(&current, &version, own).map_err(Box::new);
        let fits = talos.iter().try_for_each(fits);
        match fits {
            Ok(()) if seen.next.is_none() => seen.next = Some(as_written(pin, &version)),
            Ok(()) => {}
            Err(error) => seen.notes.extend(told(&version, &error)),
        }
    }
    Ok(seen)
}

pub(super) fn version_of(pin: &Pin) -> Result<Version, Unknown> {
    pin.current.parse().map_err(|error: CompatibilityError| Unknown(error.to_string()))
}

/// The same with or without a `v`, as the pin is written.
pub(super) fn as_written(pin: &Pin, version: &Version) -> Proposal {
    let text = version.to_string();
    let bare = text.trim_start_matches('v');
    plain(pin, if pin.current.starts_with('v') { text.clone() } else { bare.to_owned() })
}

/// Newer ones, in order. Pre-releases count only where the pin is one itself.
fn newest_of_each_minor(all: impl Iterator<Item = Version>, current: &Version) -> Vec<Version> {
    let mut newest: BTreeMap<(u64, u64), Version> = BTreeMap::new();
    let counts = |one: &Version| one > current && (one.pre.is_empty() || !current.pre.is_empty());
    for version in all.filter(counts) {
        let best = newest.entry((version.major, version.minor)).or_insert_with(|| version.clone());
        if *best < version {
            *best = version;
        }
    }
    newest.into_values().collect()
}

fn told(version: &Version, error: &CompatibilityError) -> Option<String> {
    Some(match error {
        CompatibilityError::UnknownTalos(_) => {
            let (first, last) = (Contract::ALL[0], Contract::LATEST);
            format!("{version} is there, which this Strata does not know: it knows {first} to {last}")
        }
        CompatibilityError::Pair { .. } => format!("{version} is there: {error}"),
        CompatibilityError::Skips { .. } => format!("after that, {version}"),
        CompatibilityError::NotVersion(_) | CompatibilityError::Downgrade { .. } => return None,
    })
}

/// The tags of the official extensions of a version, by name.
async fn official(
    version: &Version,
    sources: &Sources<'_>,
) -> Result<Option<BTreeMap<String, String>>, Unknown> {
    let url = format!("{FACTORY}/version/{version}/extensions/official");
    let Some(answer) = sources.text_if_there(&url).await? else { return Ok(None) };
    let listed: Option<Vec<serde_json::Value>> = serde_json::from_str(&answer.text).ok();
    let listed = listed.ok_or_else(|| sources.nonsense(&url, "a list of extensions"))?;
    let named = |one: &serde_json::Value| {
        let tag = one["ref"].as_str().and_then(|name| name.rsplit_once(':')).map(|(_, tag)| tag);
        Some((one["name"].as_str()?.to_owned(), tag.unwrap_or_default().to_owned()))
    };
    Ok(Some(listed.iter().filter_map(named).collect()))
}

/// Extensions that a version does not have.
async fn lacking<'e>(
    version: &Version,
    extensions: &'e BTreeSet<String>,
    sources: &Sources<'_>,
) -> Result<Vec<&'e str>, Unknown> {
    if extensions.is_empty() {
        return Ok(Vec::new());
    }
    let Some(known) = official(version, sources).await? else {
        return Ok(extensions.iter().map(String::as_str).collect());
    };
    Ok(extensions.iter().filter(|name| !known.contains_key(*name)).map(String::as_str).collect())
}

/// What comes with Talos: extensions have no version of their own in the source.
async fn extension_notes(
    current: &Version,
    next: Option<&Version>,
    extensions: &BTreeSet<String>,
    sources: &Sources<'_>,
) -> Result<Vec<String>, Unknown> {
    let Some(next) = next.filter(|_| !extensions.is_empty()) else { return Ok(Vec::new()) };
    let before = official(current, sources).await?.unwrap_or_default();
    let after = official(next, sources).await?.unwrap_or_default();
    let tag = |known: &BTreeMap<String, String>, name: &String| {
        known.get(name).filter(|tag| !tag.is_empty()).cloned().unwrap_or_else(|| "?".to_owned())
    };
    let changed = extensions.iter().filter(|name| tag(&before, name) != tag(&after, name));
    Ok(changed.map(|name| format!("{name} {} → {}", tag(&before, name), tag(&after, name))).collect())
}
