//! Flux, by the list of its releases.

use serde_json::Value;
use strata_source::value::checksum::{Algorithm, Checksum};
use strata_talos::Version;

use super::sources::Sources;
use super::talos::{as_written, version_of};
use super::{Proposal, Seen, Unknown, edit_at};
use crate::pin::{At, Pin};

const RELEASES: &str = "https://api.github.com/repos/fluxcd/flux2/releases";
const MANIFESTS: &str = "install.yaml";

pub(super) async fn flux(
    pin: &Pin,
    checksum: Option<&(At, Checksum)>,
    elsewhere: bool,
    sources: &Sources<'_>,
) -> Result<Seen, Unknown> {
    let current = version_of(pin)?;
    let url = format!("{RELEASES}?per_page=50");
    let listed = sources.json(&url).await?;
    let releases = listed.as_array().ok_or_else(|| sources.nonsense(&url, "a list of releases"))?;
    let is_final = |release: &&Value| release["draft"] != true && release["prerelease"] != true;
    let known = releases.iter().filter(is_final).filter_map(|release| {
        let version: Version = release["tag_name"].as_str()?.parse().ok()?;
        (version.pre.is_empty()).then_some((version, release))
    });
    let known: Vec<(Version, &Value)> = known.collect();
    if known.is_empty() {
        return Err(sources.nonsense(&url, "a list of releases"));
    }
    let newest = |major: u64| {
        let own = known.iter().filter(|(version, _)| version.major == major && *version > current);
        own.max_by(|(one, _), (other, _)| one.cmp(other))
    };
    let proposal = |(version, release): &(Version, &Value)| {
        let plain = as_written(pin, version);
        let edits = match (elsewhere, checksum) {
            (true, _) => {
                Err("its manifests are named apart from its version: change both by hand".to_owned())
            }
            (false, None) => plain.edits,
            (false, Some((at, before))) => plain.edits.and_then(|mut edits| {
                let after = digest(release).ok_or_else(|| {
                    format!("the release names no checksum of `{MANIFESTS}`: take it from its page")
                })?;
                edits.push(edit_at(pin, at, before.to_string(), after.to_string()));
                Ok(edits)
            }),
        };
        Proposal { version: plain.version, edits }
    };
    let majors = known.iter().map(|(version, _)| version.major).filter(|major| *major > current.major);
    let next_major = majors.min();
    Ok(Seen {
        next: newest(current.major).map(proposal),
        major: next_major.and_then(newest).map(proposal),
        notes: Vec::new(),
    })
}

/// The checksum that the list of releases itself has of the manifests.
fn digest(release: &Value) -> Option<Checksum> {
    let assets = release["assets"].as_array()?;
    let own = assets.iter().find(|asset| asset["name"] == MANIFESTS)?;
    let hex = own["digest"].as_str()?.strip_prefix("sha256:")?;
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| Checksum { algorithm: Algorithm::Sha256, hex: hex.to_ascii_lowercase() })
}
