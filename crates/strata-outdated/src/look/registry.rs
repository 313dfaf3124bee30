//! Providers and modules, by the registry that their source names.

use serde_json::Value;
use strata_talos::Version;
use url::Url;

use super::sources::Sources;
use super::{Seen, Unknown, plain};
use crate::constraint::Constraint;
use crate::pin::{Group, Pin};

/// The one that OpenTofu asks where a source names none.
const DEFAULT: &str = "registry.opentofu.org";

pub(super) async fn registry(pin: &Pin, sources: &Sources<'_>) -> Result<Seen, Unknown> {
    let constraint = Constraint::parse(&pin.current).ok_or_else(|| {
        Unknown(format!(
            "`{}` names no single version: only `~> 1.2`, `= 1.2.3` and `1.2.3` are moved",
            pin.current
        ))
    })?;
    let (host, path) = address(&pin.name, pin.group)
        .ok_or_else(|| Unknown(format!("`{}` is not of a registry", pin.name)))?;
    let service = if pin.group == Group::Modules { "modules.v1" } else { "providers.v1" };
    let root =
        Url::parse(&format!("https://{host}/")).map_err(|_| Unknown(format!("`{host}` is not a host")))?;
    let discovery = format!("{root}.well-known/terraform.json");
    let services = sources.json(&discovery).await?;
    let base = services[service].as_str().and_then(|base| root.join(base).ok());
    let base = base.filter(|base| base.scheme() == "https");
    let base = base.ok_or_else(|| sources.nonsense(&discovery, "a list of services of a registry"))?;
    let url = format!("{}/{path}/versions", base.as_str().trim_end_matches('/'));
    let listed = sources.json(&url).await?;
    let versions = match pin.group {
        Group::Modules => &listed["modules"][0]["versions"],
        _ => &listed["versions"],
    };
    let versions = versions.as_array().ok_or_else(|| sources.nonsense(&url, "a list of versions"))?;
    let read = |one: &Value| one["version"].as_str()?.parse::<Version>().ok();
    let versions: Vec<Version> =
        versions.iter().filter_map(read).filter(|version| version.pre.is_empty()).collect();
    let newest = |major: u64| versions.iter().filter(|version| version.major == major).max();
    let next_major =
        versions.iter().map(|version| version.major).filter(|major| *major > constraint.major()).min();
    let proposal = |version: &Version| plain(pin, constraint.of(version));
    let next = newest(constraint.major()).filter(|version| constraint.is_below(version));
    Ok(Seen { next: next.map(proposal), major: next_major.and_then(newest).map(proposal), notes: Vec::new() })
}

/// Host and path of a source: `[host/]namespace/name` of a provider, `[host/]namespace/name/system` of a module.
fn address(source: &str, group: Group) -> Option<(String, String)> {
    let count = if group == Group::Modules { 3 } else { 2 };
    let parts: Vec<&str> = source.split('/').collect();
    let plain = |part: &&str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let (host, rest) = match parts.len().checked_sub(count)? {
        0 => (DEFAULT, &parts[..]),
        1 if parts[0].contains('.') => (parts[0], &parts[1..]),
        _ => return None,
    };
    rest.iter().all(plain).then(|| (host.to_owned(), rest.join("/")))
}
