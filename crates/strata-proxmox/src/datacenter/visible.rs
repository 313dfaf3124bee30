//! Lists that show only what a login may see: what is not in them is absent only if the login would be shown it.

use strata_engine::{ErrorClass, ProviderError, Sighting, Unseen, Wanted};
use strata_resource::{Kind, Spec};

use super::family::{Family, spec_text};
use crate::api::ApiErrorKind;
use crate::client::{CallError, Client};
use crate::kinds;
use crate::preflight::Permissions;

/// Any of the privileges on the path, and an object there is listed.
struct Shown {
    path: String,
    any_of: &'static [&'static str],
    /// Another path and privilege that do as well.
    or: Option<(&'static str, &'static str)>,
}

/// What decides whether an object is listed; none for kinds whose list is complete or refused as a whole.
fn shown(kind: Kind, spec: &Spec) -> Option<Shown> {
    let text = |field: &str| spec_text(spec, field).to_owned();
    let (path, any_of): (String, &'static [&'static str]) = match kind {
        kinds::POOL => (format!("/pool/{}", text("pool")), &["Pool.Audit"]),
        kinds::STORAGE => {
            (format!("/storage/{}", text("storage")), &["Datastore.Audit", "Datastore.AllocateSpace"])
        }
        kinds::MAPPING => (
            format!("/mapping/{}/{}", text("bus"), text("mapping")),
            &["Mapping.Audit", "Mapping.Modify", "Mapping.Use"],
        ),
        kinds::GROUP => {
            (format!("/access/groups/{}", text("group")), &["Sys.Audit", "User.Modify", "Group.Allocate"])
        }
        kinds::USER | kinds::TOKEN => ("/access/groups".to_owned(), &["User.Modify", "Sys.Audit"]),
        kinds::ACL => {
            (text("path"), &["Permissions.Modify", "VM.Allocate", "Datastore.Allocate", "Pool.Allocate"])
        }
        _ => return None,
    };
    let or = (kind == kinds::ACL).then_some(("/access", "Sys.Audit"));
    Some(Shown { path, any_of, or })
}

/// Whether a failed list says something about single objects only.
pub(super) fn is_of_one(error: &CallError) -> bool {
    matches!(error.kind(), Some(ApiErrorKind::NodeUnreachable | ApiErrorKind::Denied { .. }))
}

/// Turns what is not listed into something unknown, unless this login would be shown it.
pub(super) async fn prove_absent(
    client: &Client,
    wanted: &[Wanted<'_>],
    family: &dyn Family,
    mut sightings: Vec<(usize, Sighting)>,
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let unlisted = |(index, sighting): &(usize, Sighting)| {
        let one = &wanted[*index];
        *sighting == Sighting::Absent && shown(one.address.kind(), one.spec).is_some()
    };
    if !sightings.iter().any(unlisted) {
        return Ok(sightings);
    }
    let permissions = Permissions::read(client).await?;
    for (index, sighting) in sightings.iter_mut().filter(|judged| unlisted(judged)) {
        let one = &wanted[*index];
        if let Some(unseen) = hidden(&permissions, family, one.address.kind(), one.spec) {
            *sighting = Sighting::Unknown(unseen);
        }
    }
    Ok(sightings)
}

fn hidden(permissions: &Permissions, family: &dyn Family, kind: Kind, spec: &Spec) -> Option<Unseen> {
    let Shown { path, any_of, or } = shown(kind, spec)?;
    let elsewhere = or.is_some_and(|(path, privilege)| permissions.has(path, privilege));
    if elsewhere || any_of.iter().any(|privilege| permissions.has(&path, privilege)) {
        return None;
    }
    let named = format!("{} `{}`", family.word(), family.key(spec).unwrap_or_default());
    let privileges: Vec<String> = any_of.iter().map(|privilege| format!("`{privilege}`")).collect();
    Some(Unseen::new(
        format!("whether {named} is there cannot be seen: this login is not shown it"),
        format!("give the login {} on `{path}`, then plan again", privileges.join(" or ")),
    ))
}

/// The same in the middle of an operation: an object that is gone from the list must have been seen to go.
pub(super) async fn prove_gone(
    client: &Client,
    family: &dyn Family,
    kind: Kind,
    spec: &Spec,
) -> Result<(), ProviderError> {
    if shown(kind, spec).is_none() {
        return Ok(());
    }
    match hidden(&Permissions::read(client).await?, family, kind, spec) {
        None => Ok(()),
        Some(Unseen { what, hint }) => Err(ProviderError::new(ErrorClass::Refused, what).hint(hint)),
    }
}
