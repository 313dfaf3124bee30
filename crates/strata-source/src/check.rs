//! Checks across files: what no single file can know.

mod bundles;
mod clusters;
mod collisions;
mod gitops;
mod guests;
mod hypervisors;
mod images;
mod layers;
mod left_out;
mod machines;
mod moved;
mod network;
mod objects;
mod outputs;
mod ranges;
mod secrets;
mod storages;
mod targets;
mod templates;
mod vips;

pub use gitops::FLUX_HOMELESS;

use strata_diagnostics::Diagnostics;

use crate::repository::Repository;
use crate::world::World;

pub(crate) fn check(repository: &Repository, world: &dyn World, diagnostics: &mut Diagnostics) {
    targets::check(repository, world, diagnostics);
    layers::check(repository, diagnostics);
    left_out::check(repository, diagnostics);
    templates::check(repository, diagnostics);
    images::check(repository, diagnostics);
    storages::check(repository, diagnostics);
    machines::check(repository, diagnostics);
    hypervisors::check(repository, diagnostics);
    objects::check(repository, diagnostics);
    moved::check(repository, diagnostics);
    network::check(repository, diagnostics);
    clusters::check(repository, diagnostics);
    outputs::check(repository, diagnostics);
    gitops::check(repository, diagnostics);
    let guests = guests::all(repository, diagnostics);
    collisions::check(repository, &guests, diagnostics);
    vips::check(repository, &guests, diagnostics);
    ranges::check(repository, &guests, diagnostics);
    secrets::check(repository, world, diagnostics);
    bundles::check(repository, world, diagnostics);
}

/// The nearest name as a hint, or all of them where none is near.
pub(crate) fn suggestion(typed: &str, known: &[&str]) -> Option<String> {
    if let Some(meant) = strata_diagnostics::nearest(typed, known.iter().copied()) {
        return Some(format!("did you mean `{meant}`?"));
    }
    match known {
        [] => None,
        known if known.len() <= 12 => Some(format!("known here: {}", known.join(", "))),
        known => Some(format!("known here: {} and {} more", known[..12].join(", "), known.len() - 12)),
    }
}
