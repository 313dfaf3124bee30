//! Lists that show only what a login may see: what is not in them is absent only if the login would be shown it.

use strata_engine::{ErrorClass, ProviderError, Sighting, Unseen, Wanted};
use strata_resource::Spec;

use super::family::Family;
use crate::api::ApiErrorKind;
use crate::client::{CallError, Client};
use crate::execute::Work;
use crate::kinds;
use crate::kinds::managed::ManagedKind;
use crate::preflight::Permissions;

/// Any of the privileges on the path, and an object there is listed.
pub(crate) struct ShownBy {
    pub(crate) path: String,
    pub(crate) any_of: &'static [&'static str],
    /// Another path and privilege that do as well.
    pub(crate) or: Option<(&'static str, &'static str)>,
}

impl ShownBy {
    pub(crate) fn any_of(any_of: &'static [&'static str], path: String) -> Self {
        Self { path, any_of, or: None }
    }
}

/// Whether a failed list says something about single objects only.
pub(super) fn is_of_one(error: &CallError) -> bool {
    matches!(error.kind(), Some(ApiErrorKind::NodeUnreachable | ApiErrorKind::Denied { .. }))
}

/// Turns what is not listed into something unknown, unless this login would be shown it.
pub(super) async fn prove_absent(
    client: &Client,
    wanted: &[Wanted<'_>],
    managed: &dyn ManagedKind,
    family: &dyn Family,
    mut sightings: Vec<(usize, Sighting)>,
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let unlisted = |(index, sighting): &(usize, Sighting)| {
        let one = &wanted[*index];
        *sighting == Sighting::Absent && managed.shown_by(one.spec).is_some()
    };
    if !sightings.iter().any(unlisted) {
        return Ok(sightings);
    }
    let permissions = Permissions::read(client).await?;
    for (index, sighting) in sightings.iter_mut().filter(|judged| unlisted(judged)) {
        let one = &wanted[*index];
        if let Some(unseen) = hidden(&permissions, managed, family, one.spec) {
            *sighting = Sighting::Unknown(unseen);
        }
    }
    Ok(sightings)
}

fn hidden(
    permissions: &Permissions,
    managed: &dyn ManagedKind,
    family: &dyn Family,
    spec: &Spec,
) -> Option<Unseen> {
    let ShownBy { path, any_of, or } = managed.shown_by(spec)?;
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
pub(super) async fn prove_gone(work: &Work<'_>, family: &dyn Family) -> Result<(), ProviderError> {
    let spec = &work.operation.spec;
    let Some(managed) = kinds::of(work.operation.address.kind()) else { return Ok(()) };
    if managed.shown_by(spec).is_none() {
        return Ok(());
    }
    match hidden(&Permissions::read(work.client).await?, managed, family, spec) {
        None => Ok(()),
        Some(Unseen { what, hint }) => Err(ProviderError::new(ErrorClass::Refused, what).hint(hint)),
    }
}
